//! `Symmetry`: what divides exact sectors further, made for a chain or a lattice.

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT};

use super::chebyshev::as_complex;
use super::values::{numbered, type_of};
use crate::error::{Error, Result};
use crate::lattice::Lattice;
use crate::manybody::Sites;
use crate::manybody::symmetric::{Quantum, StateAction, Symmetry};
use crate::number::C64;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

/// Registers the type and the functions that make it.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Symmetry>("Symmetry");
    rooms.register_global_module(exported_module!(symmetry_functions).into());
    rooms.room("exact", exported_module!(symmetry_makers));
}

/// The eigenvalue of a translation with momentum 2 pi k / cells.
fn momentum(k: f64, cells: usize) -> Quantum {
    // Full turns are taken off first, so that real numbers stay real.
    Quantum::Value(C64::cis(-std::f64::consts::TAU * k.rem_euclid(cells as f64) / cells as f64))
}

/// A momentum: a whole number, or half of an odd one where fermions change their sign over the boundary.
fn momentum_of(k: &Dynamic) -> Result<f64> {
    let k = k.as_float().or_else(|_| k.as_int().map(|k| k as f64));
    let k = k.map_err(|kind| {
        Error::input(format!("a momentum is a number, not of the kind {kind}"))
            .hint("0 stands for none, n / 2 for half a turn")
    })?;
    if !((2.0 * k).fract() == 0.0) || k.abs() > 1e6 {
        return Err(Error::input(format!("momentum {k}"))
            .hint("k counts momenta: it stands for 2 pi k over the number of cells, and is whole, or half of an odd \
                 number for antiperiodic boundaries"));
    }
    Ok(k)
}

/// 1 or -1.
fn parity_of(parity: INT, what: &str) -> Result<Quantum> {
    match parity {
        1 | -1 => Ok(Quantum::Value(C64::from(parity as f64))),
        _ => Err(Error::input(format!("{what} with the eigenvalue {parity}")).hint("it is 1 or -1")),
    }
}

/// A permutation of whole numbers.
fn sites_of(array: &Array) -> Result<Vec<usize>> {
    let one = |x: &Dynamic| {
        x.as_int().ok().and_then(|i| usize::try_from(i).ok()).ok_or_else(|| {
            Error::input(format!("a permutation holds site numbers, not {}", type_of(x)))
                .hint("like [1, 2, 3, 0]: entry i is the site that site i goes to")
        })
    };
    array.iter().map(one).collect()
}

#[export_module(root = "crate::script::native")]
mod symmetry_functions {
    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn symmetry_to_string(symmetry: &mut Symmetry) -> String {
        format!("Symmetry of {} sites: {}", symmetry.to.len(), symmetry.name)
    }

    /// Where each site goes under a symmetry.
    ///
    /// # Example
    /// ```rhai
    /// assert(exact::translation(sites("S=1", 4), 0).sites == [1, 2, 3, 0], "one to the right");
    /// ```
    #[rhai_fn(global, get = "sites", pure)]
    pub fn symmetry_sites(symmetry: &mut Symmetry) -> Array {
        symmetry.to.iter().map(|&j| Dynamic::from(j as INT)).collect()
    }
}

#[export_module(root = "crate::script::native")]
mod symmetry_makers {
    /// The translation of a ring by one site, or by a cell of several, for states of momentum 2 pi `k` / n with n
    /// cells: the translation multiplies them by exp(-2 pi i k / n).
    ///
    /// # Options
    /// - `step` (int >= 1, 1): sites per cell.
    /// - `antiperiodic` (false): fermions change their sign over the boundary. For an odd number of fermions `k` is
    ///   then half of an odd number.
    ///
    /// # Example
    /// ```rhai
    /// // One magnon of a ferromagnet: its energy over the ground state is 1 - cos k.
    /// let ring = sites("S=1/2", 8);
    /// let h = models::heisenberg(ring, #{ J: -1.0, periodic: true });
    /// for k in 0..8 {
    ///     let magnon = exact::operator(h, ring, #{ Sz: 3, symmetries: [exact::translation(ring, k)] }).to_matrix();
    ///     assert_close(magnon.at(0, 0), -2.0 + 1.0 - cos(2.0 * PI * k / 8.0), 1e-13);
    /// }
    /// ```
    #[rhai_fn(name = "translation", return_raw)]
    pub fn translation_with(chain: Sites, k: Dynamic, o: Options) -> Fallible<Symmetry> {
        let (n, step, k) = (chain.count(), o.count("step")?, momentum_of(&k)?);
        if !n.is_multiple_of(step) {
            return Err(Error::input(format!("cells of {step} sites do not fill a ring of {n}"))
                .hint("the number of sites is a multiple of `step`")
                .into());
        }
        let to = (0..n).map(|i| (i + step) % n).collect();
        let mut symmetry = Symmetry::permutation(format!("momentum {k}"), to, momentum(k, n / step))?;
        if o.flag("antiperiodic")? {
            symmetry.signs = (0..n).map(|i| i + step >= n).collect();
        }
        Ok(symmetry)
    }

    /// The translation of a lattice by a cell in a direction, for states of momentum 2 pi `k` / n in this direction,
    /// which has n cells. The sites of the chain are those of the lattice. Over an antiperiodic boundary fermions
    /// change their sign.
    ///
    /// # Example
    /// ```rhai
    /// let torus = lattice::square(4, 2);
    /// let spins = sites("S=1/2", 8);
    /// let all = 0;
    /// for kx in 0..4 {
    ///     for ky in 0..2 {
    ///         let moves = [exact::translation(torus, 0, kx), exact::translation(torus, 1, ky)];
    ///         all += exact::basis(spins, #{ Sz: 0, symmetries: moves }).dim;
    ///     }
    /// }
    /// assert(all == 70, "C(8, 4)");
    /// ```
    #[rhai_fn(name = "translation", return_raw)]
    pub fn translation_of_lattice(lat: Lattice, direction: INT, k: Dynamic) -> Fallible<Symmetry> {
        let direction = usize::try_from(direction).map_err(|_| {
            Error::input(format!("direction {direction}")).hint("directions are numbered from 0")
        })?;
        let (to, signs) = lat.translation(direction, 1)?;
        let k = momentum_of(&k)?;
        let name = format!("momentum {k} in direction {direction}");
        let symmetry = Symmetry::permutation(name, to, momentum(k, lat.cells()[direction]))?;
        Ok(Symmetry { signs, ..symmetry })
    }

    /// The reflection of a chain, which maps its first site to its last, for states of this parity, 1 or -1.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 2);
    /// let odd = #{ Sz: 0, symmetries: [exact::reflection(chain, 1)] };
    /// let triplet = exact::operator(models::heisenberg(chain), chain, odd);
    /// assert_close(triplet.to_matrix().at(0, 0), 0.25, 1e-15);
    /// ```
    #[rhai_fn(name = "reflection", return_raw)]
    pub fn reflection(chain: Sites, parity: INT) -> Fallible<Symmetry> {
        let quantum = parity_of(parity, "a reflection")?;
        let to = (0..chain.count()).rev().collect();
        Ok(Symmetry::permutation(format!("reflection {parity}"), to, quantum)?)
    }

    /// The reflection of a lattice along a Cartesian axis, for states of this parity, 1 or -1. The mirror plane is the
    /// one that maps the first site to the first possible site.
    ///
    /// # Example
    /// ```rhai
    /// let torus = lattice::square(3, 3);
    /// assert(exact::reflection(torus, 0, 1).sites == [0, 2, 1, 3, 5, 4, 6, 8, 7], "x becomes -x");
    /// ```
    #[rhai_fn(name = "reflection", return_raw)]
    pub fn reflection_of_lattice(lat: Lattice, axis: INT, parity: INT) -> Fallible<Symmetry> {
        let quantum = parity_of(parity, "a reflection")?;
        let to = lat.reflection(numbered(axis, "axis")?)?;
        Ok(Symmetry::permutation(format!("reflection {parity} along axis {axis}"), to, quantum)?)
    }

    /// The rotation of a lattice by 2 pi / `fold` in the plane of its first two axes, for states that it multiplies by
    /// exp(-2 pi i `q` / fold). The centre is the one that maps the first site to the first possible site.
    ///
    /// # Example
    /// ```rhai
    /// let torus = lattice::square(3, 3);
    /// assert(exact::rotation(torus, 4, 0).sites == [0, 3, 6, 2, 5, 8, 1, 4, 7], "a quarter of a turn");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn rotation(lat: Lattice, fold: INT, q: INT) -> Fallible<Symmetry> {
        let to = lat.rotation(fold)?;
        let value = C64::cis(-std::f64::consts::TAU * (q.rem_euclid(fold)) as f64 / fold as f64);
        Ok(Symmetry::permutation(format!("rotation {q} of {fold}"), to, Quantum::Value(value))?)
    }

    /// The flip of all spins, for states with this eigenvalue, 1 or -1. For electrons, up and down are exchanged, and
    /// two electrons on a site give a minus sign. It needs a sector with Sz = 0 or Nup = Ndn. States of n spins 1/2 or
    /// n electrons with total spin S have the eigenvalue (-1)^(n/2 - S).
    ///
    /// # Example
    /// ```rhai
    /// let pair = sites("S=1/2", 2);
    /// let odd = #{ Sz: 0, symmetries: [exact::spin_flip(pair, -1)] };
    /// let singlet = exact::operator(models::heisenberg(pair), pair, odd);
    /// assert_close(singlet.to_matrix().at(0, 0), -0.75, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn spin_flip(chain: Sites, parity: INT) -> Fallible<Symmetry> {
        let quantum = parity_of(parity, "a spin flip")?;
        let stay = (0..chain.count()).collect();
        Ok(Symmetry::permutation(format!("spin flip {parity}"), stay, quantum)?.within(StateAction::Flip))
    }

    /// Any permutation of sites; site i is mapped to site `to[i]`. It is for states that it multiplies by exp(-2 pi i
    /// `q` / m), where m is the order of the permutation. Or `q` is this factor itself, Complex. Exchanging fermions
    /// changes the sign.
    ///
    /// # Options
    /// - `states` (array, all stay): for each state of a site, the name of the state to which it is mapped; the same on
    ///   all sites.
    /// - `phases` (array, all 1): for each state of a site, its factor, of modulus 1.
    /// - `signs` (array, none): 1 for each site whose fermions change their sign, 0 for the others.
    /// - `name` ("permutation"): its name in messages.
    ///
    /// # Example
    /// ```rhai
    /// // Two rungs of a ladder change places.
    /// let ladder = sites("S=1/2", 4);
    /// let h = models::heisenberg(ladder);
    /// let even = exact::basis(ladder, #{ symmetries: [exact::permutation([2, 3, 0, 1], 0)] });
    /// let odd = exact::basis(ladder, #{ symmetries: [exact::permutation([2, 3, 0, 1], 1)] });
    /// assert(even.dim == 10 && odd.dim == 6, "pairs of four states");
    /// ```
    #[rhai_fn(name = "permutation", return_raw)]
    pub fn permutation_with(to: Array, q: Dynamic, o: Options) -> Fallible<Symmetry> {
        let quantum = match (q.as_int(), as_complex(&q)) {
            (Ok(q), _) => Quantum::Number(q),
            (_, Some(z)) if q.is::<C64>() => Quantum::Value(z),
            _ => {
                let found = q.as_float().map_or_else(|_| type_of(&q).to_string(), |x| x.to_string());
                return Err(Error::input(format!("the quantum number of a permutation is {found}"))
                    .hint("a whole number, or the Complex number that states are multiplied with")
                    .into());
            }
        };
        let number = match quantum {
            Quantum::Number(q) => q.to_string(),
            Quantum::Value(z) => crate::number::format::complex(z, 6),
        };
        let mut symmetry =
            Symmetry::permutation(format!("{} {number}", o.text("name")?), sites_of(&to)?, quantum)?;
        let (states, phases) = (o.maybe::<Array>("states"), o.maybe::<Array>("phases"));
        if states.is_some() || phases.is_some() {
            let names = |x: Dynamic| {
                x.into_string().map_err(|_| {
                    Error::input("option `states` takes an array of names of states")
                        .hint("like [\"Dn\", \"Up\"]")
                })
            };
            let factor = |x: &Dynamic| {
                as_complex(x).ok_or_else(|| {
                    Error::input("option `phases` takes an array of numbers").hint("like [1, -1]")
                })
            };
            let phases = phases.map(|all| all.iter().map(factor).collect::<Result<Vec<_>>>()).transpose()?;
            let states =
                states.map(|all| all.into_iter().map(names).collect::<Result<Vec<_>>>()).transpose()?;
            symmetry = symmetry.within(StateAction::States(states, phases));
        }
        if let Some(signs) = o.maybe::<Array>("signs") {
            if signs.len() != symmetry.to.len() {
                return Err(Error::input(format!("{} signs for {} sites", signs.len(), symmetry.to.len()))
                    .hint("1 for each site whose fermions change their sign, 0 for the others")
                    .into());
            }
            let sign = |x: &Dynamic| match x.as_int() {
                Ok(0) => Ok(false),
                Ok(1) => Ok(true),
                _ => Err(Error::input(format!("option `signs` holds {}", type_of(x)))
                    .hint("1 for each site whose fermions change their sign, 0 for the others")),
            };
            symmetry.signs = signs.iter().map(sign).collect::<Result<_>>()?;
        }
        Ok(symmetry)
    }
}
