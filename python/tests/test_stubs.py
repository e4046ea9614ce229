import ast
import inspect

import numpy as np
import stubs

import t4a.numpy as tn
from t4a import _functions


def test_they_are_those_of_the_functions():
    for path, text in stubs.texts().items():
        assert path.read_text() == text, "run python/tests/stubs.py"
    for file in stubs.FLAVOURS:
        text = (stubs.FOLDER / file).read_text()
        names = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        assert names >= set(stubs.functions()) and "apply" in names
    assert (stubs.FOLDER / "py.typed").exists()


def test_they_say_how_many_results_there_are():
    x = np.eye(2) + 1
    one = inspect.Parameter.empty
    required = lambda f: [p for p in inspect.signature(f).parameters.values() if p.default is one]
    linalg = _functions.submodule(stubs.functions(), "linalg")
    several = {name for name, f in linalg.items() if len(required(f)) == 1} - stubs.OTHERS.keys() - {"tensorinv"}
    assert {"svd", "lu", "inv", "qr_pivoted"} <= several
    for name in several:
        found = getattr(tn, name)(x)
        assert stubs.RESULTS.get(name, 1) == (len(found) if isinstance(found, tuple) else 1), name


