"""Moments of large disordered samples by KITE (pip install quantum-kite), as benches/samples.rhai:
OMP_NUM_THREADS=1 python benches/peers/samples_kite.py"""

import contextlib
import os
import tempfile
import time

import h5py
import kite
import numpy as np
import pybinding as pb

BOX = 0.5


def graphene():
    lattice = pb.Lattice(a1=[1, 0], a2=[0.5, 0.75**0.5])
    lattice.add_sublattices(("A", [0, 0]), ("B", [0.5, 0.5 / 3**0.5]))
    lattice.add_hoppings(([0, 0], "A", "B", -2.7), ([-1, 0], "A", "B", -2.7), ([0, -1], "A", "B", -2.7))
    return lattice


def cubic():
    lattice = pb.Lattice(a1=[1, 0, 0], a2=[0, 1, 0], a3=[0, 0, 1])
    lattice.add_one_sublattice("A", [0, 0, 0])
    lattice.add_hoppings(([1, 0, 0], "A", "A", -1.0), ([0, 1, 0], "A", "A", -1.0), ([0, 0, 1], "A", "A", -1.0))
    return lattice


@contextlib.contextmanager
def silent():
    """KITE writes to the terminal from C++."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept), os.close(nowhere)


def run(name, lattice, cells, half, precision, ask, path):
    configuration = kite.Configuration(
        divisions=[1] * len(cells), length=cells, boundaries=["periodic"] * len(cells), is_complex=False,
        precision=precision, spectrum_range=[-half, half],
    )
    calculation = kite.Calculation(configuration)
    ask(calculation)
    disorder = kite.Disorder(lattice)
    for sublattice in lattice.sublattices:
        disorder.add_disorder(sublattice, "Uniform", 0.0, BOX / 12**0.5)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "sample.h5")
        with silent():
            kite.config_system(lattice, configuration, calculation, disorder=disorder, filename=file)
            wall, own = time.perf_counter(), time.process_time()
            kite.execute.kitex(file)
            wall, own = time.perf_counter() - wall, time.process_time() - own
        with h5py.File(file) as found:
            mu = np.array(found[path]).squeeze()
    # Its velocities are in units of the window, without the imaginary unit.
    some = [mu.ravel()[2], mu.ravel()[4]] if mu.ndim == 1 else [-(half**2) * mu[k, k] for k in (0, 1)]
    print(f"{name}: {wall:.3g} s, processor time {own:.3g} s, {[f'{x.real:.4g}' for x in some]}")


for precision, kind in ((1, "double"), (0, "single")):
    for name, lattice, cells, half in (
        ("graphene", graphene(), [512, 512], 8.5), ("a cube", cubic(), [80, 80, 80], 6.5),
    ):
        ask = lambda c: c.dos(num_points=100, num_moments=512, num_random=1, num_disorder=1)
        run(f"density of states of {name}, 512 moments, {kind}", lattice, cells, half, precision, ask,
            "/Calculation/dos/MU")
for direction in ("xx", "xy"):
    ask = lambda c: c.conductivity_dc(
        direction=direction, num_points=100, num_moments=256, num_random=2, num_disorder=1, temperature=0.01)
    run(f"conductivity of graphene, {direction}, 256 x 256 moments, 2 vectors", graphene(), [128, 128], 8.5, 1, ask,
        f"/Calculation/conductivity_dc/Gamma{direction}")
