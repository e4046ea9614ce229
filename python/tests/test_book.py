"""The first program of the book's chapter on Python prints the output that follows it."""

import contextlib
import io
import pathlib
import re

CHAPTER = pathlib.Path(__file__).parents[2] / "book/src/languages.md"


def test_program_prints_its_output():
    found = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", CHAPTER.read_text("utf-8"), re.DOTALL)
    program, output = found.groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    assert printed.getvalue() == output
