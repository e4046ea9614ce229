"""Imports of results into NumPy and PyTorch that fail: all results of the call are released, each once."""

import ctypes
import gc
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import t4a.numpy as tn
from t4a import _dlpack, _op, _plans, networks
from t4a._library import Managed, lib

DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))

# An operation, and the number of its results.
SVD, COUNT = _plans.svd([(3, 3)], ["float32"], False, _plans.ties(True, None, None, False)).op, 3


class Exports:
    """Counts exported tensors, calls of their deleters, and handles that are released without an export. The export `bad` has a
    dtype that no consumer accepts."""

    # A deleter may be called while an exception is raised, so that it cannot be a function of Python. This function of C adds 1
    # to the first number of an object: to `major`, 1 before.
    COUNT = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value

    def __init__(self, bad=None):
        self.bad, self.originals, self.released = bad, {}, 0

    def t4a_tensor_give(self, handle, flags, out, error):
        status, at = lib.t4a_tensor_give(handle, flags, out, error), out._obj.value
        managed = Managed.from_address(at)
        if len(self.originals) == self.bad:
            managed.tensor.dtype.lanes = 2
        self.originals[at] = managed.deleter
        managed.deleter = self.COUNT
        return status

    def t4a_tensor_release(self, handle):
        self.released += 1
        lib.t4a_tensor_release(handle)

    def deleted(self):
        """Number of calls of each deleter."""
        gc.collect()
        return [Managed.from_address(at).major - 1 for at in self.originals]

    def free(self):
        for at, original in self.originals.items():
            DELETER(original)(Managed.from_address(at))


@pytest.fixture
def check(monkeypatch):
    """A function (call, number of results, number of results that the call itself reads and releases)."""
    # The built-in functions have other imports.
    monkeypatch.setattr(_op, "builtin", None)

    def checked(call, count, read=0):
        monkeypatch.setattr(_dlpack, "lib", exports := Exports())
        results = call()
        assert sorted(exports.deleted()) == [0] * (count - read) + [1] * read
        del results
        assert exports.deleted() == [1] * count and exports.released == 0
        exports.free()
        for bad in range(count):
            monkeypatch.setattr(_dlpack, "lib", exports := Exports(bad))
            with pytest.raises((BufferError, RuntimeError, TypeError, ValueError)):
                call()
            assert exports.deleted() == [1] * (bad + 1) and exports.released == count - bad - 1
            exports.free()

    return checked


def test_numpy(check):
    check(lambda: tn.apply(SVD, np.eye(3, dtype=np.float32)), COUNT)


def test_networks(check):
    check(lambda: networks.cross_interpolation(lambda x: x.sum(1), [2, 3]), 3, read=1)


def test_torch(check):
    torch = pytest.importorskip("torch")
    import t4a.torch as tt

    x = torch.eye(3)
    check(lambda: tt.apply(SVD, x), COUNT)


# The same with the built-in functions, which import into PyTorch by its table of C functions.
PROGRAM = """
import ctypes, gc, sys
from ctypes import c_int, c_void_p
import torch
from t4a import _builtin, _plans
from t4a._library import Managed

if _builtin.builtin is None or not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    sys.exit()
DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
IMPORT = ctypes.PYFUNCTYPE(c_int, c_void_p, c_void_p)
bad, deletes, seen, deleted, kept = None, False, 0, [], []

# PyTorch gets this function instead of its own, which it calls.
def imported(at, out):
    global seen
    managed, number = Managed.from_address(at), seen
    seen += 1
    original = DELETER(managed.deleter)
    delete = DELETER(lambda x: (deleted.append(number), original(x))[1])
    kept.append(delete)
    managed.deleter = ctypes.cast(delete, c_void_p).value
    if number != bad:
        return real(at, out)
    if deletes:
        DELETER(managed.deleter)(managed)
    return -1

class Replaced:
    def exchange(self, tensor, parameter, describe, given, guards):
        global real
        real = IMPORT(given)
        self.kept = IMPORT(imported)
        own.exchange(tensor, parameter, describe, ctypes.cast(self.kept, c_void_p).value, guards)
    def __getattr__(self, name):
        return getattr(own, name)

own, replaced = _builtin.builtin, Replaced()
_builtin.builtin = replaced
import t4a.torch as tt
assert real is not None

x = torch.randn(300, 300)
op = _plans.svd([(3, 3)], ["float32"], False, _plans.ties(True, None, None, False)).op
for f in (tt.svd, lambda x: tt.apply(op, x)):
    bad, seen, _ = None, 0, deleted.clear()
    f(x)
    results = f(x)
    assert seen == 6
    del results
    gc.collect()
    assert sorted(deleted) == [0, 1, 2, 3, 4, 5], deleted
    for bad in range(3):
        for deletes in (False, True):
            seen, _ = 0, deleted.clear()
            try:
                f(x)
            except SystemError:
                # The function of this test sets no exception.
                pass
            else:
                raise AssertionError("the import failed")
            gc.collect()
            assert seen == bad + 1 and sorted(deleted) == list(range(seen)), (seen, deleted)

# Results behind the failed one were not exported: their memory is not lost.
def pages():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

if sys.platform == "linux":
    bad, deletes = 0, False
    for count in (20, 100):
        before = pages()
        for _ in range(count):
            seen, _ = 0, (kept.clear(), deleted.clear())
            try:
                tt.svd(x)
            except SystemError:
                pass
    assert pages() - before < 20e6, (before, pages())
print("done")
"""


def test_built_in_functions():
    pytest.importorskip("torch")
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
