"""Table of two-site DMRG sweeps beside TeNPy: seconds per sweep, speed-up by two threads, peak memory.

    pip install physics-tenpy
    cargo build --release -p t4a-networks --bench networks
    python3 networks/benches/peers/table.py target/release/deps/networks-HASH [ROW ...]

A row is `heisenberg:64`, `heisenberg:256`, `heisenberg:512` or `hubbard:256`; the default is all of them. Every measurement is
a process of its own, and both libraries run in turns on the same machine. A process grows the state to the bond dimension
before it measures; a time is the faster of two sweeps to the right and back. TeNPy's is the better one of its two ways to
combine legs. Both libraries make the same number of sweeps with the same bond dimensions from the same product state, with
four applications of the effective operator per pair of sites. The share of plans is that of a cold sweep. Their energies differ by less than the last sweep gained, which is printed beside the difference.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROWS = ["heisenberg:64", "heisenberg:256", "heisenberg:512", "hubbard:256"]
TENPY = Path(__file__).with_name("tenpy_dmrg.py")


def run(command, threads):
    """Lines of a command and its peak memory in MiB."""
    variables = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]
    environment = os.environ | {name: str(threads) for name in variables}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: status {status}")
    return text, usage.ru_maxrss / 1024


def ours(bench, name, dim, threads):
    text, memory = run([bench, name, dim, str(threads), "sweep"], threads)
    seconds = float(re.search(r"sweep +([\d.]+)", text)[1])
    plans = float(re.search(r"plans +(-?[\d.]+)", run([bench, name, dim, str(threads), "plans"], threads)[0])[1])
    energy = float(re.search(r"energy +(-[\d.]+)", text)[1])
    gained = float(re.search(r"gained +(\S+)", text)[1])
    return seconds, energy, memory, plans, gained


def tenpy(name, dim, threads):
    measured = []
    for way in ["combine", "separate"]:
        text, memory = run([sys.executable, str(TENPY), name, dim, "2", way], threads)
        seconds = float(re.search(r"([\d.]+) s", text)[1])
        energy = float(re.search(r"energy (-[\d.]+)", text)[1])
        measured.append((seconds, energy, memory))
    return min(measured)


def main(bench, rows):
    import tenpy as library
    from tenpy.tools import optimization

    compiled = "compiled" if optimization.have_cython_functions else "not compiled"
    print(f"TeNPy {library.__version__} ({compiled}); s per sweep; ratio = TeNPy / T4A; MiB at peak\n")
    head = ["row", "threads", "T4A", "TeNPy", "ratio", "two threads", "plans", "MiB T4A", "MiB TeNPy"]
    head += ["energies differ by", "last sweep gained"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for row in rows:
        name, dim = row.split(":")
        single = None
        for threads in [1, 2]:
            own, energy, memory, plans, gained = ours(bench, name, dim, threads)
            peer, other, peer_memory = tenpy(name, dim, threads)
            single = single or own
            cells = [
                row,
                str(threads),
                f"{own:.3f}",
                f"{peer:.3f}",
                f"{peer / own:.2f}",
                f"{single / own:.2f}",
                f"{plans:.3f}",
                f"{memory:.0f}",
                f"{peer_memory:.0f}",
                f"{abs(energy - other):.1e}",
                f"{gained:.1e}",
            ]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or ROWS)
