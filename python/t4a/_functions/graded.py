"""Operations on flat arrays of tensors with a symmetry, with their specs. See `t4a.structured`."""

from .. import _plans as plans, structured
from .._calls import joint
from .._checks import integers, one_of

# Results of factorisations: "full" are complex for a complex tensor.
_KINDS = {
    "svd": ("full", "real", "full"), "qr": ("full", "full"), "lq": ("full", "full"), "eigh": ("real", "full"),
    "eig": ("complex", "complex"),
}  # fmt: skip


def functions(apply, asarray, name_of, cast, planned):
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
        `t4a.structured.Spec`s. Returns a flat array and its spec; row legs are the remaining legs of x, column legs those of y."""
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

    return graded_contract, graded_svd, graded_qr, graded_lq, graded_polar, graded_eigh, graded_eig
