"""Ground state of a Heisenberg ring of L sites (a multiple of 4) with all symmetries by QuSpin, basis and matrix included.

    OMP_NUM_THREADS=1 python benches/peers/sectors_quspin.py 20
"""
import sys
import time

import numpy as np
from quspin.basis import spin_basis_1d
from quspin.operators import hamiltonian

L = int(sys.argv[1])
for run in range(2):
    began = time.time()
    basis = spin_basis_1d(L, Nup=L // 2, S="1/2", pauli=False, kblock=0, pblock=1, zblock=1)
    zz = [[1.0, i, (i + 1) % L] for i in range(L)]
    xy = [[0.5, i, (i + 1) % L] for i in range(L)]
    quiet = dict(check_herm=False, check_symm=False, check_pcon=False)
    h = hamiltonian([["zz", zz], ["+-", xy], ["-+", xy]], [], basis=basis, dtype=np.float64, **quiet)
    built = time.time() - began
    energy = h.eigsh(k=1, which="SA", return_eigenvectors=False)[0]
    print(f"{L} sites, {basis.Ns} states: built {built:.3f} s, all {time.time() - began:.3f} s, energy {energy:.10f}")
