import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
NEEDS = {"crf_tagger": "torch", "shortest_paths": "jax", "symmetric_tensors": "numpy"}


@pytest.mark.parametrize("name", NEEDS)
def test_it_runs(name, capsys):
    # They assert their results.
    pytest.importorskip(NEEDS[name])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert len(capsys.readouterr().out) > 200


def test_all_are_here():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(NEEDS)
