"""Runs exported functions by XLA and compares their results with those of the engine.

T4A_STABLEHLO=FOLDER cargo test -p burn-t4a-compile --test compile replay
python transforms/compile/tests/stablehlo.py FOLDER

Needs jax 0.10. The tests write NAME.mlir with its arguments and results, NAME.in0, NAME.in1 and NAME.out, in the dtype of
the first argument.
"""

import pathlib
import sys

import jax
import numpy as np
from jax.extend.backend import get_backend
from jaxlib import _jax, xla_client

jax.config.update("jax_enable_x64", True)


def run(text, arguments):
    backend = get_backend("cpu")
    devices = _jax.DeviceList(tuple(backend.local_devices()[:1]))
    program = backend.compile_and_load(text.encode(), devices, xla_client.CompileOptions())
    results = program.execute_sharded([jax.device_put(x, backend.local_devices()[0]) for x in arguments])
    return [np.asarray(parts[0]) for parts in results.disassemble_into_single_device_arrays()]


def main(folder):
    failed, count = [], 0
    for path in sorted(pathlib.Path(folder).glob("*.mlir")):
        dtype = np.float32 if path.stem.endswith("f32") else np.float64
        arguments = [np.fromfile(path.with_suffix(f".in{k}"), dtype).reshape(4, 6) for k in range(2)]
        want = np.fromfile(path.with_suffix(".out"), np.float64)
        try:
            (got,) = run(path.read_text(), arguments)
        except Exception as error:  # A module that XLA refuses.
            failed.append(f"{path.stem}: {str(error)[:500]}")
            continue
        near = 1e-4 if dtype == np.float32 else 1e-10
        if not np.allclose(got, want, rtol=near, atol=near, equal_nan=True):
            failed.append(f"{path.stem}: differs by {np.nanmax(np.abs(got - want))} at {np.nanargmax(np.abs(got - want))}")
        count += 1
    print(*failed, sep="\n")
    print(f"{count} modules ran, {len(failed)} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
