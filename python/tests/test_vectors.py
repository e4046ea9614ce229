"""Checks the file of results that the tests in Julia read."""

import json

import numpy as np
import pytest
from vectors import PATH, array

import t4a.numpy as tn
from t4a import Op

ROWS = json.loads(PATH.read_text())


def value(op, operands, cotangents):
    return sum((np.conj(g) * y).real.sum() for g, y in zip(cotangents, tn.apply(op, *operands)))


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_vectors(row):
    op = Op.parse(json.dumps(row["op"]))
    operands, results, cotangents = ([array(x) for x in row[name]] for name in ("operands", "results", "cotangents"))
    for got, want in zip(tn.apply(op, *operands), results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    back = [None if x is None else array(x) for x in row["vjp"]]
    for got, want in zip(tn.vjp(op, operands, cotangents), back, strict=True):
        if want is not None:
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
    # Along a random direction of each operand.
    rng, step = np.random.default_rng(1), 1e-6
    for i, (x, g) in enumerate(zip(operands, back)):
        if g is None:
            continue
        v = rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if np.iscomplexobj(x) else 0)
        at = [value(op, [*operands[:i], x + s * v, *operands[i + 1 :]], cotangents) for s in (step, -step)]
        np.testing.assert_allclose((np.conj(g) * v).real.sum(), (at[0] - at[1]) / (2 * step), rtol=1e-6, atol=1e-6)
