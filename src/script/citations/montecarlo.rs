//! Quantum Monte Carlo and its crystals.

use super::work::{CitedWork, work};

pub(super) const WORKS: [CitedWork; 9] = [
    work(
        "Cohen1966",
        "Cohen, Marvin L. and Bergstresser, T. K.",
        "Band structures and pseudopotential form factors for fourteen semiconductors of the diamond and zinc-blende \
         structures",
        ["Physical Review", "141", "789"],
        1966,
    ),
    work(
        "Ewald1921",
        "Ewald, P. P.",
        "Die {Berechnung} optischer und elektrostatischer {Gitterpotentiale}",
        ["Annalen der Physik", "369", "253"],
        1921,
    ),
    work(
        "Uejima2012",
        "Uejima, Yutaka and Maezono, Ryo",
        "{GPGPU} for orbital function evaluation with a new updating scheme",
        ["Journal of Computational Chemistry", "34", "83"],
        2013,
    ),
    work(
        "Flyvbjerg1989",
        "Flyvbjerg, H. and Petersen, H. G.",
        "Error estimates on averages of correlated data",
        ["The Journal of Chemical Physics", "91", "461"],
        1989,
    ),
    work(
        "Drummond2004",
        "Drummond, N. D. and Towler, M. D. and Needs, R. J.",
        "{Jastrow} correlation factor for atoms, molecules, and solids",
        ["Physical Review B", "70", "235119"],
        2004,
    ),
    work(
        "Christen2005",
        "Christen, J. Andr{\\'e}s and Fox, Colin",
        "{Markov} chain {Monte Carlo} using an approximation",
        ["Journal of Computational and Graphical Statistics", "14", "795"],
        2005,
    ),
    work(
        "Sorella1998",
        "Sorella, Sandro",
        "{Green} function {Monte Carlo} with stochastic reconfiguration",
        ["Physical Review Letters", "80", "4558"],
        1998,
    ),
    work(
        "Umrigar2007",
        "Umrigar, C. J. and Toulouse, Julien and Filippi, Claudia and Sorella, S. and Hennig, R. G.",
        "Alleviation of the fermion-sign problem by optimization of many-body wave functions",
        ["Physical Review Letters", "98", "110201"],
        2007,
    ),
    work(
        "Gutzwiller1963",
        "Gutzwiller, Martin C.",
        "Effect of correlation on the ferromagnetism of transition metals",
        ["Physical Review Letters", "10", "159"],
        1963,
    ),
];

/// The works behind functions; a path that ends in `::` means all of a module.
pub(super) const CITED: [(&str, &[&str]); 14] = [
    ("crystal::silicon", &["Cohen1966"]),
    ("crystal::germanium", &["Cohen1966"]),
    ("crystal::tin", &["Cohen1966"]),
    ("crystal::semiconductor", &["Cohen1966"]),
    ("madelung", &["Ewald1921"]),
    ("ion_energy", &["Ewald1921"]),
    ("splines", &["Uejima2012"]),
    ("metropolis", &["Uejima2012", "Salmon2011", "Christen2005"]),
    ("vmc::", &["Uejima2012", "Flyvbjerg1989"]),
    ("blocked", &["Flyvbjerg1989"]),
    ("jastrow::polynomial", &["Drummond2004"]),
    ("vmc::parameter_step", &["Sorella1998", "Umrigar2007"]),
    ("vmc::optimise", &["Sorella1998", "Umrigar2007"]),
    ("lattice_slater", &["Gutzwiller1963"]),
];
