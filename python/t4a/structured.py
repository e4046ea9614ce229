"""Tensors with an abelian symmetry: legs, positions of their blocks, and operations on flat arrays of their elements.

    leg      charges with their dimensions; on a dual leg a charge has the opposite sign
    spec     legs, the first `rows` of which are rows; the blocks whose charges add up to the flux
    array    one row-major matrix per charge of the rows, in ascending order; its rows are those of the combinations
             of sectors of the row legs with this charge, in lexicographic order, its columns likewise

The arrays are ordinary arrays, so sums, gradients and optimisers apply to them. `graded_contract`, `graded_svd`,
`graded_svd_truncated`, `graded_qr`, `graded_lq`, `graded_polar`, `graded_eigh` and `graded_eig` of `t4a.numpy`, `t4a.jax` and
`t4a.torch` take them with their specs.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as _numpy

from ._checks import integer
from ._library import ArgumentError, ShapeError
from ._op import Op
from ._plans import degeneracy


@dataclass(frozen=True, init=False)
class Leg:
    """Charges and their dimensions, `Leg({-1: 2, 0: 3, 1: 2})`. `modulus`: 0 for U(1), n for Z_n."""

    sectors: tuple
    dual: bool
    modulus: int

    def __init__(self, sectors, dual=False, modulus=0):
        found, modulus = {}, integer("modulus", modulus, 0)
        try:
            pairs = [(charge, size) for charge, size in (sectors.items() if isinstance(sectors, dict) else sectors)]
        except (TypeError, ValueError):
            raise ArgumentError(f"sectors={sectors!r}: a dictionary from charges to sizes is required") from None
        for charge, size in pairs:
            charge, size = integer("charge", charge), integer("size", size)
            if modulus and not 0 <= charge < modulus:
                raise ArgumentError(f"the charge {charge} of a leg with modulus {modulus}")
            if size < 1 or charge in found:
                raise ArgumentError(f"the charge {charge} has {size} states, or is given twice")
            found[charge] = size
        object.__setattr__(self, "sectors", tuple(sorted(found.items())))
        object.__setattr__(self, "dual", bool(dual))
        object.__setattr__(self, "modulus", modulus)

    @property
    def size(self):
        """Dimension of the leg, summed over charges."""
        return sum(size for _, size in self.sectors)

    @property
    def conj(self):
        """The dual leg, with which this leg can be contracted."""
        return Leg(self.sectors, not self.dual, self.modulus)

    def starts(self):
        """First dense index of each charge."""
        ends = itertools.accumulate((size for _, size in self.sectors), initial=0)
        return {charge: start for (charge, _), start in zip(self.sectors, ends)}


@dataclass(frozen=True)
class Block:
    """A dense block: the charge of each leg, its shape, and its offset and strides in the flat array."""

    charges: tuple
    shape: tuple
    offset: int
    strides: tuple


@dataclass(frozen=True)
class Spec:
    """The structure of a tensor: its legs, the number of row legs, and its total charge (flux)."""

    legs: tuple
    rows: int
    flux: int = 0

    def __post_init__(self):
        if not isinstance(self.legs, (list, tuple)) or not all(isinstance(leg, Leg) for leg in self.legs):
            raise ArgumentError(f"legs={self.legs!r}: a list of Legs is required")
        object.__setattr__(self, "legs", tuple(self.legs))
        object.__setattr__(self, "rows", integer("rows", self.rows))
        object.__setattr__(self, "flux", integer("flux", self.flux))
        if not 0 <= self.rows <= len(self.legs):
            raise ArgumentError(f"{self.rows} rows of {len(self.legs)} legs")
        if len({leg.modulus for leg in self.legs}) > 1:
            raise ArgumentError("legs of several groups")

    def reduced(self, charge):
        """Charge modulo the order of the group."""
        modulus = self.legs[0].modulus if self.legs else 0
        return charge % modulus if modulus else charge

    def _side(self, legs):
        """Combinations of sectors by total charge, each with first row and shape; and the number of rows per charge."""
        groups, sizes = {}, {}
        for choice in itertools.product(*(leg.sectors for leg in legs)):
            charge = self.reduced(sum(-q if leg.dual else q for leg, (q, _) in zip(legs, choice)))
            shape = tuple(size for _, size in choice)
            start = sizes.get(charge, 0)
            groups.setdefault(charge, []).append((tuple(q for q, _ in choice), start, shape))
            sizes[charge] = start + prod(shape)
        return groups, sizes

    @cached_property
    def _sides(self):
        return self._side(self.legs[: self.rows]), self._side(self.legs[self.rows :])

    @cached_property
    def matrices(self):
        """Offset, number of rows and number of columns of each matrix, by charge of the rows in ascending order."""
        (_, rows), (_, columns) = self._sides
        found, offset = {}, 0
        for charge in sorted(rows):
            width = columns.get(self.reduced(self.flux - charge))
            if width is not None:
                found[charge] = (offset, rows[charge], width)
                offset += rows[charge] * width
        return found

    @property
    def size(self):
        """Number of elements of the flat array."""
        return sum(m * n for _, m, n in self.matrices.values())

    @property
    def shape(self):
        """Shape of the dense array."""
        return tuple(leg.size for leg in self.legs)

    @cached_property
    def blocks(self):
        """All blocks, ordered by matrix."""
        (rows, _), (columns, _) = self._sides
        found = []
        for charge, (offset, _, width) in self.matrices.items():
            for a, row, up in rows[charge]:
                for b, column, across in columns[self.reduced(self.flux - charge)]:
                    strides = [width * prod(up[i + 1 :]) for i in range(len(up))]
                    strides += [prod(across[i + 1 :]) for i in range(len(across))]
                    found.append(Block(a + b, up + across, offset + row * width + column, tuple(strides)))
        return tuple(found)

    def _places(self):
        """Slices of the dense array and indices into the flat array, block by block."""
        starts = [leg.starts() for leg in self.legs]
        for block in self.blocks:
            first = [start[charge] for start, charge in zip(starts, block.charges)]
            flat = _numpy.full((1,) * len(block.shape), block.offset)
            for k, (size, stride) in enumerate(zip(block.shape, block.strides)):
                along = [1] * len(block.shape)
                along[k] = size
                flat = flat + (_numpy.arange(size) * stride).reshape(along)
            yield tuple(slice(at, at + size) for at, size in zip(first, block.shape)), flat

    def to_dense(self, x):
        """Dense NumPy array, with zeros outside of the blocks."""
        x = _numpy.asarray(x)
        if x.shape != (self.size,):
            raise ShapeError(f"an array of shape {x.shape}, {(self.size,)} is required")
        dense = _numpy.zeros(self.shape, x.dtype)
        for place, flat in self._places():
            dense[place] = x[flat]
        return dense

    def from_dense(self, dense):
        """Flat NumPy array of the blocks of a dense array; elements outside of them are dropped."""
        dense = _numpy.asarray(dense)
        if dense.shape != self.shape:
            raise ShapeError(f"an array of shape {dense.shape}, {self.shape} is required")
        x = _numpy.zeros(self.size, dense.dtype)
        for place, flat in self._places():
            x[flat] = dense[place]
        return x


def _rearrangement(source, target, order):
    """Plan that moves the elements of an array of `source` to an array of `target`, whose legs are a permutation of those
    of `source`."""
    if source == target and order == sorted(order):
        return None
    moves, axes = [], []
    by_charges = {block.charges: block for block in source.blocks}
    for block in target.blocks:
        own = by_charges[tuple(block.charges[order.index(i)] for i in range(len(order)))]
        first = len(axes)
        for k, size in enumerate(block.shape):
            axes.append({"size": size, "from": own.strides[order[k]], "to": block.strides[k]})
        moves.append(
            {"from": own.offset, "to": block.offset, "negative": False, "first": first, "rank": len(axes) - first}
        )
    return {"from_len": source.size, "to_len": target.size, "moves": moves, "axes": axes}


def _views(spec):
    return [{"offset": at, "rows": m, "cols": n, "transposed": False} for at, m, n in spec.matrices.values()]


def _checked(spec):
    if not isinstance(spec, Spec):
        raise ArgumentError(f"a Spec is required, given {type(spec).__name__}")


def _axes(spec, axes):
    """Distinct legs of a spec; negative ones count from the last."""
    _checked(spec)
    count = len(spec.legs)
    found = tuple(i + count if i < 0 else i for i in axes)
    if len(set(found)) != len(found) or not all(0 <= i < count for i in found):
        raise ArgumentError(f"axes {axes} of {count} legs")
    return found


@lru_cache(maxsize=256)
def contraction(x, y, axes, is_complex=False):
    """Operation that contracts legs `axes[0]` of x with legs `axes[1]` of y, and the spec of its result: its row legs
    are the remaining legs of x, its column legs those of y."""
    left, right = (_axes(spec, mine) for spec, mine in zip((x, y), axes))
    if [x.legs[i].conj for i in left] != [y.legs[i] for i in right]:
        raise ShapeError(f"legs {left} and {right} do not fit: their sectors are equal, and one of two is dual")
    free = [i for i in range(len(x.legs)) if i not in left], [i for i in range(len(y.legs)) if i not in right]
    orders = [*free[0], *left], [*right, *free[1]]
    a = Spec([x.legs[i] for i in orders[0]], len(free[0]), x.flux)
    b = Spec([y.legs[i] for i in orders[1]], len(right), y.flux)
    legs = [x.legs[i] for i in free[0]] + [y.legs[i] for i in free[1]]
    result = Spec(legs, len(free[0]), x.reduced(x.flux + y.flux))
    rows = [{charge: i for i, charge in enumerate(spec.matrices)} for spec in (a, b, result)]
    terms = []
    for charge, i in rows[0].items():
        j = rows[1].get(x.reduced(charge - x.flux))
        if j is not None:
            terms.append([i, j, rows[2][charge]])
    lens = [a.size, b.size, result.size]
    products = {"lens": lens, "a": _views(a), "b": _views(b), "c": _views(result), "terms": terms}
    plan = {"a": _rearrangement(x, a, orders[0]), "b": _rearrangement(y, b, orders[1]), "products": products, "c": None}
    if is_complex:
        return Op.of({"complex_contract": {"op": {"plan": plan}, "conj": [False, False]}}), result
    return Op.of({"contract": {"plan": plan}}), result


# Options of the operation on each matrix.
_OPTIONS = {"svd": {"vectors": "thin"}, "qr": {"columns": "thin"}, "lq": None, "eigh": {}, "eig": {}}


@lru_cache(maxsize=256)
def factorisation(x, name, is_complex=False, *ties):
    """Operation that factorises each matrix of x: "svd", "qr", "lq", "eigh" or "eig", and the specs of the results that are
    tensors. Two of them share a new leg, the last of the first one and the first of the second."""
    _checked(x)
    smallest = {charge: min(m, n) for charge, (_, m, n) in x.matrices.items()}
    if not smallest:
        raise ArgumentError("a tensor without blocks")
    square = name in ("eigh", "eig")
    if square and (x.flux != 0 or tuple(leg.conj for leg in x.legs[: x.rows]) != x.legs[x.rows :]):
        raise ShapeError(f"graded_{name}: column legs that are the duals of the row legs in this order, and no flux, are required")
    bond = Leg(smallest, False, x.legs[0].modulus)
    specs = [Spec([*x.legs[: x.rows], bond.conj], x.rows, 0)]
    if not square:
        specs.append(Spec([bond, *x.legs[x.rows :]], 1, x.flux))
    options = _OPTIONS[name]
    if ties:
        options = {**options, "degeneracy": degeneracy(*ties)}
    orders = [list(range(len(smallest)))] * (3 if name == "svd" else 2)
    plan = {"sizes": [[m, n] for _, m, n in x.matrices.values()], "orders": orders}
    return Op.of({"by_matrix": {"op": {name: options}, "complex": is_complex, "plan": plan}}), *specs


@lru_cache(maxsize=256)
def leading(left, right, kept):
    """Operations that take the leading `kept` columns of each matrix of U, numbers of each charge of S and rows of each matrix of
    Vh, whose specs `left` and `right` share a leg; and the specs of their results for U and Vh."""
    sectors = right.legs[0].sectors
    starts = itertools.accumulate((size for _, size in sectors), initial=0)
    bond = Leg([(charge, count) for (charge, _), count in zip(sectors, kept) if count], False, right.legs[0].modulus)
    targets = Spec([*left.legs[:-1], bond.conj], left.rows, left.flux), Spec([bond, *right.legs[1:]], 1, right.flux)
    u, s, vh, at = [], [], [], 0
    for (charge, _), count, start in zip(sectors, kept, starts):
        if count == 0:
            continue
        (a, rows, width), (b, _, columns) = left.matrices[charge], right.matrices[charge]
        u.append((a, targets[0].matrices[charge][0], [(rows, width, count), (count, 1, 1)]))
        s.append((start, at, [(count, 1, 1)]))
        vh.append((b, targets[1].matrices[charge][0], [(count * columns, 1, 1)]))
        at += count
    lens = (left.size, targets[0].size), (sum(size for _, size in sectors), at), (right.size, targets[1].size)
    return *(_moved(*own, moves) for own, moves in zip(lens, (u, s, vh))), *targets


def _moved(from_len, to_len, given):
    """Operation that moves blocks, given by their first elements in both arrays and axes of (size, stride, stride)."""
    moves, axes = [], []
    for start, to, block in given:
        moves.append({"from": start, "to": to, "negative": False, "first": len(axes), "rank": len(block)})
        axes += [{"size": size, "from": stride, "to": own} for size, stride, own in block]
    return Op.of({"rearrange": {"plan": {"from_len": from_len, "to_len": to_len, "moves": moves, "axes": axes}}})


@lru_cache(maxsize=256)
def polar(x, side, is_complex=False):
    """Operation that computes the polar decomposition of each matrix of x."""
    _checked(x)
    if not x.matrices:
        raise ArgumentError("a tensor without blocks")
    plan = {"sizes": [[m, n] for _, m, n in x.matrices.values()], "orders": [list(range(len(x.matrices)))] * 2}
    return (Op.of({"by_matrix": {"op": {"polar": {"side": side}}, "complex": is_complex, "plan": plan}}),)


@lru_cache(maxsize=256)
def embedding(x, side):
    """Operation that places the matrices of the positive factor, in the order of those of x, in an array with all charges, and
    the spec of this array. Where x has no matrix, the factor is zero."""
    left = side == "left"
    own = x.legs[: x.rows] if left else x.legs[x.rows :]
    duals = [leg.conj for leg in own]
    spec = Spec([*own, *duals] if left else [*duals, *own], len(own))
    moves, start = [], 0
    for charge in x.matrices:
        at, size, _ = spec.matrices[charge if left else x.reduced(charge - x.flux)]
        moves.append((start, at, [(size * size, 1, 1)]))
        start += size * size
    return _moved(start, spec.size, moves), spec
