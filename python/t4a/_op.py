"""Operations as values. Their derivatives are operations too."""

import ctypes
import json
from ctypes import byref, c_int64, c_size_t, c_void_p, create_string_buffer, sizeof
from functools import lru_cache
from operator import index

from ._builtin import builtin
from ._checks import integer, integers
from ._dlpack import Result, borrowed, is_on_cuda
from ._library import MAX_RANK, ArgumentError, DLDataType, DtypeError, EinsumOptions, Meta, Operand, ShapeError
from ._library import UnsupportedError, call, lib, raise_error

# NumPy names of DLPack dtypes (code, bits).
NAMES = {
    (2, 64): "float64", (2, 32): "float32", (2, 16): "float16", (4, 16): "bfloat16",
    (5, 64): "complex64", (5, 128): "complex128",
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
    (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
    (6, 8): "bool",
}
CODES = {name: code for code, name in NAMES.items()}


def _dtype(name):
    try:
        return DLDataType(*CODES[str(name)], 1)
    except KeyError:
        raise DtypeError(f"there are no tensors of {name}") from None


def labels_as_integers(owner, labels):
    """Labels of an operand or of the result as a tuple of integers of 64 bits."""
    try:
        given = tuple(labels)
    except TypeError:
        raise ArgumentError(f"einsum: labels {labels!r} of {owner}: a list of integers is required") from None
    for label in given:
        if not hasattr(label, "__index__") or not -(2**63) <= index(label) < 2**63:
            raise ArgumentError(f"einsum: label {label!r} of {owner}: an integer of 64 bits is required")
    return tuple(map(index, given))


def _flags(flags):
    return bytes(bool(flag) for flag in flags)


class Op:
    """An operation. Operations with equal texts are equal."""

    __slots__ = ("_handle", "_text", "_made", "address", "saved", "on_cuda")

    def __init__(self, handle):
        self._handle, self._text, self._made = handle, None, {}
        # Address of the operation, valid during the lifetime of this object.
        self.address = handle.value
        # Tensors that a tape saves, by the dtypes of operands and results.
        self.saved = {}
        # The operation of the library for CUDA, made by the first call on CUDA tensors.
        self.on_cuda = None

    def __del__(self):
        lib.t4a_op_free(self._handle)

    def __reduce__(self):
        if not self.text:
            raise UnsupportedError("an operation with numbers that its text cannot represent")
        return Op.parse, (self.text,)

    @staticmethod
    def parse(text):
        """Parses the text of an operation."""
        if not isinstance(text, str):
            raise ArgumentError(f"the text of an operation is required, given {type(text).__name__}")
        return _parse(text)

    @staticmethod
    def of(data):
        """The operation from its part of the text, for example `{"softmax": {"axis": 1}}`."""
        return _parse(json.dumps({"t4a": 1, "op": data}, separators=(",", ":")))

    @staticmethod
    def einsum(labels, shapes, result, semiring="standard", memory=None, dtype="float64", optimize=None):
        """A contraction, with an integer label for each axis of each operand and of the result. `optimize`: "greedy",
        "annealing", or the steps of a path as text, "[[0,1],[0,1]]". `memory`: limit in bytes of intermediate tensors, None for none."""
        memory = memory if memory is None else integer("memory", memory, 1)
        labels = tuple(labels_as_integers(f"operand {i}", term) for i, term in enumerate(labels))
        shapes = tuple(integers(f"shapes[{i}]", shape, 0) for i, shape in enumerate(shapes))
        if len(labels) != len(shapes):
            raise ArgumentError(f"einsum: labels of {len(labels)} operands, shapes of {len(shapes)}")
        return _einsum(labels, shapes, labels_as_integers("the result", result), semiring, memory, str(dtype), optimize)

    @property
    def text(self):
        """Text of the operation: JSON with a version number."""
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
        """Forward-mode derivative. Operands, tangents of the active operands -> results, tangents of all results, index
        results. `moving`: flags of the active operands."""
        moving = _flags(moving)
        return self._derived("t4a_op_jvp", moving)

    def vjp(self, given, wanted):
        """Reverse-mode derivative. Operands, cotangents of the results flagged by `given` -> cotangents of the operands
        flagged by `wanted`."""
        return self._derived("t4a_op_vjp", _flags(given), _flags(wanted))

    def vjp_of_results(self, given, wanted):
        """As `vjp`, with the results as further inputs, so that they are not recomputed: operands, all results, cotangents ->
        cotangents. None if the rule reads no results, or reads values other than operands and results."""
        key = ("t4a_op_vjp_of_results", _flags(given), _flags(wanted))
        try:
            return self._derived(*key)
        except UnsupportedError:
            self._made[key] = None
            return None

    def _derived(self, function, *flags):
        """The derived operation of a function of the library, cached by its flags."""
        key = (function, *flags)
        if key not in self._made:
            out = c_void_p()
            call(getattr(lib, function), self._handle, *(x for mask in flags for x in (mask, len(mask))), byref(out))
            self._made[key] = Op(out)
        return self._made[key]

    def batch(self, size, differ):
        """The operation on a batch of examples. The operands flagged by `differ` and all results have a leading batch axis."""
        out, size = c_void_p(), integer("size", size, 0)
        call(lib.t4a_op_batch, self._handle, size, _flags(differ), len(differ), byref(out))
        return Op(out)

    def on_batch(self, size, axes, examples):
        """The operation on a batch with a leading axis, and flags of the operands that must have it: either those with a batch
        axis (`axes` is not None) or all. None if the operation does not support batches. `examples`: shapes and dtypes of
        operands of one example.
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
        """(shape, dtype name) of each result, from those of the operands."""
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
        return [(tuple(x.shape[: x.rank]), NAMES[x.dtype.code, x.dtype.bits]) for x in found]

    def run(self, *operands):
        """Runs the operation on tensors of any DLPack producer. Returns DLPack producers. Tensors of the processor are not copied."""
        if any(map(is_on_cuda, operands)):
            from . import _cuda

            return _cuda.run(self, operands)
        all = [borrowed(x) for x in operands]
        return self.run_at(*[address for _, address in all])

    def compute(self, kind, operands):
        """Results as NumPy arrays (`kind` 0) or PyTorch tensors (1). None if an operand can be read by `__dlpack__` only."""
        return None if builtin is None else builtin.run(self.address, kind, operands)

    def run_at(self, *addresses):
        """Runs the operation on operands given by addresses of `DLTensor`s. Returns DLPack producers."""
        count, found = len(addresses), c_size_t()
        out, error = _Handles(), c_void_p()
        if lib.t4a_run(self._handle, _ADDRESSES[count](*addresses), count, out, _ROOM, byref(found), byref(error)):
            raise_error(error)
        return list(map(Result, out[: found.value]))


# Maximum number of results; larger than for any operation of the library and its derivatives up to third order.
_ROOM = 64
_Handles = c_void_p * _ROOM


class _Arrays(dict):
    """Types of arrays of pointers, by length."""

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
def _einsum(labels, shapes, result, semiring, memory, dtype, optimize):
    operands = (Operand * len(labels))()
    kept = []
    for operand, names, sizes in zip(operands, labels, shapes, strict=True):
        if len(names) != len(sizes):
            raise ShapeError(f"einsum: {len(names)} labels for the shape {tuple(sizes)}")
        arrays = [(c_int64 * len(names))(*x) for x in (names, sizes)]
        kept.append(arrays)
        operand.size, operand.rank = sizeof(Operand), len(names)
        operand.labels, operand.shape = (ctypes.addressof(x) for x in arrays)
    order = optimize and optimize.encode()
    options = EinsumOptions(sizeof(EinsumOptions), semiring.encode(), memory or 0, _dtype(dtype), order)
    to, out = (c_int64 * len(result))(*result), c_void_p()
    call(lib.t4a_op_einsum, operands, len(labels), to, len(result), byref(options), byref(out))
    return Op(out)
