"""Writes type stubs of `t4a.numpy`, `t4a.jax` and `t4a.torch`, whose functions are made from one definition:
`python tests/stubs.py` after a change of them; test_stubs.py compares."""

import inspect
from pathlib import Path

from t4a import _functions

FOLDER = Path(__file__).parents[1] / "t4a"
# File, imports, type of arrays, type of what is accepted for one.
FLAVOURS = {
    "numpy/__init__.pyi": ("import numpy\n\nfrom . import crf as crf, linalg as linalg, scan as scan\n", "numpy.ndarray[Any, numpy.dtype[Any]]", "Any"),
    "jax/__init__.pyi": ("import jax\nfrom jax.typing import ArrayLike\n\nfrom . import crf as crf, linalg as linalg, scan as scan\n", "jax.Array", "ArrayLike"),
    "torch/__init__.pyi": ("import torch\n\nfrom . import crf as crf, linalg as linalg, nn as nn, scan as scan\n", "torch.Tensor", "torch.Tensor"),
}
SUBMODULES = ("crf", "linalg", "scan")
PARAMETERS = {
    "subscripts": "str | Sequence[Sequence[int]]",
    "semiring": 'Literal["standard", "max_plus", "min_plus", "max_mul", "min_mul", "max_min", "log_sum_exp"]',
    "memory": "int | None", "optimize": 'bool | Literal["auto", "greedy", "optimal", "annealing"] | Sequence[Any]',
    "k": "int", "n": "int", "axis": "int", "rank": "int", "upper": "bool", "reverse": "bool", "full_matrices": "bool",
    "check_gauge": "bool", "tolerance": "float | None", "broadening": "float | None", "separable": "bool", "rtol": "float | None",
    "max_dim": "int | None", "min_dim": "int", "cutoff": "float", "relative_cutoff": "float", "discarded_weight": "float",
    "relative_discarded_weight": "float", "degeneracy": "float", "min_per_sector": "int",
    "function": 'Literal["exp", "log"] | float', "mode": 'Literal["reduced", "complete"]', "pivoting": 'Literal["partial", "full"]',
    "left": "bool", "ord": 'Literal["fro", "nuc"] | float', "p": 'Literal["fro", "nuc"] | float', "ind": "int", "unitriangular": "bool", "trans": 'Literal["N", "T", "C"]', "adjoint": "bool",
    "side": 'Literal["right", "left"]', "lengths": "Sequence[int] | Any | None",
    "spec": "Spec", "specs": "tuple[Spec, Spec]", "exclusive": "bool", "bias": "Like | None", "axes": "tuple[Sequence[int], Sequence[int]]",
}  # fmt: skip
SPECS = {"graded_contract": 1, "graded_svd": 2, "graded_qr": 2, "graded_lq": 2, "graded_polar": 1, "graded_eigh": 1, "graded_eig": 1}
RESULTS = {
    "graded_svd": 3, "graded_polar": 2, "graded_qr": 2, "graded_lq": 2, "graded_eigh": 2, "graded_eig": 2, "lstm": 2, "svd": 3, "svd_truncated": 4, "qr": 2, "qr_pivoted": 3,
    "lq": 2, "ql": 2, "rq": 2, "lu": 3, "eig": 2, "eigh": 2, "slogdet": 2, "polar": 2, "kalman_filter": 3, "counting_einsum": 2,
}  # fmt: skip
# Results of other types.
OTHERS = {
    "argmax_einsum": "tuple[Array, dict[str | int, Array]]", "lu_factor": "tuple[Array, ...]",
    "graded_svd_truncated": "tuple[Array, Array, Array, float, Spec, Spec]",
}  # fmt: skip


def functions():
    return _functions.build(None, None, None, None)


def stub(name, f):
    """The declaration of a function."""
    parts, keywords = [], False
    for parameter in inspect.signature(f).parameters.values():
        kind = PARAMETERS.get(parameter.name, "Like")
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            parts += [] if any(part.startswith("*") for part in parts) else ["*"]
            keywords = True
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{star}{parameter.name}: {kind}{default}".replace("'", '"'))
    count = RESULTS.get(name, 1)
    kinds = ["Array"] * count + ["Spec"] * SPECS.get(name, 0)
    result = kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"
    result = OTHERS.get(name, result)
    doc = inspect.getdoc(f)
    lines = "\n".join(f"    {line}".rstrip() for line in f'"""{doc}"""'.splitlines())
    return f"def {name}({', '.join(parts)}) -> {result}:\n{lines}"


def text(file):
    imports, array, like = FLAVOURS[file]
    own = {
        "numpy/__init__.pyi": [
            "def apply(op: Op, *arrays: Like) -> list[Array]: ...",
            "def vjp(op: Op, arrays: Sequence[Like], cotangents: Sequence[Like | None]) -> list[Array | None]: ...",
            "def jvp(op: Op, arrays: Sequence[Like], tangents: Sequence[Like | None]) -> tuple[list[Array], list[Array]]: ...",
        ],
        "jax/__init__.pyi": ["def apply(op: Op, *arrays: Like) -> list[Array]: ..."],
        "torch/__init__.pyi": ["def apply(op: Op, *tensors: Like) -> list[Array]: ..."],
    }[file]
    head = f"# Written by tests/stubs.py. Not edited by hand.\nfrom collections.abc import Sequence\nfrom typing import Any, Literal\n\n{imports}\nfrom t4a import Op\nfrom t4a.structured import Spec\n"
    alias = [f"Array = {array}", f"Like = {like}"]
    all = [stub(name, f) for name, f in functions().items()]
    return head + "\n" + "\n".join(alias) + "\n\n" + "\n".join(own) + "\n\n" + "\n\n".join(all) + "\n"


def submodule_text(name):
    """Stub of a submodule, the same for all frameworks."""
    names = "\n".join(f"    {f} as {f}," for f in _functions.submodule(functions(), name))
    return f"# Written by tests/stubs.py. Not edited by hand.\nfrom . import (\n{names}\n)\n"


def texts():
    """Text of every file."""
    found = {FOLDER / file: text(file) for file in FLAVOURS}
    for file in FLAVOURS:
        found |= {(FOLDER / file).parent / f"{name}.pyi": submodule_text(name) for name in SUBMODULES}
    return found


if __name__ == "__main__":
    for path, own in texts().items():
        path.write_text(own)
