"""Bindings of the C library: structs, functions and errors, which t4a.h documents."""

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
    _fields_ = [("size", c_size_t), ("semiring", c_char_p), ("memory", c_size_t), ("dtype", DLDataType), ("optimize", c_char_p)]


MAX_RANK = 64


class Meta(Structure):
    _fields_ = [("size", c_size_t), ("rank", c_int32), ("dtype", DLDataType), ("shape", c_int64 * MAX_RANK)]


class T4aError(Exception):
    """Error of an operation. `batch`: index of the matrix of a batch that caused it, or None."""

    def __init__(self, text, batch=None):
        super().__init__(text)
        self.batch = batch


class ArgumentError(T4aError, ValueError):
    """Invalid or inconsistent arguments."""


class ShapeError(T4aError, ValueError):
    """Incompatible shapes."""


class DtypeError(T4aError, TypeError):
    """Incompatible or unknown dtypes."""


class SingularError(T4aError, ArithmeticError):
    """Singular matrix, or a factorisation that does not exist or did not converge."""


class GaugeError(T4aError, ArithmeticError):
    """Derivative that depends on an arbitrary choice of singular vectors or eigenvectors."""


class OutOfMemoryError(T4aError, MemoryError):
    """Failed allocation, or a memory limit."""


class UnsupportedError(T4aError, NotImplementedError):
    """Unsupported device, version or form of an operation."""


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
    # In wheels the library is in `_native`.
    places = [Path(named)] if named else list((Path(__file__).parent / "_native").glob("*.so"))
    if not places:
        raise ImportError(f"no library in {Path(__file__).parent / '_native'}; T4A_LIBRARY names another one")
    # CDLL releases the global interpreter lock during a call; deleters of other producers may acquire it.
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
    "t4a_capsule_destructor": (c_void_p, [c_void_p, c_void_p]),
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


def check_abi(abi):
    """Raises ImportError for a library with another major version, or an earlier minor one, than 1.3."""
    major, minor = abi >> 16, abi & 0xFFFF
    if major != 1 or minor < 3:
        raise ImportError(f"libt4a has ABI {major}.{minor}, this package requires 1.3 or a later 1.x")


check_abi(lib.t4a_abi())


def raise_error(error, lib=lib):
    """Converts an error object of a library to an exception, frees it and raises the exception."""
    status = lib.t4a_error_status(error)
    text, batch = lib.t4a_error_text(error).decode(), lib.t4a_error_batch(error)
    lib.t4a_error_free(error)
    raise _ERRORS.get(status, T4aError)(text, None if batch < 0 else batch)


def call(function, *arguments):
    """Calls a function whose last parameter receives an error object; raises the error, if any."""
    error = c_void_p()
    if function(*arguments, byref(error)):
        raise_error(error)
