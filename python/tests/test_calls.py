"""Calls without `ctypes`: what is kept between them, layouts, errors, threads, lifetimes."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import functions
import numpy as np
import pytest

import t4a
import t4a.numpy as tn
from t4a import Op, _functions, _plans
from t4a._builtin import builtin
from t4a._calls import Call, keep

rng = np.random.default_rng(11)


def test_they_are_there():
    # Without them calls are slower, and all other tests pass.
    assert builtin is not None


def kept(plan, operands, *options):
    """Results of the kept call, or None if there is none."""
    return builtin.caller((0, lambda *given: None, None))(plan, operands, *options)


def test_a_contraction_is_found_again():
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    key = _plans.einsum, "xy,yz->xz", "max_plus", None, None
    find = lambda *operands, key=key: kept(key[0], operands, *key[1:])
    assert find(a, b) is None
    want = (a[:, :, None] + b).max(1)
    for _ in range(3):
        np.testing.assert_array_equal(tn.einsum("xy,yz->xz", a, b, semiring="max_plus"), want)
    np.testing.assert_array_equal(find(a, b), want)
    # Of this plan, these shapes, dtypes, subscripts and semirings alone.
    assert find(a, b[:, :1].copy()) is None
    assert find(a.astype(np.float32), b.astype(np.float32)) is None
    assert find(a, b, key=(key[0], "xy,yz->xz", "min_plus", None)) is None
    assert find(a, b, key=(_plans.optimal, *key[1:])) is None
    assert find(a) is None and find(a, b, key=key[:-1]) is None
    # Of options of the same types: 0 is neither None nor False.
    assert find(a, b, key=(*key[:-1], 0)) is None
    np.testing.assert_allclose(tn.einsum("xy,yz->xz", a, b), a @ b)
    np.testing.assert_allclose(tn.einsum([[1, 2], [2, 3], [1, 3]], a, b), a @ b)
    np.testing.assert_allclose(tn.einsum([[1, 2], [2, 3], [1, 3]], a, b), a @ b)
    x = rng.normal(size=(2, 3))
    np.testing.assert_array_equal(tn.cumsum(x, axis=1), tn.cumsum(x, axis=True))
    assert kept(_plans.running, (x,), "sum", 1, False) is not None
    assert kept(_plans.running, (x,), "sum", 1.0, False) is None


def test_a_call_is_kept_once():
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    op = Op.einsum([[7, 8], [8, 9]], [(3, 4), (4, 2)], [7, 9])
    plan, call, counts = object(), Call(op), []
    for _ in range(3):
        keep(plan, ("once",), (a, b), call)
        counts.append(sys.getrefcount(call))
    assert counts[0] == counts[1] == counts[2]
    np.testing.assert_allclose(kept(plan, (a, b), "once"), a @ b)
    # Calls that the operation does not accept are not kept, so that their error is that of every call.
    integers = a.astype(int), b.astype(int)
    keep(plan, ("once",), integers, call)
    assert kept(plan, integers, "once") is None
    assert kept(plan, [a, b], "once") is None and kept(plan, (a, b), []) is None
    # Neither are calls whose axes have another size, or do not exist.
    for wrong in ({"drop": ((0, 0),)}, {"drop": ((0, 2),)}, {"drop": ((1, 0),)}, {"insert": (0, 0)}, {"insert": (2, 0)}):
        keep(plan, (str(wrong),), (a, b), call._replace(**wrong))
        assert kept(plan, (a, b), str(wrong)) is None
    del call, integers
    gc.collect()
    np.testing.assert_allclose(kept(plan, (a, b), "once"), a @ b)


PLANNED = functions.flavour(_functions.build(tn.apply, tn._asarray, tn._name, tn._cast, number=lambda x: x[()], arrays=np), np.asarray)
KEPT = functions.of_module(tn, np.asarray)


@pytest.mark.parametrize("name, kind", functions.ALL)
def test_kept_calls_are_those_that_are_planned(name, kind, monkeypatch):
    f, operands = functions.case(name, kind)
    as_tuple = lambda x: x if isinstance(x, tuple) else (x,)
    planned, first = as_tuple(f(PLANNED, *operands)), as_tuple(f(KEPT, *operands))
    if not name.startswith("graded_"):
        # The second call does not plan.
        monkeypatch.setattr(Op, "compute", None)
    for kept in (first, as_tuple(f(KEPT, *operands))):
        for one, two in zip(planned, kept, strict=True):
            assert type(one) is type(two)
            np.testing.assert_array_equal(one, two, strict=True)


def test_layouts_and_numbers():
    whole = rng.normal(size=(6, 8))
    for a in (whole[::2, ::-1], whole.T[:3], np.broadcast_to(whole[0], (3, 8)), np.asfortranarray(whole), whole[:0]):
        for _ in range(2):
            np.testing.assert_allclose(tn.einsum("ij,kj->ik", a, a), a @ a.T)
            np.testing.assert_allclose(tn.einsum("ij,ij->", a, a), (a * a).sum(), atol=1e-12)
            np.testing.assert_array_equal(tn.einsum("ij->ji", a), a.T)
    for _ in range(2):
        assert isinstance(tn.einsum("ij,ij->", whole, whole), np.float64)
    fields = np.zeros(4, dtype=[("a", np.float64), ("b", np.int32)])
    fields["a"] = [1, 2, 3, 4]
    # Strides that are no multiple of an element.
    assert fields["a"].strides == (12,)
    np.testing.assert_array_equal(tn.cumsum(fields["a"]), [1, 3, 6, 10])
    with pytest.raises(Exception, match="(?i)endian|byte"):
        tn.cumsum(whole.astype(">f8"))
    for dtype in (np.float32, np.float16, np.complex64, np.complex128):
        x = whole.astype(dtype)
        for _ in range(2):
            assert tn.einsum("ij,kj->ik", x, x).dtype == dtype


def test_results_own_their_memory():
    a = rng.normal(size=(4, 4))
    for n in (4, 100):
        x = rng.normal(size=(n, n))
        same = tn.einsum("ij->ij", x)
        before = x.copy()
        same += 1
        np.testing.assert_array_equal(x, before)
        result = tn.einsum("ij,jk->ik", x, x)
        assert result.flags.writeable and result.flags.c_contiguous
        part = result[1:, 1:]
        want = part.copy()
        del result
        gc.collect()
        tn.einsum("ij,jk->ik", x, x)
        np.testing.assert_array_equal(part, want)
    count = sys.getrefcount(a)
    for _ in range(50):
        tn.einsum("ij,jk->ik", a, a)
        tn.svd(a)
    assert sys.getrefcount(a) == count

    class Counted(np.ndarray):
        pass

    counted = a.view(Counted)
    ref = weakref.ref(counted)
    tn.einsum("ij,jk->ik", counted, counted)
    del counted
    gc.collect()
    assert ref() is None


def test_errors_have_their_type():
    for _ in range(2):
        with pytest.raises(t4a.SingularError) as caught:
            tn.inv(np.array([np.eye(2), np.ones((2, 2))]))
        assert caught.value.batch == 1
        with pytest.raises(t4a.ShapeError):
            tn.inv(np.ones((2, 3)))
        with pytest.raises(t4a.ArgumentError, match="__dlpack__|operand"):
            Op.of({"softmax": {"axis": 0}}).run("text")
    # Operations that are kept fail as others do.
    x = np.full((2, 2), 1e308)
    np.testing.assert_array_equal(tn.einsum("ij,jk->ik", x, x), np.full((2, 2), np.inf))


def test_threads_share_what_is_kept():
    a = rng.normal(size=(20, 20))
    want, failed = a @ a, []

    def work(i):
        for k in range(200):
            subscripts = f"{chr(97 + (i + k) % 7)}y,yz->{chr(97 + (i + k) % 7)}z"
            if not np.allclose(tn.einsum(subscripts, a, a), want):
                failed.append(subscripts)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.skipif(not Path("/proc/self/task").exists() or os.cpu_count() < 2, reason="counts the threads of Linux")
def test_the_number_of_threads():
    program = """
import os, sys
import numpy as np, t4a, t4a.numpy as tn
count = lambda: len(os.listdir("/proc/self/task"))
assert t4a.threads() >= 1
t4a.set_threads(1)
x, before = np.ones((1000, 1000)), count()
for semiring in ("standard", "max_plus"):
    tn.einsum("ij,jk->ik", x, x, semiring=semiring)
print(t4a.threads(), count() - before)
t4a.set_threads(2)
tn.einsum("ij,jk->ik", x, x)
print(t4a.threads(), count() > before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.stdout == "1 0\n2 True\n", done.stderr


def test_calls_at_the_exit_of_the_interpreter():
    program = """
import atexit, threading
import numpy as np
import t4a.numpy as tn
x = np.ones((100, 100))
alive = tn.einsum("ij,jk->ik", x, x), tn.svd(x)
atexit.register(lambda: print(tn.einsum("ij,ij->", x, x), tn.softmax(x).sum()))
threading.Thread(target=lambda: [tn.expm(x) for _ in range(1000)], daemon=True).start()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert done.stdout == "10000.0 100.0\n"


def test_tensors_that_outlive_the_modules():
    program = """
import sys
import numpy as np
from t4a import Op
(result,) = Op.of({"softmax": {"axis": 1}}).run(np.ones((2, 3)))
capsule = result.__dlpack__(max_version=(1, 1))
# Not released before the modules are cleared.
held = [capsule]
held.append(held)
try:
    raise ValueError
except ValueError as error:
    sys.kept = error
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_many_contractions():
    # More than are kept.
    x = rng.normal(size=4)
    for k in range(5000):
        labels = [[k], [k], []] if k % 2 else [[k], [-k], [k, -k]] if k else [[0], [1], [0, 1]]
        got = tn.einsum(labels, x, x)
        np.testing.assert_allclose(got, x @ x if k % 2 else np.outer(x, x))
