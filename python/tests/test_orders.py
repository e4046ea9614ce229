"""The argument `optimize` of `einsum`: all orders have the same value; paths against brute force."""

import itertools
import json
from math import prod

import numpy as np
import pytest

import t4a
import t4a.numpy as tn
from t4a import _orders, _plans

rng = np.random.default_rng(23)
CHAIN = "ab,bc,cd,de->ae"
SHAPES = [(2, 30), (30, 3), (3, 40), (40, 5)]


def path(optimize, subscripts=CHAIN, shapes=SHAPES, memory=None):
    """The path of the operation."""
    op = _plans.einsum(shapes, ["float64"] * len(shapes), subscripts, "standard", memory, _orders.order(optimize)).op
    plan = json.loads(op.text)["op"]["einsum"]["plan"]
    return [tuple(step) for step in plan["path"]], plan["sliced"]


@pytest.mark.parametrize("semiring", ["standard", "max_plus", "log_sum_exp"])
def test_all_orders_have_the_same_value(semiring):
    x = [rng.normal(size=shape) for shape in SHAPES]
    want = tn.einsum(CHAIN, *x, semiring=semiring)
    found, _ = np.einsum_path(CHAIN, *x, optimize="optimal")
    for optimize in (True, False, "auto", "greedy", "optimal", "annealing", found, [(2, 3), (1, 2), (0, 1)], ((0, 1, 2, 3),)):
        np.testing.assert_allclose(tn.einsum(CHAIN, *x, semiring=semiring, optimize=optimize), want, rtol=1e-12, atol=1e-12)
    assert tn.einsum("ij,jk,ki->", *x[:2], np.ones((3, 2)), optimize=False).shape == ()


def test_optimal_assignments_do_not_depend_on_the_order():
    # Integers: no rounding, and several optima.
    x = [rng.integers(0, 3, size=shape).astype(float) for shape in ((8, 9), (9, 5), (5, 7))]
    for f in (tn.argmax_einsum, tn.counting_einsum, lambda *x, **options: tn.k_best_einsum(*x, k=4, **options)):
        want = f("ab,bc,cd->ad", *x)
        for options in ({"optimize": False}, {"optimize": [(1, 2), (0, 1)]}, {"optimize": "optimal", "memory": 3000}):
            np.testing.assert_equal(f("ab,bc,cd->ad", *x, **options), want)


def test_paths_are_those_given():
    assert path([(2, 3), (1, 2), (0, 1)])[0] == [(2, 3), (1, 2), (0, 1)]
    # From left to right: products are last.
    assert [set(step) for step in path(False)[0]] == [{0, 1}, {0, 2}, {0, 1}]
    assert path(True) == path("greedy") == path("auto")
    labels = [[ord(c) for c in term] for term in CHAIN[: CHAIN.index("-")].split(",")]
    assert tn.einsum([*labels, [ord("a"), ord("e")]], *map(np.ones, SHAPES), optimize="optimal").shape == (2, 5)
    # Along a path too, contractions that need more memory are sliced.
    sliced = path([(0, 2), (0, 1)], "ai,bi,ci->abc", [(40, 50), (40, 50), (40, 50)], memory=600_000)
    assert sliced[1] and not path([(0, 2), (0, 1)], "ai,bi,ci->abc", [(40, 50)] * 3)[1]


def multiplications(labels, shapes, result, steps):
    sizes = {label: size for term, shape in zip(labels, shapes) for label, size in zip(term, shape)}
    terms, total = [set(term) for term in labels], 0
    # Labels of one operand alone are summed first.
    terms = [term & set(result).union(*terms[:i], *terms[i + 1 :]) for i, term in enumerate(terms)]
    for i, j in steps:
        pair = [terms.pop(k) for k in sorted((i, j), reverse=True)]
        both = pair[0] | pair[1]
        total += prod(sizes[label] for label in both)
        terms.append(both & set(result).union(*terms))
    return total


def test_optimal_paths():
    for _ in range(30):
        count = int(rng.integers(2, 6))
        sizes = rng.integers(1, 9, size=6)
        labels = [tuple(map(int, rng.choice(6, size=int(rng.integers(1, 4)), replace=False))) for _ in range(count)]
        shapes = [tuple(int(sizes[label]) for label in term) for term in labels]
        result = tuple({label for term in labels for label in term if rng.random() < 0.3})
        cost = lambda steps: multiplications(labels, shapes, result, steps)
        pairs = [itertools.combinations(range(count - i), 2) for i in range(count - 1)]
        least = min(map(cost, itertools.product(*pairs)))
        assert cost(_orders.optimal(tuple(labels), tuple(shapes), result)) == least


@pytest.mark.parametrize("optimize", ["best", None, 3, [3], [("a", "b")], {}])
def test_unknown_orders(optimize):
    with pytest.raises(t4a.ArgumentError, match="'greedy', 'optimal', 'annealing', False or a list of steps"):
        tn.einsum(CHAIN, *map(np.ones, SHAPES), optimize=optimize)


def test_invalid_paths():
    for steps in ([(0, 4)], [(0, 0)], [(0, 1)], [(-1, 0)]):
        with pytest.raises(t4a.ArgumentError):
            tn.einsum(CHAIN, *map(np.ones, SHAPES), optimize=steps)
    with pytest.raises(t4a.ArgumentError, match="nonnegative positions"):
        tn.einsum(CHAIN, *map(np.ones, SHAPES), optimize=[(-1, 0)])
    many = [f"{chr(97 + i)}{chr(98 + i)}" for i in range(13)]
    with pytest.raises(t4a.ArgumentError, match="13 operands, at most 12"):
        tn.einsum(",".join(many) + "->", *[np.ones((2, 2))] * 13, optimize="optimal")
