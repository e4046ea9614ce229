import ast

import numpy as np
import stubs

import t4a.numpy as tn


def test_they_are_those_of_the_functions():
    for file in stubs.FLAVOURS:
        text = (stubs.FOLDER / file).read_text()
        assert text == stubs.text(file), "run python/tests/stubs.py"
        names = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        assert names >= set(stubs.functions()) and "apply" in names
    assert (stubs.FOLDER / "py.typed").exists()


def test_they_say_how_many_results_there_are():
    x = np.eye(2) + 1
    several = {name for name in stubs.functions() if name in ("svd", "qr", "lq", "eigh", "eig", "slogdet", "polar", "inv", "expm")}
    for name in several:
        found = getattr(tn, name)(x)
        assert stubs.RESULTS.get(name, 1) == (len(found) if isinstance(found, tuple) else 1), name


