//! Electrons in lattices: models, transport, topology, mean fields.

use super::work::{CitedWork, work};

pub(super) const WORKS: [CitedWork; 14] = [
    work(
        "Parker2019",
        "Parker, Daniel E. and Morimoto, Takahiro and Orenstein, Joseph and Moore, Joel E.",
        "Diagrammatic approach to nonlinear optical response with application to {Weyl} semimetals",
        ["Physical Review B", "99", "045121"],
        2019,
    ),
    work(
        "Passos2018",
        "Passos, D. J. and Ventura, G. B. and Viana Parente Lopes, J. M. and Lopes dos Santos, J. M. B. and Peres, \
         N. M. R.",
        "Nonlinear optical responses of crystalline systems: Results from a velocity gauge analysis",
        ["Physical Review B", "97", "235446"],
        2018,
    ),
    work(
        "Pizzi2020",
        "Pizzi, Giovanni and others",
        "{Wannier90} as a community code: new features and applications",
        ["Journal of Physics: Condensed Matter", "32", "165902"],
        2020,
    ),
    work(
        "LopezSancho1985",
        "L{\\'o}pez Sancho, M. P. and L{\\'o}pez Sancho, J. M. and Rubio, J.",
        "Highly convergent schemes for the calculation of bulk and surface {Green} functions",
        ["Journal of Physics F: Metal Physics", "15", "851"],
        1985,
    ),
    work(
        "Fisher1981",
        "Fisher, Daniel S. and Lee, Patrick A.",
        "Relation between conductivity and transmission matrix",
        ["Physical Review B", "23", "6851"],
        1981,
    ),
    work(
        "Caroli1971",
        "Caroli, C. and Combescot, R. and Nozi{\\`e}res, P. and Saint-James, D.",
        "Direct calculation of the tunneling current",
        ["Journal of Physics C: Solid State Physics", "4", "916"],
        1971,
    ),
    work(
        "Bianco2011",
        "Bianco, Raffaello and Resta, Raffaele",
        "Mapping topological order in coordinate space",
        ["Physical Review B", "84", "241106"],
        2011,
    ),
    work(
        "Loring2010",
        "Loring, Terry A. and Hastings, Matthew B.",
        "Disordered topological insulators via {C*}-algebras",
        ["Europhysics Letters", "92", "67004"],
        2010,
    ),
    work(
        "Peschel2003",
        "Peschel, Ingo",
        "Calculation of reduced density matrices from correlation functions",
        ["Journal of Physics A: Mathematical and General", "36", "L205"],
        2003,
    ),
    work(
        "Oganesyan2007",
        "Oganesyan, Vadim and Huse, David A.",
        "Localization of interacting fermions at high temperature",
        ["Physical Review B", "75", "155111"],
        2007,
    ),
    work(
        "Fukui2005",
        "Fukui, Takahiro and Hatsugai, Yasuhiro and Suzuki, Hiroshi",
        "{Chern} numbers in discretized {Brillouin} zone: efficient method of computing (spin) {Hall} conductances",
        ["Journal of the Physical Society of Japan", "74", "1674"],
        2005,
    ),
    work(
        "FuKane2006",
        "Fu, Liang and Kane, C. L.",
        "Time reversal polarization and a {$Z_2$} adiabatic spin pump",
        ["Physical Review B", "74", "195312"],
        2006,
    ),
    work(
        "Anderson1965",
        "Anderson, Donald G.",
        "Iterative procedures for nonlinear integral equations",
        ["Journal of the ACM", "12", "547"],
        1965,
    ),
    work(
        "Cances2000",
        "Canc{\\`e}s, Eric and Le Bris, Claude",
        "Can we outperform the {DIIS} approach for electronic structure calculations?",
        ["International Journal of Quantum Chemistry", "79", "82"],
        2000,
    ),
];

/// The works behind functions; a path that ends in `::` means all of a module.
pub(super) const CITED: [(&str, &[&str]); 15] = [
    ("transport::", &["LopezSancho1985", "Fisher1981"]),
    ("transport::contact", &["Caroli1971"]),
    ("markers::chern", &["Bianco2011"]),
    ("markers::bott", &["Loring2010"]),
    ("markers::entanglement", &["Peschel2003"]),
    ("markers::level_ratio", &["Oganesyan2007"]),
    ("chern_number", &["Fukui2005"]),
    ("bloch::z2", &["FuKane2006"]),
    ("bloch::second_order_conductivity", &["Parker2019", "Passos2018"]),
    ("lattice::wannier90", &["Pizzi2020"]),
    ("tight_binding", &["Salmon2011"]),
    ("meanfield::", &["Anderson1965"]),
    ("meanfield::hubbard", &["Cances2000"]),
    ("meanfield::spinless", &["Cances2000"]),
    ("meanfield::superconductor", &["Cances2000"]),
];
