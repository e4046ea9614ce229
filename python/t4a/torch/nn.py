"""Layers composed of the functions of `t4a.torch`."""

import math as _math

import numpy as _numpy
import torch as _torch

from .._checks import integer as _integer, integers as _integers
from .._library import ArgumentError as _ArgumentError, DtypeError as _DtypeError, ShapeError as _ShapeError
from ..structured import Spec as _Spec
from . import einsum as _einsum, graded_contract as _graded_contract, kalman_filter as _kalman_filter
from . import log_partition as _log_partition

__all__ = ["CRF", "Kalman", "SemiringEinsum", "TensorTrainLinear", "Weights"]


class CRF(_torch.nn.Module):
    """Linear-chain conditional random field: p(y | x) = exp(score(y) - ln Z), with
    score(y) = start[y_0] + sum_t emissions[b, t, y_t] + sum_t transitions[y_(t-1), y_t] + end[y_last].

    Shapes: emissions [batch, length, tags], tags [batch, length], lengths: a number from 1 to length per sequence, by
    default `length`. Values after the end of a sequence have no influence; those before it are from 0 to tags - 1, which is
    checked except in compiled functions and in transformations of `torch.func`.
    """

    def __init__(self, tags, device=None, dtype=None):
        super().__init__()
        _integer("tags", tags, 1)
        new = lambda *shape: _torch.nn.Parameter(_torch.empty(shape, device=device, dtype=dtype).uniform_(-0.1, 0.1))
        self.transitions, self.start, self.end = new(tags, tags), new(tags), new(tags)

    def _ends(self, emissions, lengths):
        """Emissions including the scores of the first and last tag, lengths, and the mask [batch, length]."""
        count = len(self.start)
        if emissions.ndim != 3 or emissions.shape[2] != count:
            raise _ShapeError(f"CRF: emissions of shape {list(emissions.shape)}, [batch, length, {count}] is required")
        batch, length, _ = emissions.shape
        at = _torch.arange(length, device=emissions.device)
        own = [length] * batch if lengths is None else [*_integers("lengths", lengths, 0)]
        if len(own) != batch:
            raise _ShapeError(f"CRF: {len(own)} lengths for a batch of {batch} sequences")
        last = _torch.tensor(own, device=emissions.device)[:, None]
        first = (at == 0)[None, :, None] * self.start
        final = (at[None, :] == last - 1)[:, :, None] * self.end
        return emissions + first + final, own, at[None, :] < last

    def log_partition(self, emissions, lengths=None):
        """Log-partition function ln Z, shape [batch]."""
        emissions, lengths, _ = self._ends(emissions, lengths)
        return _log_partition(emissions, self.transitions, lengths)

    def forward(self, emissions, tags, lengths=None):
        """Log-likelihood ln p(tags | emissions), shape [batch]."""
        emissions, lengths, mask = self._ends(emissions, lengths)
        tags = self._checked(tags, mask)
        here = emissions.gather(2, tags[:, :, None])[:, :, 0]
        between = self.transitions[tags[:, :-1], tags[:, 1:]]
        score = _torch.where(mask, here, 0).sum(1) + _torch.where(mask[:, 1:], between, 0).sum(1)
        return score - _log_partition(emissions, self.transitions, lengths)

    def _checked(self, tags, mask):
        """Tags with those after the end of a sequence in the range; an error for others out of it."""
        count = len(self.start)
        if tags.shape != mask.shape:
            raise _ShapeError(f"CRF: tags of shape {list(tags.shape)}, {list(mask.shape)} is required as of the emissions")
        if tags.dtype not in (_torch.int64, _torch.int32):
            raise _DtypeError(f"CRF: tags of {str(tags.dtype).removeprefix('torch.')}, int64 or int32 is required")
        inside = tags.clamp(0, count - 1)
        # Data cannot be read while a function is compiled or transformed.
        if not _torch.compiler.is_compiling() and _torch._C._functorch.peek_interpreter_stack() is None:
            wrong = (mask & (tags != inside)).nonzero()
            if len(wrong):
                sequence, step = wrong[0].tolist()
                given = tags[sequence, step].item()
                raise _ArgumentError(f"CRF: sequence {sequence}, step {step}: tag {given}, but the {count} tags are 0 to {count - 1}")
        return inside

    def marginals(self, emissions, lengths=None):
        """Marginal probabilities of tags, shape [batch, length, tags]; zero after the end of a sequence."""
        emissions, lengths, _ = self._ends(emissions, lengths)
        with _torch.enable_grad():
            # The derivative of ln Z with respect to the emissions.
            at = emissions if emissions.requires_grad else emissions.detach().requires_grad_()
            total = _log_partition(at, self.transitions, lengths).sum()
            record = _torch.is_grad_enabled() and emissions.requires_grad
            return _torch.autograd.grad(total, at, create_graph=record)[0]

    @_torch.no_grad()
    def decode(self, emissions, lengths=None):
        """Tags with the highest score (Viterbi), a list per sequence; the lexicographically first of equal ones."""
        emissions, lengths, mask = self._ends(emissions, lengths)
        batch, length, _ = emissions.shape
        # Backwards, so that the forward pass selects the first of equal tags at every position.
        best, choices = emissions[:, -1], []
        for t in range(length - 2, -1, -1):
            found, choice = (self.transitions[None] + best[:, None, :]).max(2)
            choices.append(choice)
            best = emissions[:, t] + _torch.where(mask[:, t + 1, None], found, 0)
        tags = [best.argmax(1)]
        for choice in reversed(choices):
            tags.append(choice.gather(1, tags[-1][:, None])[:, 0])
        tags = _torch.stack(tags, 1).tolist()
        return [row[:n] for row, n in zip(tags, lengths)]

    def extra_repr(self):
        return f"tags={len(self.start)}"


class SemiringEinsum(_torch.nn.Module):
    """Contraction of the inputs with a learned weight of shape `shape`, the last operand of `subscripts`, over a semiring:
    `SemiringEinsum("bi,io->bo", (64, 32), semiring="max_plus")`. `memory` and `optimize`: as for `einsum`."""

    def __init__(self, subscripts, shape, semiring="standard", device=None, dtype=None, *, memory=None, optimize=True):
        super().__init__()
        self.subscripts, self.semiring, self.memory, self.optimize = subscripts, semiring, memory, optimize
        self.weight = _torch.nn.Parameter(_torch.empty(shape, device=device, dtype=dtype))
        bound = 1 / _math.sqrt(max(1, shape[0] if shape else 1))
        _torch.nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, *inputs):
        options = {"semiring": self.semiring, "memory": self.memory, "optimize": self.optimize}
        return _einsum(self.subscripts, *inputs, self.weight, **options)

    def extra_repr(self):
        return f"{self.subscripts}, {tuple(self.weight.shape)}, semiring={self.semiring}"


class TensorTrainLinear(_torch.nn.Module):
    """Linear layer whose matrix [prod(inputs), prod(outputs)] is a tensor train with cores [r, in_k, out_k, r']:
    `TensorTrainLinear((8, 8), (4, 4), rank=3)` maps [..., 64] to [..., 16]."""

    def __init__(self, inputs, outputs, rank, bias=True, device=None, dtype=None):
        super().__init__()
        self.inputs, self.outputs = _integers("inputs", inputs, 1), _integers("outputs", outputs, 1)
        if len(self.inputs) != len(self.outputs) or not self.inputs:
            raise _ArgumentError(f"factors {self.inputs} of the inputs and {self.outputs} of the outputs: one each for every core")
        rank, count = _integer("rank", rank, 1), len(self.inputs)
        ranks = [1] + [rank] * (count - 1) + [1]
        # The variance of an entry of the matrix is 1 / prod(inputs).
        scale = (_math.prod(self.inputs) * rank ** (count - 1)) ** (-0.5 / count)
        self.cores = _torch.nn.ParameterList(
            _torch.nn.Parameter(scale * _torch.randn(ranks[k], self.inputs[k], self.outputs[k], ranks[k + 1], device=device, dtype=dtype))
            for k in range(count)
        )
        self.bias = _torch.nn.Parameter(_torch.zeros(_math.prod(self.outputs), device=device, dtype=dtype)) if bias else None

    def forward(self, x):
        count, batch, size = len(self.cores), x.shape[:-1], _math.prod(self.inputs)
        if x.ndim == 0 or x.shape[-1] != size:
            raise _ShapeError(f"TensorTrainLinear: an input of shape {list(x.shape)}, [..., {size}] is required")
        x = x.reshape(-1, *self.inputs)
        # Labels: 0 is the batch, followed by inputs, outputs and bonds.
        inputs, outputs = range(1, count + 1), range(count + 1, 2 * count + 1)
        bonds = range(2 * count + 1, 3 * count + 2)
        labels = [[0, *inputs]] + [[bonds[k], inputs[k], outputs[k], bonds[k + 1]] for k in range(count)]
        y = _einsum([*labels, [0, *outputs]], x, *self.cores)
        y = y.reshape(*batch, _math.prod(self.outputs))
        return y if self.bias is None else y + self.bias


class Kalman(_torch.nn.Module):
    """Kalman filter of x_t = F x_(t-1) + noise of covariance Q, y_t = H x_t + noise of covariance R, with learned F, H,
    Q, R and initial mean and covariance. `forward(y)` with y [batch, length, observed] returns means
    [batch, length, states], covariances [length, states, states] and log-likelihoods of the observations [batch, length].
    """

    def __init__(self, states, observed, device=None, dtype=None):
        super().__init__()
        eye = lambda n: _torch.eye(n, device=device, dtype=dtype)
        self.transition = _torch.nn.Parameter(0.9 * eye(states))
        self.observation = _torch.nn.Parameter(_torch.randn(observed, states, device=device, dtype=dtype) / states**0.5)
        # Factors of covariances: lower triangles, with logarithms on the diagonal.
        self.process, self.noise, self.spread = (
            _torch.nn.Parameter(_torch.zeros(n, n, device=device, dtype=dtype)) for n in (states, observed, states)
        )
        self.mean = _torch.nn.Parameter(_torch.zeros(states, device=device, dtype=dtype))

    @staticmethod
    def _covariance(factor):
        low = factor.tril(-1) + _torch.diag(factor.diagonal().exp())
        return low @ low.T

    def forward(self, y):
        process, noise, spread = map(self._covariance, (self.process, self.noise, self.spread))
        return _kalman_filter(self.transition, process, self.observation, noise, y, self.mean, spread)

    def extra_repr(self):
        observed, states = self.observation.shape
        return f"states={states}, observed={observed}"


class Weights(_torch.nn.Module):
    """Learned symmetric tensor: `data` is the flat array of the blocks allowed by a `t4a.structured.Spec`. `forward(x, x_spec,
    axes)` contracts legs `axes[0]` of x with legs `axes[1]` of the weights and returns a flat array and its spec, as
    `graded_contract`. The map is equivariant under the symmetry for all weights.
    """

    def __init__(self, spec, device=None, dtype=None):
        super().__init__()
        if not isinstance(spec, _Spec):
            raise TypeError(f"a Spec is required, given {type(spec).__name__}")
        self.spec = spec
        data = _torch.empty(spec.size, device=device, dtype=dtype)
        for start, rows, columns in spec.matrices.values():
            # The variance of an entry of a product with independent normal numbers is 1 in every sector.
            data[start : start + rows * columns].normal_(std=rows**-0.5)
        self.data = _torch.nn.Parameter(data)

    def forward(self, x, spec, axes):
        return _graded_contract(x, self.data, (spec, self.spec), axes)

    def dense(self):
        """The dense tensor, with zeros outside of blocks; differentiable with respect to `data`."""
        places = _torch.from_numpy(self.spec.from_dense(_numpy.arange(_math.prod(self.spec.shape)).reshape(self.spec.shape)))
        zeros = self.data.new_zeros(_math.prod(self.spec.shape))
        return zeros.scatter(0, places.to(self.data.device), self.data).reshape(self.spec.shape)

    def extra_repr(self):
        legs = ", ".join(f"{dict(leg.sectors)}{'*' if leg.dual else ''}" for leg in self.spec.legs)
        return f"{legs}; rows={self.spec.rows}, flux={self.spec.flux}, numbers={self.spec.size} of {_math.prod(self.spec.shape)}"
