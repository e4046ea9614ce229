"""The table of peers: every row of the bench `backend` beside Flex and PyTorch, measured in one run, results compared.

    pip install torch numpy opt_einsum
    cargo bench --bench backend --no-run                     # prints the path of BENCH
    python3 benches/peers/table.py BENCH [--threads 1,2] [--filter TEXT] [--write]

Every row is measured in turns (BurnT4a, its drop-in functions, Flex, PyTorch), for all numbers of threads in the same
minute; the shortest time of each counts. A ratio is the time of the peer divided by ours, of the faster form where the
bench has drop-in functions. Two weighted sums of the results are compared first. Rows below 1.1 are listed with their
bounds, and ratios within the engine with their limits. `--write` writes all tables to book/src/peers.md, and the rows
`README` to README.md.
"""

import argparse
import math
import os
import platform
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import opt_einsum
import torch

from torch_rows import GROUPS, mera

ROOT = Path(__file__).resolve().parents[2]
README = [
    "add 1024²", "exp 1024²", "gelu 1024²", "sum 1024² rows", "softmax 1024² rows", "sort 1024² rows", "matmul 1024",
    "attention 4×8×128×64", "conv2d 8×32×56×56 64 3×3", "MLP train step b64 h512",
]
# Millions of multiply-adds of rows, by the beginnings of their names; compared with the rate of `matmul 1024` in the same run.
MULTIPLY_ADDS = {
    "conv2d 8×32×56×56": 462, "conv2d fwd+bwd": 347, "attention 4": 67,
    "matmul 256": 17, "matmul 512": 134, "matmul 1024": 1074,
}  # fmt: skip
# Bounds of other rows that do not only move memory; the first one that fits counts.
LIMITS = {
    "gelu 1024²": "20 fused multiply-adds, 3 additions and a division per element; error up to 6.5 ulp",
    "sigmoid": "9 fused multiply-adds and a division per element",
    "cat": "memory: reads and writes of 2 MB",
    "slice assign": "memory: a copy of 4 MB, and the slice",
    "cumsum": "memory: 8 MB, row by row",
    "softmax fwd": "memory, and 1 M exponentials",
    "gather": "latency of reads at random places",
    "select bool": "memory: copies of rows of 1 KiB, or reads of single bytes",
    "depthwise conv": "14 M multiply-adds, 0.3 ms from registers, and copies of 6 MB to padded planes",
    "depthwise": "13 MB and 14 M multiply-adds per pass at 56×56, copies to padded planes, sums over lanes",
    "bool and": "memory: 8 MB in two passes",
    "select 4096": "memory: copies of rows of 1 KiB",
    "embedding": "memory: copies of rows of 1 KiB",
    "qr f64 8²": "computed in registers, in PyTorch by LAPACK",
    "qr": "computed by faer, in PyTorch by LAPACK",
    "lu f64 8²": "computed in registers, in PyTorch by LAPACK",
    "lu": "computed by faer, in PyTorch by LAPACK; several threads wait for each other after every panel",
    "svd": "computed by faer, in PyTorch by LAPACK",
    "eigh": "computed by faer, in PyTorch by LAPACK",
    "MLP": "matrix products, small ones of a few microseconds at batch 8",
    "layer norm fwd+bwd": "memory: four passes over 4 MB",
    "sum 4×4": "cost of a call: an allocation and dynamic dispatch",
}
# Ratios within the engine: rows whose first form is compared with another one of the engine, the wanted maximum, and what
# it is bound by.
WITHIN = {
    "graded U(1)² 64: cold plans": ("the same with cached plans", 3.0, "pairs of blocks are matched, their products are small"),
    "graded U(1)² 256: cold plans": ("the same with cached plans", 3.0, "as above, with longer products"),
    "graded U(1) 64: forward on a tape, kept": ("without a tape", 1.3, "memory of results that a tape keeps is not reused"),
    "graded U(1) 64: forward, backward": (
        "forward without a tape", 3.2, "three contractions, of the result and two cotangents, whose blocks are permuted"
    ),
}
CHAIN, PLAN = "ln Z of chains 32×128, 64 tags", "plan of MERA of 26 tensors"
# Rows whose peer is a Rust crate instead of Flex; PyTorch has no such operation.
OTHERS = ["max-plus with argmax 512, tropical-gemm"]
# Rows with a smaller ratio are listed with their bounds.
NEAR = 1.095
# Duration of a batch in seconds: the clock then does not count.
BATCH = 20e-6


class Server:
    """A process of the bench that measures rows on request."""

    def __init__(self, binary, threads):
        variables = {"T4A_NUM_THREADS": str(threads), "RAYON_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            [binary, "--threads", str(threads), "--serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables},
        )

    def measure(self, name, seconds):
        """Seconds of BurnT4a, its drop-in functions and Flex, two sums of the result, and bytes moved."""
        self.process.stdin.write(f"{name}\t{seconds}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer or answer.startswith("error"):
            raise SystemExit(f"{name}: {answer.strip() or 'the bench ended'}")
        return np.array([float(word) for word in answer.split()])


def weighted(result):
    """Σ yᵢ·wᵢ and Σ |yᵢ|, as the bench computes them."""
    y = result.detach().double().flatten().numpy()
    word = (np.arange(y.size, dtype=np.uint64) * 2654435761 + 7 * 974711) & 0xFFFFFFFF
    return np.array([(y * (word / 2.0**31 - 1.0)).sum(), np.abs(y).sum()])


def check(name, found, sums):
    """Compares the sums of PyTorch's result with those of the bench."""
    tolerance = 1e-4 * found[1] + 1e-6
    # Random numbers are compared by their mean size; the signs of the rows of R are not unique.
    random = name.startswith(("normal", "uniform"))
    if random:
        tolerance = 1e-2 * found[1]
    first = 1 if random or name.startswith("qr") else 0
    error = np.abs(found - sums)[first:].max()
    if not error <= tolerance:
        raise SystemExit(f"{name}: sums {sums} of the bench, {found} of PyTorch")


def batch(run, calls):
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def shortest(run, seconds):
    calls = math.ceil(BATCH / batch(run, 2))
    start, best = time.perf_counter(), math.inf
    while time.perf_counter() - start < seconds:
        best = min(best, batch(run, calls))
    return best


def measured(name, run, servers, args):
    """Per number of threads: seconds of our faster form, and ratios to Flex and PyTorch; and the bytes of a call."""
    # The first result: steps of training change the next ones.
    found = weighted(run()) if run else None
    best = {threads: np.full(4, math.nan) for threads in servers}
    for turn in range(args.rounds):
        for threads, server in servers.items():
            torch.set_num_threads(threads)
            answer = server.measure(name, args.seconds)
            if run and turn == 0:
                check(name, found, answer[3:5])
            peer = shortest(run, args.seconds) if run else math.nan
            best[threads] = np.fmin(best[threads], [*answer[:3], peer])
    ours = {threads: np.fmin(times[0], times[1]) for threads, times in best.items()}
    return {threads: [ours[threads], *best[threads][2:] / ours[threads]] for threads in servers}, answer[5]


def copy_rate(size):
    """Bytes read and written per second by a copy on one thread that moves as many bytes."""
    torch.set_num_threads(1)
    x = torch.ones(int(size) // 8)
    y = torch.empty_like(x)
    return size / shortest(lambda: y.copy_(x), 0.2)


def machine(threads, load):
    """CPU, vector instructions, versions and load by other programs, in words."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    found = re.search(r"model name\s*: (.*)", text)
    fields = dict(re.findall(r"^(cpu family|model)\s*: (\d+)$", text, re.M))
    sets = [name for name in ("avx512f", "avx2", "asimd") if re.search(rf"\b{name}\b", text)]
    cpu = found.group(1) if found else platform.processor() or platform.machine()
    family = f" (family {fields.get('cpu family', '?')}, model {fields.get('model', '?')})"
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    flex = re.search(r'name = "burn-flex"\nversion = "([^"]*)"', lock).group(1)
    rustc = subprocess.run(["rustc", "-V"], capture_output=True, text=True).stdout.split()
    versions = f"rustc {rustc[1] if rustc else '?'}, burn-flex {flex}, PyTorch {torch.__version__}"
    return (
        f"{cpu}{family if fields else ''}, {os.cpu_count()} CPUs, {', '.join(sets[:1])};\n"
        f"{versions}; threads {', '.join(map(str, threads))}; load average by other programs {load:.1f}."
    )


def microseconds(seconds):
    value = 1e6 * seconds
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}".replace(",", " ")


def ratio(value):
    return f"{value:.2f}" if math.isfinite(value) else ""


def mean(values):
    logs = [math.log(value) for value in values if math.isfinite(value)]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def markdown(rows, threads, shown=None):
    """The rows `shown`, or all, and the geometric mean of all."""
    titles = [title for n in threads for title in [f"µs, {n} thread{'s' * (n > 1)}", "Flex", "PyTorch"]]
    lines = ["| | " + " | ".join(titles) + " |", "|---|" + "---:|" * len(titles)]
    for name in shown or rows:
        if name in rows:
            cells = [cell for n in threads for cell in (microseconds(rows[name][n][0]), *map(ratio, rows[name][n][1:]))]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    # The first peer of `OTHERS` is not Flex.
    compared = [columns for name, columns in rows.items() if name not in OTHERS]
    cells = [cell for n in threads for cell in ("", *(ratio(mean(c[n][i] for c in compared)) for i in (1, 2)))]
    return [*lines, f"| geometric mean of all {len(rows)} rows | " + " | ".join(cells) + " |"]


def limited(rows, sizes, threads):
    """Rows in which a peer is faster or less than a tenth slower, with the bound."""
    lines = []
    for name, columns in rows.items():
        pairs = [(n, peer, columns[n][i]) for n in threads for i, peer in ((1, "Flex"), (2, "PyTorch"))]
        low = [f"{peer} {value:.2f} ({n})" for n, peer, value in pairs if value < NEAR]
        if not low:
            continue
        reason = next((why for part, why in LIMITS.items() if name.startswith(part)), "not known")
        count = next((count for part, count in MULTIPLY_ADDS.items() if name.startswith(part)), None)
        if count:
            reason = f"{count} M multiply-adds"
            if "matmul 1024" in rows:
                least = 1e3 * rows["matmul 1024"][threads[0]][0] * count / MULTIPLY_ADDS["matmul 1024"]
                reason += f", {least:.1f} ms on one thread at the rate of `matmul 1024`"
        if sizes[name] > 0:
            rate, copy = sizes[name] / columns[threads[0]][0], copy_rate(sizes[name])
            reason = f"memory: {rate / 1e9:.0f} GB/s on one thread, a plain copy {copy / 1e9:.0f}"
        lines.append(f"| {name} | {', '.join(low)} | {reason} |")
    return ["| row | peer (threads) | bound |", "|---|---|---|", *lines] if lines else ["None."]


def within(rows, threads, plan):
    """Ratios of times within the engine, with their limits."""
    lines = ["| | divided by | ratio | wanted | bound |", "|---|---|---:|---:|---|"]
    for name, columns in rows.items():
        other, most, bound = WITHIN[name]
        lines.append(f"| {name} | {other} | {1 / columns[threads[0]][1]:.2f} | ≤ {most} | {bound} |")
    return [*lines, *plan]


def measure_plan(server):
    """Multiply-adds of the plan of the large network divided by those of opt_einsum's."""
    subscripts, shapes = mera()
    _, info = opt_einsum.contract_path(subscripts, *shapes, shapes=True, optimize="auto-hq")
    theirs, ours = float(info.opt_cost) / 2, server.measure(PLAN, 0)[4]
    return f"| {PLAN}: {ours:.2e} multiply-adds | opt_einsum `auto-hq` {theirs:.2e} | {ours / theirs:.2f} | ≤ 1.0 | |"


def write(text, short):
    """book/src/peers.md, and the table between two comments of README.md."""
    (ROOT / "book/src/peers.md").write_text(text, encoding="utf-8")
    readme = ROOT / "README.md"
    begin, end = "<!-- begin of benches/peers/table.py -->\n", "<!-- end of benches/peers/table.py -->"
    before, _, rest = readme.read_text(encoding="utf-8").partition(begin)
    readme.write_text(before + begin + short + rest[rest.index(end) :], encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--filter", default="", help="parts of names, separated by semicolons")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each measurement")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    threads = [int(n) for n in args.threads.split(",")]
    load = os.getloadavg()[1]
    listed = subprocess.run([args.bench, "--list"], capture_output=True, text=True, check=True)
    left = set(listed.stdout.splitlines()) - {PLAN}
    servers = {n: Server(args.bench, n) for n in threads}
    rows, inner, sizes = {}, {}, {}
    for group in [*GROUPS, lambda: dict.fromkeys(OTHERS), lambda: dict.fromkeys(WITHIN)]:
        for name, run in group().items():
            left.remove(name)
            if any(part in name for part in args.filter.split(";")):
                columns, sizes[name] = measured(name, run, servers, args)
                (inner if name in WITHIN else rows)[name] = columns
                ratios = ["".join(f"{x:7.2f}" for x in columns[n][1:]) for n in threads]
                cells = [f"{microseconds(columns[n][0]):>9}{x}" for n, x in zip(threads, ratios)]
                print(f"{name:<40} {'  '.join(cells)}", flush=True)
    if left:
        raise SystemExit(f"rows without PyTorch: {', '.join(sorted(left))}")
    plan = [measure_plan(servers[threads[0]])] if PLAN.startswith(args.filter) else []
    if CHAIN in rows and len(threads) > 1:
        one, more = (rows[CHAIN][n][0] for n in (threads[0], threads[-1]))
        plan.append(f"| {CHAIN}: one thread | {threads[-1]} threads | {one / more:.2f} | ≥ 1.6 | |")
    where = machine(threads, load)
    text = f"""# Table of peers

Generated by `benches/peers/table.py`: shortest times of interleaved repetitions, `f32` if no other type is named. A ratio
is the time of the peer divided by that of BurnT4a, of the faster form where there are drop-in functions
([performance guide](performance.md#fused-layers-for-training)). Flex has no factorisations and no einsum. Other programs on
the machine (see the load average) slow down computations on several threads, and peers that hand work to another thread.

{where}

""" + "\n".join([
        *markdown(rows, threads), "", "## Rows in which a peer is faster or close", "", *limited(rows, sizes, threads), "",
        "## Ratios within the engine", "", *within(inner, threads, plan), "",
    ])
    print(text)
    if args.write:
        write(text, "\n".join([where, "", *markdown(rows, threads, README), "", ""]))


if __name__ == "__main__":
    main()
