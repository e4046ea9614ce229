"""Operations as primitives of JAX.

There are two primitives: an operation, and its tangent map, which is linear in the tangents and whose transpose is an
operation. An operation that is linear in some of its operands also has a transpose. Both are custom calls of XLA on the CPU,
without calls into Python, or host callbacks if XLA cannot call the library.
"""

import json as _json
import os as _os
import warnings as _warnings

import jax as _jax
import jax.numpy as _jnp
import numpy as _numpy
from jax.extend.core import Primitive as _Primitive
from jax.interpreters import ad as _ad, batching as _batching, mlir as _mlir

from .._library import ArgumentError, DtypeError, lib as _lib
from .._op import Op
from ..numpy import apply as _apply


def _canonical(name):
    return _jax.dtypes.canonicalize_dtype(_jnp.dtype(name))


def _described(arrays):
    return [(x.shape, str(x.dtype)) for x in arrays]


def _avals(results, arrays):
    """Abstract values of results. In `shard_map` they vary over the same mesh axes as the operands."""
    like = arrays[0] if isinstance(arrays[0], _jax.core.ShapedArray) else _jax.typeof(arrays[0])
    if not like.mat.varying:
        return [_jax.core.ShapedArray(shape, _canonical(name)) for shape, name in results]
    whole = lambda shape: like.sharding.update(spec=_jax.sharding.PartitionSpec(*(None for _ in shape)))
    return [
        _jax.core.ShapedArray(shape, _canonical(name), sharding=whole(shape), manual_axis_type=like.mat)
        for shape, name in results
    ]


_TARGET = "t4a_op"


def _registers():
    """Registers the library with XLA. False if XLA cannot call it, or T4A_JAX_CALLBACK=1 forbids it: operations are callbacks
    then, which run in Python and take 0.1 to 0.2 ms longer, without bfloat16 and `jax.export`."""
    if _os.environ.get("T4A_JAX_CALLBACK", "0") not in ("", "0"):
        return False
    try:
        _jax.ffi.register_ffi_target(_TARGET, _jax.ffi.pycapsule(_lib.t4a_xla_execute), platform="cpu")
    except (AttributeError, NotImplementedError, RuntimeError) as error:
        _warnings.warn(f"t4a.jax: XLA cannot call the library ({error}); operations are callbacks, which are slower", stacklevel=2)
        return False
    return True


_DIRECT = _registers()

# Operands -> results and index results.
_operation = _Primitive("t4a_op")
_operation.multiple_results = True
# Operands, `held` results for the transpose, tangents of the active operands -> tangents of the results of `text`.
_linear = _Primitive("t4a_linear")
_linear.multiple_results = True


def _tangents(op, moving, arrays):
    """The jvp operation, and the slice of its results that contains the tangents."""
    jvp = op.jvp(moving)
    count = len(jvp.results(_described(arrays))) - len(op.results(_described(arrays[: len(moving)])))
    return jvp, slice(count, 2 * count)


def _abstract(*arrays, text):
    return _avals(Op.parse(text).results(_described(arrays)), arrays)


def _without(held, moving, arrays):
    """Operands and tangents of the linear primitive, without the results between them."""
    count = len(moving)
    return (*arrays[:count], *arrays[count + held :])


def _abstract_linear(*arrays, text, moving, held):
    arrays = _without(held, moving, arrays)
    jvp, part = _tangents(Op.parse(text), moving, arrays)
    return _avals(jvp.results(_described(arrays))[part], arrays)


def _call(text, arrays, results):
    structs = [_jax.ShapeDtypeStruct(x.shape, x.dtype) for x in results]
    if _DIRECT:
        return _jax.ffi.ffi_call(_TARGET, structs)(*arrays, text=text)

    if any(x.dtype == _jnp.bfloat16 for x in (*arrays, *structs)):
        # NumPy cannot export these arrays.
        raise DtypeError("bfloat16: callbacks have no arrays of this dtype; cast to float32")

    def on_host(*arrays):
        found = _apply(Op.parse(text), *map(_numpy.asarray, arrays))
        return [_numpy.asarray(x, struct.dtype) for x, struct in zip(found, structs)]

    return _jax.pure_callback(on_host, structs, *arrays)


def _implementation(*arrays, text):
    return _call(text, arrays, _abstract(*arrays, text=text))


def _implementation_linear(*arrays, text, moving, held):
    arrays = _without(held, moving, arrays)
    jvp, part = _tangents(Op.parse(text), moving, arrays)
    return _call(jvp.text, arrays, _abstract(*arrays, text=jvp.text))[part]


def _jvp_rule(text, primals, tangents, results=()):
    """Tangents of the results of an operation. Results that the reverse rule reads are passed on to the transpose."""
    moving = tuple(type(t) is not _ad.Zero for t in tangents)
    moved = [_ad.instantiate_zeros(t) for t, moves in zip(tangents, moving) if moves]
    if results and Op.parse(text).vjp_of_results([True] * len(results), moving) is None:
        results = ()
    return _linear.bind(*primals, *results, *moved, text=text, moving=moving, held=len(results))


def _jvp(primals, tangents, *, text):
    results = _operation.bind(*primals, text=text)
    floats = [x for x in results if _jnp.issubdtype(x.dtype, _jnp.inexact)]
    moved = _jvp_rule(text, primals, tangents, floats)
    # Index results have no tangents.
    still = [_ad.Zero(_jax.typeof(x).to_tangent_aval()) for x in results[len(moved) :]]
    return results, [*moved, *still]


def _jvp_linear(primals, tangents, *, text, moving, held):
    results = _linear.bind(*primals, text=text, moving=moving, held=held)
    # The held results are functions of the operands, so their tangents are not needed.
    primals, tangents = (_without(held, moving, x) for x in (primals, tangents))
    jvp, part = _tangents(Op.parse(text), moving, primals)
    return results, _jvp_rule(jvp.text, primals, tangents)[part]


def _conjugate(x):
    return _jnp.conj(x) if _jnp.iscomplexobj(x) else x


def _transpose(cotangents, *arrays, text, moving, held):
    """Transpose with respect to the tangents, computed by the vjp of the operation. Cotangents of JAX
    are the complex conjugates of those of the library."""
    count = len(moving)
    op, operands, results, tangents = Op.parse(text), arrays[:count], arrays[count : count + held], arrays[count + held :]
    linear = iter(_ad.is_undefined_primal(t) for t in tangents)
    wanted = [moves and next(linear) for moves in moving]
    given = [type(c) is not _ad.Zero for c in cotangents]
    if any(map(_ad.is_undefined_primal, (*operands, *results))):
        raise ArgumentError("the derivative of an operation is linear in tangents alone")
    if not any(given):
        still = [None] * (count + held)
        return still + [_ad.Zero(t.aval) if _ad.is_undefined_primal(t) else None for t in tangents]
    vjp = op.vjp_of_results(given, wanted) if held else None
    if vjp is None:
        vjp, results = op.vjp(given, wanted), ()
    sent = [_conjugate(c) for c, is_given in zip(cotangents, given) if is_given]
    back = iter(_operation.bind(*operands, *results, *sent, text=vjp.text))
    found = [_conjugate(next(back)) if _ad.is_undefined_primal(t) else None for t in tangents]
    return [None] * (count + held) + found


# Operands in which operations of linear algebra are linear, given the others.
_LINEAR = {"solve": 1, "solve_triangular": 1, "lstsq": 1, "lstsq_min_norm": 1, "lyapunov_positive": 1, "sylvester": 2}


def _linear_sets(name, data, count):
    """Sets of operands in which an operation of `count` operands is linear, given the others."""
    match name, data:
        case ("einsum", {"semiring": "standard"}) | (("complex_einsum" | "contract" | "complex_contract"), _):
            return [{i} for i in range(count)]
        case ("linalg" | "by_matrix"), {"op": {**op}}:
            return [{_LINEAR[name]} for name in op if name in _LINEAR]
        case ("cumulative", {"kind": "sum"}) | ("rearrange", _):
            return [{0}]
        case ("linear_recurrence" | "matrix_recurrence"), _:
            return [{1}]
        case "vjp", {"wanted": wanted, "given": given}:
            # The cotangents, which are the last operands.
            return [set(range(count - sum(given), count))]
    return []


def _transpose_operation(cotangents, *arrays, text):
    """Transpose with respect to the operands in which an operation is linear. Its vjp does not depend on their values."""
    unknown = [_ad.is_undefined_primal(x) for x in arrays]
    places = {i for i, wanted in enumerate(unknown) if wanted}
    ((name, data),) = _json.loads(text)["op"].items()
    if not any(places <= linear for linear in _linear_sets(name, data, len(arrays))):
        raise ArgumentError(f"the transpose of {name}, which is not linear in operands {sorted(places)}")
    given = [type(c) is not _ad.Zero for c in cotangents]
    if not any(given):
        return [_ad.Zero(x.aval) if wanted else None for x, wanted in zip(arrays, unknown)]
    at = [_jnp.zeros(x.aval.shape, x.aval.dtype) if wanted else x for x, wanted in zip(arrays, unknown)]
    sent = [_conjugate(c) for c, is_given in zip(cotangents, given) if is_given]
    back = iter(_operation.bind(*at, *sent, text=Op.parse(text).vjp(given, unknown).text))
    return [_conjugate(next(back)) if wanted else None for wanted in unknown]


def _example(x, axis):
    shape = x.shape if axis is None else x.shape[:axis] + x.shape[axis + 1 :]
    return shape, str(x.dtype)


def _batched(op, size, arrays, axes, moving=(), held=0):
    """The operation on a batch and its operands with a leading batch axis; None if batches are not supported."""
    count = len(moving) or len(axes)
    axes_of = list(axes)
    tangents = dict(enumerate((i for i, moves in enumerate(moving) if moves), count + held))
    for k, i in tangents.items():
        # An operand and its tangent must agree on the batch axis.
        if axes_of[i] is None:
            axes_of[i] = axes_of[k]
    found = op.on_batch(size, axes_of[:count], [_example(x, axis) for x, axis in zip(arrays, axes[:count])])
    if found is None:
        return None
    whole, differ = found
    differ = differ + [True] * held + [differ[i] for i in tangents.values()]
    front = [_batching.bdim_at_front(x, axis, size) if here else x for x, axis, here in zip(arrays, axes, differ)]
    return whole, front


def _size(arrays, axes):
    return next(x.shape[axis] for x, axis in zip(arrays, axes) if axis is not None)


def _one_by_one(bind, arrays, axes):
    size = _size(arrays, axes)
    # Operands may be arrays of NumPy, which a traced index cannot select from.
    front = [x if axis is None else _batching.bdim_at_front(_jnp.asarray(x), axis, size) for x, axis in zip(arrays, axes)]
    if size == 0:
        like = [_jax.ShapeDtypeStruct(*_example(x, axis)) for x, axis in zip(arrays, axes)]
        results = [_jnp.zeros((0, *x.shape), x.dtype) for x in _jax.eval_shape(bind, *like)]
        return results, [0] * len(results)

    def example(i):
        return bind(*(x if axis is None else x[i] for x, axis in zip(front, axes)))

    results = _jax.lax.map(example, _jnp.arange(size))
    return results, [0] * len(results)


def _batch(arrays, axes, *, text):
    found = _batched(Op.parse(text), _size(arrays, axes), arrays, axes)
    if found is None:
        return _one_by_one(lambda *x: _operation.bind(*x, text=text), arrays, axes)
    op, front = found
    results = _operation.bind(*front, text=op.text)
    return results, [0] * len(results)


def _batch_linear(arrays, axes, *, text, moving, held):
    found = _batched(Op.parse(text), _size(arrays, axes), arrays, axes, moving, held)
    if found is None:
        return _one_by_one(lambda *x: _linear.bind(*x, text=text, moving=moving, held=held), arrays, axes)
    op, front = found
    results = _linear.bind(*front, text=op.text, moving=moving, held=held)
    return results, [0] * len(results)


for _primitive, _implemented, _shapes, _derivative, _examples in (
    (_operation, _implementation, _abstract, _jvp, _batch),
    (_linear, _implementation_linear, _abstract_linear, _jvp_linear, _batch_linear),
):
    _primitive.def_impl(_implemented)
    _primitive.def_abstract_eval(_shapes)
    _ad.primitive_jvps[_primitive] = _derivative
    _batching.primitive_batchers[_primitive] = _examples
    _mlir.register_lowering(_primitive, _mlir.lower_fun(_implemented, multiple_results=True))
_ad.primitive_transposes[_operation] = _transpose_operation
_ad.primitive_transposes[_linear] = _transpose


def _alike(arrays):
    """Casts operands to vary over the same mesh axes of a `shard_map`."""
    arrays = list(arrays)
    varying = [_jax.typeof(x).mat.varying for x in arrays]
    all = frozenset().union(*varying)
    missing = [tuple(all - own) for own in varying]
    return [_jax.lax.pcast(x, axes, to="varying") if axes else x for x, axes in zip(arrays, missing)]


def apply(op, *arrays):
    """Applies an operation; returns JAX arrays."""
    return _operation.bind(*_alike(map(_jnp.asarray, arrays)), text=op.text)
