"""Writes capi/tests/vectors.json: operations with operands, results, and cotangents of both, for the tests in Python and
Julia. `test_vectors.py` checks the file against finite differences."""

import json
import sys
from pathlib import Path

import numpy as np

import t4a.numpy as tn
from t4a import Op

PATH = Path(__file__).parents[2] / "capi/tests/vectors.json"
FREE = {"tolerance": None, "broadening": None, "check_gauge": False, "separable": False}


def described(x):
    x = np.asarray(x)
    flat = [[z.real, z.imag] if np.iscomplexobj(x) else z.item() for z in x.ravel()]
    return {"dtype": str(x.dtype), "shape": list(x.shape), "data": flat}


def array(x):
    data = np.array(x["data"], dtype="float64" if x["dtype"].startswith("complex") else x["dtype"])
    if x["dtype"].startswith("complex"):
        data = data.reshape(-1, 2) @ [1, 1j]
    return data.reshape(x["shape"])


def operations(rng):
    """Name, operation, operands."""
    noise = lambda *shape: rng.normal(size=shape)
    complex_noise = lambda *shape: noise(*shape) + 1j * noise(*shape)

    def einsum(semiring):
        op = Op.einsum([[1, 2], [2, 3], [3]], [(2, 3), (3, 4), (4,)], [1], semiring)
        operands = [noise(2, 3), noise(3, 4), noise(4)]
        return f"einsum_{semiring}", op, [abs(x) for x in operands] if semiring.endswith("_mul") else operands

    yield from map(einsum, ("standard", "max_plus", "min_plus", "max_mul", "max_min", "log_sum_exp"))
    op = Op.einsum([[1, 2], [3, 2]], [(2, 3), (4, 3)], [3, 1], dtype="complex128")
    yield "einsum_complex", op, [complex_noise(2, 3), complex_noise(4, 3)]
    linalg = lambda op, is_complex=False: Op.of({"linalg": {"op": op, "complex": is_complex}})
    for name, make in (("", noise), ("_complex", complex_noise)):
        is_complex = bool(name)
        square = make(2, 3, 3) + 4 * np.eye(3)
        positive = square @ square.conj().swapaxes(-1, -2)
        yield f"svd{name}", linalg({"svd": {"vectors": "thin", "degeneracy": FREE}}, is_complex), [make(2, 4, 3)]
        yield f"qr{name}", linalg({"qr": {"columns": "thin"}}, is_complex), [make(4, 3)]
        yield f"eigh{name}", linalg({"eigh": {"degeneracy": FREE}}, is_complex), [positive[0]]
        for op in ("inv", "det", "expm", "svdvals"):
            yield op + name, linalg({op: None}, is_complex), [square / 4 if op == "expm" else square]
        yield f"cholesky{name}", linalg({"cholesky": None}, is_complex), [positive]
        yield f"solve{name}", linalg({"solve": None}, is_complex), [square, make(2, 3, 2)]
        along = {"axis": 1, "reverse": True, "complex": is_complex}
        yield f"cumsum{name}", Op.of({"cumulative": {"kind": "sum", **along}}), [make(2, 4)]
        recurrence = Op.of({"linear_recurrence": {**along, "initial": False}})
        yield f"linear_recurrence{name}", recurrence, [make(2, 4), make(2, 4)]
    yield "logcumsumexp", Op.of({"cumulative": {"kind": "log_sum_exp", "axis": 0, "reverse": False, "complex": False}}), [noise(4, 2)]
    yield "log_partition", Op.of({"log_partition": {"lengths": [3, 2]}}), [noise(2, 3, 2), noise(2, 2)]
    yield "softmax", Op.of({"softmax": {"axis": 1}}), [noise(2, 3)]
    yield "cross_entropy", Op.of({"cross_entropy": None}), [noise(3, 4), np.array([0, 3, 1])]
    for name, make in (("", noise), ("_complex", complex_noise)):
        is_complex, square = bool(name), make(2, 3, 3) + 4 * np.eye(3)
        positive, wide = square @ square.conj().swapaxes(-1, -2), make(2, 3, 4)
        for op, options, *operands in (
            ("lq", None, wide), ("qr_pivoted", {"columns": "thin"}, wide), ("lu_factor", {"pivoting": "partial"}, make(2, 4, 3)),
            ("polar", {"side": "right"}, square), ("low_rank", {"rank": 2}, wide), ("svd_function", {"function": {"pow": 3.0}}, wide),
            ("hermitian_function", {"function": {"pow": 0.5}}, positive), ("hermitian_function", {"function": "exp"}, positive / 20),
            ("eigvalsh", None, positive), ("eigvals", None, square), ("slogdet", None, square), ("sqrtm", None, square),
            ("logm", None, square), ("pinv", {"rtol": None}, wide), ("lstsq", None, make(2, 4, 3), make(2, 4, 2)),
            ("lstsq_min_norm", {"rtol": None}, wide, make(2, 3, 2)), ("sylvester", None, square, square, make(2, 3, 3)),
            ("lyapunov_positive", None, positive, make(2, 3, 3)),
            ("solve_triangular", {"triangle": {"upper": True, "unit": False, "op": "adjoint"}}, square, make(2, 3, 2)),
        ):  # fmt: skip
            yield f"{op}{'_exp' if options == {'function': 'exp'} else ''}{name}", linalg({op: options}, is_complex), operands
    yield "kalman_filter", Op.of({"kalman_filter": None}), [
        noise(2, 2) / 2, np.eye(2), noise(1, 2), np.eye(1), noise(2, 3, 1), noise(2), np.eye(2),
    ]  # fmt: skip
    yield "matrix_recurrence", Op.of({"matrix_recurrence": {"reverse": True, "initial": False}}), [noise(4, 2, 2), noise(4, 2, 3)]
    scan = {"monoid": {"matrix": "max_plus"}, "axis": 0, "reverse": False, "exclusive": False}
    yield "matrix_scan", Op.of({"associative_scan": scan}), [noise(4, 2, 2)]
    for cell, width, operands in (("lstm", 4, 3), ("gru", 3, 2)):
        options = {"cell": cell, "reverse": False, "bias": operands == 3, "initial": False}
        yield cell, Op.of({"recurrent": options}), [noise(3, 1, 2 * width), noise(2, 2 * width), noise(2 * width)][:operands]
    yield einsum("min_mul")


def cotangent(rng, y):
    g = rng.normal(size=y.shape)
    return g + 1j * rng.normal(size=y.shape) if np.iscomplexobj(y) else g


def row(rng, name, op, operands):
    results = tn.apply(op, *operands)
    # Index results, which follow the others, have none.
    cotangents = [cotangent(rng, y) for y in results if np.issubdtype(y.dtype, np.inexact)]
    if name in ("svd_complex", "eigh_complex"):
        # Phases of vectors are arbitrary, so only independent numbers are stored.
        cotangents = [g if np.isrealobj(g) else 0 * g for g in cotangents]
    back = tn.vjp(op, operands, cotangents)
    return {
        "name": name, "op": json.loads(op.text), "operands": list(map(described, operands)),
        "results": list(map(described, results)), "cotangents": list(map(described, cotangents)),
        "vjp": [None if x is None else described(x) for x in back],
    }


if __name__ == "__main__":
    rng = np.random.default_rng(11)
    rows = [row(rng, *given) for given in operations(rng)]
    if len(sys.argv) > 1:
        # With an argument rows of the file are kept, and new ones appended.
        old = json.loads(PATH.read_text())
        rows = old + rows[len(old) :]
    PATH.write_text("[\n" + ",\n".join(json.dumps(x, separators=(",", ":")) for x in rows) + "\n]\n")
    print(len(rows), "rows", PATH.stat().st_size, "bytes", file=sys.stderr)
