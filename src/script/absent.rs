//! Answers to searches for methods that are not implemented, with the nearest alternative.

use super::terms;

/// Words, what they are, and what serves instead. Names in back-ticks exist; a test looks.
const ABSENT: [(&[&str], &str); 14] = [
    (
        &["itebd", "infinite time evolution"],
        "time evolution of infinite chains (iTEBD) is not implemented; `dmrg::uniform` finds their ground states, \
         `dmrg::uniform_excitations` their excitations, and `dmrg::evolve` and `dmrg::spectral` take long finite \
         chains",
    ),
    (
        &["su(2)", "su2", "non-abelian", "nonabelian", "spin-adapted", "cgc"],
        "`dmrg::finite(h, chain, #{ sector: #{ S: 0.0 } })` works with multiplets of total spin; infinite chains, \
         time evolution and states made by hand conserve only U(1) and Z_n numbers. Other non-abelian symmetries are \
         not implemented; `gauge::heatbath` makes SU(3) gauge fields",
    ),
    (
        &["peps", "ipeps", "mera", "ttn", "tree tensor", "ctmrg", "isotns"],
        "tensor networks in two dimensions (PEPS, MERA, trees) are not implemented; `dmrg::finite` treats lattices as \
         chains (`lattice::square`, a cylinder of about six sites around), and `vmc::run` takes larger lattices",
    ),
    (
        &["dmft", "dynamical mean field", "impurity solver", "dca", "ctqmc", "ct-qmc"],
        "dynamical mean-field theory and its impurity solvers are not implemented; `exact::operator` and \
         `dmrg::spectral` give spectra of a site with a few bath levels, `meanfield::hubbard` gives static mean fields",
    ),
    (
        &["nrg", "numerical renormalisation group", "numerical renormalization group", "kondo"],
        "Wilson's numerical renormalisation group is not implemented; `dmrg::finite` takes the Wilson chain, a sum \
         over `sites` with decaying couplings",
    ),
    (
        &["diffusion monte carlo", "dmc", "afqmc", "projector monte carlo", "green's function monte carlo"],
        "Monte Carlo beyond a trial wave function (diffusion, auxiliary fields) is not implemented; `vmc::run` gives \
         the energy of a trial state, `dmrg::finite` and `davidson` need no trial state",
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
        "quantum Monte Carlo of partition functions is not implemented; for finite temperatures `dmrg::metts` and \
         `dmrg::thermal` take chains, `exact::thermal` takes systems whose vectors fit into memory",
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
        "open systems (Lindblad) are not implemented; for a small one use `solve::exponential` with its superoperator \
         as a `matrix`. `dmrg::evolve` takes closed systems, also with a time-dependent Hamiltonian",
    ),
    (
        &["floquet"],
        "Floquet theory has no function of its own; `dmrg::evolve(psi, |t| h0 + h1 * cos(w * t), period)` evolves \
         over a period. For a small system the product of the exponentials of short steps, by `matrix`, is the \
         Floquet operator",
    ),
    (
        &["dft", "density functional", "gw", "ab initio", "vasp", "quantum espresso"],
        "electronic structure from first principles is not implemented; `lattice::wannier90` reads the tight-binding \
         model of such a program",
    ),
    (
        &["dynamical quarks", "hmc", "rhmc", "hybrid monte carlo", "full qcd"],
        "dynamical quarks (hybrid Monte Carlo) are not implemented; `gauge::heatbath` makes quenched fields, and \
         `load` reads fields of other programs",
    ),
    (
        &["neural", "rbm", "nqs", "netket", "autoregressive"],
        "neural networks as wave functions are not implemented; `slater_jastrow` with `vmc::optimise` is a \
         variational state",
    ),
    (
        &["apple gpu", "metal backend", "rocm", "amd gpu", "opencl", "sycl", "vulkan", "hip"],
        "only NVIDIA GPUs are supported; on other machines the CPU computes (`backend()`)",
    ),
    (
        &["gutzwiller ansatz", "bethe ansatz", "dmrg-x", "ttns", "coupled cluster", "ccsd"],
        "this method is not implemented; for ground states use `dmrg::finite`, `davidson` and `vmc::run`",
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
