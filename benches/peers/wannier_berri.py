"""Conductivities of Wannier functions with their positions by WannierBerri (pip install wannierberri), as
benches/wannier_response.rhai: python benches/peers/wannier_berri.py random_tb.dat 16. A file that is not there is made
of random numbers: eight functions, hops of two cells, no symmetry."""

import os
import sys
import time

import numpy as np
import wannierberri as wb
from scipy.constants import angstrom, elementary_charge, h
from wannierberri.system.system_tb import get_system_tb

FILE, GRID = sys.argv[1], int(sys.argv[2])
FERMI, FREQUENCIES, ETA, KT = np.array([-1.0, 0.0, 0.7]), np.array([0.3, 1.0, 2.5]), 0.1, 0.05


def write(file, functions=8, reach=2):
    rng = np.random.default_rng(7)
    cells = [(x, y, z) for x in range(-reach, reach + 1) for y in range(-reach, reach + 1) for z in range(-reach, reach + 1)]

    def random(shape, size):
        return size * (rng.normal(size=shape) + 1j * rng.normal(size=shape))

    table = {}
    for r in cells:
        if (minus := tuple(-x for x in r)) in table:
            hop, place = table[minus]
            table[r] = hop.conj().T, place.conj().transpose(0, 2, 1)
            continue
        far = np.exp(-1.5 * np.linalg.norm(r))
        hop, place = random((functions,) * 2, far), random((3, functions, functions), 0.3 * far)
        if r == (0, 0, 0):
            hop, place = hop + hop.conj().T, place + place.conj().transpose(0, 2, 1)
        table[r] = hop, place
    with open(file, "w") as out:
        out.write("random numbers\n3.1 0 0\n0.4 2.9 0\n0.2 -0.3 3.4\n")
        out.write(f"{functions}\n{len(cells)}\n" + "1 " * len(cells) + "\n")
        for r in cells:
            out.write("\n%d %d %d\n" % r)
            for j in range(functions):
                for i in range(functions):
                    z = table[r][0][i, j]
                    out.write(f"{i + 1} {j + 1} {z.real:.15e} {z.imag:.15e}\n")
        for r in cells:
            out.write("\n%d %d %d\n" % r)
            for j in range(functions):
                for i in range(functions):
                    numbers = [x for z in table[r][1][:, i, j] for x in (z.real, z.imag)]
                    out.write(f"{i + 1} {j + 1} " + " ".join(f"{x:.15e}" for x in numbers) + "\n")


if not os.path.exists(FILE):
    write(FILE)
system = get_system_tb(tb_file=FILE, berry=True)
grid = wb.Grid(system, NK=[GRID] * 3, NKFFT=[4 if GRID % 4 == 0 else 1] * 3)
unit = elementary_charge**2 / h / angstrom
dynamic = dict(Efermi=FERMI[1:2], omega=FREQUENCIES, kBT=KT, smr_fixed_width=ETA, smr_type="Lorentzian")
for name, of in (
    ("anomalous Hall", wb.calculators.static.AHC(Efermi=FERMI, tetra=False)),
    ("optical", wb.calculators.dynamic.OpticalConductivity(**dynamic)),
):
    begun = time.perf_counter()
    found = wb.run(
        system, grid, {"it": of}, use_irred_kpt=False, symmetrize=False, parallel=False, fout_name="/tmp/none",
        print_progress_step_time=1e9,
    )
    seconds, data = time.perf_counter() - begun, found.results["it"].data / unit
    told = data[:, 2] if name == "anomalous Hall" else data[0, :, 0, 0]
    print(f"{name}: {seconds:.3g} s", " ".join(f"{x:.13g}" for x in told))
