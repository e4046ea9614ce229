"""Sources of the Julia package, without Julia: they parse, and the interface is that of the header."""

import inspect
import json
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
    assert len(list(functions(without_comments(header)))) == 33
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


TEXT = (FOLDER / "src/functions.jl").read_text()
C_PROGRAM = FOLDER.parent / "capi/tests/c/julia.c"


def choices():
    """Text of the values of keyword arguments, the default first."""
    body = TEXT[TEXT.index("const CHOICES") :].split("\n)\n")[0]
    return {
        name: [json.loads(f'"{text}"') for text in re.findall(r'=> "((?:[^"\\]|\\.)*)"', pairs)]
        for name, pairs in re.findall(r"^    :(\w+) => \[(.*)\],$", body, flags=re.M)
    }


def rows():
    """Name, number of arrays, text of the operation and forms of results of each function of matrices."""
    ties = dict(re.findall(r'^const (TIES\w*) = """(.*)"""$', TEXT, flags=re.M))
    found = re.findall(r'MatrixFunction\(:(\w+), (\d),\s+"""(.*?)""", \(([\w, ]*)\), ', TEXT, flags=re.S)
    assert len(found) == len(re.findall(r"MatrixFunction\(:", TEXT)) > 25
    for name, arrays, text, forms in found:
        text = re.sub(r"\$(\w+)", lambda match: ties[match[1]], text)
        yield name, int(arrays), text, [form.strip() for form in forms.split(",") if form.strip()]


def texts(text):
    """The text with defaults, and with every other value of each keyword argument."""
    known = choices()
    values = {name: known.get(name, ["null"]) for name in re.findall(r"<(\w+)>", text)}
    values |= {name: own for name, own in {"rank": ["1"], "f": ['"exp"', '"ln"', '{"pow":2.0}']}.items() if name in values}
    filled = lambda chosen: re.sub(r"<(\w+)>", lambda match: chosen[match[1]], text)
    first = {name: own[0] for name, own in values.items()}
    numbers = {"rtol": "0.1", "tolerance": "0.1", "broadening": "0.1"}
    others = [(name, value) for name, own in values.items() for value in own[1:]]
    others += [(name, numbers[name]) for name in values if name in numbers]
    return [filled(first), *(filled(first | {name: value}) for name, value in others)]


ROWS = list(rows())


def test_the_table_has_every_operation_of_matrices():
    source = (FOLDER.parent / "linalg/src/table/mod.rs").read_text()
    names = re.findall(r"^    (\w+)\(crate::", source[source.rindex("operations! {") :].split("\n}\n")[0], flags=re.M)
    known = {re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in names}
    assert {next(iter(json.loads(texts(text)[0]))) for _, _, text, _ in ROWS} | {"cholesky"} == known


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_operations_are_those_of_the_function_in_python(row):
    np, tn = pytest.importorskip("numpy"), pytest.importorskip("t4a.numpy")
    from t4a import Op

    name, arrays, text, forms = row
    rng = np.random.default_rng(6)
    square = rng.normal(size=(arrays, 2, 3, 3))
    operands = [x @ x.swapaxes(-1, -2) + np.eye(3) for x in square]
    function = getattr(tn, name)
    own, further = inspect.signature(function).parameters, {"rank": 1, "f": "exp"}
    placeholders = re.findall(r"<(\w+)>", text)
    assert {"function" if x == "f" else x for x in placeholders} <= set(own)
    want = function(*operands, *(further[x] for x in placeholders if x in further))
    want = want if isinstance(want, tuple) else (want,)
    for i, own in enumerate(texts(text)):
        for is_complex in (False, True):
            op = Op.of({"linalg": {"op": json.loads(own), "complex": is_complex}})
            found = tn.apply(op, *(x.astype(complex) if is_complex else x for x in operands))
            shapes = {"whole": (2, 3, 3), "row": (2, 1, 3), "number": (2, 1, 1), "permutation": (2, 3)}
            assert [x.shape for x in found] == [shapes[form] for form in forms[: len(found)]]
            assert all((x.dtype.kind == "i") == (form == "permutation") for x, form in zip(found, forms))
            if i == 0 and not is_complex:
                assert len(found) == len(want)
                for x, y in zip(found, want):
                    np.testing.assert_array_equal(x.reshape(y.shape), y)


def test_the_program_in_c_runs_the_operations_of_the_table():
    strings = re.findall(r'^    MATRICES\("((?:[^"\\]|\\.)*)", (\d)\)', C_PROGRAM.read_text(), flags=re.M)
    found = [(json.loads(f'"{text}"'), int(arrays)) for text, arrays in strings]
    assert found == [(texts(text)[0], arrays) for _, arrays, text, _ in ROWS]


def test_functions_are_those_of_python():
    tn = pytest.importorskip("t4a.numpy")
    names = set(re.findall(r"^(?:function )?(\w+)\([^)]*::(?:AbstractArray|AbstractMatrix|Vararg)[^)]*\)", TEXT, flags=re.M))
    names |= {name for name, *_ in ROWS} | set(re.findall(r'^    \(:(\w+), "', TEXT, flags=re.M))
    assert len(names) > 50 and {name for name in names if not hasattr(tn, name)} == set()
    mentioned = set(re.findall(r"`(?:T4A\.)?(\w+)`", (FOLDER / "README.md").read_text()))
    assert names <= mentioned, names - mentioned
