"""Results are those of the Rust interface, bit for bit, in all kinds of arrays."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from vectors import PATH, array

import t4a.numpy as tn
from t4a import Op

ROWS = json.loads(PATH.read_text())


def rust_results():
    """Bits that the Rust test of the same build wrote (capi/tests/vectors.rs), by name of the row."""
    library = Path(os.environ.get("T4A_LIBRARY", "/none/none/none/none")).resolve()
    for folder in library.parents[1:3]:
        file = folder / "tmp/t4a_results.json"
        if file.exists() and file.stat().st_mtime >= library.stat().st_mtime:
            return json.loads(file.read_text())
    return {}


RUST = rust_results()


def bits(x):
    """64-bit words of each real array; a complex array is a pair."""
    x = np.asarray(x)
    parts = [x.real, x.imag] if np.iscomplexobj(x) else [x]
    return [np.ascontiguousarray(part).view(np.uint64).ravel().tolist() for part in parts]


def all_bits(arrays):
    return [words for x in arrays if x is not None for words in bits(x)]


def read(row):
    op = Op.parse(json.dumps(row["op"]))
    return op, *([array(x) for x in row[name]] for name in ("operands", "cotangents"))


def vjp_of(op, operands):
    """The vjp with the cotangents of all results but indices, which follow the others, as an operation."""
    results = op.results([(x.shape, str(x.dtype)) for x in operands])
    given = [True for _, name in results if not name.startswith("int")]
    return op.vjp(given, [np.issubdtype(x.dtype, np.inexact) for x in operands])


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_those_of_rust(row):
    if not RUST:
        pytest.skip("needs results of `cargo test --workspace --test vectors` newer than T4A_LIBRARY")
    op, operands, cotangents = read(row)
    assert all_bits(tn.apply(op, *operands)) == RUST[row["name"]]["results"]
    assert all_bits(tn.vjp(op, operands, cotangents)) == RUST[row["name"]]["vjp"]


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_those_of_numpy(row, framework):
    pytest.importorskip(framework)
    op, operands, cotangents = read(row)
    if framework == "torch":
        import torch

        import t4a.torch as t

        array_of, apply = torch.from_numpy, t.apply
    else:
        import jax

        import t4a.jax as t

        jax.config.update("jax_enable_x64", True)
        array_of, apply = jax.numpy.asarray, lambda op, *x: jax.jit(lambda *x: t.apply(op, *x))(*x)
    vjp = vjp_of(op, operands)
    for own, arrays in ((op, operands), (vjp, [*operands, *cotangents])):
        want = all_bits(tn.apply(own, *arrays))
        assert all_bits(apply(own, *map(array_of, arrays))) == want
