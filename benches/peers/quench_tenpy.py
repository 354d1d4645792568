"""Seconds a step of two-site TDVP for the quench of benches/quench.rhai, by TeNPy's TwoSiteTDVPEngine.

pip install physics-tenpy; OMP_NUM_THREADS=1 python quench_tenpy.py [sites] [states] [time]"""

import sys
import time
import warnings

warnings.filterwarnings("ignore")
from tenpy.algorithms.tdvp import TwoSiteTDVPEngine
from tenpy.models.spins import SpinModel
from tenpy.networks.mps import MPS

n, chi, last = (int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])) if len(sys.argv) > 3 else (64, 200, 9.0)
model = SpinModel({"L": n, "S": 0.5, "Jx": 1.0, "Jy": 1.0, "Jz": 0.5, "bc_MPS": "finite", "conserve": "Sz"})
psi = MPS.from_product_state(model.lat.mps_sites(), ["up", "down"] * (n // 2), bc="finite")
engine = TwoSiteTDVPEngine(psi, model, {
    "dt": 0.05, "N_steps": 10,
    "trunc_params": {"chi_max": chi, "svd_min": 1e-10, "trunc_cut": None},
})
start = model.H_MPO.expectation_value(psi)
while engine.evolved_time < last - 1e-9:
    wall, cpu = time.perf_counter(), time.process_time()
    engine.run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    middle = psi.expectation_value("Sz", [n // 2])[0]
    print(f"t = {engine.evolved_time:.2f}: {wall / 10:.3f} s a step ({cpu / 10:.3f} of CPU), {max(psi.chi)} states, "
          f"entropy {max(psi.entanglement_entropy()):.6f}, Sz {middle:.8f}, drift {model.H_MPO.expectation_value(psi) - start:.2e}", flush=True)
