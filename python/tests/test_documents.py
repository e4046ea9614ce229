"""Every Python block of README, the book and python/README.md runs alone, and prints the text block that follows it."""

import ast
import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted(ROOT.glob("book/src/*.md")), ROOT / "python/README.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
# Blocks that import one of these run where it is installed.
FRAMEWORKS = {"jax", "torch"}


def blocks(text):
    """Triples of the line of a block, its program, and the text block that directly follows it, or None."""
    return [(text.count("\n", 0, found.start()) + 1, *found.groups()) for found in BLOCK.finditer(text)]


def frameworks(program):
    imports = [node for node in ast.walk(ast.parse(program)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = [name.name for node in imports for name in node.names] + [getattr(node, "module", None) or "" for node in imports]
    return FRAMEWORKS & {part for name in names for part in name.split(".")}


def lines(text):
    return [line.rstrip() for line in text.rstrip().splitlines()]


ALL = [
    pytest.param(program, output, id=f"{path.relative_to(ROOT)}:{line}")
    for path in DOCUMENTS
    for line, program, output in blocks(path.read_text("utf-8"))
]


@pytest.mark.parametrize("program, output", ALL)
def test_block(program, output):
    for name in frameworks(program):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    # A process of its own, as after pasting: settings of other tests, such as JAX's 64 bits, are not there.
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    if output is not None:
        assert lines(run.stdout) == lines(output), f"printed is\n{run.stdout}"


def test_blocks_of_all_frameworks_are_found():
    found = [frameworks(block.values[0]) for block in ALL]
    assert all(needs in found for needs in [set(), {"jax"}, {"torch"}])
    assert any(block.values[1] for block in ALL)


def test_blocks_are_read():
    text = "a\n```python\nimport t4a.jax as tj\n```\n\n```text\n1\n```\n```python\nfrom t4a import torch\n```\nb\n```text\n2\n```\n"
    assert blocks(text) == [(2, "import t4a.jax as tj\n", "1\n"), (9, "from t4a import torch\n", None)]
    assert [frameworks(program) for _, program, _ in blocks(text)] == [{"jax"}, {"torch"}]
    assert frameworks("import numpy as np, t4a.numpy as tn") == set()
