"""Cumulative operations, recurrences, recurrent layers, and the Kalman filter."""

from .. import _plans as plans


def functions(call):
    """The functions of this module, from `call`."""

    def cumsum(x, axis=0, reverse=False):
        """Cumulative sums along an axis; the result has the shape of x."""
        return call(plans.running, (x,), "sum", axis, bool(reverse))

    def cumprod(x, axis=0, reverse=False):
        """Cumulative products along an axis."""
        return call(plans.running, (x,), "product", axis, bool(reverse))

    def cummax(x, axis=0, reverse=False):
        """Cumulative maxima along an axis."""
        return call(plans.running, (x,), "max", axis, bool(reverse))

    def cummin(x, axis=0, reverse=False):
        """Cumulative minima along an axis."""
        return call(plans.running, (x,), "min", axis, bool(reverse))

    def logcumsumexp(x, axis=0, reverse=False):
        """ln of cumulative sums of exp(x) along an axis."""
        return call(plans.running, (x,), "log_sum_exp", axis, bool(reverse))

    def linear_recurrence(a, b, axis=0, reverse=False):
        """h[t] = a[t] h[t - 1] + b[t] along an axis, with h[-1] = 0; a, b and h have the same shape."""
        return call(plans.recurrence, (a, b), axis, bool(reverse))

    def matrix_recurrence(a, b, reverse=False):
        """H[t] = A[t] H[t - 1] + B[t] with H[-1] = 0: `a` [..., n, d, d], `b` [..., n, d, k]; H has the shape of `b`."""
        return call(plans.matrix_recurrence, (a, b), bool(reverse))

    def matrix_scan(x, semiring="standard", axis=0, reverse=False, exclusive=False):
        """Cumulative products x[0] x[1] ... x[t] of square matrices [..., d, d] along another axis, over a semiring as in
        `einsum`. `exclusive`: without x[t]. `reverse`: x[n - 1] x[n - 2] ... x[t]."""
        return call(plans.matrix_scan, (x,), semiring, axis, bool(reverse), bool(exclusive))

    def lstm(z, weight, bias=None, reverse=False):
        """States h and memories c [n, batch, width] of an LSTM with zero initial states. `z` [n, batch, 4 width]: products of the
        inputs with their weights; `weight` [width, 4 width] and `bias` [4 width]: recurrent weights; gates in the order i, f, g, o."""
        return call(plans.recurrent, (z, weight) if bias is None else (z, weight, bias), "lstm", bool(reverse))

    def gru(z, weight, bias=None, reverse=False):
        """States h [n, batch, width] of a GRU with zero initial states. `z` [n, batch, 3 width]: products of the inputs with
        their weights; `weight` [width, 3 width] and `bias` [3 width]: recurrent weights; gates in the order r, z, n."""
        return call(plans.recurrent, (z, weight) if bias is None else (z, weight, bias), "gru", bool(reverse))

    def kalman_filter(transition, process, observation, noise, y, mean, covariance):
        """Means [batch, n, d], covariances [n, d, d] and log-likelihoods [batch, n] of the Kalman filter.

        x_t = transition x_(t-1) + noise of covariance `process`, y_t = observation x_t + noise of covariance `noise`;
        `y` [batch, n, m], `mean` [d] and `covariance` [d, d] of the state before the first step. Covariances are symmetric.
        """
        return call(plans.kalman_filter, (transition, process, observation, noise, y, mean, covariance))

    return (
        cumsum, cumprod, cummax, cummin, logcumsumexp, linear_recurrence, matrix_recurrence, matrix_scan, lstm, gru, kalman_filter,
    )  # fmt: skip
