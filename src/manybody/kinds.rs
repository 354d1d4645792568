//! The kinds of sites that have names: spins, fermions, electrons, bosons. States, operators and signs are ITensor's.

use super::site::{BOSON, Site};
use crate::error::{Error, Result, nearest};
use crate::number::C64;

impl Site {
    /// A site by the name of its kind: "S=1/2", "S=1", "S=3/2", ..., "Fermion", "Electron", "tJ", "SU(n)" or "Boson",
    /// which needs the largest occupation.
    ///
    /// # Errors
    /// For an unknown name, bosons without `nmax`, or `nmax` for what is no boson.
    pub fn named(name: &str, nmax: Option<usize>) -> Result<Site> {
        if nmax.is_some() && name != BOSON {
            return Err(Error::input(format!("option `nmax` is for bosons, and these sites are `{name}`"))
                .hint("leave it out"));
        }
        if let Some(spin) = name.strip_prefix("S=") {
            return Site::spin(name, spin);
        }
        if let Some(flavours) = name.strip_prefix("SU(").and_then(|rest| rest.strip_suffix(')')) {
            return Site::flavours(name, flavours);
        }
        match name {
            "Fermion" => Site::fermion(),
            "Electron" => Site::electron(),
            "tJ" => Site::t_j(),
            BOSON => match nmax {
                Some(nmax) => Site::boson(nmax),
                None => Err(Error::input("bosons need a largest occupation of a site")
                    .hint("say how many, 3 for one")),
            },
            _ => {
                let names = ["S=1/2", "S=1", "Fermion", "Electron", "tJ", "SU(4)", BOSON];
                let error = Error::input(format!("no kind of site `{name}`"));
                Err(match nearest(name, names) {
                    Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                    None => {
                        error.hint(format!("the kinds are {} and spins \"S=3/2\", ...", names.join(", ")))
                    }
                })
            }
        }
    }

    /// A spin; states from the largest Sz down.
    fn spin(name: &str, spin: &str) -> Result<Site> {
        let wrong = || {
            Error::input(format!("`{name}` is no spin")).hint("spins are \"S=1/2\", \"S=1\", \"S=3/2\", ...")
        };
        let number = |text: &str| text.parse::<u32>().ok().filter(|&n| n > 0 && n < 256).ok_or_else(wrong);
        let twice = match spin.split_once('/') {
            Some((odd, "2")) => number(odd)?,
            Some(_) => return Err(wrong()),
            None => 2 * number(spin)?,
        };
        if twice > 255 {
            return Err(wrong());
        }
        let s = f64::from(twice) / 2.0;
        let m: Vec<f64> = (0..=twice).map(|k| s - f64::from(k)).collect();
        let dim = m.len();
        let states = match twice {
            1 => vec!["Up".into(), "Dn".into()],
            2 => vec!["Up".into(), "Z0".into(), "Dn".into()],
            _ => m.iter().map(|m| format!("{m}")).collect(),
        };
        let raise = |k: usize| (s * (s + 1.0) - m[k] * (m[k] + 1.0)).sqrt();
        let plus: Vec<_> = (1..dim).map(|k| (k - 1, k, raise(k))).collect();
        let minus: Vec<_> = plus.iter().map(|&(i, j, x)| (j, i, x)).collect();
        let half = plus.iter().chain(&minus).map(|&(i, j, x)| (i, j, x / 2.0));
        let mut y = vec![C64::ZERO; dim * dim];
        for &(i, j, x) in &plus {
            y[i * dim + j] = C64::new(0.0, -x / 2.0);
            y[j * dim + i] = C64::new(0.0, x / 2.0);
        }
        let mut site = Site::new(name, states)?
            .with("Sx", half)?
            .with_matrix("Sy", y, false)?
            .with("S+", plus)?
            .with("S-", minus)?
            .with("Sz", m.iter().enumerate().map(|(k, &m)| (k, k, m)))?
            .with("Sz2", m.iter().enumerate().map(|(k, &m)| (k, k, m * m)))?
            .charged("Sz", &m)?
            .charged_modulo("SzParity", &(0..dim).map(|k| (k % 2) as f64).collect::<Vec<_>>(), 2)?;
        if twice == 1 {
            let y = [C64::ZERO, -C64::I, C64::I, C64::ZERO].to_vec();
            site = site
                .with("X", [(0, 1, 1.0), (1, 0, 1.0)])?
                .with_matrix("Y", y, false)?
                .with("Z", [(0, 0, 1.0), (1, 1, -1.0)])?
                .with("ProjUp", [(0, 0, 1.0)])?
                .with("ProjDn", [(1, 1, 1.0)])?;
        }
        Ok(site)
    }

    /// Spinless fermions: empty or occupied.
    fn fermion() -> Result<Site> {
        Site::new("Fermion", vec!["Emp".into(), "Occ".into()])?
            .with("N", [(1, 1, 1.0)])?
            .with("C", [(0, 1, 1.0)])?
            .with("Cdag", [(1, 0, 1.0)])?
            .with("A", [(0, 1, 1.0)])?
            .with("Adag", [(1, 0, 1.0)])?
            .fermionic(&["C", "Cdag"])
            .charged("N", &[0.0, 1.0])?
            .charged_modulo("NfParity", &[0.0, 1.0], 2)?
            .with_odd(vec![false, true])
    }

    /// Electrons: empty, up, down, both = c+_up c+_dn |0>.
    fn electron() -> Result<Site> {
        let up = [(0, 1, 1.0), (2, 3, 1.0)];
        let down = [(0, 2, 1.0), (1, 3, -1.0)];
        let hard_core = [(0, 2, 1.0), (1, 3, 1.0)];
        let back = |elements: [(usize, usize, f64); 2]| elements.map(|(i, j, x)| (j, i, x));
        let states = ["Emp", "Up", "Dn", "UpDn"].map(String::from).to_vec();
        Site::new("Electron", states)?
            .with("Nup", [(1, 1, 1.0), (3, 3, 1.0)])?
            .with("Ndn", [(2, 2, 1.0), (3, 3, 1.0)])?
            .with("Nupdn", [(3, 3, 1.0)])?
            .with("Ntot", [(1, 1, 1.0), (2, 2, 1.0), (3, 3, 2.0)])?
            .with("Cup", up)?
            .with("Cdagup", back(up))?
            .with("Cdn", down)?
            .with("Cdagdn", back(down))?
            .with("Aup", up)?
            .with("Adagup", back(up))?
            .with("Adn", hard_core)?
            .with("Adagdn", back(hard_core))?
            .with("Fup", [(0, 0, 1.0), (1, 1, -1.0), (2, 2, 1.0), (3, 3, -1.0)])?
            .with("Fdn", [(0, 0, 1.0), (1, 1, 1.0), (2, 2, -1.0), (3, 3, -1.0)])?
            .with("Sz", [(1, 1, 0.5), (2, 2, -0.5)])?
            .with("Sx", [(1, 2, 0.5), (2, 1, 0.5)])?
            .with_matrix("Sy", spin_y(4), false)?
            .with("S+", [(1, 2, 1.0)])?
            .with("S-", [(2, 1, 1.0)])?
            .fermionic(&["Cup", "Cdagup", "Cdn", "Cdagdn"])
            .charged("Nup", &[0.0, 1.0, 0.0, 1.0])?
            .charged("Ndn", &[0.0, 0.0, 1.0, 1.0])?
            .charged("N", &[0.0, 1.0, 1.0, 2.0])?
            .charged("Sz", &[0.0, 0.5, -0.5, 0.0])?
            .charged_modulo("NfParity", &[0.0, 1.0, 1.0, 0.0], 2)?
            .with_odd(vec![false, true, true, false])
    }

    /// Electrons that do not share a site: empty, up, down.
    fn t_j() -> Result<Site> {
        let states = ["Emp", "Up", "Dn"].map(String::from).to_vec();
        Site::new("tJ", states)?
            .with("Nup", [(1, 1, 1.0)])?
            .with("Ndn", [(2, 2, 1.0)])?
            .with("Ntot", [(1, 1, 1.0), (2, 2, 1.0)])?
            .with("Cup", [(0, 1, 1.0)])?
            .with("Cdagup", [(1, 0, 1.0)])?
            .with("Cdn", [(0, 2, 1.0)])?
            .with("Cdagdn", [(2, 0, 1.0)])?
            .with("Aup", [(0, 1, 1.0)])?
            .with("Adagup", [(1, 0, 1.0)])?
            .with("Adn", [(0, 2, 1.0)])?
            .with("Adagdn", [(2, 0, 1.0)])?
            .with("Sz", [(1, 1, 0.5), (2, 2, -0.5)])?
            .with("Sx", [(1, 2, 0.5), (2, 1, 0.5)])?
            .with_matrix("Sy", spin_y(3), false)?
            .with("S+", [(1, 2, 1.0)])?
            .with("S-", [(2, 1, 1.0)])?
            .fermionic(&["Cup", "Cdagup", "Cdn", "Cdagdn"])
            .charged("Nup", &[0.0, 1.0, 0.0])?
            .charged("Ndn", &[0.0, 0.0, 1.0])?
            .charged("N", &[0.0, 1.0, 1.0])?
            .charged("Sz", &[0.0, 0.5, -0.5])?
            .charged_modulo("NfParity", &[0.0, 1.0, 1.0], 2)?
            .with_odd(vec![false, true, true])
    }

    /// Fermions of several flavours, those of a spin F = (n - 1)/2. State s holds flavour f if bit f - 1 of s is set;
    /// the flavours are created in the order of their numbers.
    fn flavours(name: &str, count: &str) -> Result<Site> {
        let n = count.parse::<u32>().ok().filter(|n| (1..=8).contains(n)).ok_or_else(|| {
            Error::input(format!("`{name}` is no kind of site"))
                .hint("fermions of one to eight flavours are \"SU(2)\", \"SU(3)\", ...")
        })?;
        let dim = 1usize << n;
        let holds = |s: usize, f: u32| s >> f & 1 == 1;
        let shown =
            |s: usize| (0..n).filter(|&f| holds(s, f)).map(|f| (f + 1).to_string()).collect::<String>();
        let states = (0..dim).map(|s| if s == 0 { "Emp".into() } else { shown(s) }).collect();
        let total = |s: usize| f64::from(s.count_ones());
        let mut site = Site::new(name, states)?;
        let mut fermionic = Vec::new();
        for f in 0..n {
            // The sign of passing the flavours that are created before this one.
            let sign = |s: usize| if (s & ((1 << f) - 1)).count_ones() % 2 == 1 { -1.0 } else { 1.0 };
            let with = (0..dim).filter(|&s| holds(s, f));
            let lower: Vec<_> = with.clone().map(|s| (s ^ (1 << f), s, sign(s))).collect();
            let raise: Vec<_> = lower.iter().map(|&(i, j, x)| (j, i, x)).collect();
            let (c, cdag) = (format!("C{}", f + 1), format!("Cdag{}", f + 1));
            site = site.with(c.clone(), lower)?.with(cdag.clone(), raise)?;
            site = site.with(format!("N{}", f + 1), with.map(|s| (s, s, 1.0)))?;
            let charges: Vec<f64> = (0..dim).map(|s| f64::from(u8::from(holds(s, f)))).collect();
            site = site.charged(format!("N{}", f + 1), &charges)?;
            fermionic.extend([c, cdag]);
        }
        let pairs = |s: usize| total(s) * (total(s) - 1.0) / 2.0;
        let names: Vec<&str> = fermionic.iter().map(String::as_str).collect();
        site.with("Ntot", (0..dim).map(|s| (s, s, total(s))))?
            .with("Npair", (0..dim).map(|s| (s, s, pairs(s))))?
            .fermionic(&names)
            .charged("N", &(0..dim).map(total).collect::<Vec<_>>())?
            .charged_modulo("NfParity", &(0..dim).map(|s| total(s) % 2.0).collect::<Vec<_>>(), 2)?
            .with_odd((0..dim).map(|s: usize| s.count_ones() % 2 == 1).collect())
    }

    /// Bosons, up to `nmax` a site.
    fn boson(nmax: usize) -> Result<Site> {
        if nmax == 0 {
            return Err(Error::input("option `nmax` is 0, which leaves no bosons")
                .hint("a site holds one boson at least"));
        }
        let n = |k: usize| k as f64;
        let lower: Vec<_> = (1..=nmax.min(256)).map(|k| (k - 1, k, n(k).sqrt())).collect();
        let raise: Vec<_> = lower.iter().map(|&(i, j, x)| (j, i, x)).collect();
        let charges: Vec<f64> = (0..=nmax.min(256)).map(n).collect();
        Site::new(BOSON, (0..=nmax.min(256)).map(|k| k.to_string()).collect())?
            .with("N", (0..=nmax).map(|k| (k, k, n(k))))?
            .with("A", lower)?
            .with("Adag", raise)?
            .charged("N", &charges)
    }
}

/// Sy of electrons whose states 1 and 2, of so many, are spin up and spin down.
fn spin_y(states: usize) -> Vec<C64> {
    let mut y = vec![C64::ZERO; states * states];
    y[states + 2] = C64::new(0.0, -0.5);
    y[2 * states + 1] = C64::new(0.0, 0.5);
    y
}
