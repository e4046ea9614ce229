"""Import and export of tensors by DLPack."""

import ctypes
from ctypes import byref, c_char_p, c_void_p, cast, py_object, pythonapi

import numpy as _numpy

from ._library import ArgumentError, Managed, UnsupportedError, lib, raise_error


def _function(name, result, *arguments):
    # A separate function object, since argument types set on `pythonapi` itself would affect other packages.
    return ctypes.PYFUNCTYPE(result, *arguments)((name, pythonapi))


capsule_pointer = _function("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
_new = _function("PyCapsule_New", py_object, c_void_p, c_char_p, c_void_p)
# Releases the tensor of a capsule that no consumer has renamed. A function of the library: a capsule is also destroyed while an
# exception is raised, or while the interpreter ends, and no code of Python can run then.
_RELEASE = lib.t4a_capsule_destructor(*(cast(pythonapi[name], c_void_p) for name in ("PyCapsule_IsValid", "PyCapsule_GetPointer")))

_VERSIONED = b"dltensor_versioned"

# Kind of the devices of CUDA.
CUDA = 2
_TENSOR = Managed.tensor.offset
_VERSION = (1, 1)


def _device_kind(x):
    try:
        return int(x.__dlpack_device__()[0])
    except (BufferError, RuntimeError, ValueError) as error:
        raise UnsupportedError(f"{type(x).__name__} without memory that DLPack describes: {error}") from error


def borrowed(x):
    """Capsule of another producer's tensor, and the address of its DLTensor, which is valid during the lifetime of the
    capsule. The capsule releases the tensor when it is destroyed, unless a consumer has renamed it."""
    try:
        export = x.__dlpack__
    except AttributeError:
        raise ArgumentError(f"{type(x).__name__} has no __dlpack__") from None
    if type(x) is not _numpy.ndarray:
        kind = _device_kind(x)
        if kind != 1:
            raise UnsupportedError(f"a tensor on a device of kind {kind}; move it to the processor first")
    capsule = export(max_version=_VERSION)
    try:
        return capsule, capsule_pointer(capsule, _VERSIONED) + _TENSOR
    except ValueError:
        raise UnsupportedError(f"{type(x).__name__} has an older DLPack than 1.0") from None


def given(handle):
    """Converts a handle to a DLPack tensor for a consumer, which may write to it; releases the handle."""
    managed, error = c_void_p(), c_void_p()
    if lib.t4a_tensor_give(handle, 1, byref(managed), byref(error)):
        raise_error(error)
    return managed


def capsule_of(managed):
    """Capsule of an exported tensor."""
    return _new(managed, _VERSIONED, _RELEASE)


def managed_of_capsule(capsule):
    """Address of the managed tensor of a capsule that nothing has consumed."""
    return capsule_pointer(capsule, _VERSIONED)


def pointer_of_capsule(capsule):
    """Address of the DLTensor of a capsule, of DLPack 1.0 or earlier."""
    try:
        return capsule_pointer(capsule, _VERSIONED) + _TENSOR
    except ValueError:
        return capsule_pointer(capsule, b"dltensor")


def is_on_cuda(x):
    """True for a DLPack producer on a CUDA device."""
    return type(x) is not _numpy.ndarray and hasattr(x, "__dlpack_device__") and _device_kind(x) == CUDA


class Result:
    """Result of an operation. It can be consumed once by DLPack: `numpy.from_dlpack(result)`."""

    __slots__ = ("_handle",)

    def __init__(self, handle):
        self._handle = handle

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if max_version is None or max_version[0] < 1:
            raise BufferError("the consumer has to know DLPack 1.0")
        handle, self._handle = self._handle, None
        if handle is None:
            raise BufferError("the tensor was consumed")
        return capsule_of(given(handle))

    def __del__(self):
        if self._handle is not None:
            lib.t4a_tensor_release(self._handle)
