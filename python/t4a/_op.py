"""Operations: values that run, and have derivatives that are operations."""

import ctypes
import json
from ctypes import byref, c_int64, c_size_t, c_void_p, create_string_buffer, sizeof
from functools import lru_cache

from ._builtin import builtin
from ._dlpack import Result, borrowed
from ._library import MAX_RANK, ArgumentError, DLDataType, DtypeError, EinsumOptions, Meta, Operand, ShapeError
from ._library import UnsupportedError, call, lib, raise_error

# Names of numpy for the dtypes of DLPack.
_NAMES = {
    (2, 64): "float64", (2, 32): "float32", (2, 16): "float16", (4, 16): "bfloat16",
    (5, 64): "complex64", (5, 128): "complex128",
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
    (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
    (6, 8): "bool",
}
_CODES = {name: code for code, name in _NAMES.items()}


def _dtype(name):
    try:
        return DLDataType(*_CODES[str(name)], 1)
    except KeyError:
        raise DtypeError(f"there are no tensors of {name}") from None


def _flags(flags):
    return bytes(bool(flag) for flag in flags)


class Op:
    """An operation. Two with the same text are the same operation."""

    __slots__ = ("_handle", "_text", "_made", "address")

    def __init__(self, handle):
        self._handle, self._text, self._made = handle, None, {}
        # Of the handle, which lives as long as this object.
        self.address = handle.value

    def __del__(self):
        lib.t4a_op_free(self._handle)

    @staticmethod
    def parse(text):
        """The operation of a text."""
        return _parse(text)

    @staticmethod
    def of(data):
        """The operation of the part of the text that names it: `{"softmax": {"axis": 1}}`."""
        return _parse(json.dumps({"t4a": 1, "op": data}, separators=(",", ":")))

    @staticmethod
    def einsum(labels, shapes, result, semiring="standard", memory=None, dtype="float64"):
        """A contraction: a label, any integer, for each axis of each operand and of the result."""
        labels, shapes = tuple(map(tuple, labels)), tuple(map(tuple, shapes))
        return _einsum(labels, shapes, tuple(result), semiring, memory, str(dtype))

    @property
    def text(self):
        """JSON, with a version."""
        if self._text is None:
            length = lib.t4a_op_text(self._handle, None, 0)
            buffer = create_string_buffer(length + 1)
            lib.t4a_op_text(self._handle, buffer, length + 1)
            self._text = buffer.value.decode()
        return self._text

    def __repr__(self):
        return f"Op({self.text})"

    def __eq__(self, other):
        return isinstance(other, Op) and self.text == other.text

    def __hash__(self):
        return hash(self.text)

    def jvp(self, moving):
        """Operands, tangents of those that move -> results, tangents of all results, indices."""
        moving = _flags(moving)
        return self._derived("t4a_op_jvp", moving)

    def vjp(self, given, wanted):
        """Operands, cotangents of the results given -> cotangents of the operands wanted."""
        return self._derived("t4a_op_vjp", _flags(given), _flags(wanted))

    def vjp_of_results(self, given, wanted):
        """Operands, all results, cotangents of the results given -> cotangents of the operands wanted: the results are
        not computed again. None if the rule reads no results, or more than operands and results."""
        key = ("t4a_op_vjp_of_results", _flags(given), _flags(wanted))
        try:
            return self._derived(*key)
        except UnsupportedError:
            self._made[key] = None
            return None

    def _derived(self, function, *flags):
        """An operation that a function of the library makes of this one, once for each set of flags."""
        key = (function, *flags)
        if key not in self._made:
            out = c_void_p()
            call(getattr(lib, function), self._handle, *(x for mask in flags for x in (mask, len(mask))), byref(out))
            self._made[key] = Op(out)
        return self._made[key]

    def batch(self, size, differ):
        """The operation on examples: operands that differ, and all results, have one more axis in front."""
        out = c_void_p()
        call(lib.t4a_op_batch, self._handle, size, _flags(differ), len(differ), byref(out))
        return Op(out)

    def on_batch(self, size, axes, examples):
        """The operation on a batch, with the axis in front: of the operands that have one (`axes` is not None), or
        of all; with flags of operands that must have it. None if it has no such form. `examples` describe operands.
        """
        differ = [axis is not None for axis in axes]
        for everywhere in (differ, [True] * len(differ)):
            try:
                whole = self.batch(size, everywhere)
                stacked = [
                    ((size, *shape) if here else shape, name) for (shape, name), here in zip(examples, everywhere)
                ]
                if whole.results(stacked) == [((size, *shape), name) for shape, name in self.results(examples)]:
                    return whole, everywhere
            except (UnsupportedError, ShapeError, ArgumentError):
                continue
        return None

    def results(self, operands):
        """Shapes and names of dtypes of the results, of those of operands: pairs."""
        metas = (Meta * len(operands))()
        for meta, (shape, dtype) in zip(metas, operands):
            if len(shape) > MAX_RANK:
                raise ShapeError(f"{len(shape)} axes, at most {MAX_RANK}")
            meta.size, meta.rank, meta.dtype = sizeof(Meta), len(shape), _dtype(dtype)
            meta.shape[: len(shape)] = shape
        count = c_size_t()
        call(lib.t4a_op_results, self._handle, metas, len(operands), None, 0, byref(count))
        found = (Meta * count.value)()
        call(lib.t4a_op_results, self._handle, metas, len(operands), found, count.value, byref(count))
        return [(tuple(x.shape[: x.rank]), _NAMES[x.dtype.code, x.dtype.bits]) for x in found]

    def run(self, *operands):
        """The results, for consumers of DLPack: of tensors of any producer, which are not copied."""
        all = [borrowed(x) for x in operands]
        return [Result(handle) for handle in self.run_at(*[address for _, address in all])]

    def compute(self, kind, operands):
        """The results as arrays of NumPy (`kind` 0) or tensors of PyTorch (1); None where only `__dlpack__` describes an
        operand."""
        if builtin is None:
            return None
        found = builtin.run(self.address, kind, operands)
        if type(found) is int:
            raise_error(found)
        return found

    def run_at(self, *addresses):
        """Handles of the results, of operands that are described at these addresses."""
        count, found = len(addresses), c_size_t()
        out, error = _Handles(), c_void_p()
        if lib.t4a_run(self._handle, _ADDRESSES[count](*addresses), count, out, _ROOM, byref(found), byref(error)):
            raise_error(error)
        return out[: found.value]


def find(key, kind, operands):
    """The result of the operation kept for this key and for operands of these shapes and dtypes; None if there is none."""
    if builtin is None:
        return None
    found = builtin.find(key, kind, operands)
    if type(found) is int:
        raise_error(found)
    return found


def keep(key, operands, op, is_number):
    """Keeps an operation with one result for `find`. `is_number`: operand and result have one more axis in front."""
    if builtin is not None:
        builtin.keep(key, operands, op.address, op, int(is_number))


# More results than any operation of the library has, and its derivatives to third order.
_ROOM = 64
_Handles = c_void_p * _ROOM


class _Arrays(dict):
    """Array types by length."""

    def __missing__(self, count):
        self[count] = c_void_p * count
        return self[count]


_ADDRESSES = _Arrays()


@lru_cache(maxsize=512)
def _parse(text):
    out, data = c_void_p(), text.encode()
    call(lib.t4a_op_parse, data, len(data), byref(out))
    return Op(out)


@lru_cache(maxsize=512)
def _einsum(labels, shapes, result, semiring, memory, dtype):
    operands = (Operand * len(labels))()
    kept = []
    for operand, names, sizes in zip(operands, labels, shapes, strict=True):
        if len(names) != len(sizes):
            raise ShapeError(f"{len(names)} labels for the shape {tuple(sizes)}")
        arrays = [(c_int64 * len(names))(*x) for x in (names, sizes)]
        kept.append(arrays)
        operand.size, operand.rank = sizeof(Operand), len(names)
        operand.labels, operand.shape = (ctypes.addressof(x) for x in arrays)
    options = EinsumOptions(sizeof(EinsumOptions), semiring.encode(), memory or 0, _dtype(dtype))
    to, out = (c_int64 * len(result))(*result), c_void_p()
    call(lib.t4a_op_einsum, operands, len(labels), to, len(result), byref(options), byref(out))
    return Op(out)
