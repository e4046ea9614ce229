import copy
import ctypes
import gc
import itertools
import json
import os
import pickle
import sys
import threading

import numpy as np
import pytest

import t4a
import t4a.numpy as tn
from t4a import Op

rng = np.random.default_rng(7)


def test_einsum_is_that_of_numpy():
    a, b, c = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=(4,))
    for text, operands in [
        ("ij,jk->ik", (a, b)), ("ij,jk,k->i", (a, b, c)), ("ij->ji", (a,)), ("ij->", (a,)), ("ij,jk", (a, b)),
        ("ij,kl->ijkl", (a, b)), ("...j,jk->...k", (a, b)), ("i...,j...->ij...", (a, a)), ("ij->j", (a,)),
    ]:
        np.testing.assert_allclose(tn.einsum(text, *operands), np.einsum(text, *operands), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(tn.einsum([[5, -1], [-1, 9], [9, 5]], a, b), (a @ b).T)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_dtypes(dtype):
    a = rng.integers(-3, 4, size=(3, 4)).astype(dtype)
    if dtype.startswith("complex"):
        a = a + 1j * rng.integers(-3, 4, size=(3, 4)).astype(dtype)
    result = tn.einsum("ij,kj->ik", a, a)
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(result, a @ a.T)


def test_errors_name_the_dtypes_of_numpy():
    for name in ("int8", "uint8", "int16", "int32", "int64", "uint64", "bool"):
        x = np.ones((2, 2), name)
        for call in (lambda: tn.einsum("ij,jk->ik", x, x), lambda: tn.softmax(x), lambda: tn.svd(x), lambda: tn.cumsum(x)):
            with pytest.raises(t4a.DtypeError, match=rf"operand 0 has dtype {name}, floats are required"):
                call()
        with pytest.raises(t4a.DtypeError, match=f"operand 1 has dtype {name}, floats are required"):
            tn.einsum("ij,jk->ik", np.ones((2, 2)), x)
        with pytest.raises(t4a.DtypeError, match=f"operand 0 has dtype {name}, floats are required"):
            Op.of({"softmax": {"axis": 0}}).results([((2, 2), name)])
    with pytest.raises(t4a.DtypeError, match="float64.*float32"):
        tn.einsum("ij,jk->ik", np.ones((2, 2)), np.ones((2, 2), "float32"))
    with pytest.raises(t4a.DtypeError, match="float16.*float32 or float64"):
        tn.inv(np.ones((2, 2), "float16"))
    with pytest.raises(t4a.DtypeError, match="operand 1 has dtype float32, integers are required"):
        tn.cross_entropy(np.ones((2, 2)), np.ones(2, "float32"))
    # Names that a caller wrote are not dtypes.
    with pytest.raises(t4a.ArgumentError, match='"f32"'):
        tn.einsum("ij,jk->ik", np.ones((2, 2)), np.ones((2, 2)), semiring="f32")


def test_semirings():
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 5))
    terms = a[:, :, None] + b[None]
    products = {
        "max_plus": terms.max(1), "min_plus": terms.min(1), "log_sum_exp": np.log(np.exp(terms).sum(1)),
        "max_mul": (abs(a)[:, :, None] * abs(b)[None]).max(1),
        "min_mul": (abs(a)[:, :, None] * abs(b)[None]).min(1),
        "max_min": np.minimum(a[:, :, None], b[None]).max(1),
    }
    for semiring, want in products.items():
        x, y = (abs(a), abs(b)) if semiring.endswith("_mul") else (a, b)
        np.testing.assert_allclose(tn.einsum("ij,jk->ik", x, y, semiring=semiring), want, rtol=1e-13)
    with pytest.raises(t4a.ArgumentError, match="max_plus"):
        tn.einsum("ij,jk->ik", a, b, semiring="plus")
    with pytest.raises(t4a.ArgumentError, match="complex"):
        tn.einsum("ij,jk->ik", a + 0j, b, semiring="max_plus")


def test_layouts():
    a = rng.normal(size=(6, 8))
    unaligned = np.frombuffer(b"x" + a.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(a.shape)
    read_only = a.copy()
    read_only.flags.writeable = False
    views = [
        a, a.T, a[::2], a[::-1, ::-1], a[:, ::-3], np.asfortranarray(a), np.broadcast_to(a[0], (3, 8)), unaligned, read_only,
        a[:0], a[:, :1],
    ]
    for x in views:
        np.testing.assert_allclose(tn.einsum("ij,kj->ik", x, x), x @ x.T, rtol=1e-13, atol=1e-13)
        result = tn.einsum("ij->ji", x)
        np.testing.assert_array_equal(result, x.T)
        if result.size:
            # A result does not share memory with an operand.
            before = x.copy()
            result += 1
            np.testing.assert_array_equal(x, before)
    with pytest.raises(t4a.DtypeError, match=">f8"):
        tn.einsum("ij->ji", a.astype(">f8"))
    with pytest.raises(t4a.DtypeError, match=">f8"):
        tn.inv(np.eye(2).astype(">f8"))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_linalg(dtype):
    def noise(*shape):
        x = rng.normal(size=shape)
        return x if dtype == "float64" else x + 1j * rng.normal(size=shape)

    def h(x):
        return x.conj().swapaxes(-1, -2)

    a, tall = noise(2, 4, 4), noise(2, 5, 3)
    hermitian, positive = a + h(a), a @ h(a) + np.eye(4)
    u, s, vh = tn.svd(tall)
    assert s.dtype == np.float64 and u.shape == (2, 5, 3)
    np.testing.assert_allclose(u * s[..., None, :] @ vh, tall, atol=1e-12)
    np.testing.assert_allclose(s, np.linalg.svd(tall, compute_uv=False))
    np.testing.assert_allclose(tn.svdvals(tall), s)
    q, r = tn.qr(tall)
    np.testing.assert_allclose(q @ r, tall, atol=1e-12)
    np.testing.assert_allclose(h(q) @ q, np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-12)
    low, rows = tn.lq(tall)
    np.testing.assert_allclose(low @ rows, tall, atol=1e-12)
    assert low.shape == (2, 5, 3) and (np.diagonal(low, axis1=1, axis2=2).real >= 0).all()
    low = tn.cholesky(positive)
    np.testing.assert_allclose(low, np.linalg.cholesky(positive))
    e, v = tn.eigh(hermitian)
    np.testing.assert_allclose(v * e[..., None, :] @ h(v), hermitian, atol=1e-12)
    np.testing.assert_allclose(tn.eigvalsh(hermitian), np.linalg.eigvalsh(hermitian))
    np.testing.assert_allclose(tn.inv(a), np.linalg.inv(a))
    np.testing.assert_allclose(tn.det(a), np.linalg.det(a))
    for ours, theirs in zip(tn.slogdet(a), np.linalg.slogdet(a)):
        np.testing.assert_allclose(ours, theirs)
    np.testing.assert_allclose(tn.solve(a, tall[:, :4]), np.linalg.solve(a, tall[:, :4]))
    np.testing.assert_allclose(tn.solve(a[0], a[0, 0]), np.linalg.solve(a[0], a[0, 0]))
    for upper in (False, True):
        part = np.triu(a) if upper else np.tril(a)
        np.testing.assert_allclose(tn.solve_triangular(a, tall[:, :4], upper=upper), np.linalg.solve(part, tall[:, :4]))
    np.testing.assert_allclose(tn.solve_triangular(a[0], a[0, 0]), np.linalg.solve(np.tril(a[0]), a[0, 0]))
    np.testing.assert_allclose(tn.lstsq(tall[0], tall[1]), np.linalg.lstsq(tall[0], tall[1])[0])
    np.testing.assert_allclose(tn.lstsq(tall[0], tall[1, :, 0]), np.linalg.lstsq(tall[0], tall[1, :, 0])[0])
    b, c = noise(2, 3, 3), noise(2, 4, 3)
    x = tn.sylvester(a, b, c)
    np.testing.assert_allclose(a @ x + x @ b, c, atol=1e-11)
    np.testing.assert_allclose(tn.low_rank(tall, 2), u[..., :2] * s[..., None, :2] @ vh[..., :2, :], atol=1e-12)
    values, vectors = tn.eig(a)
    assert values.dtype == np.complex128
    np.testing.assert_allclose(a @ vectors, vectors * values[..., None, :], atol=1e-11)
    for got, want in ((tn.eigvals(a), np.linalg.eigvals(a)), (values, np.linalg.eigvals(a))):
        np.testing.assert_allclose(np.sort_complex(got), np.sort_complex(want), atol=1e-11)
    np.testing.assert_allclose(tn.pinv(tall), np.linalg.pinv(tall))
    np.testing.assert_allclose(tn.logm(tn.expm(hermitian)), hermitian, atol=1e-9)
    root = tn.sqrtm(positive)
    np.testing.assert_allclose(root @ root, positive)
    u, p = tn.polar(a)
    np.testing.assert_allclose(u @ p, a, atol=1e-12)
    p, u = tn.polar(a, side="left")[::-1]
    np.testing.assert_allclose(p @ u, a, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_scans(dtype):
    x = rng.uniform(0.5, 1.5, size=(5, 3)).astype(dtype)
    np.testing.assert_allclose(tn.cumsum(x), np.cumsum(x, 0))
    np.testing.assert_allclose(tn.cumprod(x, axis=-1, reverse=True), np.cumprod(x[:, ::-1], 1)[:, ::-1])
    if dtype == "float64":
        np.testing.assert_allclose(tn.cummax(x), np.maximum.accumulate(x, 0))
        np.testing.assert_allclose(tn.cummin(x), np.minimum.accumulate(x, 0))
        np.testing.assert_allclose(tn.logcumsumexp(x), np.log(np.cumsum(np.exp(x), 0)))
    h, want = np.zeros(3, dtype), []
    for a, b in zip(x, x[::-1]):
        h = a * h + b
        want.append(h)
    np.testing.assert_allclose(tn.linear_recurrence(x, x[::-1]), want)


def test_scans_of_matrices():
    x = rng.normal(size=(4, 3, 3))
    products = [x[0]]
    for y in x[1:]:
        products.append(products[-1] @ y)
    np.testing.assert_allclose(tn.matrix_scan(x), products)
    np.testing.assert_allclose(tn.matrix_scan(x, exclusive=True)[1:], products[:-1])
    np.testing.assert_allclose(tn.matrix_scan(x[:, None], reverse=True)[0, 0], x[3] @ x[2] @ x[1] @ x[0])
    best = [x[0]]
    for y in x[1:]:
        best.append((best[-1][:, :, None] + y[None]).max(1))
    np.testing.assert_allclose(tn.matrix_scan(x, semiring="max_plus"), best)
    b, h, want = rng.normal(size=(4, 3, 2)), np.zeros((3, 2)), []
    for a, y in zip(x, b):
        h = a @ h + y
        want.append(h)
    np.testing.assert_allclose(tn.matrix_recurrence(x, b), want)
    assert tn.matrix_recurrence(x[None], b[None], reverse=True).shape == (1, 4, 3, 2)


def test_layers():
    x, targets = rng.normal(size=(4, 3)), np.array([0, 2, 1, 1], np.uint8)
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(tn.softmax(x), p)
    np.testing.assert_allclose(tn.log_softmax(x), np.log(p))
    np.testing.assert_allclose(tn.cross_entropy(x, targets), -np.log(p[range(4), targets]))
    with pytest.raises(t4a.ShapeError, match="label 'j' has size 2 in operand 1"):
        tn.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(t4a.DtypeError, match="operand 1"):
        tn.cross_entropy(x, x[:, 0])
    with pytest.raises(t4a.ShapeError, match="axis 2"):
        tn.softmax(x, axis=2)


def test_chains():
    x, w, lengths = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 2)), [3, 2]

    def weight(b, tags):
        return np.exp(sum(x[b, t, y] for t, y in enumerate(tags)) + sum(w[a, b] for a, b in zip(tags, tags[1:])))

    sequences = [list(itertools.product(range(2), repeat=n)) for n in lengths]
    totals = [sum(weight(b, tags) for tags in all) for b, all in enumerate(sequences)]
    np.testing.assert_allclose(tn.log_partition(x, w, lengths), np.log(totals))
    whole = tn.log_partition(x, w)
    np.testing.assert_allclose(whole[0], np.log(totals[0]))
    # The derivatives are the marginal probabilities of tags.
    op = Op.of({"log_partition": {"lengths": lengths}})
    marginals = tn.vjp(op, [x, w], [np.ones(2)])[0]
    for b, t, y in itertools.product(range(2), range(3), range(2)):
        want = sum(weight(b, tags) for tags in sequences[b] if t < len(tags) and tags[t] == y) / totals[b]
        np.testing.assert_allclose(marginals[b, t, y], want, atol=1e-14)
    for wrong in ([4, 2], [0, 1], [3], [-1, 2]):
        with pytest.raises(t4a.T4aError):
            tn.log_partition(x, w, wrong)
    with pytest.raises(t4a.T4aError):
        tn.log_partition(x[0], w)


def test_kalman_filter():
    # The joint normal distribution of two observations, written out.
    f, q, h, r = 0.7, 0.3, 1.2, 0.4
    m, p, y = 0.5, 0.9, rng.normal(size=(2, 2, 1))
    matrix = lambda x: np.array([[x]])
    means, covariances, likelihoods = tn.kalman_filter(*map(matrix, (f, q, h, r)), y, np.array([m]), matrix(p))
    first, second = f * p * f + q, f * (f * p * f + q) * f + q
    mean = h * np.array([f * m, f * f * m])
    joint = np.array([[h * first * h + r, h * first * f * h], [h * first * f * h, h * second * h + r]])
    for b in range(2):
        e = y[b, :, 0] - mean
        want = -0.5 * (e @ np.linalg.solve(joint, e) + np.linalg.slogdet(joint)[1] + 2 * np.log(2 * np.pi))
        np.testing.assert_allclose(likelihoods[b].sum(), want)
        np.testing.assert_allclose(means[b, 1, 0], f * f * m + np.array([first * f * h, second * h]) @ np.linalg.solve(joint, e))
    assert covariances.shape == (2, 1, 1)


def test_derivatives_to_third_order():
    # f(x) = ln Z of a chain; finite differences of its derivatives.
    op = Op.einsum([[1, 2], [2, 3]], [(2, 3), (3, 2)], [], "log_sum_exp")
    x, y = rng.normal(size=(2, 3)), rng.normal(size=(3, 2))

    def gradient(x):
        return tn.vjp(op, [x, y], [np.array(1.0)])[0]

    def step(f, x, v, h=1e-5):
        return (f(x + h * v) - f(x - h * v)) / (2 * h)

    v, w = rng.normal(size=(2, 2, 3))
    value = lambda x: tn.apply(op, x, y)[0]
    np.testing.assert_allclose((gradient(x) * v).sum(), step(value, x, v), rtol=1e-8)
    results, tangents = tn.jvp(op, [x, y], [v, None])
    np.testing.assert_allclose(results[0], value(x))
    np.testing.assert_allclose(tangents[0], (gradient(x) * v).sum())

    second = op.vjp([True], [True, False]).vjp([True], [True, False, False])

    def hessian(x):
        return tn.apply(second, x, y, np.array(1.0), v)[0]

    np.testing.assert_allclose(hessian(x), step(gradient, x, v), rtol=1e-6, atol=1e-9)
    third = second.vjp([True], [True, False, False, False])
    np.testing.assert_allclose(tn.apply(third, x, y, np.array(1.0), v, w)[0], step(lambda x: hessian(x), x, w), rtol=1e-5, atol=1e-8)


def test_complex_cotangents():
    # L = Re(conj(g) z w): the cotangent of z is g conj(w).
    z, w, g = (rng.normal(size=(3, 2)) @ [1, 1j] for _ in range(3))
    op = Op.einsum([[1], [1]], [(3,), (3,)], [1], dtype="complex128")
    back = tn.vjp(op, [z, w], [g])
    np.testing.assert_allclose(back[0], g * w.conj())
    np.testing.assert_allclose(back[1], g * z.conj())


def test_operations_are_values():
    op = Op.of({"softmax": {"axis": 1}})
    assert op.text == '{"t4a":1,"op":{"softmax":{"axis":1}}}'
    assert op == Op.parse(op.text) and hash(op) == hash(Op.parse(op.text)) and op in {op: 1}
    assert op.results([((2, 3), "float32")]) == [((2, 3), "float32")]
    assert json.loads(op.vjp([True], [True]).text)["op"]["vjp"]["wanted"] == [True]
    for text in ["", "{", '{"t4a":9,"op":{}}', '{"t4a":1,"op":{"softmax":{"axis":1,"more":2}}}']:
        with pytest.raises(t4a.ArgumentError):
            Op.parse(text)


def test_errors():
    with pytest.raises(t4a.SingularError, match="matrix 1") as error:
        tn.inv(np.stack([np.eye(2), np.ones((2, 2))]))
    assert error.value.batch == 1 and isinstance(error.value, ArithmeticError)
    with pytest.raises(t4a.ShapeError, match="square"):
        tn.inv(np.ones((2, 3)))
    with pytest.raises(t4a.ShapeError, match="size"):
        tn.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((4, 5)))
    with pytest.raises(t4a.ShapeError, match="2 axes"):
        tn.einsum("ijk->i", np.ones((2, 3)))
    with pytest.raises(t4a.ArgumentError, match="operands"):
        tn.einsum("ij,jk->ik", np.ones((2, 3)))
    with pytest.raises(t4a.DtypeError):
        tn.inv(np.ones((2, 2), np.float16))
    gauge = Op.of({"linalg": {"op": {"svd": {"vectors": "thin", "degeneracy": {
        "tolerance": None, "broadening": None, "check_gauge": True, "separable": False}}}, "complex": False}})
    with pytest.raises(t4a.GaugeError):
        tn.vjp(gauge, [np.eye(3)], [rng.normal(size=(3, 3)), None, None])
    with pytest.raises(t4a.ArgumentError, match="__dlpack__"):
        Op.of({"softmax": {"axis": 0}}).run([1.0])


def test_memory_is_released():
    x = rng.normal(size=(100, 100))
    references = sys.getrefcount(x)
    for _ in range(20):
        y = tn.einsum("ij,jk->ik", x, x)
    assert sys.getrefcount(x) == references
    # A result without a consumer, and one that is consumed twice.
    Op.of({"softmax": {"axis": 1}}).run(x)
    (result,) = Op.of({"softmax": {"axis": 1}}).run(x)
    capsule = result.__dlpack__(max_version=(1, 1))
    with pytest.raises(BufferError):
        result.__dlpack__(max_version=(1, 1))
    del capsule, result
    gc.collect()
    assert y.flags.writeable and y.base is not None


def test_functions_of_the_interpreter_are_not_shared(monkeypatch):
    # Other packages set types of arguments on the same objects.
    for name in ("PyCapsule_New", "PyCapsule_GetPointer", "PyCapsule_IsValid"):
        monkeypatch.setattr(getattr(ctypes.pythonapi, name), "argtypes", [ctypes.c_int])
    np.testing.assert_allclose(tn.softmax(np.zeros((1, 2))), [[0.5, 0.5]])


def test_threads():
    x = rng.normal(size=(30, 30))
    want, wrong = x @ x, []

    def work():
        for _ in range(50):
            if not np.allclose(tn.einsum("ij,jk->ik", x, x), want):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong and t4a.threads() >= 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork():
    tn.softmax(np.ones((2, 2)))
    child = os.fork()
    if child == 0:
        try:
            tn.softmax(np.ones((2, 2)))
        except t4a.UnsupportedError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_operations_are_made_once_for_each_set_of_options():
    from t4a import _plans

    ties = {gauge: _plans.ties(gauge, None, None, False) for gauge in (True, False)}
    made = {gauge: _plans.of_matrices("svd", False, vectors="thin", degeneracy=ties[gauge]) for gauge in (True, False)}
    assert all(f'"check_gauge":{str(gauge).lower()}' in op.text for gauge, op in made.items())
    assert _plans.of_matrices("svd", False, vectors="thin", degeneracy=ties[True]) is made[True]
    assert _plans.of_matrices("svd", True, vectors="thin", degeneracy=ties[True]) != made[True]
    op = Op.einsum([[1, 2], [2, 3]], [(2, 2), (2, 2)], [1, 3])
    assert op.vjp([True], [True, False]) is op.vjp([1], [1, 0]) and op.vjp([True], [False, True]) != op.vjp([True], [True, False])
    assert op.jvp([True, False]) is op.jvp([True, False])


def test_marginals_are_sums_over_all_tags():
    emissions, transitions, lengths = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 2)), [3, 2]
    found = tn.crf.marginals(emissions, transitions, lengths)
    for b, n in enumerate(lengths):
        want, total = np.zeros((3, 2)), 0
        for tags in itertools.product(range(2), repeat=n):
            score = sum(emissions[b, t, y] for t, y in enumerate(tags)) + sum(transitions[y, z] for y, z in zip(tags, tags[1:]))
            total += np.exp(score)
            for t, y in enumerate(tags):
                want[t, y] += np.exp(score)
        np.testing.assert_allclose(found[b], want / total, atol=1e-12)
    with pytest.raises(t4a.T4aError):
        tn.crf.marginals(emissions[0], transitions)


def test_libraries_of_other_versions_are_refused():
    from t4a import _library

    for major, minor in ((1, 2), (2, 5), (0, 9)):
        with pytest.raises(ImportError, match=rf"ABI {major}\.{minor}, this package requires 1\.3"):
            _library.check_abi(major << 16 | minor)
    _library.check_abi(1 << 16 | 7)


def test_arrays_that_are_not_what_they_seem():
    x = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]])
    for f in (tn.svdvals, tn.cond, tn.cumsum, lambda x: tn.einsum("ij->i", x)):
        with pytest.raises(t4a.UnsupportedError, match="mask"):
            f(x)
        with pytest.raises(t4a.DtypeError, match="bytes are in reverse order.*astype"):
            f(x.data.astype(x.dtype.newbyteorder()))
        f(x.filled(0))


def test_functions_and_operations_are_pickled():
    for module in (tn, tn.linalg, tn.scan, tn.crf):
        for name in dir(module):
            f = getattr(module, name)
            if name in tn._FUNCTIONS:
                assert pickle.loads(pickle.dumps(f)) is f and f.__qualname__ == name
    op = Op.of({"softmax": {"axis": 1}})
    for same in (pickle.loads(pickle.dumps(op)), copy.deepcopy(op), copy.copy(op)):
        assert same == op
        np.testing.assert_array_equal(tn.apply(same, np.ones((1, 2)))[0], [[0.5, 0.5]])


def test_dtypes_without_tensors():
    # Complex numbers of 64 bits would lose digits.
    for wide, other in ((np.clongdouble, np.clongdouble), (np.longdouble, np.complex64), (np.complex64, np.longdouble)):
        with pytest.raises(t4a.DtypeError, match="there are no tensors of (complex256|float128|complex160|float80)"):
            tn.einsum("i,i->i", np.ones(2, wide), np.ones(2, other))
    for x in (np.array(["2020-01-01"], "M8[D]"), np.zeros(3, [("a", "f8")]), np.array([1, "a"], object)):
        with pytest.raises(t4a.DtypeError, match="there are no tensors of"):
            tn.cumsum(x)


def test_subscripts_that_are_none():
    x = np.ones((2, 3))
    for subscripts, kind, text in (
        ("ij->i->j", t4a.ArgumentError, "einsum: 'ij->i->j' has something else"),
        ("i1->i", t4a.ArgumentError, "einsum: 'i1->i' has something else"),
        ("ij,jk->ik", t4a.ArgumentError, "einsum: 'ij,jk->ik' has 2 operands, given 1"),
        ("ijk->i", t4a.ShapeError, "einsum: 'ijk' does not name the 2 axes"),
    ):
        with pytest.raises(kind, match=text):
            tn.einsum(subscripts, x)
    with pytest.raises(t4a.ArgumentError, match="^k=17: an integer of 1 to 16"):
        tn.k_best_einsum("ij->i", x, k=17)
    with pytest.raises(t4a.ShapeError, match=r"^log_partition: .*length ≥ 1.*\(1, 0, 2\)"):
        tn.log_partition(np.ones((1, 0, 2)), np.ones((2, 2)))
