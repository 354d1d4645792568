"""The six terminals of `benches/hall_bar.rhai` by Kwant, and how far its numbers are from those: python3 hall_bar_kwant.py WIDTH"""

import sys
import time
import warnings

warnings.filterwarnings("ignore")
import kwant
import numpy as np

width = int(sys.argv[1])
length, flux = 2 * width, 0.08
square = kwant.lattice.square(norbs=1)


def energy(site):
    x, y = site.pos
    return 0.3 * np.sin(17.3 * x + 91.7 * y + x * y)


def lead(step, sites, name):
    builder = kwant.Builder(kwant.TranslationalSymmetry(step))
    builder[sites] = 0
    found = {}
    # Kwant tells by a parameter's name which phase it is.
    exec(f"def hopping(a, b, {name}): return -{name}(a, b)", found)
    builder[square.neighbors()] = found["hopping"]
    return builder


bar = kwant.Builder()
bar[(square(x, y) for x in range(length) for y in range(width))] = energy
bar[square.neighbors()] = lambda a, b, phase: -phase(a, b)
across = [square(0, y) for y in range(width)]
leads = [((-1, 0), across), ((1, 0), across)]
for place in (5, length - 12):
    for side in (-1, 1):
        leads.append(((0, side), [square(x, 0) for x in range(place, place + 6)]))
names = [f"phase{k}" for k in range(6)]
for (step, sites), name in zip(leads, names):
    bar.attach_lead(lead(step, sites, name))
finalized = bar.finalized()
# Its unit of flux is half of h/e.
phases = kwant.physics.magnetic_gauge(finalized)(*[2 * flux] * 7)
params = dict(zip(["phase", *names], phases))
began = time.time()
found = []
for e in (-3.2, -2.71, -1.3):
    s = kwant.smatrix(finalized, e, params=params)
    found += [s.transmission(to, source) for source in range(6) for to in range(6) if source != to]
took = time.time() - began
ours = np.genfromtxt("hall_bar.csv", delimiter=",", names=True, comments="#")["transmission"]
print(f"{len(finalized.sites)} sites: {took:.3f} s, largest difference {np.abs(ours - found).max():.1e}")
