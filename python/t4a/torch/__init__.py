"""Functions on PyTorch tensors, with reverse mode, double backward, forward mode and `torch.func` at any order. In
`torch.compile(fullgraph=True)` they are calls of the operator `torch.ops.t4a.run`. Layers are in `t4a.torch.nn`."""

import torch as _torch

from .. import _functions
from ._graded import apply_traced, planned
from ._operation import apply, values as _values

_FUNCTIONS = _functions.build(
    apply_traced,
    lambda x: x if isinstance(x, _torch.Tensor) else _torch.as_tensor(x),
    lambda dtype: str(dtype).removeprefix("torch."),
    lambda x, name: x.to(getattr(_torch, name)),
    kind=1,
    detach=_torch.Tensor.detach,
    planned=planned,
    arrays=_torch,
    values=_values,
    recorded=_torch.compiler.allow_in_graph,
    of_number=lambda x, name, like: _torch.as_tensor(x, dtype=getattr(_torch, name), device=like.device),
)
# Dynamo records calls of these functions without tracing into them; AOTAutograd traces them to the operator. Functions of specs
# and dictionaries, which are no values of a graph, are traced.
_recorded = lambda name, f: f if name.startswith("graded_") or name == "argmax_einsum" else _torch.compiler.allow_in_graph(f)
_FUNCTIONS = {name: _recorded(name, f) for name, f in _FUNCTIONS.items()}
globals().update(_FUNCTIONS)
_functions.published(_FUNCTIONS, __name__)
_torch.compiler.allow_in_graph(apply)

from . import crf, linalg, scan  # noqa: E402
