//! What people look for and is not there: said as such, with the nearest way around.

use super::terms;

/// Words, what they are, and what serves instead. Names in back-ticks exist; a test looks.
const ABSENT: [(&[&str], &str); 14] = [
    (
        &["itebd", "infinite time evolution"],
        "time evolution of infinite chains (iTEBD) is not there; `dmrg::uniform` finds their ground states, `dmrg::uniform_excitations` the levels above, and `dmrg::evolve` and `dmrg::spectral` take long finite chains",
    ),
    (
        &["su(2)", "su2", "non-abelian", "nonabelian", "spin-adapted", "cgc"],
        "multiplets of a total spin are those of `dmrg::finite(h, chain, #{ sector: #{ S: 0.0 } })`; infinite chains, evolution in time and states made by hand have the numbers of U(1) and Z_n alone. Other non-abelian symmetries are not there; SU(3) fields are those of `gauge::heatbath`",
    ),
    (
        &["peps", "ipeps", "mera", "ttn", "tree tensor", "ctmrg", "isotns"],
        "networks in two dimensions (PEPS, MERA, trees) are not there; `dmrg::finite` takes lattices as chains (`lattice::square`, a cylinder some six sites around), and `vmc::run` larger ones",
    ),
    (
        &["dmft", "dynamical mean field", "impurity solver", "dca", "ctqmc", "ct-qmc"],
        "dynamical mean fields and their impurity solvers are not there; `exact::operator` and `dmrg::spectral` give spectra of a site with a few levels of a bath, `meanfield::hubbard` static mean fields",
    ),
    (
        &["nrg", "numerical renormalisation group", "numerical renormalization group", "kondo"],
        "Wilson's renormalisation group is not there; `dmrg::finite` takes his chain, a sum over `sites` with couplings that fall off",
    ),
    (
        &["diffusion monte carlo", "dmc", "afqmc", "projector monte carlo", "green's function monte carlo"],
        "Monte Carlo beyond a trial wave function (diffusion, auxiliary fields) is not there; `vmc::run` has the energy of a trial state, `dmrg::finite` and `davidson` need none",
    ),
    (
        &[
            "sse",
            "stochastic series",
            "worm algorithm",
            "path integral monte carlo",
            "pimc",
            "determinant monte carlo",
            "dqmc",
        ],
        "quantum Monte Carlo of partition functions is not there; `dmrg::metts` and `dmrg::thermal` have temperatures for chains, `exact::thermal` for what vectors can hold",
    ),
    (
        &[
            "lindblad",
            "open system",
            "master equation",
            "dissipation",
            "density matrix evolution",
            "liouvillian",
        ],
        "open systems (Lindblad) are not there; a small one is the `solve::exponential` of its superoperator as a `matrix`, and `dmrg::evolve` takes closed ones, also with a Hamiltonian that depends on time",
    ),
    (
        &["floquet"],
        "Floquet theory has no function of its own; `dmrg::evolve(psi, |t| h0 + h1 * cos(w * t), period)` goes through a period, and the exponentials of a small system's steps, by `matrix`, multiply to its operator",
    ),
    (
        &["dft", "density functional", "gw", "ab initio", "vasp", "quantum espresso"],
        "electronic structure from first principles is not there; `lattice::wannier90` reads the model that such a program leaves",
    ),
    (
        &["dynamical quarks", "hmc", "rhmc", "hybrid monte carlo", "full qcd"],
        "dynamical quarks (hybrid Monte Carlo) are not there; `gauge::heatbath` makes quenched fields, and `load` reads those of other programs",
    ),
    (
        &["neural", "rbm", "nqs", "netket", "autoregressive"],
        "neural networks as wave functions are not there; `slater_jastrow` with `vmc::optimise` is the variational state",
    ),
    (
        &["apple gpu", "metal backend", "rocm", "amd gpu", "opencl", "sycl", "vulkan", "hip"],
        "GPUs other than NVIDIA's are not used; the processor's vector units are (`backend()`)",
    ),
    (
        &["gutzwiller ansatz", "bethe ansatz", "dmrg-x", "ttns", "coupled cluster", "ccsd"],
        "this method is not there; for ground states see `dmrg::finite`, `davidson` and `vmc::run`",
    ),
];

/// What there is to say of something that is not there.
pub fn instead(question: &str) -> Option<&'static str> {
    ABSENT.iter().find(|(words, _)| terms::means(question, words)).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_said() {
        for (question, word) in [
            ("iTEBD", "dmrg::uniform"),
            ("SU(2)", "dmrg::finite"),
            ("su2 symmetry", "total spin"),
            ("iPEPS", "cylinder"),
            ("DMFT", "meanfield"),
            ("hybrid Monte Carlo", "heatbath"),
        ] {
            let found = instead(question).unwrap_or_default();
            assert!(found.contains(word), "{question}: {found}");
        }
        for there in [
            "VUMPS",
            "quasiparticle ansatz",
            "iDMRG",
            "METTS",
            "FCIDUMP",
            "Lanczos finite temperature",
            "moments",
            "dos",
            "sse2x",
            "gwen",
            "hmcx",
        ] {
            assert!(instead(there).is_none(), "{there}");
        }
    }

    #[test]
    fn what_serves_instead_exists() {
        let engine = crate::Engine::new().unwrap();
        let names: Vec<String> =
            crate::script::registry::entries(engine.rhai(), true).iter().map(|e| e.path()).collect();
        for (_, text) in ABSENT {
            for quoted in text.split('`').skip(1).step_by(2) {
                let end = quoted.find(['(', '.']).unwrap_or(quoted.len());
                let name = &quoted[..end];
                assert!(names.iter().any(|n| n == name), "`{name}` of: {text}");
            }
        }
    }
}
