"""The C library: structs, functions, errors. See t4a.h, which describes them."""

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32
from ctypes import c_uint64, c_void_p
from pathlib import Path


class DLDevice(Structure):
    _fields_ = [("kind", c_int32), ("id", c_int32)]


class DLDataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Managed(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", DLTensor),
    ]


class Operand(Structure):
    _fields_ = [("size", c_size_t), ("labels", c_void_p), ("shape", c_void_p), ("rank", c_int32)]


class EinsumOptions(Structure):
    _fields_ = [("size", c_size_t), ("semiring", c_char_p), ("memory", c_size_t), ("dtype", DLDataType)]


MAX_RANK = 64


class Meta(Structure):
    _fields_ = [("size", c_size_t), ("rank", c_int32), ("dtype", DLDataType), ("shape", c_int64 * MAX_RANK)]


class T4aError(Exception):
    """An operation that failed. `batch` is the matrix that is to blame, or None."""

    def __init__(self, text, batch=None):
        super().__init__(text)
        self.batch = batch


class ArgumentError(T4aError, ValueError):
    """Arguments that do not fit together."""


class ShapeError(T4aError, ValueError):
    """Shapes that do not fit."""


class DtypeError(T4aError, TypeError):
    """Element types that do not fit."""


class SingularError(T4aError, ArithmeticError):
    """A matrix without the factorisation or the inverse."""


class GaugeError(T4aError, ArithmeticError):
    """A derivative that depends on an arbitrary choice of vectors."""


class OutOfMemoryError(T4aError, MemoryError):
    """Memory, or a bound on it."""


class UnsupportedError(T4aError, NotImplementedError):
    """A device, a version or a form that the library does not have."""


_ERRORS = {
    1: ArgumentError,
    2: ShapeError,
    3: DtypeError,
    4: SingularError,
    5: GaugeError,
    6: OutOfMemoryError,
    7: UnsupportedError,
}


def _load():
    named = os.environ.get("T4A_LIBRARY")
    # The wheel has it in a folder of its own.
    places = [Path(named)] if named else list((Path(__file__).parent / "_native").glob("*.so"))
    if not places:
        raise ImportError(f"no library in {Path(__file__).parent / '_native'}; T4A_LIBRARY names another one")
    # CDLL: releases the lock of the interpreter during a call. Deleters of others may want it.
    return ctypes.CDLL(str(places[0]))


lib = _load()

_signatures = {
    "t4a_abi": (c_uint32, []),
    "t4a_version": (c_char_p, []),
    "t4a_set_threads": (c_int32, [c_int32, c_void_p]),
    "t4a_threads": (c_int32, []),
    "t4a_error_status": (c_int32, [c_void_p]),
    "t4a_error_text": (c_char_p, [c_void_p]),
    "t4a_error_batch": (c_int64, [c_void_p]),
    "t4a_error_free": (None, [c_void_p]),
    "t4a_tensor_give": (c_int32, [c_void_p, c_uint32, c_void_p, c_void_p]),
    "t4a_tensor_release": (None, [c_void_p]),
    "t4a_op_einsum": (c_int32, [c_void_p, c_size_t, c_void_p, c_int32, c_void_p, c_void_p, c_void_p]),
    "t4a_op_parse": (c_int32, [c_char_p, c_size_t, c_void_p, c_void_p]),
    "t4a_op_text": (c_size_t, [c_void_p, c_void_p, c_size_t]),
    "t4a_op_jvp": (c_int32, [c_void_p, c_char_p, c_size_t, c_void_p, c_void_p]),
    "t4a_op_vjp": (c_int32, [c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, c_void_p, c_void_p]),
    "t4a_op_vjp_of_results": (c_int32, [c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, c_void_p, c_void_p]),
    "t4a_op_batch": (c_int32, [c_void_p, c_size_t, c_char_p, c_size_t, c_void_p, c_void_p]),
    "t4a_op_results": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]),
    "t4a_op_free": (None, [c_void_p]),
    "t4a_run": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]),
}
for _name, (_result, _arguments) in _signatures.items():
    _function = getattr(lib, _name)
    _function.restype, _function.argtypes = _result, _arguments

if lib.t4a_abi() >> 16 != 1:
    raise ImportError(f"libt4a has ABI {lib.t4a_abi() >> 16}, this package wants 1")


def raise_error(error):
    """Raises the error that a function left at its place."""
    status = lib.t4a_error_status(error)
    text, batch = lib.t4a_error_text(error).decode(), lib.t4a_error_batch(error)
    lib.t4a_error_free(error)
    raise _ERRORS.get(status, T4aError)(text, None if batch < 0 else batch)


def call(function, *arguments):
    """Calls a function whose last argument is a place for an error; raises what it finds there."""
    error = c_void_p()
    if function(*arguments, byref(error)):
        raise_error(error)
