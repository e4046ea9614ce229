"""Tensors of any producer of DLPack, in and out."""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_void_p, cast, py_object, pythonapi

from ._library import ArgumentError, Managed, UnsupportedError, call, lib


def _function(name, result, *arguments):
    # Of its own: those of `pythonapi` are shared with everybody, and so are the types that are set there.
    return ctypes.PYFUNCTYPE(result, *arguments)((name, pythonapi))


capsule_pointer = _function("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
release_object = _function("Py_DecRef", None, py_object)
_new = _function("PyCapsule_New", py_object, c_void_p, c_char_p, c_void_p)
_is = _function("PyCapsule_IsValid", ctypes.c_int, py_object, c_char_p)
# The same on a bare pointer: a capsule that is about to go must not be counted again.
_pointer_of = _function("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)
_valid = _function("PyCapsule_IsValid", ctypes.c_int, c_void_p, c_char_p)

_VERSIONED = b"dltensor_versioned"
_DELETER = ctypes.CFUNCTYPE(None, POINTER(Managed))


class Borrowed:
    """A tensor of somebody else's, valid as long as this object."""

    __slots__ = ("_capsule", "at")

    def __init__(self, x):
        try:
            export = x.__dlpack__
        except AttributeError:
            raise ArgumentError(f"{type(x).__name__} has no __dlpack__") from None
        kind = x.__dlpack_device__()[0]
        if int(kind) != 1:
            raise UnsupportedError(f"a tensor on a device of kind {int(kind)}; move it to the processor first")
        # A capsule that nobody takes over releases the tensor when it goes.
        self._capsule = export(max_version=(1, 1))
        if not _is(self._capsule, _VERSIONED):
            raise UnsupportedError(f"{type(x).__name__} has an older DLPack than 1.0")
        self.at = capsule_pointer(self._capsule, _VERSIONED) + Managed.tensor.offset


class Result:
    """A tensor of the library, for one consumer: `numpy.from_dlpack(result)`."""

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
        managed = c_void_p()
        call(lib.t4a_tensor_give, handle, 1, byref(managed))
        return _new(managed, _VERSIONED, _RELEASE)

    def __del__(self):
        if self._handle is not None:
            lib.t4a_tensor_release(self._handle)


def _release(capsule):
    # A capsule that was consumed has another name.
    at = _pointer_of(capsule, _VERSIONED) if _valid(capsule, _VERSIONED) else None
    if at:
        managed = cast(at, POINTER(Managed))
        _DELETER(managed.contents.deleter)(managed)


_DESTRUCTOR = ctypes.PYFUNCTYPE(None, c_void_p)(_release)
_RELEASE = cast(_DESTRUCTOR, c_void_p)
