//! Lattice gauge theory and random numbers.

use super::work::{CitedWork, work};

pub(super) const WORKS: [CitedWork; 9] = [
    work(
        "Salmon2011",
        "Salmon, John K. and Moraes, Mark A. and Dror, Ron O. and Shaw, David E.",
        "Parallel random numbers: as easy as 1, 2, 3",
        ["Proceedings of SC11", "", "16"],
        2011,
    ),
    work(
        "Neuberger1998",
        "Neuberger, Herbert",
        "Exactly massless quarks on the lattice",
        ["Physics Letters B", "417", "141"],
        1998,
    ),
    work(
        "Giusti2003",
        "Giusti, L. and Hoelbling, C. and L{\\\"u}scher, M. and Wittig, H.",
        "Numerical techniques for lattice {QCD} in the epsilon-regime",
        ["Computer Physics Communications", "153", "31"],
        2003,
    ),
    work(
        "Walk2010",
        "Walk, Bj{\\\"o}rn and Wittig, Hartmut and Dranischnikow, Egor and Sch{\\\"o}mer, Elmar",
        "Implementation of the {Neuberger-Dirac} operator on {GPUs}",
        ["Proceedings of Science", "LATTICE2010", "044"],
        2010,
    ),
    work(
        "Kalkreuter1996",
        "Kalkreuter, Thomas and Simma, Hubert",
        "An accelerated conjugate gradient algorithm to compute low-lying eigenvalues: a study for the {Dirac} \
         operator in {SU(2)} lattice {QCD}",
        ["Computer Physics Communications", "93", "33"],
        1996,
    ),
    work(
        "Cabibbo1982",
        "Cabibbo, Nicola and Marinari, Enzo",
        "A new method for updating {SU(N)} matrices in computer simulations of gauge theories",
        ["Physics Letters B", "119", "387"],
        1982,
    ),
    work(
        "Creutz1987",
        "Creutz, Michael",
        "Overrelaxation and {Monte} {Carlo} simulation",
        ["Physical Review D", "36", "515"],
        1987,
    ),
    work(
        "Morningstar2004",
        "Morningstar, Colin and Peardon, Mike",
        "Analytic smearing of {SU(3)} link variables in lattice {QCD}",
        ["Physical Review D", "69", "054501"],
        2004,
    ),
    work(
        "Luscher2010",
        "L{\\\"u}scher, Martin",
        "Properties and uses of the {Wilson} flow in lattice {QCD}",
        ["Journal of High Energy Physics", "08", "071"],
        2010,
    ),
];

/// The works behind functions; a path that ends in `::` means all of a module.
pub(super) const CITED: [(&str, &[&str]); 9] = [
    ("overlap::", &["Neuberger1998", "Giusti2003", "Walk2010"]),
    ("overlap::sign", &["Giusti2003"]),
    ("minmax_inverse_sqrt", &["Giusti2003"]),
    ("wilson::kernel", &["Walk2010"]),
    ("ritz", &["Kalkreuter1996"]),
    ("gauge::heatbath", &["Cabibbo1982", "Creutz1987", "Salmon2011"]),
    ("gauge::overrelax", &["Creutz1987"]),
    ("gauge::stout", &["Morningstar2004"]),
    ("gauge::wilson_flow", &["Luscher2010"]),
];
