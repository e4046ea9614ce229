"""Sweeps of the bench `networks` with TeNPy: seconds of a two-site sweep to the right and back.

    pip install physics-tenpy
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python3 networks/benches/peers/tenpy_dmrg.py [heisenberg|hubbard] D SWEEPS [combine|separate]

Four Lanczos applications per pair of sites, no mixer, f64; the best of the given number of sweeps after the bond dimension
is reached and one more sweep, which is the cold one of the bench. `combine` fuses the legs of both sites, `separate` does
not; without the argument both ways are measured. The last column is the peak memory of the process.
"""

import resource
import sys
import time
import warnings

import tenpy
from tenpy.algorithms.dmrg import TwoSiteDMRGEngine
from tenpy.models.hubbard import FermiHubbardModel
from tenpy.models.spins import SpinModel
from tenpy.networks.mps import MPS
from tenpy.tools import optimization

warnings.filterwarnings("ignore")


def engine(name, combine):
    if name == "heisenberg":
        n = 100
        model = SpinModel({"L": n, "S": 0.5, "Jx": 1, "Jy": 1, "Jz": 1, "conserve": "Sz", "bc_MPS": "finite"})
    else:
        n = 50
        parameters = {"L": n, "t": 1, "U": 4, "cons_N": "N", "cons_Sz": "Sz", "bc_MPS": "finite"}
        model = FermiHubbardModel(parameters)
    state = MPS.from_product_state(model.lat.mps_sites(), ["up", "down"] * (n // 2), bc="finite")
    options = {
        "mixer": None,
        "combine": combine,
        "diag_method": "lanczos",
        "lanczos_params": {"N_min": 4, "N_max": 4},
        "trunc_params": {"chi_max": 16, "svd_min": None, "trunc_cut": None},
    }
    return TwoSiteDMRGEngine(state, model, options)


def row(name, dim, combine, sweeps):
    search = engine(name, combine)
    for most in [16, 64] + [dim] * 6:
        search.trunc_params["chi_max"] = most
        search.sweep()
        if max(search.psi.chi) >= dim:
            break
    # The number of sweeps is that of the bench, so that energies can be compared.
    search.sweep()
    seconds = []
    for _ in range(sweeps):
        begin = time.perf_counter()
        search.sweep()
        seconds.append(time.perf_counter() - begin)
    energy = search.update_stats["E_total"][-1]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:<12} D {max(search.psi.chi):>4}  combine {combine!s:<5}  {min(seconds):>8.3f} s  "
        f"energy {energy:.10f}  {memory:.0f} MiB",
        flush=True,
    )


if __name__ == "__main__":
    print("tenpy", tenpy.__version__, "compiled", optimization.have_cython_functions)
    name, dim, sweeps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ways = {"combine": [True], "separate": [False]}.get(sys.argv[-1], [False, True])
    for combine in ways:
        row(name, dim, combine, sweeps)
