"""Sources of the Julia package, without Julia: they parse, and the interface is that of the header."""

import re
import sys
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_julia

FOLDER = Path(__file__).parent.parent
sys.path.insert(0, str(FOLDER))
from interface import HEADER, RESULT, argument, fields, functions, interface, type_of, without_comments

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_julia.language()))
SOURCES = sorted(FOLDER.rglob("*.jl"))


def nodes(node):
    yield node
    for child in node.children:
        yield from nodes(child)


def surplus(node):
    """True for an unmatched `end`, which the grammar parses as a name; that is valid within brackets only."""
    if node.type != "identifier" or node.text != b"end":
        return False
    while node is not None and node.type != "index_expression":
        node = node.parent
    return node is None


def faults(text):
    """Lines that do not parse."""
    tree = PARSER.parse(text.encode())
    return [
        node.start_point.row + 1
        for node in nodes(tree.root_node)
        if node.is_error or node.is_missing or surplus(node)
    ]


@pytest.mark.parametrize("path", SOURCES, ids=[path.name for path in SOURCES])
def test_it_parses(path):
    assert faults(path.read_text()) == []


def test_faults_are_found():
    text = (FOLDER / "src/rules.jl").read_text()
    for broken in (text + "\nend\n", text.replace("(", "", 1), text.replace("\nend\n", "\n", 1)):
        assert faults(broken)


def test_the_interface_is_that_of_the_header():
    header = HEADER.read_text()
    assert RESULT.read_text() == interface(header), "run julia/interface.py"
    assert len(list(functions(without_comments(header)))) == 32
    # Types written by hand, so that the translation is not compared with itself.
    assert [type_of(x) for x in ("const t4a_op *", "t4a_op **", "const uint8_t *", "DLTensor *const *", "size_t")] == [
        "Ptr{Cvoid}", "Ptr{Ptr{Cvoid}}", "Ptr{UInt8}", "Ptr{Ptr{DLTensor}}", "Csize_t",
    ]
    assert argument("int64_t shape[T4A_MAX_RANK]") == ("shape", "NTuple{Int(T4A_MAX_RANK), Int64}")
    assert list(fields("size_t size; void (*deleter)(struct DLTensor *self)")) == [
        ("size", "Csize_t"), ("deleter", "Ptr{Cvoid}"),
    ]


def test_calls_have_as_many_arguments_as_the_functions():
    declared = {name: len(given) for name, _, given in functions(without_comments(HEADER.read_text()))}
    seen = set()
    for path in SOURCES:
        if path == RESULT:
            continue
        tree = PARSER.parse(path.read_bytes())
        for node in nodes(tree.root_node):
            if node.type != "call_expression":
                continue
            name = node.child(0).text.decode()
            arguments = node.children[1].named_children
            texts = [child.text.decode() for child in arguments]
            if name in declared:
                seen.add(name)
                assert len(arguments) == declared[name], (path.name, name)
            # `call` adds an argument for the error, `made` one for the result and one for the error.
            elif name in ("call", "made") and texts and texts[0] in declared:
                seen.add(texts[0])
                assert len(arguments) - 1 + {"call": 1, "made": 2}[name] == declared[texts[0]], (path.name, texts)
    assert {"t4a_run_into", "t4a_op_vjp", "t4a_op_jvp", "t4a_op_einsum", "t4a_op_parse", "t4a_op_results", "t4a_op_free"} <= seen


def test_exports_exist():
    text = "".join(path.read_text() for path in SOURCES)
    exported = re.search(r"^export (.*)$", text, flags=re.M)[1].split(", ")
    for name in exported:
        assert re.search(rf"^(function |mutable struct |struct |){name}\b", text, flags=re.M), name
