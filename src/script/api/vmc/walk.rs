//! `Walkers`: many configurations at once, moved by `metropolis`, and their local energies.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use rhai::plugin::*;
use rhai::{FLOAT, INT, Map};

use super::wavefunction::Psi;
use crate::error::{Error, Result, nearest};
use crate::manybody::OpSum;
use crate::montecarlo::lattice::{LatticeWalkers, LocalSum};
use crate::montecarlo::{
    Ensemble, Hamiltonian, LocalEnergy, Proposal, Scheme, ScreenRule, Sweep, System, WalkerStart, Walkers,
};
use crate::number::{C64, Matrix, Series, Table};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Walkers, as scripts hold them: a handle, so that all names of the same walkers see their moves.
#[derive(Clone)]
pub(super) enum ScriptWalkers {
    Real(Rc<RefCell<Walkers<f64>>>),
    Complex(Rc<RefCell<Walkers<C64>>>),
    LatticeReal(Rc<RefCell<LatticeWalkers<f64>>>),
    LatticeComplex(Rc<RefCell<LatticeWalkers<C64>>>),
}

pub(super) fn handle<T>(walkers: T) -> Rc<RefCell<T>> {
    Rc::new(RefCell::new(walkers))
}

/// Runs the same code on walkers in the continuum, and other code on those of a lattice.
macro_rules! walk {
    ($value:expr, $w:ident => $body:expr, $l:ident => $lattice:expr) => {
        walk!($value, $w => $body, $l => $lattice, borrow)
    };
    // To change them: `walk!(mut ..)`.
    (mut $value:expr, $w:ident => $body:expr, $l:ident => $lattice:expr) => {
        walk!($value, $w => $body, $l => $lattice, borrow_mut)
    };
    ($value:expr, $w:ident => $body:expr, $l:ident => $lattice:expr, $borrow:ident) => {{
        use $crate::script::api::vmc::walk::ScriptWalkers;
        match $value {
            ScriptWalkers::Real(w) => {
                #[allow(unused_mut)]
                let mut $w = w.$borrow();
                $body
            }
            ScriptWalkers::Complex(w) => {
                #[allow(unused_mut)]
                let mut $w = w.$borrow();
                $body
            }
            ScriptWalkers::LatticeReal(w) => {
                #[allow(unused_mut)]
                let mut $l = w.$borrow();
                $lattice
            }
            ScriptWalkers::LatticeComplex(w) => {
                #[allow(unused_mut)]
                let mut $l = w.$borrow();
                $lattice
            }
        }
    }};
}

pub(super) use walk;

/// Registers the type and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<ScriptWalkers>("Walkers");
    rooms.room("vmc", exported_module!(walk_functions));
}

/// An updating scheme by its name.
fn scheme_of(name: &str) -> Result<Scheme> {
    let names = Scheme::ALL.map(Scheme::name);
    Scheme::ALL.into_iter().find(|s| s.name() == name).ok_or_else(|| {
        let error = Error::input(format!("no updating scheme `{name}`"));
        match nearest(name, names) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("the schemes are {}", names.join(", "))),
        }
    })
}

/// A sweep in the continuum as the options ask for it.
fn sweep_of(o: &Options) -> Result<Sweep> {
    let proposal =
        o.one_of("proposal", &[("gaussian", Proposal::Gaussian), ("uniform", Proposal::Uniform)])?;
    let screen =
        o.one_of("screen", &[("metropolis", ScreenRule::Metropolis), ("barker", ScreenRule::Barker)])?;
    let step = o.maybe_float("step")?.ok_or_else(|| {
        Error::input("`metropolis` needs the size of a trial move")
            .hint("like `step: 0.5`, in bohr; `vmc::run` finds one")
    })?;
    let sweep = Sweep {
        scheme: scheme_of(o.maybe_text("scheme")?.as_deref().unwrap_or("look-ahead"))?,
        step,
        proposal,
        drift: o.flag("drift")?,
        group: o.count("group")?,
        screen,
    };
    sweep.check()?;
    Ok(sweep)
}

fn energies_of(walk: &ScriptWalkers, hamiltonian: &Hamiltonian) -> Result<Vec<LocalEnergy>> {
    walk!(mut walk,
        w => hamiltonian.fits(w.psi()).and_then(|()| hamiltonian.local_energies(&mut *w)),
        _l => Err(Error::input("a Hamiltonian of the continuum for walkers on a lattice")
            .hint("their Hamiltonian is an OpSum, like `models::hubbard_chain(8, #{ U: 4.0 })`")))
}

fn values_of(walk: &ScriptWalkers, sum: &OpSum) -> Result<Vec<C64>> {
    walk!(mut walk,
        _w => Err(Error::input("an OpSum for walkers in the continuum")
            .hint("their Hamiltonian is made by `electrons`")),
        l => LocalSum::of(sum, l.psi())?.local_values(&mut *l))
}

#[export_module(root = "crate::script::native")]
mod walk_functions {
    /// Walkers of a wave function at random places: anywhere in a periodic cell; around the origin or given centres in
    /// open space; on any sites of a lattice. A walk does not depend on the number of threads and ranks. Assigning
    /// walkers to another variable or to a map makes no copy: `metropolis` moves the same walkers. With the CUDA
    /// backend, walkers whose orbitals are splines live on the GPU for any updating scheme, Jastrow factor and number
    /// of determinants. With more than 2048 electrons of one spin, or polynomials of more than 16 coefficients, they
    /// live on the CPU.
    ///
    /// # Options
    /// - `count` (int >= 1, 16): number of walkers.
    /// - `seed` (int or string, the session's): the seed of the random numbers.
    /// - `spread` (float > 0, 1.0): in open space, the standard deviation around the centres, in bohr.
    /// - `centres` (any, the origin): in open space, places to which electrons are assigned in turn; each walker begins
    ///   with the next place.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(3), #{ up: 3 });
    /// let walk = walkers(psi, #{ count: 8, seed: 1 });
    /// assert(walk.count == 8 && walk.sweeps == 0, "at their start");
    /// metropolis(walk, #{ step: 0.5, sweeps: 5 });
    /// assert(walk.acceptance > 0.3 && walk.acceptance < 1.0, "the part of the moves that were made");
    /// assert(walk.inverse_error < 1e-10, "inverse matrices are as good as new");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn walkers(psi: Psi, o: Options) -> Fallible<ScriptWalkers> {
        let (count, seed) = (o.count("count")?, o.seed()?);
        // The dimension of open space: in a periodic cell, as on a lattice, they start anywhere.
        let open = match &psi {
            Psi::Real(psi) => psi.orbitals().cell().is_none().then(|| psi.orbitals().dimension()),
            Psi::Complex(psi) => psi.orbitals().cell().is_none().then(|| psi.orbitals().dimension()),
            Psi::LatticeReal(_) | Psi::LatticeComplex(_) => None,
        };
        if open.is_none() {
            o.only_for("walkers in open space", &["spread", "centres"])?;
        }
        let centres = match o.given("centres") {
            Some(v) => super::super::points(&v, "centres", open.unwrap_or(3))?,
            None => vec![[0.0; 3]],
        };
        let start = WalkerStart { centres, spread: o.float("spread")? };
        Ok(match psi {
            Psi::Real(psi) => ScriptWalkers::Real(handle(Walkers::new(psi, count, seed, &start)?)),
            Psi::Complex(psi) => ScriptWalkers::Complex(handle(Walkers::new(psi, count, seed, &start)?)),
            Psi::LatticeReal(state) => {
                ScriptWalkers::LatticeReal(handle(LatticeWalkers::new(state, count, seed, &())?))
            }
            Psi::LatticeComplex(state) => {
                ScriptWalkers::LatticeComplex(handle(LatticeWalkers::new(state, count, seed, &())?))
            }
        })
    }

    /// Moves all walkers by sweeps, with one trial move for every electron in a sweep. The stationary distribution is
    /// |Psi|^2. Returns the fraction of accepted trial moves.
    ///
    /// In the continuum, `scheme` selects how moves are accepted: "particle-by-particle"; "look-ahead", the same chain
    /// with the orbitals of the whole sweep evaluated first; "delayed-acceptance", decisions in groups made exact by a
    /// second stage; "configuration", all moves or none; "quasi-simultaneous" (Uejima and Maezono), whose stationary
    /// distribution is NOT |Psi|^2. On a lattice, particle by particle, electrons hop to any site, exchange places with
    /// one of the other spin, or move in pairs. Then several are moved anywhere at once, so zeros of the wave function
    /// do not trap the walk.
    ///
    /// # Options
    /// - `scheme` ("look-ahead" or "particle-by-particle" or "delayed-acceptance" or "configuration" or
    ///   "quasi-simultaneous", look-ahead, on a lattice particle-by-particle): how moves are accepted.
    /// - `step` (float > 0): the size of a trial move in bohr; needed in the continuum.
    /// - `sweeps` (int >= 1, 1): number of sweeps.
    /// - `proposal` ("gaussian" or "uniform"): Gaussian with `step` as standard deviation of each coordinate, or
    ///   uniform between minus and plus `step`.
    /// - `drift` (false): trial moves drift along the gradient of the one-body density. The acceptance corrects for
    ///   this exactly.
    /// - `group` (int >= 1, 4): electrons per group; only with `scheme: "delayed-acceptance"`.
    /// - `screen` ("barker" or "metropolis"): acceptance of the first stage, r/(1 + r) or min(1, r); only with
    ///   `scheme: "delayed-acceptance"`.
    ///
    /// # Example
    /// ```rhai
    /// let walk = walkers(slater_jastrow(orbitals::oscillator(3), #{ up: 3 }), #{ count: 8, seed: 1 });
    /// let acceptance = metropolis(walk, #{ step: 0.8, sweeps: 10 });
    /// assert(acceptance > 0.2 && walk.sweeps == 10, "most moves are accepted");
    /// let run = #{ walk: walk };
    /// metropolis(run.walk, #{ step: 0.8, sweeps: 10 });
    /// assert(walk.sweeps == 20, "the same walkers, not a copy");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn metropolis(walk: &mut ScriptWalkers, o: Options) -> Fallible<FLOAT> {
        let count = o.count("sweeps")?;
        let session = session()?;
        if matches!(walk, ScriptWalkers::LatticeReal(_) | ScriptWalkers::LatticeComplex(_)) {
            let in_space = ["step", "proposal", "drift", "group", "screen"];
            o.only_for("walkers in the continuum", &in_space)?;
            let scheme = scheme_of(o.maybe_text("scheme")?.as_deref().unwrap_or("particle-by-particle"))?;
            if scheme != Scheme::ParticleByParticle {
                return Err(Error::input(format!("the scheme `{scheme}` on a lattice"))
                    .hint("walkers on a lattice move by \"particle-by-particle\"")
                    .into());
            }
            return Ok(walk!(mut walk, _w => Ok(0.0), l => l.run(&(), count, session.interrupt()))?);
        }
        let sweep = sweep_of(&o)?;
        if !sweep.scheme.exact() {
            session.note_once(
                "quasi-simultaneous updating does not sample |Psi|^2: its averages are biased, by more for larger \
                 steps",
            );
        }
        Ok(walk!(mut walk, w => w.run(&sweep, count, session.interrupt()), _l => Ok(0.0))?)
    }

    /// Whether an updating scheme samples |Psi|^2 exactly.
    ///
    /// # Example
    /// ```rhai
    /// assert(vmc::exact_sampling("look-ahead"), "unbiased");
    /// assert(!vmc::exact_sampling("quasi-simultaneous"), "the paper's scheme is biased");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn exact_sampling(scheme: &str) -> Fallible<bool> {
        Ok(scheme_of(scheme).map(Scheme::exact)?)
    }

    /// The local energy (H Psi)/Psi of every walker, its real part: a Series. In the continuum the Hamiltonian comes
    /// from `electrons`. On a lattice it is an OpSum of electrons, or of spins; a spin is a site with one electron.
    ///
    /// # Example
    /// ```rhai
    /// let walk = walkers(slater_jastrow(orbitals::oscillator(4), #{ up: 4 }), #{ count: 3, seed: 1 });
    /// let e = local_energy(walk, electrons(vmc::trap(1.0), #{ interaction: "none" }));
    /// assert_close(e.std(), 0.0, 1e-9);
    /// assert_close(e.mean(), 8.0, 1e-9);
    /// ```
    #[rhai_fn(global, name = "local_energy", return_raw)]
    pub fn local_energy(walk: &mut ScriptWalkers, hamiltonian: Hamiltonian) -> Fallible<Series> {
        let energies = energies_of(walk, &hamiltonian)?;
        Ok(Series::Real(energies.iter().map(LocalEnergy::total).collect()))
    }

    #[rhai_fn(global, name = "local_energy", return_raw)]
    pub fn local_energy_of_sum(walk: &mut ScriptWalkers, sum: OpSum) -> Fallible<Series> {
        let values = values_of(walk, &sum)?;
        Ok(Series::Real(values.iter().map(|z| z.re).collect()))
    }

    /// The local value (A Psi)/Psi of any operator sum for every walker on a lattice, a complex Series:
    /// its mean is <A>.
    ///
    /// # Example
    /// ```rhai
    /// let ring = lattice::chain(4).boundary("antiperiodic");
    /// let sea = davidson(tight_binding(ring, #{ hopping: -1.0 }), #{ count: 2 });
    /// let walk = walkers(lattice_slater(sea.vectors, #{ up: 2, down: 2 }), #{ count: 4, seed: 1 });
    /// let n = opsum();
    /// for i in 0..4 { n.add(1.0, "Ntot", i); }
    /// assert_close(local_value(walk, n).mean(), 4.0, 1e-12);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn local_value(walk: &mut ScriptWalkers, sum: OpSum) -> Fallible<Series> {
        Ok(values_of(walk, &sum).map(Series::Complex)?)
    }

    /// What the samples of a walk on a lattice leave out. It looks at configurations that one term of the Hamiltonian
    /// connects with the walkers, `count` at most for each, and counts those with local energies below `lowest` or
    /// above `highest`, the bounds of all samples. The map has their `weight`, a probability, and `energy`, the sum of
    /// their local energies times their probabilities. A weight that is not small means that the samples are not
    /// enough, even if all of them have the same energy. `vmc::run` and `vmc::optimise` ask for it.
    ///
    /// # Types
    /// `(walk: Walkers, hamiltonian: OpSum, lowest: float, highest: float, count: int) -> map { weight: float, energy:
    /// float }`
    ///
    /// # Example
    /// ```rhai
    /// let levels = tight_binding(lattice::chain(4), #{ hopping: -1.0 }).to_matrix() + 0.1 * identity(4);
    /// let psi = lattice_slater(levels.eigh().vectors, #{ up: 1, down: 1, gutzwiller: 1e-4 });
    /// let h = models::hubbard_chain(4, #{ U: 1e9 });
    /// let walk = walkers(psi, #{ count: 8, seed: 1 });
    /// metropolis(walk, #{ sweeps: 20 });
    /// let e = local_energy(walk, h);                            // no walker finds two electrons on one site
    /// let left_out = vmc::unsampled(walk, h, e.min(), e.max(), 16);
    /// assert(e.max() < 1.0 && left_out.energy > 1.0, "but these make the energy");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn unsampled(
        walk: &mut ScriptWalkers,
        hamiltonian: OpSum,
        lowest: FLOAT,
        highest: FLOAT,
        count: INT,
    ) -> Fallible<Map> {
        let range = (lowest, highest);
        // NaN is refused, too.
        if !(lowest <= highest) {
            return Err(Error::input(format!("samples with energies from {lowest} to {highest}"))
                .hint("give the lowest and then the highest local energy of all samples")
                .into());
        }
        let count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
            Error::input(format!("{count} configurations beside each walker")).hint("look at one at least")
        })?;
        let found = walk!(mut walk,
            _w => Err(Error::input("configurations beside walkers in the continuum")
                .hint("take walkers on a lattice, of `lattice_slater`")),
            l => LocalSum::of(&hamiltonian, l.psi())?.unsampled(&mut *l, range, count))?;
        Ok([("weight".into(), found.weight.into()), ("energy".into(), found.energy.into())].into())
    }

    /// The parts of the local energy of every walker in the continuum: a Table of `energy`, `kinetic`, `external` and
    /// `interaction`, in hartree.
    ///
    /// # Example
    /// ```rhai
    /// let walk = walkers(slater_jastrow(orbitals::oscillator(2), #{ up: 2 }), #{ count: 3, seed: 1 });
    /// let t = energy_terms(walk, electrons(vmc::trap(1.0), #{ interaction: "none" }));
    /// assert_close((t.kinetic + t.external - 2.0).norm(), 0.0, 1e-9);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn energy_terms(walk: &mut ScriptWalkers, hamiltonian: Hamiltonian) -> Fallible<Table> {
        let table = |walk: &mut ScriptWalkers| {
            let energies = energies_of(walk, &hamiltonian)?;
            let column = |f: fn(&LocalEnergy) -> f64| Series::Real(energies.iter().map(f).collect());
            Table::from_columns([
                ("energy", column(LocalEnergy::total)),
                ("kinetic", column(|e| e.kinetic)),
                ("external", column(|e| e.external)),
                ("interaction", column(|e| e.interaction)),
            ])
        };
        Ok(table(walk)?)
    }

    /// How many walkers there are.
    #[rhai_fn(global, get = "count", pure)]
    pub fn count_of(walk: &mut ScriptWalkers) -> INT {
        walk!(walk, w => w.count(), l => l.count()) as INT
    }

    /// Sweeps made since the start.
    #[rhai_fn(global, get = "sweeps", pure)]
    pub fn sweeps(walk: &mut ScriptWalkers) -> INT {
        walk!(walk, w => w.sweeps(), l => l.sweeps()) as INT
    }

    /// The fraction of trial moves accepted so far.
    #[rhai_fn(global, get = "acceptance", pure)]
    pub fn acceptance(walk: &mut ScriptWalkers) -> FLOAT {
        walk!(walk, w => w.acceptance(), l => l.acceptance())
    }

    /// Whether electrons fill their lattice completely, so no other configuration exists.
    ///
    /// # Example
    /// ```rhai
    /// let walk = walkers(lattice_slater(identity(2), #{ up: 2, down: 2 }), #{ count: 1, seed: 1 });
    /// assert(walk.full && metropolis(walk) == 0.0, "nowhere to go");
    /// ```
    #[rhai_fn(global, get = "full", pure)]
    pub fn full(walk: &mut ScriptWalkers) -> bool {
        walk!(walk, _w => false, l => l.psi().full())
    }

    /// The largest error of an inverse Slater matrix found when it was recomputed.
    #[rhai_fn(global, get = "inverse_error", pure)]
    pub fn inverse_error(walk: &mut ScriptWalkers) -> FLOAT {
        walk!(walk, w => w.inverse_error(), l => l.inverse_error())
    }

    /// Where the electrons of walker k are: a Matrix with one row per electron, spin up first. A row holds the
    /// coordinates, or on a lattice the site.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(2, #{ dimension: 3 }), #{ up: 2 });
    /// let walk = walkers(psi, #{ count: 1, seed: 1 });
    /// let r = walk.positions(0);
    /// assert(r.rows == 2 && r.columns == 3, "two electrons in space");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn positions(walk: &mut ScriptWalkers, k: INT) -> Fallible<Matrix> {
        let n = walk!(&walk, w => w.count(), l => l.count());
        let k = usize::try_from(k).ok().filter(|k| *k < n).ok_or_else(|| {
            Error::input(format!("walker {k} of {n}"))
                .hint(format!("walkers are numbered from 0 to {}", n - 1))
        })?;
        Ok(walk!(&walk,
        w => {
            let dimension = w.psi().orbitals().dimension();
            let all = w.places()?;
            let positions = &all[k];
            let data = positions.iter().flat_map(|r| r[..dimension].to_vec()).collect();
            Matrix::new(positions.len(), dimension, Series::Real(data))
        },
        l => {
            let all = l.places()?;
            let places = &all[k];
            let data: Vec<f64> = places.iter().flatten().map(|site| f64::from(*site)).collect();
            Matrix::new(data.len(), 1, Series::Real(data))
        })?)
    }

    /// New walkers at the same places, with another wave function of equally many electrons, for example during an
    /// optimisation. With the same wave function it makes a copy.
    ///
    /// # Example
    /// ```rhai
    /// let trap = orbitals::oscillator(1, #{ dimension: 3 });
    /// let psi = slater_jastrow(trap, #{ up: 1, down: 1, jastrow: jastrow::pade(#{ b: 0.4 }) });
    /// let walk = walkers(psi, #{ count: 2, seed: 1 }).with_wavefunction(psi.with_parameters([0.5]));
    /// assert(walk.count == 2, "where they were");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn with_wavefunction(walk: &mut ScriptWalkers, psi: Psi) -> Fallible<ScriptWalkers> {
        fn changed<C: System>(walk: &RefCell<Ensemble<C>>, psi: Arc<C>) -> Result<Rc<RefCell<Ensemble<C>>>> {
            walk.borrow().with_psi(psi).map(handle)
        }
        Ok(match (walk, psi) {
            (ScriptWalkers::Real(w), Psi::Real(psi)) => changed(w, psi).map(ScriptWalkers::Real),
            (ScriptWalkers::Complex(w), Psi::Complex(psi)) => changed(w, psi).map(ScriptWalkers::Complex),
            (ScriptWalkers::LatticeReal(w), Psi::LatticeReal(psi)) => {
                changed(w, psi).map(ScriptWalkers::LatticeReal)
            }
            (ScriptWalkers::LatticeComplex(w), Psi::LatticeComplex(psi)) => {
                changed(w, psi).map(ScriptWalkers::LatticeComplex)
            }
            _ => {
                Err(Error::input("walkers of another kind of wave function")
                    .hint("make new ones with `walkers`"))
            }
        }?)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(walk: &mut ScriptWalkers) -> String {
        let (count, sweeps) = (count_of(walk), sweeps(walk));
        let about = walk!(&walk, w => w.psi().describe(), l => l.psi().describe());
        format!("Walkers: {count} after {sweeps} sweeps, of {about}")
    }
}
