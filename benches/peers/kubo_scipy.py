"""The double Chebyshev expansion of benches/crystals.rhai with SciPy's sparse matrices and NumPy's products, and with
pybinding where it is installed: OMP_NUM_THREADS=1 python benches/peers/kubo_scipy.py"""

import time

import numpy as np
from scipy.sparse import coo_matrix, diags

N, MOMENTS, VECTORS = 128, 256, 4


def graphene(n=N):
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    rows, columns, moves = [], [], []
    d = np.array([0, 1 / 3**0.5])
    for shift, r in (((0, 0), (0.5, 0.5 / 3**0.5)), ((-1, 0), (-0.5, 0.5 / 3**0.5)), ((0, -1), -d)):
        a = 2 * (i + n * j)
        b = 2 * ((i + shift[0]) % n + n * ((j + shift[1]) % n)) + 1
        rows.append(a.ravel()), columns.append(b.ravel()), moves.append(np.full(n * n, r[0]))
    rows, columns, moves = map(np.concatenate, (rows, columns, moves))
    h = coo_matrix((np.full(len(rows), -2.7), (rows, columns)), shape=(2 * n * n,) * 2).tocsr()
    v = coo_matrix((-2.7 * moves, (rows, columns)), shape=(2 * n * n,) * 2).tocsr()
    energies = np.random.default_rng(1).uniform(-0.25, 0.25, 2 * n * n)
    return (h + h.T + diags(energies)).tocsr(), (v - v.T).tocsr()  # the velocity is i times the second


def moments(h, v, window=8.4):
    h = h / window
    mu = np.zeros((MOMENTS, MOMENTS))
    rng = np.random.default_rng(2)

    def orders(x):
        out = np.empty((MOMENTS, len(x)))
        out[0], out[1] = x, h @ x
        for n in range(2, MOMENTS):
            out[n] = 2 * (h @ out[n - 1]) - out[n - 2]
        return out

    for _ in range(VECTORS):
        r = rng.choice([-1.0, 1.0], h.shape[0])
        left = orders(v @ r)
        right = (v @ orders(r).T).T
        mu += left @ right.T / (h.shape[0] * VECTORS)
    return mu


h, v = graphene()
wall, own = time.perf_counter(), time.process_time()
mu = moments(h, v)
print(f"SciPy: {time.perf_counter() - wall:.3g} s, processor time {time.process_time() - own:.3g} s, mu_00 = {mu[0, 0]:.4f}")

try:
    import pybinding as pb
    from pybinding.repository import graphene as sheet
except ImportError:
    print("pybinding is not installed")
else:

    # It works in single precision unless a modifier says otherwise; `benches/crystals.rhai` works in double.
    for precision, double in (("single", False), ("double", True)):

        @pb.onsite_energy_modifier(is_double=double)
        def disorder(energy):
            return energy + np.random.default_rng(1).uniform(-0.25, 0.25, energy.shape)

        lattice = sheet.monolayer()
        model = pb.Model(lattice, pb.primitive(N, N), disorder)
        kpm = pb.kpm(model, energy_range=(-8.4, 8.4))
        area = N * 0.246 * N * 0.213
        # Moments alone take as long as with four points of its sum over energies.
        for energies, points in ((np.zeros(1), 4), (np.linspace(-1, 1, 101), 1000)):
            wall, own = time.perf_counter(), time.process_time()
            kpm.calc_conductivity(chemical_potential=energies, broadening=8.4 * np.pi / MOMENTS, temperature=0,
                                  direction="xx", volume=area, num_random=VECTORS, num_points=points)
            print(f"pybinding, {precision} precision, {len(energies)} energies: {time.perf_counter() - wall:.3g} s, "
                  f"processor time {time.process_time() - own:.3g} s, {model.system.num_sites} sites\n{kpm.report()}")
