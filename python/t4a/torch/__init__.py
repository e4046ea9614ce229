"""Functions on PyTorch tensors: reverse mode, double backward, forward mode, `torch.func`, to any order; within
`torch.compile(fullgraph=True)` as calls of the operator `torch.ops.t4a.run`. Layers are in `t4a.torch.nn`."""

import torch as _torch

from .. import _functions
from ._operation import apply, known

_FUNCTIONS = _functions.build(
    apply,
    _torch.as_tensor,
    lambda dtype: str(dtype).removeprefix("torch."),
    lambda x, name: x.to(getattr(_torch, name)),
    known,
    _torch.Tensor.detach,
)
# The compiler records a call of one of them as it is, and finds the operator when it traces what the call does.
globals().update({name: _torch.compiler.allow_in_graph(f) for name, f in _FUNCTIONS.items()})
_torch.compiler.allow_in_graph(apply)
