"""Checks of operands and options: typed errors before work, with the name of the function that was called."""

import re

import functions
import numpy as np
import pytest

import t4a
import t4a.numpy as tn
from t4a.networks import Chain, dmrg
from t4a.structured import Leg, Spec

E = np.eye(3)
VECTOR, NUMBER = np.ones(3), np.float64(1)
SYMMETRIC = np.ones(functions.SQUARE.size)
CHAIN = np.ones((1, 2, 3)), np.ones((3, 3))
PRODUCT, COMPLEX_PRODUCT = (
    t4a.Op.einsum([[1, 2], [2, 3]], [(3, 3)] * 2, [1, 3], dtype=name) for name in ("float64", "complex128")
)
SVD = t4a._plans.svd([(3, 3)], ["complex128"], False, t4a._plans.ties(True, None, None, False)).op


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tn.matrix_power(E, 1.5), "n=1.5: an integer"),
        (lambda: tn.matrix_power(E, "2"), "n='2': an integer"),
        (lambda: tn.low_rank(E, 1.7), "rank=1.7: an integer"),
        (lambda: tn.low_rank(E, -1), "rank=-1: an integer of at least 0"),
        (lambda: tn.tensorinv(E, ind=1.5), "ind=1.5: an integer"),
        (lambda: tn.k_best_einsum("i->", VECTOR, k=2.5), "k=2.5: an integer"),
        (lambda: tn.k_best_einsum("i->", VECTOR, k=0), "k=0: an integer of at least 1"),
        (lambda: tn.log_partition(*CHAIN, [1.9]), "lengths[0]=1.9: an integer"),
        (lambda: tn.marginals(*CHAIN, [-1]), "lengths[0]=-1: an integer of at least 0"),
        (lambda: tn.marginals(*CHAIN, 2), "lengths=2: a list of integers"),
        (lambda: tn.cumsum(E, axis=0.5), "axis=0.5: an integer"),
        (lambda: Leg({0.5: 1}), "charge=0.5: an integer"),
        (lambda: Leg({0: 1.5}), "size=1.5: an integer"),
        (lambda: Leg({0: 1}, modulus=2.5), "modulus=2.5: an integer"),
        (lambda: Leg({0: 1}, modulus=-2), "modulus=-2: an integer of at least 0"),
        *((lambda x=x: Leg(x), f"sectors={x!r}: a dictionary") for x in (3, None, "ab", [(0, 1, 2)])),
        *((lambda x=x: Spec(x, 1), f"legs={x!r}: a list of Legs") for x in (3, [1, 2])),
        (lambda: Chain("spin_half", 2).add("x", ("Sz", 0)), "coefficient='x': a finite number"),
        (lambda: Chain("spin_half", 2).add(1, "Sz"), "factor 'Sz': a pair of an operator and a site"),
        (lambda: Chain("spin_half", 2).add(1, ("Sz",)), "factor ('Sz',): a pair of an operator and a site"),
        (lambda: Chain("spin_half", 2).add(1, ("Sz", -1)), "site=-1: an integer of at least 0"),
        (lambda: dmrg(Chain("spin", 2), ["Up", "Dn"]), "twice=None: an integer"),
        (lambda: dmrg(Chain("boson", 2), ["0", "1"]), "most=None: an integer"),
        (lambda: dmrg(Chain("spin_half", 2), ["Up", "Dn"], expect="Sz"), "expect='Sz': lists of names"),
        (lambda: dmrg(Chain("spin_half", 2), ["Up", "Dn"], max_dims=5), "max_dims=5: a list of integers"),
        (lambda: t4a.set_threads(0), "count=0: an integer of at least 1"),
        (lambda: t4a.set_threads("2"), "count='2': an integer"),
        (lambda: t4a.Op.parse(None), "the text of an operation is required, given NoneType"),
        (lambda: t4a.Op.einsum([[1]], [(3,)], []).batch(-1, [True]), "size=-1: an integer of at least 0"),
        (lambda: tn.log_partition(*CHAIN, [9]), "log_partition: sequence 0: a length between 1 and 2"),
        (lambda: tn.marginals(*CHAIN, [9]), "marginals: sequence 0: a length between 1 and 2"),
        *((lambda f=f: PRODUCT.jvp([True] * f), f"einsum: {f} flags for 2 operands") for f in (0, 1, 3)),
        (lambda: PRODUCT.vjp([True], [True]), "einsum: 1 flags for 2 operands"),
        (lambda: PRODUCT.vjp([True, True], [True, True]), "einsum: 2 flags for 1 results"),
        (lambda: PRODUCT.vjp_of_results([], [True, True]), "einsum: 0 flags for 1 results"),
        (lambda: PRODUCT.batch(2, [True]), "einsum: 1 flags for 2 operands"),
        (lambda: COMPLEX_PRODUCT.vjp([True], [True] * 4), "einsum: 4 flags for 2 operands"),
        (lambda: PRODUCT.vjp([True], [True, False]).jvp([True]), "vjp: 1 flags for 3 operands"),
        (lambda: t4a.Op.of({"softmax": {"axis": 0}}).vjp([True], [True, True]), "softmax: 2 flags for 1 operands"),
        (lambda: SVD.vjp([True], [True]), "svd: 1 flags for 3 results"),
        (lambda: SVD.jvp([True, True]), "svd: 2 flags for 1 operands"),
        (lambda: Spec([Leg({0: 1})], 0.5), "rows=0.5: an integer"),
        (lambda: Spec([Leg({0: 1})], 1, 0.5), "flux=0.5: an integer"),
        (lambda: tn.graded_contract(SYMMETRIC, SYMMETRIC, (functions.SQUARE,) * 2, ((1.0,), (0,))), "axes[0]=1.0: an integer"),
        (lambda: tn.softmax(E, axis=None), "axis=None: an integer"),
        (lambda: tn.einsum("i,i->", VECTOR, VECTOR, optimize=[(0, 1.9)]), "optimize=[(0, 1.9)]"),
        (lambda: tn.einsum("i,i->", VECTOR, VECTOR, optimize=[("0", "1")]), "optimize=[('0', '1')]"),
        (lambda: tn.einsum("i->", VECTOR, memory=-1), "memory=-1: an integer of at least 1"),
        (lambda: tn.einsum("i->", VECTOR, memory=0), "memory=0: an integer of at least 1"),
        (lambda: tn.argmax_einsum("i->", VECTOR, memory=[1]), "memory=[1]: an integer"),
        (lambda: t4a.Op.einsum([[1]], [(3,)], [], memory=0), "memory=0: an integer of at least 1"),
        (lambda: tn.einsum([[1.5], [1.5]], VECTOR), "einsum: label 1.5 of operand 0: an integer"),
        (lambda: tn.einsum([[1], [1, None], [1]], VECTOR, E), "einsum: label None of operand 1: an integer"),
        (lambda: tn.argmax_einsum([[1], ["i"]], VECTOR), "einsum: label 'i' of the result: an integer"),
        (lambda: tn.einsum(["i", "i"], VECTOR), "einsum: label 'i' of operand 0: an integer"),
        (lambda: tn.einsum([[2**63], []], VECTOR), "einsum: label 9223372036854775808 of operand 0: an integer of 64 bits"),
        (lambda: tn.einsum([1, [1]], VECTOR), "einsum: labels 1 of operand 0: a list"),
        (lambda: tn.einsum(5, VECTOR), "einsum: subscripts=5: a text"),
        (lambda: tn.einsum([], VECTOR), "einsum: subscripts=[]: a text"),
        (lambda: tn.einsum(E, "ij->ji"), "einsum: operand 0 is the text 'ij->ji'; subscripts precede the operands: einsum("),
        (lambda: tn.einsum(E, E, "ij,jk->ik"), "einsum: operand 1 is the text 'ij,jk->ik'; subscripts precede"),
        (lambda: tn.argmax_einsum(E.astype(int), "ij->j"), "einsum: operand 0 is the text 'ij->j'; subscripts precede"),
        (lambda: tn.k_best_einsum(E, "ij->j", k=2), "einsum: operand 0 is the text 'ij->j'; subscripts precede"),
        (lambda: tn.einsum(E, [0, 1], [1, 0]), "einsum: an array is in the place of the subscripts; subscripts precede"),
        (lambda: t4a.Op.einsum([[1.5]], [(3,)], []), "einsum: label 1.5 of operand 0: an integer"),
        (lambda: t4a.Op.einsum([[1]], [(3.5,)], []), "shapes[0][0]=3.5: an integer"),
        (lambda: t4a.Op.einsum([[1]], [(3,), (3,)], []), "einsum: labels of 1 operands, shapes of 2"),
        (lambda: tn.einsum("i->", VECTOR, semiring=["max_plus"]), "semiring=['max_plus']: a name"),
        (lambda: tn.matrix_norm(E, np.array([1, 2])), "ord=array([1, 2]): one of 'fro'"),
        (lambda: tn.matrix_norm(E, [1]), "ord=[1]: one of 'fro'"),
        (lambda: tn.cond(np.ones((2, 3)), 3), "p=3: one of 'fro'"),
        (lambda: tn.solve_triangular(E, E, left=False, trans=["N"]), "trans=['N']: one of 'N', 'T', 'C'"),
        (lambda: tn.svd(E, tolerance=[1]), "tolerance=[1]: a nonnegative number"),
        (lambda: tn.svd(E, tolerance="1"), "tolerance='1': a nonnegative number"),
        (lambda: tn.pinv(E, rtol="x"), "rtol='x': a nonnegative number"),
        (lambda: tn.svd(E, separable=True, broadening=0.1), "separable=True and broadening=0.1: at most one"),
        (lambda: tn.lu_solve(E, np.array([0, 1, 1]), E), "lu_solve: `rows` is no permutation"),
        (lambda: tn.lu_solve(E, np.array([0, 1, -1]), E), "lu_solve: `rows` is no permutation"),
        # Pivots of LAPACK, counted from 1.
        (lambda: tn.lu_solve(E, np.array([3, 2, 3]), VECTOR), "lu_solve: `rows` is no permutation"),
    ],
)
def test_arguments(call, text):
    with pytest.raises(t4a.ArgumentError, match=re.escape(text)):
        call()


@pytest.mark.parametrize(
    "call, name",
    [
        *((lambda ord=ord: tn.matrix_norm(VECTOR, ord), "matrix_norm") for ord in ("fro", "nuc", 1, 2, np.inf)),
        (lambda: tn.matrix_norm(NUMBER), "matrix_norm"),
        *((lambda ord=ord: tn.matrix_norm(np.ones((0, 3)), ord), "matrix_norm") for ord in (1, 2, -2, np.inf, -np.inf)),
        *((lambda p=p: tn.cond(np.ones((0, 0)), p), "cond") for p in ("fro", 1, 2, -2)),
        *((lambda p=p: tn.cond(np.ones((2, 3)), p), "cond") for p in ("fro", 1)),
        (lambda: tn.cond(VECTOR), "cond"),
        (lambda: tn.matrix_power(VECTOR, 2), "matrix_power"),
        (lambda: tn.ql(NUMBER), "ql"),
        (lambda: tn.rq(VECTOR), "rq"),
        (lambda: tn.lu(VECTOR), "lu"),
        (lambda: tn.householder_product(VECTOR, VECTOR), "householder_product"),
        (lambda: tn.householder_product(E, NUMBER), "householder_product"),
        (lambda: tn.lyapunov(VECTOR, E), "lyapunov"),
        (lambda: tn.lyapunov(E, np.ones((2, 2))), "lyapunov"),
        (lambda: tn.lyapunov_discrete(E, VECTOR), "lyapunov_discrete"),
        (lambda: tn.lyapunov_discrete(np.ones((2, 3)), E), "lyapunov_discrete"),
        (lambda: tn.solve(E, NUMBER, left=False), "solve"),
        (lambda: tn.solve(VECTOR, E, left=False), "solve"),
        (lambda: tn.solve_triangular(E, NUMBER, left=False), "solve_triangular"),
        (lambda: tn.lu_solve(VECTOR, np.arange(3), E), "lu_solve"),
        (lambda: tn.lu_solve(E, np.arange(3), NUMBER), "lu_solve"),
        (lambda: tn.lu_solve(E, NUMBER, E), "lu_solve"),
        (lambda: tn.marginals(E, E), "marginals"),
        (lambda: tn.log_partition(NUMBER, E), "log_partition"),
        (lambda: tn.einsum([range(64), []], np.ones((1,) * 64)), "einsum: 64 axes of operand 0, at most 63 in a contraction to a number"),
    ],
)
def test_shapes(call, name):
    with pytest.raises(t4a.ShapeError, match=f"^{name}{'' if ':' in name else ': '}"):
        call()


@pytest.mark.parametrize(
    "call, name",
    [
        *((lambda ord=ord: tn.matrix_norm(np.array([[100, 2], [3, 4]], np.int8), ord), "matrix_norm") for ord in ("fro", "nuc", 1, 2, -np.inf)),
        *((lambda n=n: tn.matrix_power(np.eye(2, dtype=int), n), "matrix_power") for n in (0, 1, 2, -1)),
        *((lambda p=p: tn.cond(np.eye(2, dtype=int), p), "cond") for p in (1, 2)),
        (lambda: tn.householder_product(np.eye(2, dtype=int), np.ones(1)), "householder_product"),
        (lambda: tn.householder_product(E, np.ones(2, int)), "householder_product"),
        (lambda: tn.lu_solve(E, VECTOR, E), "lu_solve"),
        (lambda: tn.marginals(CHAIN[0] * 1j, CHAIN[1]), "marginals"),
        (lambda: tn.log_partition(CHAIN[0], CHAIN[1] * 1j), "log_partition"),
        (lambda: tn.marginals(CHAIN[0].astype(int), CHAIN[1].astype(int)), "marginals"),
        (lambda: tn.ql(np.eye(2, dtype=int)), "ql"),
    ],
)
def test_dtypes(call, name):
    with pytest.raises(t4a.DtypeError, match=f"^{name}: "):
        call()


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize(
    "name, call, shapes, axis",
    [
        ("solve", tn.solve, ((3, 4, 4), (4, 4, 2)), 0),
        ("solve", tn.solve, ((2, 3, 4, 4), (2, 5, 4, 2)), 1),
        ("solve", tn.solve, ((3, 4, 4), (4, 2)), 0),
        ("solve", tn.solve, ((4, 4), (3, 4, 2)), 0),
        ("solve_triangular", tn.solve_triangular, ((2, 3, 4, 4), (2, 4, 4, 2)), 1),
        ("lstsq", tn.lstsq, ((3, 4, 2), (4, 4, 2)), 0),
        ("lyapunov_positive", tn.lyapunov_positive, ((3, 4, 4), (5, 4, 4)), 0),
    ],
)
def test_unequal_batches(name, call, shapes, axis, kind):
    one, two = (str(list(shape)) for shape in shapes)
    text = f"{name}: the batches of shapes {one} and {two} differ in axis {axis}, equal batches are required"
    with pytest.raises(t4a.ShapeError, match=f"^{re.escape(text)}$"):
        call(*(np.ones(shape, kind) for shape in shapes))


def numpy():
    return tn, lambda x: x


@pytest.mark.parametrize("framework", ["numpy", "pytorch", "jax"])
def test_numbers_of_python_take_the_dtype_of_other_operands(framework):
    t, array = globals()[framework]()
    for kind, number, expected in (
        ("float32", 2, "float32"),
        ("float32", 0.1, "float32"),
        ("float32", 0.1 + 1j, "complex64"),
        ("float16", 0.5, "float16"),
        ("complex64", 0.1, "complex64"),
    ):
        x = np.array([1, 3], kind)
        for subscripts, operands in ((",i->i", (number, array(x))), ("i,->i", (array(x), number))):
            found = t.einsum(subscripts, *operands)
            assert str(found.dtype).removeprefix("torch.") == expected
            np.testing.assert_array_equal(np.asarray(found), x * np.array(number, expected))
    best, where = t.argmax_einsum("i,->", array(np.array([1, 3], "float32")), 2)
    assert float(best) == 5 and int(where["i"]) == 1
    # Arrays, also without axes, keep theirs.
    with pytest.raises(t4a.DtypeError, match="float64|float16"):
        t.einsum(",i->i", array(np.array(2, "float16")), array(np.ones(2, "float32")))


def test_numbers_of_python_with_all_digits():
    for framework in (numpy, pytorch):
        t, array = framework()
        assert float(t.einsum(",->", array(np.array(1.0)), 0.1)) == 0.1
    with pytest.raises(t4a.DtypeError):
        tn.einsum(",i->i", 2.0, np.ones(2, int))


def test_errors_name_options_of_python():
    tie, (single, rotation) = np.diag([2.0, 2.0, 1.0]), np.zeros((2, 3, 3))
    single[0, 2], rotation[0] = 1, [1, 2, 3]
    op = t4a._plans.spectrum([(3, 3)], ["float64"], "eigh", t4a._plans.ties(True, None, None, False)).op
    for cotangent, text in (
        (single, "set the option `separable` of the factorisation"),
        (rotation, "the options `tolerance` and `check_gauge` of the factorisation"),
    ):
        with pytest.raises(t4a.GaugeError, match=text) as caught:
            tn.vjp(op, [tie], [None, cotangent])
        assert "_with" not in str(caught.value) and "Degeneracy" not in str(caught.value)
    for x in (np.full((2, 2), np.nan), [[-1.0, 0.0], [0.0, 1.0]]):
        with pytest.raises(t4a.SingularError) as caught:
            tn.sqrtm(np.array(x))
        assert "_ex" not in str(caught.value)
    with pytest.raises(t4a.OutOfMemoryError, match="the option `memory`") as caught:
        tn.einsum("ij,jk->ik", np.ones((90, 90)), np.ones((90, 90)), memory=1)
    assert "Config" not in str(caught.value)
    with pytest.raises(t4a.SingularError, match="svd_function: .*not finite at a singular value of matrix 0$"):
        tn.svd_function(np.zeros((2, 2)), "log")
    with pytest.raises(t4a.SingularError, match="hermitian_function: .*not finite at an eigenvalue of matrix 0; adding"):
        tn.hermitian_function(np.zeros((2, 2)), "log")


def test_errors_of_composed_functions_have_their_name():
    zero = np.zeros((2, 2))
    for call, name in (
        (lambda: tn.lyapunov(zero, zero), "lyapunov"),
        (lambda: tn.tensorinv(zero, 1), "tensorinv"),
        (lambda: tn.tensorsolve(zero, np.ones(2)), "tensorsolve"),
        (lambda: tn.matrix_power(zero, -1), "matrix_power"),
        (lambda: tn.cond(zero, 1), "cond"),
        (lambda: tn.lu_solve(zero, np.arange(2), zero), "lu_solve"),
        (lambda: tn.svd_truncated(zero + np.nan), "svd_truncated"),
    ):
        with pytest.raises(t4a.SingularError, match=f"^{name}: "):
            call()
    # -1 is an eigenvalue; the product of two is 1; that of one with its conjugate.
    for a in (np.diag([-1.0, 0.5]), np.diag([2.0, 0.5]), np.diag([1.0, 0.5])):
        with pytest.raises(t4a.SingularError, match=r"^lyapunov_discrete: .*λ_i conj\(λ_j\) ≠ 1") as caught:
            tn.lyapunov_discrete(np.stack([E[:2, :2] / 2, a]), np.zeros((2, 2, 2)))
        assert caught.value.batch == 1


def test_the_treatment_of_ties_of_general_matrices_has_no_broadening():
    for f, operands in ((tn.eig, (E,)), (tn.graded_eig, (np.ones(functions.SQUARE.size), functions.SQUARE))):
        with pytest.raises(TypeError, match="broadening"):
            f(*operands, broadening=0.1)


def test_norms_of_matrices_with_nan():
    for x in (np.array([[np.nan, 1.0]]), np.array([[np.nan, 1j]])):
        assert np.isnan(tn.matrix_norm(x)) and np.isnan(tn.matrix_norm(x, 1))


def test_powers_may_be_numbers_of_numpy():
    for power in (np.float32(2), np.int64(2), 2):
        np.testing.assert_allclose(tn.hermitian_function(2 * E, power), 4 * E)


def test_equal_searches_have_one_name():
    from t4a import _orders

    assert _orders.order(True) is _orders.order("auto") is _orders.order("greedy") is None


class Bare:
    """A DLPack producer without other attributes."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


LINALG = [(name, kind) for name, kind in functions.ALL if name.split()[0] in tn.linalg.__all__ or name == "marginals"]


@pytest.mark.parametrize("name, kind", LINALG)
def test_other_producers(name, kind):
    f, operands = functions.case(name, kind)
    t = functions.of_module(tn, np.asarray)
    as_tuple = lambda x: x if isinstance(x, tuple) else (x,)
    for one, two in zip(as_tuple(f(t, *operands)), as_tuple(f(t, *map(Bare, operands))), strict=True):
        np.testing.assert_array_equal(one, two, strict=True)


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    a = rng.normal(size=(3, 3))
    x = torch.from_numpy(a)
    for f in (tn.ql, tn.rq, tn.lu, lambda x: tn.matrix_power(x, 0), lambda x: tn.lyapunov_discrete(x, x), lambda x: tn.householder_product(x, x[0]), tn.matrix_norm):
        np.testing.assert_equal(f(x), f(a))
    np.testing.assert_equal(tn.marginals(x[None], x), tn.marginals(a[None], a))
    with pytest.raises(t4a.UnsupportedError, match="NumPy cannot read"):
        tn.matrix_norm(x.to(torch.bfloat16))
    with pytest.raises(t4a.ArgumentError, match="^lu_solve: `rows` is no permutation"):
        tn.lu_solve(x, torch.tensor([0, 1, 1]), x)


def pytorch():
    torch = pytest.importorskip("torch")
    import t4a.torch as tt

    return tt, torch.from_numpy


def jax():
    pytest.importorskip("jax")
    import t4a.jax as tj

    return tj, lambda x: x


@pytest.mark.parametrize("framework", [pytorch, jax])
def test_other_frameworks(framework):
    t, array = framework()
    nan = array(np.array([[np.nan, 1.0]], np.float32))
    assert np.isnan(np.asarray(t.matrix_norm(nan))) and t.matrix_norm(array(np.zeros((2, 2), np.float32))) == 0
    vector, integers = array(np.ones(3, np.float32)), array(np.ones((2, 2), np.int8))
    eye = array(np.eye(3, dtype=np.float32))
    for call, error, text in (
        (lambda: t.matrix_norm(vector, np.inf), t4a.ShapeError, "matrix_norm: "),
        (lambda: t.matrix_norm(integers), t4a.DtypeError, "matrix_norm: .*int8"),
        (lambda: t.matrix_power(integers, 0), t4a.DtypeError, "matrix_power: "),
        (lambda: t.lyapunov_discrete(eye, vector), t4a.ShapeError, "lyapunov_discrete: "),
        (lambda: t.marginals(eye[None] * 1j, eye), t4a.DtypeError, "marginals: "),
        (lambda: t.cumsum(eye, axis=0.5), t4a.ArgumentError, "axis=0.5"),
        (lambda: t.cond(eye, 3), t4a.ArgumentError, "p=3"),
        (lambda: t.einsum([[1.5], []], vector), t4a.ArgumentError, "einsum: label 1.5 of operand 0"),
        (lambda: t.einsum(eye, "ij->ji"), t4a.ArgumentError, "einsum: operand 0 is the text 'ij->ji'; subscripts precede"),
        (lambda: t.einsum(eye, [0, 1]), t4a.ArgumentError, "einsum: an array is in the place of the subscripts"),
        (lambda: t.lu_solve(eye, array(np.array([0, 1, 1])), eye), t4a.ArgumentError, "lu_solve: `rows` is no permutation"),
    ):
        with pytest.raises(error, match=f"^{text}"):
            call()
    # A real v with a complex tau: of one element, H_1 = 1 - tau.
    found = t.householder_product(array(np.ones((1, 1), np.float32)), array(np.array([2j], np.complex64)))
    np.testing.assert_array_equal(found, [[1 - 2j]])


def test_permutations_of_pytorch():
    torch = pytest.importorskip("torch")
    import t4a.torch as tt

    a, b = torch.eye(3)[[2, 0, 1]] * 2, torch.ones(2, 3)
    packed, rows = tt.lu_factor(a)
    for wrong in ([0, 1, 1], [3, 2, 3]):
        with pytest.raises(t4a.ArgumentError, match="^lu_solve: `rows` is no permutation"):
            tt.lu_solve(packed, torch.tensor(wrong), b[0])
    # The values cannot be read in a transformation.
    solve = lambda b: tt.lu_solve(packed, rows, b)
    torch.testing.assert_close(torch.func.vmap(solve)(b), b / 2)
    torch.testing.assert_close(torch.func.vmap(lambda rows, b: tt.lu_solve(packed, rows, b))(torch.stack([rows, rows]), b), b / 2)


def test_tensors_without_values():
    torch = pytest.importorskip("torch")
    import t4a.torch as tt

    x = torch.empty(2, 3, 3, device="meta", requires_grad=True)
    y = tt.einsum("bij,bjk->bik", x, tt.eigh(x)[1])
    assert y.is_meta and y.shape == (2, 3, 3)
    y.sum().backward()
    assert x.grad.is_meta and x.grad.shape == x.shape
    values, rows = tt.svdvals(x.detach()), tt.lu_factor(x.detach())[1]
    assert values.is_meta and values.shape == (2, 3) and rows.dtype == torch.int64
    with pytest.raises(t4a.ShapeError, match="^inv"):
        tt.inv(torch.empty(2, 3, device="meta"))
    with pytest.raises(t4a.UnsupportedError, match="a tensor on meta, which has no values, beside one that has values"):
        tt.einsum("bij,bjk->bik", x, torch.ones(2, 3, 3))
    with pytest.raises(t4a.UnsupportedError, match="^svd_truncated: .*unknown"):
        tt.svd_truncated(x.detach(), cutoff=0.5)
    with pytest.raises(t4a.UnsupportedError, match="meta"):
        tn.einsum("bij->bji", x.detach())
