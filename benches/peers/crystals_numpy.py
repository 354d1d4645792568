"""The cases of benches/crystals.rhai that NumPy, SciPy and pythtb have: python benches/peers/crystals_numpy.py"""

import time

import numpy as np
from scipy.sparse import coo_matrix
from scipy.spatial import cKDTree


def timed(what, call):
    start = time.perf_counter()
    result = call()
    print(f"{what}: {time.perf_counter() - start:.3g} s", flush=True)
    return result


def layers(n=50):
    i, j, s = np.meshgrid(np.arange(-n, n), np.arange(-n, n), [0, 1], indexing="ij")
    x = (2.46 * (i + 0.5 * j) + 1.23 * s).ravel()
    y = (2.46 * 0.75**0.5 * j + 0.7101 * s).ravel()
    both = []
    for layer, angle in enumerate([0.0, 0.0577]):
        both.append(
            np.stack(
                [x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle), 0 * x + 3.35 * layer],
                axis=1,
            )
        )
    return np.concatenate(both)


def two_centre(places):
    pairs = cKDTree(places).query_pairs(5.0, output_type="ndarray")
    d = places[pairs[:, 1]] - places[pairs[:, 0]]
    r = np.linalg.norm(d, axis=1)
    n2 = (d[:, 2] / r) ** 2
    t = -2.7 * np.exp(-(r - 1.42) / 0.4525) * (1 - n2) + 0.48 * np.exp(-(r - 3.35) / 0.4525) * n2
    half = coo_matrix((t, (pairs[:, 0], pairs[:, 1])), shape=(len(places),) * 2).tocsr()
    return half + half.T, len(pairs)


def silicon():
    from pythtb import tb_model

    lat = [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]
    m = tb_model(3, 3, lat, [[0, 0, 0]] * 5 + [[0.25, 0.25, 0.25]] * 5)
    m.set_onsite([-4.2, 1.715, 1.715, 1.715, 6.685] * 2)
    ss, sp, xp, pps, ppp = -2.075, 2.4808, 2.3274, 2.71625, -0.715
    for cell in ([0, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1]):
        u = np.array([0.25] * 3) + np.dot(cell, lat)
        u /= np.linalg.norm(u)
        t = np.zeros((5, 5))
        t[0, 0] = ss
        t[0, 1:4], t[1:4, 0] = sp * u, -sp * u
        t[4, 1:4], t[1:4, 4] = xp * u, -xp * u
        t[1:4, 1:4] = np.outer(u, u) * (pps - ppp) + ppp * np.eye(3)
        for a in range(5):
            for b in range(5):
                if t[a, b]:
                    m.set_hop(t[a, b], a, 5 + b, cell)
    return m


def lindhard(n=400, q=0.013, potential=0.4, eta=0.05):
    w = np.linspace(0, 3, 100)
    g = np.arange(n) / n
    sum_ = np.zeros(len(w), complex)
    wave = np.array([1, np.exp(2j * np.pi * q / 3)])
    for v in g:  # a line at a time, for memory
        def levels(u):
            h = np.zeros((n, 2, 2), complex)
            h[:, 0, 1] = -2.7 * (1 + np.exp(-2j * np.pi * u) + np.exp(-2j * np.pi * v))
            h[:, 1, 0] = h[:, 0, 1].conj()
            return np.linalg.eigh(h)

        e, a = levels(g)
        f, b = levels(g + q)
        weight = np.abs(np.einsum("kim,i,kin->kmn", b.conj(), wave, a)) ** 2
        filled = (e < potential)[:, None, :].astype(float) - (f < potential)[:, :, None]
        move = e[:, None, :] - f[:, :, None]
        some = filled != 0
        sum_ += (filled * weight)[some] @ (1 / (w[None, :] + 1j * eta + move[some][:, None]))
    return sum_ / (n * n * 0.75**0.5)


places = layers()
h, bonds = timed(f"two-centre hoppings and matrix of {len(places)} atoms", lambda: two_centre(places))
print(f"  {bonds} bonds")
m = timed("silicon set up in pythtb", silicon)
k, _, _ = m.k_path([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0.5, 0.5], [0, 0, 0]], 1000, report=False)
e = timed("bands of silicon at 1000 momenta", lambda: np.asarray(m.solve_all(k)))
print(f"  sum of levels {e.sum():.6f}")
pi = timed("polarisability at 160000 momenta", lindhard)
print(f"  at zero {pi[0]:.8f}")
