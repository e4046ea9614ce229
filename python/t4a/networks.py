"""Tensor networks: ground states of chains by DMRG, tensor trains of functions of Python by cross interpolation. Searches run on
NumPy arrays; they have no derivative."""

import json
import re
from ctypes import CFUNCTYPE, POINTER, byref, c_double, c_int32, c_int64, c_size_t, c_void_p
from dataclasses import dataclass, field

import numpy as _numpy

from ._checks import integer, integers
from ._dlpack import Result
from ._library import ArgumentError, lib, raise_error

__all__ = ["Chain", "State", "TensorTrain", "cross_interpolation", "dmrg"]

_PROGRESS = CFUNCTYPE(c_int32, c_void_p, c_size_t, c_size_t, c_double, c_double, c_size_t)
_VALUES = CFUNCTYPE(c_int32, c_void_p, POINTER(c_int64), c_size_t, POINTER(c_double))

lib.t4a_ground_states.restype = c_int32
lib.t4a_ground_states.argtypes = [
    c_void_p, c_size_t, _PROGRESS, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p,
]  # fmt: skip
lib.t4a_cross_interpolation.restype = c_int32
lib.t4a_cross_interpolation.argtypes = [
    c_void_p, c_size_t, c_int32, _VALUES, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p,
]  # fmt: skip


def _call(function, room, *arguments):
    """Arrays that a function of the library returns, the first one as what its text says."""
    out, found, error = (c_void_p * room)(), c_size_t(), c_void_p()
    if function(*arguments, out, room, byref(found), byref(error)):
        raise_error(error)
    results = list(map(Result, out[: found.value]))
    text, *arrays = map(_numpy.from_dlpack, results)
    return json.loads(text.tobytes()), arrays


class _Guarded:
    """A function of the user called from the library: its exception ends the call, and is raised again behind it."""

    def __init__(self, function):
        self.function, self.exception = function, None

    def __call__(self, _, *arguments):
        try:
            return self.function(*arguments)
        except BaseException as exception:
            self.exception = exception
            return -1

    def run(self, *arguments):
        try:
            return _call(*arguments)
        except ArgumentError as error:
            if self.exception is not None:
                raise self.exception from None
            # The text with the options is made here: positions in it are meaningless to a caller.
            error.args = (re.sub(r" at line \d+ column \d+$", "", error.args[0]),)
            raise


@dataclass
class Chain:
    """Equal sites with a sum of products of operators.

    `site`: "spin_half" (states Up, Dn; operators Sz, S+, S-, Sx, X, Z ...), "spin" with `twice` = 2 S, "fermion" (Emp, Occ; C,
    Cdag, N), "electron" (Emp, Up, Dn, UpDn; Cup, Cdagup, Cdn, Cdagdn, Nup, Ndn, Ntot ...), "boson" with `most`.
    `conserve=False` gives up its charges, for sums that do not conserve them.
    """

    site: str
    count: int
    conserve: bool = True
    twice: int | None = None
    most: int | None = None
    terms: list = field(default_factory=list)

    def add(self, coefficient, *factors, with_adjoint=False):
        """Adds `coefficient` times a product of (operator, site); `with_adjoint` adds its adjoint as well."""
        try:
            number = complex(coefficient)
        except (TypeError, ValueError):
            number = complex("nan")
        if not _numpy.isfinite(number):
            raise ArgumentError(f"coefficient={coefficient!r}: a finite number is required")
        for factor in factors:
            if isinstance(factor, str) or len(factor) != 2:
                raise ArgumentError(f"factor {factor!r}: a pair of an operator and a site is required, such as ('Sz', 0)")
        self.terms.append({
            "coefficient": [number.real, number.imag],
            "factors": [[str(name), integer("site", site, 0)] for name, site in factors],
            "with_adjoint": bool(with_adjoint),
        })
        return self

    def _text(self):
        required = {"spin": "twice", "boson": "most"}.get(self.site)
        if required is not None:
            integer(required, getattr(self, required), 1)
        options = {"twice": self.twice} if self.twice is not None else {}
        options |= {"most": self.most} if self.most is not None else {}
        site = {self.site: options} if options else self.site
        return {"site": site, "count": self.count, "conserve": self.conserve, "terms": self.terms}


@dataclass
class State:
    """A state of a chain: its energy, the variance of the energy (0 for an eigenstate), a dictionary for each sweep, entropies
    of bonds, expectation values by operator [site], and correlations by pair of operators [site, site]."""

    energy: float
    variance: float
    sweeps: list
    entropies: _numpy.ndarray
    expect: dict
    correlations: dict


def _encoded(options):
    """JSON of options, which may contain numbers and arrays of NumPy."""
    return json.dumps(options, default=lambda x: _numpy.asarray(x).tolist()).encode()


def _numbers(pairs):
    """Real where no imaginary part is."""
    pairs = _numpy.asarray(pairs, dtype=float)
    values = pairs[..., 0] + 1j * pairs[..., 1]
    return values.real if not _numpy.any(values.imag) else values


def dmrg(chain, start, states=1, expect=(), correlations=(), progress=None, **options):
    """The lowest states of a `Chain`, a list of `State`s, from a product state of these names, whose charge they have.

    `progress(state, sweep, energy, truncation, bond)` after each sweep ends the search of a state by returning False.
    Options: max_dims (a list, one per sweep, of which the last stays), cutoff, sweeps, tolerance, update ("two_sites",
    "one_site"), expansion, applications.
    """
    if isinstance(expect, str) or isinstance(start, str):
        raise ArgumentError(f"start={start!r}, expect={expect!r}: lists of names are required")
    if "max_dims" in options:
        options["max_dims"] = integers("max_dims", options["max_dims"], 1)
    correlations = [tuple(pair) for pair in correlations]
    problem = chain._text() | {
        "start": list(start), "states": states, "options": options, "expect": list(expect), "correlations": correlations,
    }  # fmt: skip
    text = _encoded(problem)
    guarded = _Guarded(lambda *report: 1 if progress(*report) is False else 0)
    callback = _PROGRESS() if progress is None else _PROGRESS(guarded)
    found, _ = guarded.run(lib.t4a_ground_states, 1, text, len(text), callback, None)
    return [
        State(
            x["energy"], x["variance"], x["sweeps"], _numpy.array(x["entropies"]),
            {name: _numbers(values) for name, values in x["expect"].items()},
            dict(zip(correlations, map(_numbers, x["correlations"]))),
        )
        for x in found["states"]
    ]  # fmt: skip


@dataclass
class TensorTrain:
    """A function of indices as a product of matrices, cores [left, size, right], with the report of its interpolation: status
    ("converged", "max_bond", "max_sweeps"), pivot_error, global_error, max_value, evaluations, sweeps."""

    cores: list
    report: dict

    def __call__(self, points):
        """Values at points [..., sites] of indices."""
        points = _numpy.asarray(points)
        if points.shape[-1:] != (len(self.cores),):
            raise ArgumentError(f"points of shape {points.shape} for {len(self.cores)} sites")
        sizes = [core.shape[1] for core in self.cores]
        if points.dtype.kind not in "iu" or ((points < 0) | (points >= sizes)).any():
            raise ArgumentError(f"points are indices of sites of sizes {sizes}")
        value = _numpy.ones((*points.shape[:-1], 1, 1), self.cores[0].dtype)
        for k, core in enumerate(self.cores):
            value = value @ _numpy.moveaxis(core, 1, 0)[points[..., k]]
        return value[..., 0, 0]

    def sum(self, weights=None):
        """The sum over all indices, of products with `weights`, a vector for each site."""
        value = _numpy.ones((1, 1), self.cores[0].dtype)
        for k, core in enumerate(self.cores):
            own = _numpy.ones(core.shape[1]) if weights is None else _numpy.asarray(weights[k])
            value = value @ _numpy.einsum("asb,s->ab", core, own)
        return value[0, 0]


def cross_interpolation(function, sizes, dtype=float, **options):
    """The `TensorTrain` of a function of indices from few of its values. `function` takes points [n, sites] and returns n values;
    an exception of it ends the search and is raised.

    Options: tolerance (1e-8, of the largest value), max_bond, max_sweeps, search ("rook", "full"), global_search,
    initial_pivots (points near narrow peaks), seed. Values between the points that were seen may differ by more than the tolerance.
    """
    dtype = _numpy.dtype(dtype)
    if dtype not in (_numpy.float64, _numpy.complex128):
        raise ArgumentError(f"values of {dtype}; float64 or complex128")
    sizes = _numpy.array(integers("sizes", sizes, 1), _numpy.int64)
    doubles = dtype.itemsize // 8

    def values(points, count, out):
        points = _numpy.ctypeslib.as_array(points, (count, len(sizes))).copy()
        found = _numpy.asarray(function(points))
        if found.shape != (count,):
            raise ArgumentError(f"the function returned the shape {found.shape} for {count} points")
        if found.dtype.kind == "c" and dtype.kind != "c":
            raise ArgumentError("the function is complex; dtype=complex")
        _numpy.ctypeslib.as_array(out, (count * doubles,))[:] = _numpy.ascontiguousarray(found, dtype).view(float)
        return 0

    text = _encoded(options)
    guarded = _Guarded(values)
    at = sizes.ctypes.data
    report, cores = guarded.run(
        lib.t4a_cross_interpolation, len(sizes) + 1, at, len(sizes), doubles - 1, _VALUES(guarded), None, text, len(text)
    )
    return TensorTrain(cores, report)
