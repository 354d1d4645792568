//! Superconductivity in models: pairing, and terms of the spin.

use rhai::plugin::*;
use rhai::{Dynamic, ImmutableString};

use super::blocks::blocks_of;
use super::chebyshev::as_complex;
use super::lattice::sublattice_of;
use super::model::{ScriptModel, at_sites, shift_of, with_bond};
use crate::error::Result;
use crate::lattice::{Model, OrbitalBlock, PairedParticles};
use crate::number::Series;
use crate::operator::Operator;
use crate::script::rooms::{INTERNAL, Rooms};
use crate::script::{Fallible, Options};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_global_module(exported_module!(pairing_functions).into());
    rooms.room(INTERNAL, exported_module!(holes));
}

#[export_module(root = "crate::script::native")]
mod holes {
    /// Whether an operator is of a model with rows for holes.
    pub fn has_holes(h: Operator) -> bool {
        h.geometry().is_some_and(|geometry| geometry.holes.is_some())
    }

    #[rhai_fn(name = "has_holes")]
    pub fn model_has_holes(m: ScriptModel) -> bool {
        m.model.holes().is_some()
    }
}

/// The pair that the option `spin` names.
fn pair(o: &Options) -> Result<PairedParticles> {
    o.one_of(
        "spin",
        &[
            ("singlet", PairedParticles::Singlet),
            ("triplet", PairedParticles::Triplet),
            ("none", PairedParticles::Spinless),
        ],
    )
}

/// Adds the pairing over bonds of these sublattices, all or none.
fn add_bonds(
    ctx: &NativeCallContext,
    m: &mut ScriptModel,
    shift: &Dynamic,
    pairs: &[(usize, usize)],
    value: &Dynamic,
    kind: PairedParticles,
) -> Fallible<()> {
    let shift = shift_of(shift)?;
    let mut model = m.model.clone();
    for &(from, to) in pairs {
        let same = |model: &mut Model, block: &_| model.pair_between(&shift, from, to, block, kind);
        with_bond(ctx, &mut model, value, same, |model, f, task| {
            model.pair_between_with(&shift, from, to, f, kind, task)
        })?;
    }
    m.model = model;
    Ok(())
}

/// Adds the pairing over all nearest-neighbour bonds: a number, or one for each bond.
fn add_nearest(m: &mut ScriptModel, term: &Dynamic, kind: PairedParticles) -> Result<()> {
    let n = m.model.particles();
    let blocks = match as_complex(term) {
        Some(z) => vec![OrbitalBlock::scalar(n, z); m.model.lattice().joined()?.len()],
        None => blocks_of(term, n, "pairings over bonds")?,
    };
    // A refused pairing leaves the model as it is.
    let mut model = m.model.clone();
    model.pair_nearest(&blocks, kind)?;
    m.model = model;
    Ok(())
}

#[export_module(root = "crate::script::native")]
mod pairing_functions {
    /// Superconductivity: adds `sum D c^dagger c^dagger + h.c.` to a model, whose operator is then that of Bogoliubov
    /// and de Gennes, [[H, D], [D^dagger, -H^*]]. A site has the rows of its electrons and after them as many of holes;
    /// all other terms, whenever added, act on both and are given for electrons alone. Whatever takes operators and
    /// models takes these: `kpm::ldos` (orbital 0 is the first electron), `eigs`, `bands`, `transport`. `pairing(0.0)`
    /// makes the holes and no pairs, for a normal lead.
    ///
    /// Opposite spins pair by default. The electrons are those of spin up and the holes those of spin down, for which
    /// the model is the same but for `m.zeeman`:
    /// `H = sum h (c_up^dagger c_up + c_down^dagger c_down) + sum D_ij c_i,up^dagger c_j,down^dagger + h.c.` With
    /// `spin: "none"` orbitals pair as they are, spins of their own among them:
    /// `H = sum h c^dagger c + 1/2 sum D_ij c_i^dagger c_j^dagger + h.c.`: every level comes with its opposite,
    /// and both are one.
    ///
    /// `pairing(D)` pairs on each site: a number, a Matrix of the orbitals, a Series (complex ones too) with one for
    /// each site, or a function of the position (and of the site's number). `pairing(step, D)` pairs every cell `r`
    /// with cell `r + step`, on each sublattice, and `pairing(step, from, to, D)` two sublattices: `D_ij` of i arrived
    /// at and j left, a number, a Matrix or a function as for `hop`; `D_ji` follows. `pairing("nearest", D)` pairs over
    /// every nearest-neighbour bond: a number, or a Series with one for each in the order of `bonds()`. A flux puts no
    /// phase on pairs, and strains leave them as they are. Velocities are those of the quasiparticles;
    /// the conductivities made of them are not those of charge.
    ///
    /// # Options
    /// - `spin` ("singlet" or "triplet" or "none"): "singlet" (`D_ij = D_ji`: s and d waves), "triplet" (opposite
    ///   spins, `D_ij = -D_ji`) or "none" (orbitals as they are, `D_ij = -D_ji`: p waves, Kitaev's chain).
    ///
    /// # Example
    /// ```rhai
    /// let s = model(lattice::chain(8));
    /// s.nearest(-1.0);
    /// s.pairing(0.3);                                      // E = sqrt((2 cos k)^2 + 0.3^2)
    /// assert_close(s.bloch(0.25).eigh().values[1], 0.3, 1e-14);
    /// let d = model(lattice::square(8, 8));
    /// d.nearest(-1.0);
    /// d.pairing([1, 0], 0.2);
    /// d.pairing([0, 1], -0.2);                             // D(k) = 0.4 (cos kx - cos ky): nodes on the diagonals
    /// assert_close(d.bloch([0.25, 0.25]).eigh().values[1], 0.0, 1e-14);
    /// let kitaev = model(lattice::chain(20).boundary("open"));
    /// kitaev.nearest(-1.0);
    /// kitaev.pairing([1], 1.0, #{ spin: "none" });
    /// // a Majorana mode at each end
    /// assert_close(eigs(kitaev.build(), #{ near: 0.1, count: 2 }).values[0], 0.0, 1e-9);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn pairing(ctx: NativeCallContext, m: &mut ScriptModel, term: Dynamic, o: Options) -> Fallible<()> {
        let kind = pair(&o)?;
        if let Some(values) = term.read_lock::<Series>() {
            return Ok(m.model.pair_each(&values.to_complex(), kind)?);
        }
        let same = |model: &mut Model, block: &_| model.pair(block, kind);
        at_sites(&ctx, &mut m.model, &term, same, |model, f, task| model.pair_with(f, kind, task))
    }

    #[rhai_fn(global, name = "pairing", return_raw)]
    pub fn pairing_step(
        ctx: NativeCallContext,
        m: &mut ScriptModel,
        step: Dynamic,
        term: Dynamic,
        o: Options,
    ) -> Fallible<()> {
        if step.read_lock::<ImmutableString>().is_some_and(|name| *name == "nearest") {
            return Ok(add_nearest(m, &term, pair(&o)?)?);
        }
        let pairs: Vec<(usize, usize)> = (0..m.model.lattice().basis().len()).map(|s| (s, s)).collect();
        add_bonds(&ctx, m, &step, &pairs, &term, pair(&o)?)
    }

    #[rhai_fn(global, name = "pairing", return_raw)]
    pub fn pairing_between(
        ctx: NativeCallContext,
        m: &mut ScriptModel,
        step: Dynamic,
        from: Dynamic,
        to: Dynamic,
        term: Dynamic,
        o: Options,
    ) -> Fallible<()> {
        let lattice = m.model.lattice();
        let pair_of = (sublattice_of(lattice, &from)?, sublattice_of(lattice, &to)?);
        add_bonds(&ctx, m, &step, &[pair_of], &term, pair(&o)?)
    }

    /// Adds an energy to the electrons of spin up and subtracts it from those of spin down, in a model whose opposite
    /// spins pair: a number, a Hermitian Matrix of the orbitals, a Series with one for each site, or a function of the
    /// position (and of the site's number), for magnetic fields and magnetic impurities.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(8));
    /// m.nearest(-1.0);
    /// m.pairing(0.3);
    /// m.zeeman(0.1);                                       // all levels move by 0.1
    /// assert_close(m.bloch(0.25).eigh().values[1], 0.4, 1e-14);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn zeeman(ctx: NativeCallContext, m: &mut ScriptModel, term: Dynamic) -> Fallible<()> {
        if let Some(energies) = term.read_lock::<Series>() {
            return Ok(m.model.zeeman_each(energies.as_real("Zeeman energies")?.to_vec())?);
        }
        at_sites(&ctx, &mut m.model, &term, Model::zeeman, Model::zeeman_with)
    }
}
