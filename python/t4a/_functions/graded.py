"""Operations on flat arrays of tensors with a symmetry, with their specs. See `t4a.structured`."""

from functools import reduce
from math import hypot

import numpy

from .. import _plans as plans, structured
from .._calls import joint
from .._checks import composed, fraction, integer, integers, one_of
from .._library import UnsupportedError
from .._truncation import Truncation, kept_of_charges

# Results of factorisations: "full" are complex for a complex tensor.
_KINDS = {
    "svd": ("full", "real", "full"), "qr": ("full", "full"), "lq": ("full", "full"), "eigh": ("real", "full"),
    "eig": ("complex", "complex"),
}  # fmt: skip


def functions(apply, asarray, name_of, cast, planned, values):
    """The functions of this module; the parameters are those of `build`."""
    contraction_of, factorisation_of = planned(structured.contraction), planned(structured.factorisation)
    polar_of, embedding_of = planned(structured.polar), planned(structured.embedding)

    def arrays(*operands):
        operands = [asarray(x) for x in operands]
        names = [name_of(x.dtype) for x in operands]
        name = joint(names)
        return [x if name in (None, own) else cast(x, name) for x, own in zip(operands, names)], name is not None

    # Results of a factorisation of each matrix, followed by the specs of those that are tensors.
    def factors(name, x, spec, *ties):
        (x,), is_complex = arrays(x)
        op, *specs = factorisation_of(spec, name, is_complex, *ties)
        parts = iter(apply(op, x.real, x.imag) if is_complex else apply(op, x))
        results = []
        for kind in _KINDS[name]:
            part = next(parts)
            results.append(part + 1j * next(parts) if kind == "complex" or (is_complex and kind == "full") else part)
        return *results, *specs

    def graded_contract(x, y, specs, axes):
        """Contraction of legs `axes[0]` of x with legs `axes[1]` of y, for two symmetric tensors as flat arrays with their
        `t4a.structured.Spec`s. Negative axes count from the last leg. Returns a flat array and its spec; row legs are the
        remaining legs of x, column legs those of y."""
        (x, y), is_complex = arrays(x, y)
        op, spec = contraction_of(*specs, tuple(integers("axes", mine) for mine in axes), is_complex)
        if not is_complex:
            return apply(op, x, y)[0], spec
        real, imaginary = apply(op, x.real, x.imag, y.real, y.imag)
        return real + 1j * imaginary, spec

    def graded_svd(x, spec, *, check_gauge=True, tolerance=None, broadening=None, separable=False):
        """U, S and Vh of a symmetric tensor as a map from column legs to row legs, and the specs of U and Vh, which share a
        new leg, the last of U and the first of Vh; S [k] in the order of that leg. Options: as for `svd`."""
        return factors("svd", x, spec, *plans.ties(check_gauge, tolerance, broadening, separable))

    @composed
    def graded_svd_truncated(
        x, spec, *, max_dim=None, min_dim=0, cutoff=0, relative_cutoff=0, discarded_weight=0, relative_discarded_weight=0,
        degeneracy=0, min_per_sector=0, check_gauge=True, tolerance=None, broadening=None, separable=False,
    ):  # fmt: skip
        """U, S and Vh as of `graded_svd` for the leading singular values of all charges together, the error (the root of the sum of
        squares of the dropped values, a number without a derivative), and the specs of U and Vh. A charge without kept values is
        not in the new leg.

        Cutoffs and limits are those of `svd_truncated`; of equal values those of the smaller charge are kept, and at least one in all.
        Then values whose relative gap is at most `degeneracy` are kept or dropped together, unless nothing would remain. At last
        each charge keeps at least `min_per_sector` values, also beyond `max_dim`. The other options: as for `svd`. UnsupportedError
        where values are unknown, as in `jax.jit`, `vmap` and `torch.compile`."""
        truncation = Truncation.of(
            max_dim, min_dim, cutoff=cutoff, relative_cutoff=relative_cutoff, discarded_weight=discarded_weight,
            relative_discarded_weight=relative_discarded_weight,
        )  # fmt: skip
        degeneracy, min_per_sector = fraction("degeneracy", degeneracy) or 0.0, integer("min_per_sector", min_per_sector, 0)
        options = {"check_gauge": check_gauge, "tolerance": tolerance, "broadening": broadening, "separable": separable}
        u, s, vh, left, right = graded_svd(x, spec, **options)
        known = values(s)
        if known is None:
            raise UnsupportedError(
                "graded_svd_truncated: the specs of the results depend on singular values, which are unknown while a function is"
                " compiled or mapped over a batch axis"
            )
        ends = numpy.cumsum([size for _, size in right.legs[0].sectors])
        parts = numpy.split(numpy.asarray(known), ends[:-1])
        kept = tuple(kept_of_charges(parts, truncation, degeneracy, min_per_sector))
        # `hypot` avoids overflow of the squares.
        error = reduce(hypot, (float(x) for part, count in zip(parts, kept) for x in part[count:]), 0.0)
        *ops, left, right = structured.leading(left, right, kept)
        cut = lambda op, x: apply(op, x)[0]
        both = lambda op, x: cut(op, x.real) + 1j * cut(op, x.imag) if name_of(x.dtype).startswith("complex") else cut(op, x)
        return both(ops[0], u), cut(ops[1], s), both(ops[2], vh), error, left, right

    def graded_qr(x, spec):
        """Q and R of a symmetric tensor as a map from column legs to row legs, and their specs, which share a new leg, the
        last of Q and the first of R. The diagonal of each matrix of R is nonnegative."""
        return factors("qr", x, spec)

    def graded_lq(x, spec):
        """L and Q of a symmetric tensor as a map from column legs to row legs, and their specs, which share a new leg, the
        last of L and the first of Q. The diagonal of each matrix of L is nonnegative."""
        return factors("lq", x, spec)

    def graded_polar(x, spec, side="right"):
        """U and P of a symmetric tensor as a map from column legs to row legs, x = U P, or x = P U for side "left", and the spec
        of P, a map of the column legs, or of the row legs, to themselves; U has the spec of x."""
        side = one_of("side", side, {"right": "right", "left": "left"})
        (x,), is_complex = arrays(x)
        (op,), (embed, own) = polar_of(spec, side, is_complex), embedding_of(spec, side)
        if not is_complex:
            u, p = apply(op, x)
            return u, apply(embed, p)[0], own
        u, du, p, dp = apply(op, x.real, x.imag)
        return u + 1j * du, apply(embed, p)[0] + 1j * apply(embed, dp)[0], own

    def graded_eigh(x, spec, *, check_gauge=True, tolerance=None, broadening=None, separable=False):
        """Eigenvalues [n], ascending for each charge, eigenvectors V and the spec of V, whose last leg is new, of the Hermitian
        part of a symmetric tensor as a map: without flux, its column legs the duals of its row legs in the same order.
        Options: as for `svd`."""
        return factors("eigh", x, spec, *plans.ties(check_gauge, tolerance, broadening, separable))

    def graded_eig(x, spec, *, check_gauge=True, tolerance=None, separable=False):
        """As `graded_eigh` for any map: eigenvalues and eigenvectors, complex, and the spec of the eigenvectors. Options: as for
        `eig`."""
        return factors("eig", x, spec, *plans.ties(check_gauge, tolerance, None, separable))

    return (
        graded_contract, graded_svd, graded_svd_truncated, graded_qr, graded_lq, graded_polar, graded_eigh, graded_eig,
    )  # fmt: skip
