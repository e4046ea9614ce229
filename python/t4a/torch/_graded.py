"""Functions of specs within `torch.compile`: Dynamo traces them and evaluates plans as constants. An operation is its text there,
and a spec of a result is an attribute of a class, which Dynamo guards as it guards other globals."""

import torch

from ._operation import apply


class _Specs:
    """Specs of results of traced functions."""


_names = {}


def _name(spec):
    """Name of the attribute of `_Specs` that holds the spec."""
    if spec not in _names:
        name = f"spec{len(_names)}"
        setattr(_Specs, name, spec)
        _names[spec] = name
    return _names[spec]


def apply_traced(op, *tensors):
    """`apply`, which Dynamo can trace."""
    if torch.compiler.is_dynamo_compiling():
        return torch.ops.t4a.run(op, tensors)
    return apply(op, *tensors)


def planned(f):
    """A function from specs to an operation and specs, which is a constant where Dynamo traces."""

    def constants(*args):
        op, *specs = f(*args)
        return op.text, *map(_name, specs)

    constants = torch.compiler.assume_constant_result(constants)

    def of(*args):
        if not torch.compiler.is_dynamo_compiling():
            return f(*args)
        text, *names = constants(*args)
        return text, *[getattr(_Specs, name) for name in names]

    return of
