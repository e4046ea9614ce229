"""Built-in functions that the library makes with the C functions of this interpreter: calls without an object of ctypes for
each tensor. See capi/src/python."""

import ctypes
import sys
import sysconfig
from ctypes import Structure, c_size_t, c_void_p, cast, py_object, pythonapi, sizeof
from typing import NamedTuple

import numpy

from ._library import lib, raise_error

# Of the interpreter, in the order of the struct.
_FUNCTIONS = (
    "PyCFunction_NewEx", "PyLong_FromVoidPtr", "PyLong_AsVoidPtr", "PyLong_AsLong", "PyList_New", "PyList_SetItem",
    "PyTuple_New", "PyTuple_SetItem", "PyTuple_Size", "PyTuple_GetItem", "PyObject_Hash", "PyObject_RichCompareBool", "PyObject_GetAttr",
    "PyObject_Vectorcall", "Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread", "PyCapsule_New",
    "PyCapsule_GetPointer", "PyErr_Clear",
)  # fmt: skip
# Of NumPy, by their places in its table, which are part of its binary interface.
_OF_NUMPY = {"PyArray_New": 93, "PyArray_Return": 76, "PyArray_SetBaseObject": 282}
# Objects, which live as long as the interpreter: the last one raises the exception of an error object.
_OBJECTS = {"none": None, "true": True, "false": False, "array_type": numpy.ndarray, "raise_error": raise_error}


class _Symbols(Structure):
    _fields_ = [("size", c_size_t)] + [(name, c_void_p) for name in (*_OBJECTS, *_FUNCTIONS, *_OF_NUMPY)]


class Builtin(NamedTuple):
    """Functions of the library: run(address, kind, operands), caller((kind, plan_and_run, run_recorded)), keep(plan, options,
    operands, address, owner, single, operand, axis, drop), exchange(type, type, describe, object, guards)."""

    run: object
    caller: object
    keep: object
    exchange: object


def _made():
    """The functions, or None where objects have another layout than in CPython with a lock and NumPy 2."""
    known = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    if not known or sizeof(c_void_p) != 8 or not numpy.__version__.startswith("2.") or not hasattr(lib, "t4a_python"):
        return None
    symbols = _Symbols(sizeof(_Symbols), *map(id, _OBJECTS.values()))
    for name in _FUNCTIONS:
        setattr(symbols, name, cast(getattr(pythonapi, name), c_void_p).value)
    pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_void_p)(("PyCapsule_GetPointer", pythonapi))
    table = cast(pointer(numpy._core.multiarray._ARRAY_API, None), ctypes.POINTER(c_void_p))
    for name, place in _OF_NUMPY.items():
        setattr(symbols, name, table[place])
    # With the lock of the interpreter, other than all functions of `lib`.
    make = ctypes.PyDLL(lib._name).t4a_python
    make.restype, make.argtypes = py_object, [c_void_p]
    try:
        return Builtin(*make(ctypes.addressof(symbols)))
    except ValueError:
        return None


builtin = _made()
