"""The numbers of `tests/golden/transport_conductance.rhai` that are by Kwant: conductances beside superconductors, shot
noise and resistances of a rough strip. python3 conductance_kwant.py"""

import warnings

warnings.filterwarnings("ignore")
import kwant
import numpy as np

tau_x, tau_z = np.array([[0.0, 1.0], [1.0, 0.0]]), np.diag([1.0, -1.0])


def strip(length, width, energy, hopping, lead_energies, law=None):
    """A strip along x between two leads; `law` is conserved where a lead has no pairing."""
    lattice = kwant.lattice.square(norbs=1 if np.isscalar(hopping) else 2)
    sample = kwant.Builder()
    for x in range(length):
        for y in range(width):
            sample[lattice(x, y)] = energy(x, y)
    sample[lattice.neighbors()] = hopping
    for side, own in zip((-1, 1), lead_energies):
        normal = np.isscalar(own) or own[0, 1] == 0
        lead = kwant.Builder(kwant.TranslationalSymmetry((side, 0)), conservation_law=law if normal else None)
        lead[(lattice(0, y) for y in range(width))] = own
        lead[lattice.neighbors()] = hopping
        sample.attach_lead(lead)
    return lattice, sample


def conductance(s, normal):
    """Electrons that are missing, and holes that come back."""
    g = np.zeros((len(normal), len(normal)))
    for i in normal:
        for j in normal:
            g[i, j] = s.transmission((i, 1), (j, 0)) - s.transmission((i, 0), (j, 0))
        g[i, i] += s.submatrix((i, 0), (i, 0)).shape[1]
    return g


mu = 0.7
own = -mu * tau_z
cases = [("normal leads", 2, 5, own, [0, 1]), ("one normal", 3, 7, own + 0.2 * tau_x, [0])]
for name, begin, end, right, normal in cases:
    energy = lambda x, y: (-mu + 0.3 * np.sin(3 * x + 5 * y)) * tau_z + (0.2 if begin <= x < end else 0) * tau_x
    junction = strip(7, 3, energy, -tau_z, [own, right], law=-tau_z)[1].finalized()
    for e in (0.05, 0.15, 0.31):
        print(name, e, conductance(kwant.smatrix(junction, e), normal).tolist())

lattice, rough = strip(12, 6, lambda x, y: 0.9 * np.sin(17.3 * x + 91.7 * y + x * y), -1.0, [0.0, 0.0])
two = rough.finalized()
for e in (-3.1, -1.3, 0.17):
    print("shot noise", e, kwant.physics.two_terminal_shotnoise(kwant.smatrix(two, e)))
third = kwant.Builder(kwant.TranslationalSymmetry((0, 1)))
third[(lattice(x, 0) for x in range(3, 6))] = 0.0
third[lattice.neighbors()] = -1.0
rough.attach_lead(third)
three = rough.finalized()
for e in (-1.3, 0.17):
    s = kwant.smatrix(three, e)
    for to in (1, 2):
        t = s.submatrix(to, 0)
        passed = t @ t.conj().T
        print("shot noise to", to, e, np.trace(passed - passed @ passed).real)
    g = s.conductance_matrix()
    print("resistances", e, np.linalg.solve(g[np.ix_([0, 2], [0, 2])], [1.0, 0.0]).tolist())
