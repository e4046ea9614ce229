"""Writes src/interface.jl: structs, constants and functions of capi/include/t4a.h. `python interface.py` after a
change of the header; test/test_sources.py compares the two."""

import re
from pathlib import Path

HEADER = Path(__file__).parent.parent / "capi/include/t4a.h"
RESULT = Path(__file__).parent / "src/interface.jl"

STRUCTS = {
    "DLPackVersion": "DLPackVersion", "DLDevice": "DLDevice", "DLDataType": "DLDataType", "DLTensor": "DLTensor",
    "DLManagedTensorVersioned": "ManagedTensor", "t4a_operand": "Operand", "t4a_einsum_options": "EinsumOptions",
    "t4a_meta": "TensorMeta",
}
NUMBERS = {
    "t4a_status": "Int32", "int32_t": "Int32", "int64_t": "Int64", "uint8_t": "UInt8", "uint16_t": "UInt16",
    "uint32_t": "UInt32", "uint64_t": "UInt64", "size_t": "Csize_t", "char": "UInt8", "void": "Cvoid",
}
HANDLES = {"t4a_error", "t4a_tensor", "t4a_op", "t4a_saved"}

# Made by `@cfunction`.
CALLBACKS = {"t4a_progress": "Ptr{Cvoid}", "t4a_values": "Ptr{Cvoid}"}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def type_of(text):
    """The Julia type of a C type."""
    name = re.sub(r"\b(const|struct)\b|\*", " ", text).split()[0]
    pointers = text.count("*")
    if name in HANDLES:
        name, pointers = "Ptr{Cvoid}", pointers - 1
    else:
        name = NUMBERS.get(name) or CALLBACKS.get(name) or STRUCTS[name]
    return "Ptr{" * pointers + name + "}" * pointers


def argument(text):
    """Name and Julia type of a parameter or a field."""
    kind, name, size = re.fullmatch(r"\s*(.*?[\s*])(\w+)(\[\w+\])?\s*", text, flags=re.S).groups()
    kind = type_of(kind)
    return name, f"NTuple{{Int({size[1:-1]}), {kind}}}" if size else kind


def fields(body):
    for text in filter(str.strip, body.split(";")):
        if "(*" in text:
            yield re.search(r"\(\*(\w+)\)", text)[1], "Ptr{Cvoid}"
        else:
            yield argument(text)


def functions(text):
    """Name, result and parameters of every function."""
    for result, name, parameters in re.findall(r"^([\w ]+?\*?)\s*(t4a_\w+)\(([^)]*)\);", text, flags=re.M | re.S):
        given = [] if parameters.strip() == "void" else [argument(p) for p in parameters.split(",")]
        # The library's own strings end with a zero.
        kind = "Cstring" if result.startswith("const char") else type_of(result)
        yield name, kind, given


def interface(header):
    text = without_comments(header)
    lines = ["# Written by interface.py from t4a.h. Not edited by hand.", ""]
    for name, value in re.findall(r"#define (T4A_\w+) (\d+)u?\s*$", text, flags=re.M):
        lines.append(f"const {name} = UInt32({value})")
    for name, value in re.findall(r"(T4A_\w+) = (\d+)", text):
        lines.append(f"const {name} = Int32({value})")
    for body, name in re.findall(r"typedef struct \w*\s*\{(.*?)\}\s*(\w+);", text, flags=re.S):
        lines += ["", f"struct {STRUCTS[name]}"]
        lines += [f"    {field}::{kind}" for field, kind in fields(body)]
        lines.append("end")
    for name, result, given in functions(text):
        names = ", ".join(parameter for parameter, _ in given)
        typed = ", ".join(f"{parameter}::{kind}" for parameter, kind in given)
        lines += ["", f"{name}({names}) =", f"    @ccall libt4a.{name}({typed})::{result}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    RESULT.write_text(interface(HEADER.read_text()))
