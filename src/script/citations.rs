//! The papers behind the functions: one table from functions to works, and the works themselves.

use std::collections::BTreeSet;

/// A published work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CitedWork {
    /// Its key in a bibliography.
    pub key: &'static str,
    /// Names of the authors, as BibTeX takes them.
    pub author: &'static str,
    pub title: &'static str,
    /// Where it appeared.
    pub journal: &'static str,
    /// Volume, or number of a report.
    pub volume: &'static str,
    /// First page or number of the article.
    pub pages: &'static str,
    pub year: u16,
}

const fn work(
    key: &'static str,
    author: &'static str,
    title: &'static str,
    [journal, volume, pages]: [&'static str; 3],
    year: u16,
) -> CitedWork {
    CitedWork { key, author, title, journal, volume, pages, year }
}

/// All works that something here rests on.
pub const WORKS: [CitedWork; 65] = [
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
        "Kreutzer, Moritz and Hager, Georg and Wellein, Gerhard and Pieper, Andreas and Alvermann, Andreas and Fehske, Holger",
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
        "The iterative calculation of a few of the lowest eigenvalues and corresponding eigenvectors of large real-symmetric matrices",
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
        "Lin1990",
        "Lin, H. Q.",
        "Exact diagonalization of quantum-spin models",
        ["Physical Review B", "42", "6561"],
        1990,
    ),
    work(
        "Sandvik2010",
        "Sandvik, Anders W.",
        "Computational studies of quantum spin systems",
        ["AIP Conference Proceedings", "1297", "135"],
        2010,
    ),
    work(
        "Alvermann2011",
        "Alvermann, A. and Fehske, H.",
        "High-order commutator-free exponential time-propagation of driven quantum systems",
        ["Journal of Computational Physics", "230", "5930"],
        2011,
    ),
    work(
        "Fishman2022",
        "Fishman, Matthew and White, Steven R. and Stoudenmire, E. Miles",
        "The {ITensor} software library for tensor network calculations",
        ["SciPost Physics Codebases", "", "4"],
        2022,
    ),
    work(
        "White1992",
        "White, Steven R.",
        "Density matrix formulation for quantum renormalization groups",
        ["Physical Review Letters", "69", "2863"],
        1992,
    ),
    work(
        "White1996",
        "White, Steven R.",
        "Spin gaps in a frustrated {Heisenberg} model for {CaV$_4$O$_9$}",
        ["Physical Review Letters", "77", "3633"],
        1996,
    ),
    work(
        "White2005",
        "White, Steven R.",
        "Density matrix renormalization group algorithms with a single center site",
        ["Physical Review B", "72", "180403"],
        2005,
    ),
    work(
        "Vidal2004",
        "Vidal, Guifr{\\'e}",
        "Efficient simulation of one-dimensional quantum many-body systems",
        ["Physical Review Letters", "93", "040502"],
        2004,
    ),
    work(
        "Haegeman2016",
        "Haegeman, Jutho and Lubich, Christian and Oseledets, Ivan and Vandereycken, Bart and Verstraete, Frank",
        "Unifying time evolution and optimization with matrix product states",
        ["Physical Review B", "94", "165116"],
        2016,
    ),
    work(
        "Suzuki1993",
        "Suzuki, Masuo",
        "General decomposition theory of ordered exponentials",
        ["Proceedings of the Japan Academy, Series B", "69", "161--166"],
        1993,
    ),
    work(
        "Lubich2015",
        "Lubich, Christian and Oseledets, Ivan V. and Vandereycken, Bart",
        "Time integration of tensor trains",
        ["SIAM Journal on Numerical Analysis", "53", "917--941"],
        2015,
    ),
    work(
        "White2009",
        "White, Steven R.",
        "Minimally entangled typical quantum states at finite temperature",
        ["Physical Review Letters", "102", "190601"],
        2009,
    ),
    work(
        "Stoudenmire2010",
        "Stoudenmire, E. M. and White, Steven R.",
        "Minimally entangled typical thermal state algorithms",
        ["New Journal of Physics", "12", "055026"],
        2010,
    ),
    work(
        "Druskin1998",
        "Druskin, Vladimir and Greenbaum, Anne and Knizhnerman, Leonid",
        "Using nonorthogonal {Lanczos} vectors in the computation of matrix functions",
        ["SIAM Journal on Scientific Computing", "19", "38--54"],
        1998,
    ),
    work(
        "Knowles1989",
        "Knowles, Peter J. and Handy, Nicholas C.",
        "A determinant based full configuration interaction program",
        ["Computer Physics Communications", "54", "75--83"],
        1989,
    ),
    work(
        "Yang2020",
        "Yang, Mingru and White, Steven R.",
        "Time-dependent variational principle with ancillary {Krylov} subspace",
        ["Physical Review B", "102", "094315"],
        2020,
    ),
    work(
        "Verstraete2004",
        "Verstraete, F. and Garc{\\'i}a-Ripoll, J. J. and Cirac, J. I.",
        "Matrix product density operators: simulation of finite-temperature and dissipative systems",
        ["Physical Review Letters", "93", "207204"],
        2004,
    ),
    work(
        "Holzner2011",
        "Holzner, Andreas and Weichselbaum, Andreas and McCulloch, Ian P. and Schollw{\\\"o}ck, Ulrich and von Delft, Jan",
        "{Chebyshev} matrix product state approach for spectral functions",
        ["Physical Review B", "83", "195115"],
        2011,
    ),
    work(
        "Jaklic1994",
        "Jakli{\\v{c}}, J. and Prelov{\\v{s}}ek, P.",
        "{Lanczos} method for the calculation of finite-temperature quantities in correlated systems",
        ["Physical Review B", "49", "5065"],
        1994,
    ),
    work(
        "Hochbruck1997",
        "Hochbruck, Marlis and Lubich, Christian",
        "On {Krylov} subspace approximations to the matrix exponential operator",
        ["SIAM Journal on Numerical Analysis", "34", "1911"],
        1997,
    ),
    work(
        "Legeza2004",
        "Legeza, {\\\"O}. and S{\\'o}lyom, J.",
        "Quantum data compression, quantum information generation, and the density-matrix renormalization-group method",
        ["Physical Review B", "70", "205118"],
        2004,
    ),
    work(
        "McCulloch2007",
        "McCulloch, Ian P.",
        "From density-matrix renormalization group to matrix product states",
        ["Journal of Statistical Mechanics: Theory and Experiment", "2007", "P10014"],
        2007,
    ),
    work(
        "McCulloch2008",
        "McCulloch, Ian P.",
        "Infinite size density matrix renormalization group, revisited",
        ["arXiv preprint", "", "arXiv:0804.2509"],
        2008,
    ),
    work(
        "ZaunerStauber2018",
        "Zauner-Stauber, Valentin and Vanderstraeten, Laurens and Fishman, Matthew T. and Verstraete, Frank and Haegeman, Jutho",
        "Variational optimization algorithms for uniform matrix product states",
        ["Physical Review B", "97", "045145"],
        2018,
    ),
    work(
        "Haegeman2012",
        "Haegeman, Jutho and Pirvu, Bogdan and Weir, David J. and Cirac, J. Ignacio and Osborne, Tobias J. and Verschelde, Henri and Verstraete, Frank",
        "Variational matrix product ansatz for dispersion relations",
        ["Physical Review B", "85", "100408"],
        2012,
    ),
    work(
        "Nemes2014",
        "Nemes, Csaba and Barcza, Gergely and Nagy, Zolt{\\'a}n and Legeza, {\\\"O}rs and Szolgay, P{\\'e}ter",
        "The density matrix renormalization group algorithm on kilo-processor architectures: implementation and trade-offs",
        ["Computer Physics Communications", "185", "1570"],
        2014,
    ),
    work(
        "Ren2020",
        "Ren, Jiajun and Li, Weitang and Jiang, Tong and Shuai, Zhigang",
        "A general automatic method for optimal construction of matrix product operators using bipartite graph theory",
        ["The Journal of Chemical Physics", "153", "084118"],
        2020,
    ),
    work(
        "Pizzi2020",
        "Pizzi, Giovanni and others",
        "{Wannier90} as a community code: new features and applications",
        ["Journal of Physics: Condensed Matter", "32", "165902"],
        2020,
    ),
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
        "An accelerated conjugate gradient algorithm to compute low-lying eigenvalues: a study for the {Dirac} operator in {SU(2)} lattice {QCD}",
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
    work(
        "Cohen1966",
        "Cohen, Marvin L. and Bergstresser, T. K.",
        "Band structures and pseudopotential form factors for fourteen semiconductors of the diamond and zinc-blende structures",
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
    work(
        "Fang2012",
        "Fang, Haw-ren and Saad, Yousef",
        "A filtered {Lanczos} procedure for extreme and interior eigenvalue problems",
        ["SIAM Journal on Scientific Computing", "34", "A2220"],
        2012,
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
];

/// Which works stand behind which functions; a path that ends in `::` means all of a module.
const BEHIND: [(&str, &[&str]); 75] = [
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
    ("transport::", &["LopezSancho1985", "Fisher1981"]),
    ("transport::contact", &["Caroli1971"]),
    ("markers::chern", &["Bianco2011"]),
    ("markers::bott", &["Loring2010"]),
    ("markers::entanglement", &["Peschel2003"]),
    ("markers::level_ratio", &["Oganesyan2007"]),
    ("chern_number", &["Fukui2005"]),
    ("bloch::z2", &["FuKane2006"]),
    ("lanczos", &["Wu2000"]),
    ("spectral_window", &["Wu2000"]),
    ("exact::", &["Lin1990"]),
    ("sites", &["Fishman2022"]),
    ("opsum", &["Fishman2022"]),
    ("models::", &["Fishman2022"]),
    ("dmrg::", &["White1992", "White1996", "White2005", "Ren2020"]),
    ("superblock", &["White1992", "Nemes2014"]),
    ("dmrg::white_transformation", &["White1996"]),
    ("density_matrix", &["White1992", "White2005"]),
    ("truncate", &["Legeza2004"]),
    ("dmrg::mpo", &["Ren2020"]),
    ("spin_correlations", &["McCulloch2007"]),
    ("dmrg::uniform", &["ZaunerStauber2018", "McCulloch2008"]),
    ("dmrg::uniform_search", &["ZaunerStauber2018"]),
    ("dmrg::uniform_growth", &["McCulloch2008"]),
    ("dmrg::uniform_excitations", &["Haegeman2012"]),
    ("dmrg::evolve", &["Haegeman2016", "Yang2020", "Vidal2004", "Hochbruck1997", "Suzuki1993", "Lubich2015"]),
    ("dmrg::metts", &["White2009", "Stoudenmire2010", "Flyvbjerg1989"]),
    ("models::fcidump", &["Knowles1989"]),
    ("dmrg::thermal", &["Verstraete2004", "Haegeman2016"]),
    ("dmrg::purified", &["Verstraete2004"]),
    ("dmrg::spectral", &["Holzner2011", "Weisse2006"]),
    ("exact::thermal", &["Jaklic1994"]),
    ("exact::translation", &["Sandvik2010"]),
    ("exact::reflection", &["Sandvik2010"]),
    ("exact::rotation", &["Sandvik2010"]),
    ("exact::spin_flip", &["Sandvik2010"]),
    ("exact::permutation", &["Sandvik2010"]),
    ("exact::evolve", &["Alvermann2011", "Hochbruck1997", "Druskin1998"]),
    ("solve::exponential", &["Hochbruck1997", "Druskin1998"]),
    ("lattice::wannier90", &["Pizzi2020"]),
    ("random_block", &["Salmon2011"]),
    ("tight_binding", &["Salmon2011"]),
    ("overlap::", &["Neuberger1998", "Giusti2003", "Walk2010"]),
    ("overlap::sign", &["Giusti2003"]),
    ("minmax_inverse_sqrt", &["Giusti2003"]),
    ("wilson::kernel", &["Walk2010"]),
    ("ritz", &["Kalkreuter1996"]),
    ("gauge::heatbath", &["Cabibbo1982", "Creutz1987", "Salmon2011"]),
    ("gauge::overrelax", &["Creutz1987"]),
    ("gauge::stout", &["Morningstar2004"]),
    ("gauge::wilson_flow", &["Luscher2010"]),
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

/// The works behind these functions, in the order of [`WORKS`].
pub fn works<'a>(functions: impl IntoIterator<Item = &'a str>) -> Vec<CitedWork> {
    let mut keys: BTreeSet<&str> = BTreeSet::new();
    for function in functions {
        for (path, behind) in BEHIND {
            if path == function || (path.ends_with("::") && function.starts_with(path)) {
                keys.extend(behind);
            }
        }
    }
    WORKS.into_iter().filter(|work| keys.contains(&work.key)).collect()
}

/// The functions that [`works`] knows, with `module::` for all of a module.
pub fn functions() -> impl Iterator<Item = &'static str> {
    BEHIND.iter().map(|behind| behind.0)
}

/// The program itself, as BibTeX.
pub fn program() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "@software{{Umklapp,\n  title = {{Umklapp: a scripting engine for quantum-lattice workflows}},\n  version = {{{version}}},\n}}"
    )
}

impl CitedWork {
    /// The work as an entry of BibTeX.
    pub fn bibtex(&self) -> String {
        let year = self.year.to_string();
        let fields = [
            ("author", self.author),
            ("title", self.title),
            ("journal", self.journal),
            ("volume", self.volume),
            ("pages", self.pages),
            ("year", &year),
        ];
        let lines = fields.iter().filter(|field| !field.1.is_empty());
        let lines: String = lines.map(|(name, value)| format!("  {name} = {{{value}}},\n")).collect();
        format!("@article{{{},\n{lines}}}", self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_is_cited_and_every_key_is_a_work() {
        let keys: BTreeSet<&str> = BEHIND.iter().flat_map(|b| b.1.iter().copied()).collect();
        let works: BTreeSet<&str> = WORKS.iter().map(|w| w.key).collect();
        assert_eq!(keys, works);
    }

    #[test]
    fn the_functions_exist() {
        let engine = crate::Engine::new().unwrap();
        let names = crate::script::registry::names(engine.rhai());
        for path in functions() {
            assert!(
                names.iter().any(|n| n == path || (path.ends_with("::") && n.starts_with(path))),
                "{path}"
            );
        }
    }

    #[test]
    fn a_script_of_exact_sectors_cites_davidson_and_lin() {
        let keys: Vec<&str> = works(["davidson", "exact::operator"]).iter().map(|w| w.key).collect();
        assert_eq!(keys, ["Davidson1975", "Olsen1990", "Lin1990"]);
        assert!(works(["print"]).is_empty());
    }
}
