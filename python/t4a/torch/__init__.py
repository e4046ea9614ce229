"""Functions on PyTorch tensors, with reverse mode, double backward, forward mode and `torch.func` at any order. In
`torch.compile(fullgraph=True)` they are calls of the operator `torch.ops.t4a.run`. Layers are in `t4a.torch.nn`."""

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
# Dynamo records calls of these functions without tracing into them; AOTAutograd traces them to the operator.
globals().update({name: _torch.compiler.allow_in_graph(f) for name, f in _FUNCTIONS.items()})
_torch.compiler.allow_in_graph(apply)
