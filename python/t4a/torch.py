"""Functions on PyTorch tensors: reverse mode, double backward, forward mode, `torch.func`, to any order."""

import torch as _torch

from . import _functions
from ._library import ArgumentError, UnsupportedError
from ._op import Op


def _plain(x):
    """Checks that the memory of a tensor says what the tensor says."""
    if x.layout != _torch.strided:
        raise UnsupportedError(f"a tensor of layout {x.layout}; `to_dense()` first")
    if x.device.type != "cpu":
        raise UnsupportedError(f"a tensor on {x.device}; `cpu()` first")
    return x.detach().resolve_conj().resolve_neg()


def _run(op, tensors):
    return [_torch.from_dlpack(x) for x in op.run(*map(_plain, tensors))]


def _described(x):
    return tuple(x.shape), str(x.dtype).removeprefix("torch.")


class _Operation(_torch.autograd.Function):
    """An operation of which derivatives are operations."""

    generate_vmap_rule = False

    @staticmethod
    def forward(op, *tensors):
        return tuple(_run(op, tensors))

    @staticmethod
    def setup_context(ctx, inputs, output):
        op, *tensors = inputs
        ctx.op = op
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.mark_non_differentiable(*(y for y in output if not (y.is_floating_point() or y.is_complex())))
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, *cotangents):
        tensors, wanted = ctx.saved_tensors, ctx.needs_input_grad[1:]
        results = sum(_is_float(name) for _, name in ctx.op.results([_described(x) for x in tensors]))
        cotangents = cotangents[:results]
        given = [g is not None for g in cotangents]
        if not any(given):
            return (None,) * (1 + len(tensors))
        back = iter(_apply(ctx.op.vjp(given, wanted), *tensors, *(g for g in cotangents if g is not None)))
        return None, *(next(back) if want else None for want in wanted)

    @staticmethod
    def jvp(ctx, _, *tangents):
        tensors, moving = ctx.saved_tensors, [t is not None for t in tangents]
        own = ctx.op.results([_described(x) for x in tensors])
        all = _apply(ctx.op.jvp(moving), *tensors, *(t for t in tangents if t is not None))
        count = len(all) - len(own)
        return *all[count : 2 * count], *(None for _ in own[count:])

    @staticmethod
    def vmap(info, axes, op, *tensors):
        axes, size = axes[1:], info.batch_size
        example = [x if axis is None else x.select(axis, 0) for x, axis in zip(tensors, axes)]
        found = op.on_batch(size, axes, [_described(x) for x in example])
        if found is not None:
            whole, differ = found
            front = [
                x if not here else x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0)
                for x, axis, here in zip(tensors, axes, differ)
            ]
            results = _apply(whole, *front)
            return tuple(results), (0,) * len(results)
        examples = [
            _apply(op, *(x if axis is None else x.select(axis, i) for x, axis in zip(tensors, axes)))
            for i in range(size)
        ]
        results = tuple(_torch.stack(all) for all in zip(*examples))
        return results, (0,) * len(results)


def _is_float(name):
    return name.startswith(("float", "bfloat", "complex"))


def _apply(op, *tensors):
    return list(_Operation.apply(op, *tensors))


def apply(op, *tensors):
    """The results of an operation, as PyTorch tensors."""
    for x in tensors:
        if not isinstance(x, _torch.Tensor):
            raise ArgumentError(f"a tensor is required, given {type(x).__name__}")
    return _apply(op, *tensors)


globals().update(
    _functions.build(
        apply,
        _torch.as_tensor,
        lambda x: str(x.dtype).removeprefix("torch."),
        lambda x, name: x.to(getattr(_torch, name)),
    )
)
