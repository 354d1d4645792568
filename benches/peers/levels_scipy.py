"""Ten levels nearest to 0.4 of a disordered square lattice, by SciPy's shift-invert: python3 levels_scipy.py SIDE"""

import resource
import sys

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

side = int(sys.argv[1])
site = np.arange(side * side)
x, y = site % side, site // side
here = np.concatenate([site, site])
there = np.concatenate([(x + 1) % side + side * y, x + side * ((y + 1) % side)])
hops = sp.coo_matrix((-np.ones(len(here)), (here, there)), shape=2 * (side * side,))
energies = np.random.default_rng(2).uniform(-0.5, 0.5, side * side)
h = (hops + hops.T + sp.diags(energies)).tocsc()


def processor_time():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


began = processor_time()
values, vectors = eigsh(h, k=10, sigma=0.4)
took = processor_time() - began
residual = np.linalg.norm(h @ vectors - vectors * values, axis=0).max()
print(f"{len(site)} rows: {took:.2f} s of the processor, residual {residual:.1e}")
