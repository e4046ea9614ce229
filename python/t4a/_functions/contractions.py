"""Contractions over semirings, and normalisations along an axis."""

from math import prod

from .. import _orders as orders, _plans as plans
from .._checks import integer
from .._library import ArgumentError


def functions(call, arrays, recorded):
    """The functions of this module, from `call`, the conversion `arrays` of operands, and the parameter `recorded` of `build`."""

    def labelled(subscripts, operands):
        if isinstance(subscripts, str):
            return subscripts
        texts = (f"operand {i} is the text {x!r}" for i, x in enumerate(operands) if isinstance(x, str))
        is_operand = "int" not in str(getattr(subscripts, "dtype", "int"))
        if misplaced := next(texts, is_operand and "an array is in the place of the subscripts"):
            raise ArgumentError(f"einsum: {misplaced}; subscripts precede the operands: einsum('ij,jk->ik', a, b)")
        return plans.integer_labels(subscripts)

    def einsum(subscripts, *operands, semiring="standard", memory=None, optimize=True):
        """Contraction with subscripts in the syntax of `numpy.einsum`, or with integer labels, those of the result last:
        `einsum([[1, 2], [2, 3], [1, 3]], a, b)`.

        `semiring`: "standard", "max_plus", "min_plus", "max_mul", "min_mul", "max_min", "log_sum_exp". `memory`: limit in
        bytes of intermediate tensors, a positive integer, None for none; contractions that need more are sliced.

        `optimize`: the search for a contraction order. True, "auto" or "greedy": greedy searches, improved in subtrees, no longer
        than one contraction takes. "optimal": the least number of multiplications, for up to 12 operands. "annealing":
        seconds of search. False: from left to right. Or a path in the format of `opt_einsum.contract_path` and
        `numpy.einsum_path`, `[(1, 2), (0, 1)]`: a step removes the operands at these positions and appends their product.
        """
        return call(plans.einsum, operands, labelled(subscripts, operands), semiring, memory, orders.order(optimize))

    def optima(subscripts, *operands, semiring, memory, optimize):
        """The value of a contraction, and the index of each summed label in the order of their first occurrence."""
        value, number = call(plans.optimal, operands, "argmax", subscripts, semiring, memory, orders.order(optimize))
        sizes = plans.summed(subscripts, [tuple(map(int, x.shape)) for x in operands])
        # 0, or -1 where there is no optimum. The remainder of -1 is size - 1, and its quotient is -1.
        none, indices = number // max(prod(sizes.values()), 1), []
        for size in reversed(sizes.values()):
            indices.append(number % max(size, 1) + none * max(size, 1))
            number = number // max(size, 1)
        return value, *reversed(indices)

    optima = recorded(optima)

    def argmax_einsum(subscripts, *operands, semiring="max_plus", memory=None, optimize=True):
        """Contraction over a selective semiring ("max_plus", "min_plus", "max_mul", "min_mul", "max_min") with its argmax: a
        dictionary from each summed label (as in `subscripts`) to its index, `int64` of the shape of the result. Of several
        optima it is the first one, with the last label varying fastest; -1 where the result is the zero of the semiring. No
        derivative. `memory` and `optimize`: as for `einsum`."""
        subscripts = labelled(subscripts, operands)
        operands = arrays(operands)
        value, *indices = optima(subscripts, *operands, semiring=semiring, memory=memory, optimize=optimize)
        labels = plans.summed(subscripts, [tuple(map(int, x.shape)) for x in operands])
        return value, dict(zip(labels, indices))

    def counting_einsum(subscripts, *operands, semiring="max_plus", memory=None, optimize=True):
        """Contraction over "max_plus", "min_plus", "max_mul" or "min_mul", and the number of assignments of summed labels that attain
        it, `int64` of the shape of the result. No derivative. `memory` and `optimize`: as for `einsum`."""
        return call(plans.optimal, operands, "count", labelled(subscripts, operands), semiring, memory, orders.order(optimize))

    def k_best_einsum(subscripts, *operands, k, semiring="max_plus", memory=None, optimize=True):
        """The `k` best values of every sum over a selective semiring, 1 to 16, on a new last axis in descending order of
        preference. A value that is attained several times occurs several times; missing ones are the zero of the semiring. No
        derivative. `memory` and `optimize`: as for `einsum`."""
        of = "best", integer("k", k, 1)
        if of[1] > 16:
            raise ArgumentError(f"k={k!r}: an integer of 1 to 16 is required")
        return call(plans.optimal, operands, of, labelled(subscripts, operands), semiring, memory, orders.order(optimize))

    def softmax(x, axis=-1):
        """exp(x) / sum exp(x) along an axis."""
        return call(plans.along, (x,), "softmax", axis)

    def log_softmax(x, axis=-1):
        """x - ln sum exp(x) along an axis."""
        return call(plans.along, (x,), "log_softmax", axis)

    def cross_entropy(logits, targets):
        """-log_softmax(logits)[target] of each row; `logits` [n, classes], `targets` [n]."""
        return call(plans.cross_entropy, (logits, targets))

    return einsum, argmax_einsum, counting_einsum, k_best_einsum, softmax, log_softmax, cross_entropy
