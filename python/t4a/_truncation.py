"""Number of kept singular values by their size, with the options and results of `Truncation` and `BondTruncation` in Rust."""

from typing import NamedTuple

import numpy as np

from ._checks import fraction, integer
from ._library import ArgumentError


class Truncation(NamedTuple):
    """Checked options: the smallest number of values that any cutoff allows, then at least `min_dim` and at most `max_dim`."""

    max_dim: int | None
    min_dim: int
    cutoff: float
    relative_cutoff: float
    discarded_weight: float
    relative_discarded_weight: float

    @staticmethod
    def of(max_dim, min_dim, **cutoffs):
        max_dim = max_dim if max_dim is None else integer("max_dim", max_dim, 1)
        min_dim = integer("min_dim", min_dim, 0)
        if max_dim is not None and min_dim > max_dim:
            raise ArgumentError(f"min_dim={min_dim} exceeds max_dim={max_dim}")
        return Truncation(max_dim, min_dim, **{name: fraction(name, x) or 0.0 for name, x in cutoffs.items()})

    @property
    def by_number(self):
        """True if the number of kept values does not depend on the values."""
        return not any(self[2:])

    def limit(self, count):
        """Maximum number of kept values."""
        return count if self.max_dim is None else min(count, self.max_dim)

    def rank(self, s):
        """Number of kept values out of these nonincreasing ones."""
        s = np.asarray(s, np.float64)
        if self.by_number or not s.size:
            return self.limit(len(s))
        limit = max(self.cutoff, self.relative_cutoff * s[0])
        rank = int((s > limit).sum()) if limit > 0 else len(s)
        unit = _power_near(self.discarded_weight**0.5)
        rank = min(rank, _kept(s, unit, self.discarded_weight / unit / unit))
        unit = _power_near(s[0])
        total = sum(((s / unit) ** 2).tolist())
        rank = min(rank, _kept(s, unit, self.relative_discarded_weight * total))
        return self.limit(max(rank, min(self.min_dim, len(s))))


def _power_near(x):
    """Power of two near x: quotients by it are exact, and their squares do not overflow."""
    return float(np.ldexp(1.0, int(np.clip(np.frexp(x)[1] - 1, -1000, 1000))))


def _kept(s, unit, weight):
    """Number of values that remain if the smallest are dropped as long as the sum of (s / unit)^2 is at most `weight`. A weight
    of 0 is inactive: zeros are kept."""
    return len(s) - int((np.cumsum(((s / unit) ** 2)[::-1]) <= weight).sum()) if weight > 0 else len(s)


def kept_of_charges(all, truncation, degeneracy, min_per_sector):
    """Number of kept values of each charge, from the nonincreasing values of each. Of equal values those of the smaller charge are
    kept. Values with relative gaps up to `degeneracy` are kept or dropped together, unless nothing would remain."""
    s = np.concatenate([np.asarray(own, np.float64) for own in all])
    charge = np.repeat(np.arange(len(all)), [len(own) for own in all])
    order = np.argsort(-s, kind="stable")
    s, charge = s[order], charge[order]
    limit = keep = min(max(truncation.rank(s), 1), len(s))
    if degeneracy > 0 and keep < len(s):
        while keep > 0 and s[keep - 1] - s[keep] <= degeneracy * s[keep - 1]:
            keep -= 1
    counts = np.bincount(charge[: keep or limit], minlength=len(all))
    return [max(int(count), min(min_per_sector, len(own))) for count, own in zip(counts, all)]
