"""Contraction orders: the argument `optimize` of `einsum`."""

import json
from functools import lru_cache
from math import prod
from operator import index

from ._library import ArgumentError

# Maximum number of operands of "optimal": half a million pairs of subsets.
MOST_OPTIMAL = 12
# None is the greedy search, the default of the library.
_NAMES = {True: None, "auto": None, "greedy": None, "optimal": "optimal", "annealing": "annealing", False: "from_left"}


def order(optimize):
    """The search as a value that can be hashed: None, a name, or the steps of a path as tuples."""
    if isinstance(optimize, (bool, str)):
        if optimize in _NAMES:
            return _NAMES[optimize]
    elif isinstance(optimize, (list, tuple)):
        # `numpy.einsum_path` has a name in front of the steps.
        steps = optimize[1:] if len(optimize) > 0 and optimize[0] == "einsum_path" else optimize
        try:
            return tuple(tuple(map(index, step)) for step in steps)
        except TypeError:
            pass
    names = ", ".join(repr(name) for name in _NAMES)
    raise ArgumentError(f"optimize={optimize!r}: one of {names} or a list of steps such as [(0, 1), (0, 1)] is required")


def text(order, labels, shapes, result):
    """The order as the library reads it: None, the name of a search, or a list of steps."""
    if order in (None, "annealing"):
        return order
    if order == "from_left":
        order = [(0, max(1, len(labels) - 1 - i) if i else 1) for i in range(len(labels) - 1)]
    elif order == "optimal":
        order = optimal(tuple(map(tuple, labels)), tuple(map(tuple, shapes)), tuple(result))
    return json.dumps([list(step) for step in order])


def sizes(labels, shapes):
    """The size of each label, in the order of their first occurrence; of sizes 1 and n it is n."""
    found = {}
    for term, shape in zip(labels, shapes):
        for label, size in zip(term, shape):
            found[label] = max(size, found.get(label, 1))
    return found


@lru_cache(maxsize=512)
def optimal(labels, shapes, result):
    """The path of pairs with the least number of multiplications, by dynamic programming over sets of operands. Cost 3^n."""
    count = len(labels)
    if count > MOST_OPTIMAL:
        raise ArgumentError(f"optimize='optimal' of {count} operands, at most {MOST_OPTIMAL}; \"annealing\" has no limit")
    of = sizes(labels, shapes)
    whole = (1 << count) - 1
    inside = [frozenset()] * (whole + 1)
    for group in range(1, whole + 1):
        last = group.bit_length() - 1
        inside[group] = inside[group ^ (1 << last)] | frozenset(labels[last])
    # Labels of the product of a set of operands: those that others or the result have too.
    kept = [own & (inside[whole ^ group] | frozenset(result)) for group, own in enumerate(inside)]
    least = [0] * (whole + 1)
    parts = [None] * (whole + 1)
    for group in range(1, whole + 1):
        if group & (group - 1) == 0:
            continue
        first = group & -group
        best, left = None, (group - 1) & group
        while left:
            if left & first:
                right = group ^ left
                cost = least[left] + least[right] + prod(of[label] for label in kept[left] | kept[right])
                if best is None or cost < best:
                    best, parts[group] = cost, (left, right)
            left = (left - 1) & group
        least[group] = best
    return tuple(_steps(parts, whole, [1 << i for i in range(count)]))


def _steps(parts, group, remaining):
    """Steps of the tree of sets of operands; positions are those in the list of remaining tensors."""
    if parts[group] is None:
        return
    for part in parts[group]:
        yield from _steps(parts, part, remaining)
    step = tuple(sorted(remaining.index(part) for part in parts[group]))
    for position in reversed(step):
        remaining.pop(position)
    remaining.append(group)
    yield step
