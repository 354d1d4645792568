"""Ground states of infinite chains by TeNPy's iDMRG, beside `benches/uniform.rhai`: energy a site and CPU seconds.

python uniform_tenpy.py [states]; `pip install physics-tenpy`, 1.1.1 at the time of writing.
"""
import sys
import time
import warnings

import numpy as np
from tenpy.algorithms import dmrg
from tenpy.models.hubbard import FermiHubbardChain
from tenpy.models.spins import SpinChain
from tenpy.networks.mps import MPS

warnings.filterwarnings("ignore")


def ground(name, model, product, chi):
    psi = MPS.from_product_state(model.lat.mps_sites(), product, bc="infinite")
    began = time.process_time()
    options = {
        "mixer": True,
        "mixer_params": {"amplitude": 1e-3, "decay": 2.0, "disable_after": 20},
        "trunc_params": {"chi_max": chi, "svd_min": 1e-10},
        "max_E_err": 1e-11,
        "max_S_err": 1e-8,
        "max_sweeps": 2000,
        "update_env": 5,
        "chi_list": {0: 16, 20: 32, 40: chi},
    }
    engine = dmrg.TwoSiteDMRGEngine(psi, model, options)
    energy, psi = engine.run()
    seconds = time.process_time() - began
    # The energy of the state itself, as the engine's is that of a step with a bond uncut.
    energy = np.mean(psi.expectation_value(model.H_bond))
    print(f"{name:10s} chi {max(psi.chi):4d}  energy {energy:.12f}  CPU {seconds:7.1f} s  xi {psi.correlation_length():.4f}  S {psi.entanglement_entropy()[0]:.6f}", flush=True)


def main():
    chi = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    heisenberg = SpinChain({"L": 2, "S": 0.5, "bc_MPS": "infinite", "conserve": "Sz"})
    ground("Heisenberg", heisenberg, ["up", "down"], chi)
    haldane = SpinChain({"L": 2, "S": 1, "bc_MPS": "infinite", "conserve": "Sz"})
    ground("Haldane", haldane, ["up", "down"], chi)
    hubbard = FermiHubbardChain({"L": 2, "U": 4.0, "t": 1.0, "bc_MPS": "infinite", "cons_N": "N", "cons_Sz": "Sz"})
    ground("Hubbard", hubbard, ["up", "down"], chi)


if __name__ == "__main__":
    main()
