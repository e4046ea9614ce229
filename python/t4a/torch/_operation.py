"""Operations under the automatic differentiation of PyTorch.

    plain tensors without gradients   direct call of the library
    plain tensors with gradients      _Recorded: autograd.Function without setup_context, a third of the overhead
    torch.func, forward mode          _Transformed: autograd.Function with setup_context, vmap and jvp
    torch.compile, export, jit.trace  operator t4a::run, whose fake kernel infers shapes by the library

Derivatives are operations, so one reverse rule serves derivatives of all orders.
"""

import torch
from torch._library.autograd import make_autograd_impl
from torch.autograd import Function, forward_ad

from .._library import ArgumentError, UnsupportedError
from .._op import Op
from ._exchange import described, plain, run, shapes_alone


def _is_float(x):
    return x.is_floating_point() or x.is_complex()


def _backward(call, ctx, wanted, cotangents):
    """Cotangents of all tensors, None for those that are not wanted. `call` applies an operation on the current tape."""
    saved, cotangents = ctx.saved_tensors, cotangents[: ctx.floats]
    given = [g is not None for g in cotangents]
    if not any(given) or not any(wanted):
        return [None] * ctx.operands
    op = ctx.op.vjp_of_results(given, wanted) if len(saved) > ctx.operands else None
    if op is None:
        op, saved = ctx.op.vjp(given, wanted), saved[: ctx.operands]
    back = iter(call(op, *saved, *(g for g in cotangents if g is not None)))
    return [next(back) if want else None for want in wanted]


def _save(ctx, op, tensors, results):
    """Saves the operands, and the results if the reverse rule reads them, so that they are not recomputed."""
    key = tuple([x.dtype for x in (*tensors, *results)])
    if key not in op.saved:
        # Index results follow the others.
        floats = sum(map(_is_float, results))
        op.saved[key] = floats, op.vjp_of_results([True] * floats, map(_is_float, tensors)) is not None
    floats, reads = op.saved[key]
    ctx.op, ctx.operands, ctx.floats = op, len(tensors), floats
    ctx.save_for_backward(*tensors, *(results[:floats] if reads else ()))
    ctx.set_materialize_grads(False)


class _Recorded(Function):
    @staticmethod
    def forward(ctx, op, *tensors):
        results = run(op, tensors)
        _save(ctx, op, tensors, results)
        if ctx.floats < len(results):
            ctx.mark_non_differentiable(*results[ctx.floats :])
        return tuple(results)

    @staticmethod
    def backward(ctx, *cotangents):
        return None, *_backward(apply, ctx, ctx.needs_input_grad[1:], cotangents)


class _Transformed(Function):
    generate_vmap_rule = False

    @staticmethod
    def forward(op, *tensors):
        # Fake tensors, if `torch.compile` traces the transformation.
        is_plain = not _modes() and all(type(x) in _PLAIN for x in tensors)
        return tuple(run(op, tensors) if is_plain else _call_operator(op, *tensors))

    @staticmethod
    def setup_context(ctx, inputs, output):
        op, *tensors = inputs
        _save(ctx, op, tensors, output)
        ctx.save_for_forward(*tensors)
        ctx.mark_non_differentiable(*output[ctx.floats :])

    backward = _Recorded.backward

    @staticmethod
    def jvp(ctx, _, *tangents):
        tensors, moving = ctx.saved_tensors[: ctx.operands], [t is not None for t in tangents]
        own = ctx.op.results([described(x) for x in tensors])
        all = apply(ctx.op.jvp(moving), *tensors, *(t for t in tangents if t is not None))
        count = len(all) - len(own)
        return *all[count : 2 * count], *(None for _ in own[count:])

    @staticmethod
    def vmap(info, axes, op, *tensors):
        results = _on_batch(apply, info.batch_size, axes[1:], op, tensors)
        return tuple(results), (0,) * len(results)


def _example(x, axis):
    """Shape and name of the dtype of one example."""
    shape, name = described(x if axis is None else x.transpose(axis, 0))
    return shape if axis is None else shape[1:], name


def _on_batch(call, size, axes, op, tensors):
    """Results of a batch along these axes, with a leading batch axis: as one operation if supported, else one by one."""
    examples = [_example(x, axis) for x, axis in zip(tensors, axes)]
    found = op.on_batch(size, axes, examples)
    if found is not None:
        whole, differ = found
        front = [
            x if not here else x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0)
            for x, axis, here in zip(tensors, axes, differ)
        ]
        return call(whole, *front)
    if size == 0:
        return [tensors[0].new_empty((0, *shape), dtype=getattr(torch, name)) for shape, name in op.results(examples)]
    results = [
        call(op, *(x if axis is None else x.select(axis, i) for x, axis in zip(tensors, axes)))
        for i in range(size)
    ]
    return [torch.stack(all) for all in zip(*results)]


@torch.library.custom_op("t4a::run", mutates_args=(), schema="(str op, Tensor[] operands) -> Tensor[]")
def _operator(op, operands):
    return run(Op.parse(op), operands)


@_operator.register_fake
def _fake(op, operands):
    return shapes_alone(Op.parse(op), operands)


def _call_operator(op, *tensors):
    return torch.ops.t4a.run(op.text, tensors)


def _operator_context(ctx, inputs, output):
    op, operands = inputs
    _save(ctx, Op.parse(op), operands, output)


def _operator_backward(ctx, cotangents):
    return None, _backward(_call_operator, ctx, ctx.needs_input_grad[1], cotangents)


_operator.register_autograd(_operator_backward, setup_context=_operator_context)
_on_tape = make_autograd_impl(_operator._opoverload, _operator)


def _operator_on_duals(keys, op, operands):
    """Forward mode of the operator. Without this kernel PyTorch would return zero tangents."""
    duals = [forward_ad.unpack_dual(x) for x in operands] if forward_ad._current_level >= 0 else []
    moving = [tangent is not None for _, tangent in duals]
    if not any(moving):
        return _on_tape(keys, op, operands)
    if torch.is_grad_enabled() and any(x.requires_grad for x, _ in duals):
        # The tape saves operands without their tangents, so forward-over-reverse derivatives would be zero.
        raise UnsupportedError("forward mode over reverse mode by the operator t4a::run; the functions of t4a.torch have it")
    jvp = Op.parse(op).jvp(moving)
    all = torch.ops.t4a.run(jvp.text, [*(x for x, _ in duals), *(t for _, t in duals if t is not None)])
    count = sum(map(_is_float, all)) // 2
    return [*map(forward_ad.make_dual, all[:count], all[count : 2 * count]), *all[2 * count :]]


_library = torch.library.Library("t4a", "IMPL")
_library.impl("run", _operator_on_duals, "Autograd", with_keyset=True, allow_override=True)


@_operator.register_vmap
def _operator_vmap(info, axes, op, operands):
    results = _on_batch(_call_operator, info.batch_size, axes[1], Op.parse(op), operands)
    return results, [0] * len(results)


_PLAIN = {torch.Tensor, torch.nn.Parameter}
_interpreter = torch._C._functorch.peek_interpreter_stack
_modes = torch._C._len_torch_dispatch_stack
_tracing = torch._C._get_tracing_state


def _functionalizes(interpreter):
    """True within `torch.func.functionalize`, which accepts operators alone."""
    return interpreter is not None and interpreter.key() == torch._C._functorch.TransformType.Functionalize


def values(x):
    """The values of a tensor as a NumPy array, or None on meta and while a function is compiled, traced or transformed."""
    if type(x) not in _PLAIN or x.is_meta or _modes() or _interpreter() is not None or _tracing() is not None:
        return None
    return plain(x.cpu() if x.is_cuda else x).numpy()


def apply(op, *tensors):
    """Applies an operation; returns PyTorch tensors."""
    records, interpreter = False, _interpreter()
    transforms = interpreter is not None and not _functionalizes(interpreter)
    for x in tensors:
        if type(x) not in _PLAIN and not transforms:
            if not isinstance(x, torch.Tensor):
                raise ArgumentError(f"a tensor is required, given {type(x).__name__}")
            return _call_operator(op, *tensors)
        records = records or x.requires_grad
    if not transforms and (interpreter is not None or _modes() or _tracing() is not None):
        return _call_operator(op, *tensors)
    if transforms or forward_ad._current_level >= 0:
        return list(_Transformed.apply(op, *tensors))
    if records and torch.is_grad_enabled():
        return list(_Recorded.apply(op, *tensors))
    return run(op, tensors)
