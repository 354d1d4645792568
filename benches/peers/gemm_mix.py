"""The dense products of a superblock with cuBLAS: all of one size as one batch, as `scripts/nemes2014.rhai` saved their sizes.
Prints Gflop/s of the whole mix, to be held against what that script prints.

    python3 benches/peers/gemm_mix.py nemes2014_heisenberg_products.csv
"""
import csv
import sys

import torch

from card import timed

torch.set_grad_enabled(False)
# Operands of one batch at most, so that large mixes fit.
MOST = 4 << 30


def mix(path):
    seconds = flops = 0.0
    with open(path) as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            m, n, k, count = (int(float(row[name])) for name in ("m", "n", "k", "count"))
            batch = max(1, min(count, MOST // (8 * (m * k + k * n + m * n))))
            a, b, c = (torch.rand(batch, *shape, device="cuda", dtype=torch.float64) for shape in ((m, k), (k, n), (m, n)))
            seconds += 1e-3 * timed(lambda: torch.bmm(a, b, out=c)) * count / batch
            flops += 2.0 * m * n * k * count
    return flops, seconds


for path in sys.argv[1:]:
    flops, seconds = mix(path)
    print(f"{path}: {flops / 1e9:.1f} Gflop, {seconds * 1e3:.3f} ms, {flops / seconds / 1e9:.0f} Gflop/s")
