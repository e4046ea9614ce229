"""Linear algebra on PyTorch tensors; the same functions as in `t4a.torch`."""

from .._functions import submodule as _submodule
from . import _FUNCTIONS

__all__ = list(_submodule(_FUNCTIONS, __name__))
globals().update(_submodule(_FUNCTIONS, __name__))
