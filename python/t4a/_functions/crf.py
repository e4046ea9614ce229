"""Linear chains of tags."""

from .. import _plans as plans
from .._checks import composed, integers


def functions(call, asarray, arrays):
    """The functions of this module, from `call`, the conversion of operands, and the module of array functions."""

    lengths_of = lambda lengths: None if lengths is None else integers("lengths", lengths, 0)

    @composed
    def log_partition(emissions, transitions, lengths=None):
        """ln Z of a linear chain of tags: ln sum over y of exp(sum_t emissions[b, t, y[t]] + sum_t transitions[y[t-1], y[t]]).

        `emissions` [batch, length, tags], `transitions` [tags, tags]; `lengths`: a number from 1 to length for each
        sequence. The derivatives with respect to the emissions are the marginal probabilities of the tags.
        """
        return call(plans.log_partition, (emissions, transitions), lengths_of(lengths))

    @composed
    def marginals(emissions, transitions, lengths=None):
        """Probabilities of the tags, [batch, length, tags], with the operands of `log_partition`; zero after the end of a
        sequence."""
        emissions = asarray(emissions)
        place = {"device": emissions.device} if arrays.__name__ == "torch" else {}
        ones = arrays.ones(emissions.shape[:1], dtype=emissions.dtype, **place)
        return call(plans.marginals, (emissions, transitions, ones), lengths_of(lengths))

    return log_partition, marginals
