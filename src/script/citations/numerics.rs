//! Kernel polynomials and eigenvectors of operators.

use super::work::{CitedWork, work};

pub(super) const WORKS: [CitedWork; 10] = [
    work(
        "Weisse2006",
        "Wei{\\ss}e, Alexander and Wellein, Gerhard and Alvermann, Andreas and Fehske, Holger",
        "The kernel polynomial method",
        ["Reviews of Modern Physics", "78", "275"],
        2006,
    ),
    work(
        "Silver1994",
        "Silver, R. N. and R{\\\"o}der, H.",
        "Densities of states of mega-dimensional {Hamiltonian} matrices",
        ["International Journal of Modern Physics C", "5", "735"],
        1994,
    ),
    work(
        "Zhang2013",
        "Zhang, Shixun and Yamagiwa, Shinichi and Okumura, Masahiko and Yunoki, Seiji",
        "Kernel polynomial method on {GPU}",
        ["International Journal of Parallel Programming", "41", "59"],
        2013,
    ),
    work(
        "Kreutzer2015",
        "Kreutzer, Moritz and Hager, Georg and Wellein, Gerhard and Pieper, Andreas and Alvermann, Andreas and \
         Fehske, Holger",
        "Performance engineering of the kernel polynomial method on large-scale {CPU-GPU} systems",
        ["2015 IEEE International Parallel and Distributed Processing Symposium", "", "417"],
        2015,
    ),
    work(
        "Garcia2015",
        "Garc{\\'i}a, Jose H. and Covaci, Lucian and Rappoport, Tatiana G.",
        "Real-space calculation of the conductivity tensor for disordered topological matter",
        ["Physical Review Letters", "114", "116602"],
        2015,
    ),
    work(
        "TalEzer1984",
        "Tal-Ezer, H. and Kosloff, R.",
        "An accurate and efficient scheme for propagating the time dependent {Schr{\\\"o}dinger} equation",
        ["The Journal of Chemical Physics", "81", "3967"],
        1984,
    ),
    work(
        "Davidson1975",
        "Davidson, Ernest R.",
        "The iterative calculation of a few of the lowest eigenvalues and corresponding eigenvectors of large \
         real-symmetric matrices",
        ["Journal of Computational Physics", "17", "87"],
        1975,
    ),
    work(
        "Olsen1990",
        "Olsen, Jeppe and J{\\o}rgensen, Poul and Simons, Jack",
        "Passing the one-billion limit in full configuration-interaction {(FCI)} calculations",
        ["Chemical Physics Letters", "169", "463"],
        1990,
    ),
    work(
        "Wu2000",
        "Wu, Kesheng and Simon, Horst",
        "Thick-restart {Lanczos} method for large symmetric eigenvalue problems",
        ["SIAM Journal on Matrix Analysis and Applications", "22", "602"],
        2000,
    ),
    work(
        "Fang2012",
        "Fang, Haw-ren and Saad, Yousef",
        "A filtered {Lanczos} procedure for extreme and interior eigenvalue problems",
        ["SIAM Journal on Scientific Computing", "34", "A2220"],
        2012,
    ),
];

/// The works behind functions; a path that ends in `::` means all of a module.
pub(super) const CITED: [(&str, &[&str]); 14] = [
    ("kpm::", &["Weisse2006", "Silver1994"]),
    ("kpm::conductivity", &["Garcia2015"]),
    ("chebyshev", &["Weisse2006", "Kreutzer2015"]),
    ("kpm::moments", &["Kreutzer2015", "Salmon2011"]),
    ("kpm::accumulate", &["Zhang2013"]),
    ("kpm::double_moments", &["Weisse2006", "Garcia2015"]),
    ("kpm::evolve", &["TalEzer1984"]),
    ("chebyshev_expand", &["TalEzer1984"]),
    ("davidson", &["Davidson1975", "Olsen1990"]),
    ("eigs", &["Fang2012"]),
    ("lanczos", &["Wu2000"]),
    ("spectral_window", &["Wu2000"]),
    ("solve::exponential", &["Hochbruck1997", "Druskin1998"]),
    ("random_block", &["Salmon2011"]),
];
