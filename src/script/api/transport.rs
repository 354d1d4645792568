//! `transport`: samples between leads.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT, Map};

use super::contact::{ContactFunction, ScriptContact, tell};
use super::lattice::{ints, momentum};
use super::model::ScriptModel;
use super::values::{as_number, type_of};
use crate::error::{Error, ErrorKind, Result};
use crate::lattice::Model;
use crate::method::{Contact, Lead, Particle, TransportSample};
use crate::number::{Matrix, Number, Series, Table};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// A lead as scripts hold it; copies are the same lead.
#[derive(Clone)]
pub(crate) struct ScriptLead(Rc<Lead>);

/// A sample of a script, with its leads, the model that it is of, and the leads that scripts' functions tell.
#[derive(Clone)]
pub(crate) struct ScriptSample(
    pub(super) Rc<TransportSample>,
    pub(super) Rc<Model>,
    Rc<Vec<ContactFunction>>,
);

/// Registers the types and functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<ScriptLead>("Lead");
    rooms.register_type_with_name::<ScriptSample>("Sample");
    rooms.room("transport", exported_module!(transport_functions));
}

fn unstrained(m: &ScriptModel) -> Result<()> {
    if m.is_strained() {
        return Err(Error::input("transport through a strained model").hint(
            "give the strained vectors and sites to `lattice::custom`, and the hoppings their new values",
        ));
    }
    Ok(())
}

fn lead_number(lead: INT) -> Result<usize> {
    usize::try_from(lead).map_err(|_| Error::input(format!("lead {lead}")).hint("leads are counted from 0"))
}

fn one(energy: &Dynamic) -> Result<f64> {
    match as_number(energy) {
        Some(Number::Real(x)) => Ok(x),
        _ => {
            Err(Error::input(format!("an energy that is {}", type_of(energy)))
                .hint("an energy is a real number"))
        }
    }
}

/// What the option `sends` or `takes` names.
fn particle(o: &Options, key: &str) -> Result<Particle> {
    let kinds = [("any", Particle::Any), ("electron", Particle::Electron), ("hole", Particle::Hole)];
    match o.given(key).as_ref().and_then(as_number) {
        Some(Number::Real(x)) => Ok(Particle::Carrying(x)),
        _ => o.one_of(key, &kinds),
    }
}

/// Energies that a note names.
const SHOWN: usize = 8;

/// One energy or several.
enum EnergyArgument {
    One(f64),
    Many(Vec<f64>),
}

impl EnergyArgument {
    fn of(value: &Dynamic) -> Result<EnergyArgument> {
        if let Some(Number::Real(x)) = as_number(value) {
            return Ok(EnergyArgument::One(x));
        }
        if let Some(series) = value.read_lock::<Series>() {
            return Ok(EnergyArgument::Many(series.as_real("energies")?.to_vec()));
        }
        if let Some(array) = value.read_lock::<Array>() {
            return Ok(EnergyArgument::Many(array.iter().map(one).collect::<Result<_>>()?));
        }
        Err(Error::input(format!(
            "an energy is a number, and several a Series or an array, not {}",
            type_of(value)
        ))
        .hint("give one energy, or a list of them"))
    }

    fn all(&self) -> &[f64] {
        match self {
            EnergyArgument::One(x) => std::slice::from_ref(x),
            EnergyArgument::Many(all) => all,
        }
    }

    /// The value of a function at each place: a number, or a Series. In a Series NaN stands where there is none, and a
    /// note tells where; an error where there is none at all.
    fn each(self, what: &str, f: impl Fn(f64) -> Result<f64>) -> Fallible<Dynamic> {
        match self {
            EnergyArgument::One(x) => Ok(Dynamic::from_float(f(x)?)),
            EnergyArgument::Many(all) => {
                let task = session()?.task(true);
                let steps = task.start(what, all.len());
                let mut found = Vec::with_capacity(all.len());
                let mut refused = Vec::new();
                for x in all {
                    found.push(match f(x) {
                        Err(e) if e.kind() == ErrorKind::Numeric => {
                            refused.push((x, e));
                            f64::NAN
                        }
                        value => value?,
                    });
                    steps.advance(found.len())?;
                }
                drop(steps);
                // Nothing at all is found: an error, as of one energy.
                if !refused.is_empty() && refused.len() == found.len() {
                    return Err(refused.swap_remove(0).1.into());
                }
                if let Some((_, first)) = refused.first() {
                    let mut places: Vec<String> =
                        refused.iter().take(SHOWN).map(|(x, _)| x.to_string()).collect();
                    if refused.len() > SHOWN {
                        places.push(format!("and {} more", refused.len() - SHOWN));
                    }
                    session()?.note(&format!(
                        "the {what} is NaN at {} of {} energies, where it is not defined: {}; {}",
                        refused.len(),
                        found.len(),
                        places.join(", "),
                        first.message()
                    ));
                }
                Ok(Dynamic::from(Series::Real(found)))
            }
        }
    }
}

#[export_module(root = "crate::script::native")]
mod transport_functions {
    /// A semi-infinite lead for `transport::system`: the cell of a model with a periodic direction, which
    /// repeats for ever in that direction (`side: 1`) or against it (`side: -1`). Terms that differ from cell
    /// to cell make all cells of the model one period. A field must be in a gauge that repeats:
    /// for a lead along direction 0 that is `m.flux(-alpha, 1, 0)`, the same field as `m.flux(alpha)`, with the vector
    /// potential along the lead. Where the sample's gauge is another one, the lead's is turned to it.
    ///
    /// A lead may have another field than the sample, or none. The sample's field then reaches to the cell that both
    /// have in common, and the lead's begins behind it, with vector potentials along the lead that agree in the middle
    /// of that cell. A field through the cross-section of a lead must be that of the sample, and so must the phase
    /// around a tube.
    ///
    /// `lead.channels(energy)` counts the channels that are open, `lead.surface(energy)` is the retarded surface
    /// Green's function of its first cell. Both are limits from the upper half plane of energies, also where bands
    /// cross, where a band is flat and where the end of the lead has a level. Energies exactly at a band edge are
    /// refused, since the number of open channels is not defined there. Gaps, bands and resonances narrower than about
    /// 1e-8 of the coupling between cells are refused as well, inside and at their edges; below 1e-13 they are not
    /// seen. Within 1e-9 of energies where bands touch, as zigzag ribbons have at 0, answers are good to some 1e-6.
    ///
    /// A model that is periodic across as well makes a lead that is closed around: a tube of as many cells as the model
    /// has across, at a sample that is periodic there too. One cell across with the option `k` is the part of an
    /// infinitely wide lead with momentum k across; `transport::system` takes the same. The sum over n momenta j / n is
    /// what a tube of n cells has. A boundary `lattice::twisted(phase)` is a flux through the tube. Without pairing it
    /// does the same as `k: phase / (2.0 * PI)`; but holes gain the opposite phase of a flux, and the same phase of a
    /// momentum.
    ///
    /// # Options
    /// - `side` (1 or -1, required): give 1 for a lead that goes on towards larger coordinates, -1 for smaller
    ///   ones.
    /// - `origin` (array, zeros): moves the lead by whole cells of its lattice, one number a direction, where
    ///   the sample reaches farther across than the lead.
    /// - `along` (int >= 0): the direction of the lead, counted from 0, where the model is periodic in several.
    /// - `k` (float or array, none): a momentum across, one number for every periodic direction but that of the lead,
    ///   in units of the model's reciprocal vectors as in `m.build(#{ k })`. It takes the place of a boundary's own
    ///   phase.
    /// - `conserves` (Matrix, none): a Hermitian matrix of the orbitals of a site with which all terms of the lead
    ///   commute, such as a spin: channels have one of its eigenvalues each, which `transmission` tells apart, in
    ///   ascending order. Electrons and holes are then told apart only by it.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(1));
    /// m.nearest(-1.0);
    /// let right = transport::lead(m, #{ side: 1 });
    /// assert(right.channels(0.3) == 1 && right.channels(2.5) == 0, "the band ends at 2");
    /// // the surface Green's function of a half-infinite chain: (E - i sqrt(4 - E^2))/2
    /// let g = right.surface(1.0)[[0, 0]];
    /// assert_close(g.re, 0.5, 1e-10);
    /// assert_close(g.im, -sqrt(3.0) / 2.0, 1e-10);
    /// // a tube of 6 chains: each momentum j/6 across is a chain of its own
    /// let tube = model(lattice::square(1, 6));
    /// tube.nearest(-1.0);
    /// let channels = transport::lead(tube, #{ side: 1, along: 0 }).channels(-1.2);
    /// for j in 0..6 {
    ///     let one = model(lattice::square(1, 1));
    ///     one.nearest(-1.0);
    ///     channels -= transport::lead(one, #{ side: 1, along: 0, k: j / 6.0 }).channels(-1.2);
    /// }
    /// assert(channels == 0, "all channels of the tube");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn lead(m: ScriptModel, o: Options) -> Fallible<ScriptLead> {
        unstrained(&m)?;
        let side = o.whole("side")?;
        let origin = match o.maybe::<Array>("origin") {
            Some(cells) => ints(&cells, "an origin in cells")?,
            None => Vec::new(),
        };
        let along = o.maybe_count("along")?;
        let across = o.given("k").map(|k| momentum(&k)).transpose()?;
        let lead = Lead::new(&m.model, along, across.as_deref(), side == 1, &origin)?;
        Ok(ScriptLead(Rc::new(match o.maybe::<Matrix>("conserves") {
            None => lead,
            Some(local) => lead.conserving(&local)?,
        })))
    }

    /// A sample between leads. Each lead is put where a cell of it coincides with the outermost sites of the
    /// sample that make up such a cell; the sample must be open there.
    ///
    /// `transmission` and `scattering` tell what passes, `density` and `currents` where. Leads are numbered
    /// from 0 as in `leads`.
    ///
    /// # Options
    /// - `leads` (array, required): give the leads, from `transport::lead` and `transport::contact`.
    /// - `k` (float or array, none): a momentum across, one number for every periodic direction of the sample, as in
    ///   `m.build(#{ k })`; its leads have the same `k`.
    ///
    /// # Example
    /// ```rhai
    /// // a ribbon of 4 lines between leads of its own kind
    /// let m = model(lattice::square(6, 4).boundary("open"));
    /// m.nearest(-1.0);
    /// let r = model(lattice::square(1, 4).boundary(["periodic", "open"]));
    /// r.nearest(-1.0);
    /// let s = transport::system(m, #{ leads: [transport::lead(r, #{ side: -1 }), transport::lead(r, #{ side: 1 })] });
    /// assert_close(s.transmission(0, 1, 0.1), 4.0, 1e-8);
    /// // an infinitely wide barrier, at momentum 0.2 across: a chain whose energies are higher by -2 cos(0.4 pi)
    /// let wide = model(lattice::square(3, 1).boundary(["open", "periodic"]));
    /// wide.nearest(-1.0);
    /// wide.onsite(|r| if r[0] == 1.0 { 0.7 } else { 0.0 });
    /// let cell = model(lattice::square(1, 1));
    /// cell.nearest(-1.0);
    /// let ends = [-1, 1].map(|side| transport::lead(cell, #{ side: side, along: 0, k: 0.2 }));
    /// let e = 0.4 + 2.0 * cos(0.4 * PI);
    /// let passes = transport::system(wide, #{ leads: ends, k: 0.2 }).transmission(0, 1, 0.4);
    /// assert_close(passes, 1.0 / (1.0 + 0.49 / (4.0 - e * e)), 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn system(m: ScriptModel, o: Options) -> Fallible<ScriptSample> {
        unstrained(&m)?;
        let given: Array = o.maybe("leads").unwrap_or_default();
        let mut told = Vec::new();
        let mut lead = |value: Dynamic| -> Result<Contact> {
            let wrong = type_of(&value).to_string();
            if let Some(contact) = value.read_lock::<ScriptContact>() {
                let (escape, asked) = contact.for_sample()?;
                told.extend(asked);
                return Ok(Contact::Escape(escape));
            }
            let lead = value.try_cast::<ScriptLead>().ok_or_else(|| {
                Error::input(format!("a lead that is {wrong}"))
                    .hint("`transport::lead` makes leads of cells, `transport::contact` of self-energies")
            })?;
            Ok((*lead.0).clone().into())
        };
        let leads = given.into_iter().map(&mut lead).collect::<Result<Vec<Contact>>>()?;
        let model = match o.given("k") {
            None => m.model,
            Some(k) => m.model.at_momentum(&momentum(&k)?)?,
        };
        Ok(ScriptSample(Rc::new(TransportSample::new(&model, leads)?), Rc::new(model), Rc::new(told)))
    }

    /// How many channels of the lead are open at an energy. At an energy where bands touch,
    /// it is the number just below and just above.
    ///
    /// # Example
    /// ```rhai
    /// // the edge of a ribbon of graphene conducts at E = 0, where its bands touch
    /// let m = model(lattice::honeycomb(1, 8).boundary(["periodic", "open"]));
    /// m.nearest(-2.7);
    /// assert(transport::lead(m, #{ side: 1 }).channels(0.0) == 1, "one channel");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn channels(lead: &mut ScriptLead, energy: Dynamic) -> Fallible<INT> {
        let energy = one(&energy)?;
        Ok(lead.0.channels(energy)? as INT)
    }

    /// The retarded Green's function of the first cell of the lead, with nothing before it, a Matrix of the
    /// cell's rows. At the very energy of a level of the lead's end it is infinite, which is an error.
    #[rhai_fn(global, pure, return_raw)]
    pub fn surface(lead: &mut ScriptLead, energy: Dynamic) -> Fallible<Matrix> {
        let energy = one(&energy)?;
        Ok(lead.0.surface(energy)?)
    }

    /// The transmission from one lead to another at an energy, or at each of several (a Series or an array):
    /// the probabilities to pass, added up over the channels. From a lead to itself it is the reflection. The
    /// conductance is e^2/h times that, for each spin. Where there is pairing, what comes in and goes out is
    /// electrons and holes, and a normal lead tells them apart: an electron that comes back as a hole has left
    /// a pair behind, and the conductance at an energy is e^2/h times the channels of electrons, less those
    /// that come back, plus the holes that do (Blonder, Tinkham, Klapwijk 1982).
    ///
    /// Where bands of a lead touch without a velocity (a zigzag ribbon of graphene at E = 0) or begin, the transmission
    /// is the limit, if both sides of the energy have the same; `scattering`, `density` and `currents` have none there.
    /// Where the sides differ it is not defined: an error for one energy, and for several NaN, a gap in a plot, with a
    /// note that names the energies.
    ///
    /// # Options
    /// - `sends` ("any" or "electron" or "hole" or float): what comes in; a number is a value of what the lead
    ///   `conserves`.
    /// - `takes` ("any" or "electron" or "hole" or float): what goes out.
    ///
    /// # Example
    /// ```rhai
    /// // one impurity in a chain: T = 1/(1 + U^2/(4 - E^2))
    /// let m = model(lattice::chain(3).boundary("open"));
    /// m.nearest(-1.0);
    /// m.onsite(|r| if r[0] == 1.0 { 0.7 } else { 0.0 });
    /// let c = model(lattice::chain(1));
    /// c.nearest(-1.0);
    /// let s = transport::system(m, #{ leads: [transport::lead(c, #{ side: -1 }), transport::lead(c, #{ side: 1 })] });
    /// assert_close(s.transmission(0, 1, 0.4), 1.0 / (1.0 + 0.49 / (4.0 - 0.16)), 1e-9);
    /// // a magnet across the spin turns it: up goes on as up and as down
    /// let c = model(lattice::chain(1), 2);
    /// c.nearest(-1.0);
    /// let m = model(lattice::chain(3).boundary("open"), 2);
    /// m.nearest(-1.0);
    /// m.onsite(|r| if r[0] == 1.0 { 0.7 * pauli().x } else { 0.0 });
    /// let leads = [-1, 1].map(|side| transport::lead(c, #{ side: side, conserves: pauli().z }));
    /// let s = transport::system(m, #{ leads: leads });
    /// let turned = s.transmission(0, 1, 0.4, #{ sends: 1.0, takes: -1.0 });
    /// let kept = s.transmission(0, 1, 0.4, #{ sends: 1.0, takes: 1.0 });
    /// assert_close(turned + kept, 1.0 / (1.0 + 0.49 / (4.0 - 0.16)), 1e-9);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn transmission(
        ctx: NativeCallContext,
        s: &mut ScriptSample,
        from: INT,
        to: INT,
        energy: Dynamic,
        o: Options,
    ) -> Fallible<Dynamic> {
        let from = (lead_number(from)?, particle(&o, "sends")?);
        let to = (lead_number(to)?, particle(&o, "takes")?);
        let task = session()?.task(true);
        let quiet = task.quiet();
        let energies = EnergyArgument::of(&energy)?;
        tell(&ctx, &s.0, &s.2, energies.all())?;
        match energies {
            EnergyArgument::One(x) => Ok(Dynamic::from_float(s.0.transmission(from, to, x, &task)?)),
            many => many.each("transmission", |x| s.0.transmission(from, to, x, &quiet)),
        }
    }

    /// The waves that propagate in a lead at an energy: a table with a row for each of `direction` ("in" towards the
    /// sample or "out"), `momentum` in units of the reciprocal vector, as in `bands` of the lead's model, and
    /// `velocity`, the derivative of the energy by a momentum in inverse lattice constants, positive along the model's
    /// periodic direction. A lead beside a superconductor with a pairing of zero has a column `particle` ("electron" or
    /// "hole") as well, electrons first. Waves that decay are left out.
    ///
    /// The waves that come in stand first. Those that move along the periodic direction are in the order of rising
    /// momentum, those against it in that of falling momentum, those of one momentum in the order of their speed. So a
    /// wave and the same one reversed in time, and in a clean sample what comes in and what goes out at the other end,
    /// have the same number. Where a field is on, momenta are those of the lead's gauge.
    ///
    /// # Example
    /// ```rhai
    /// // a chain: E = -2 cos k, v = 2 sin k
    /// let c = model(lattice::chain(1));
    /// c.nearest(-1.0);
    /// let waves = transport::lead(c, #{ side: 1 }).modes(-1.0);
    /// print(waves);
    /// assert_close(waves.momentum[1], 1.0 / 6.0, 1e-12);
    /// assert_close(waves.velocity[1], sqrt(3.0), 1e-12);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn modes(lead: &mut ScriptLead, energy: Dynamic) -> Fallible<Table> {
        let energy = one(&energy)?;
        Ok(lead.0.modes(energy)?.table()?)
    }

    /// The amplitudes of the waves of `lead.modes(energy)` on the rows of one cell of the lead, a column each: a
    /// Matrix. Each carries a current of 1. The cell is the one that the lead has in common with the sample; a cell of
    /// the model farther along its periodic direction, a wave of momentum k has the factor `exp(2 pi i k)`. Waves of
    /// one momentum are orthogonal, also those of one velocity, and separate where nothing joins them: spins, or chains
    /// side by side. The largest amplitude of a wave is real and positive.
    ///
    /// # Example
    /// ```rhai
    /// let c = model(lattice::chain(1));
    /// c.nearest(-1.0);
    /// let psi = transport::lead(c, #{ side: 1 }).waves(-1.0);
    /// assert_close(psi[[0, 1]].re ** 2.0, 1.0 / sqrt(3.0), 1e-12);     // the current is v |psi|^2
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn waves(lead: &mut ScriptLead, energy: Dynamic) -> Fallible<Matrix> {
        let energy = one(&energy)?;
        Ok(lead.0.modes(energy)?.waves())
    }

    /// The scattering matrix at an energy: a map of `s`, a unitary Matrix with a row for each wave that goes out and
    /// a column for each that comes in, lead by lead, and `channels`, how many each lead has. `outgoing` and
    /// `incoming` tell which they are: tables of `lead`, `momentum` and `velocity`, `particle` where a lead tells
    /// electrons from holes, and `conserved`, the value of what a lead conserves. In each lead the waves are those of
    /// `lead.modes(energy)`. So |s|^2 is the probability to go from wave to wave, from valley to valley.
    ///
    /// # Example
    /// ```rhai
    /// // a clean ribbon of 3 lines: all waves go straight on, with the phase of their momentum from one end to the other
    /// let m = model(lattice::square(5, 3).boundary("open"));
    /// m.nearest(-1.0);
    /// let r = model(lattice::square(1, 3).boundary(["periodic", "open"]));
    /// r.nearest(-1.0);
    /// let s = transport::system(m, #{ leads: [transport::lead(r, #{ side: -1 }), transport::lead(r, #{ side: 1 })] });
    /// let found = s.scattering(-0.3);
    /// assert(found.channels == [3, 3], "three waves");
    /// for i in 0..3 {
    ///     let straight = exp(2.0 * PI * I * 4.0 * found.incoming.momentum[i]);
    ///     assert_close(abs(found.s[[3 + i, i]] - straight), 0.0, 1e-9);
    /// }
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn scattering(ctx: NativeCallContext, s: &mut ScriptSample, energy: Dynamic) -> Fallible<Map> {
        let energy = one(&energy)?;
        tell(&ctx, &s.0, &s.2, &[energy])?;
        let found = s.0.scattering(energy, &session()?.task(true))?;
        let channels: Array = found.channels.iter().map(|&n| Dynamic::from_int(n as INT)).collect();
        let mut map = Map::new();
        map.insert("s".into(), Dynamic::from(found.matrix));
        map.insert("channels".into(), Dynamic::from(channels));
        map.insert("incoming".into(), Dynamic::from(found.incoming));
        map.insert("outgoing".into(), Dynamic::from(found.outgoing));
        Ok(map)
    }

    /// The wave functions in the sample of what comes in through a lead: a Matrix with a row for each row of the sample
    /// and a column for each wave of the lead that comes in, in the order of `lead.modes(energy)`. The wave that comes
    /// in carries a current of 1; what comes back and what decays is there as well. `psi.column(j)` is a Series.
    ///
    /// # Example
    /// ```rhai
    /// // behind a barrier the wave is t exp(i k x): its weight tells how much passes
    /// let m = model(lattice::chain(9).boundary("open"));
    /// m.nearest(-1.0);
    /// m.onsite(|r| if r[0] == 4.0 { 1.5 } else { 0.0 });
    /// let c = model(lattice::chain(1));
    /// c.nearest(-1.0);
    /// let s = transport::system(m, #{ leads: [transport::lead(c, #{ side: -1 }), transport::lead(c, #{ side: 1 })] });
    /// let psi = s.waves(0, -1.0).column(0);
    /// let table = table(#{ x: range(0, 9), weight: psi.abs() ** 2.0 });
    /// assert_close(table.weight[8] * sqrt(3.0), s.transmission(0, 1, -1.0), 1e-12);
    /// ```
    #[rhai_fn(global, name = "waves", pure, return_raw)]
    pub fn waves_inside(
        ctx: NativeCallContext,
        s: &mut ScriptSample,
        from: INT,
        energy: Dynamic,
    ) -> Fallible<Matrix> {
        let energy = one(&energy)?;
        tell(&ctx, &s.0, &s.2, &[energy])?;
        Ok(s.0.waves(lead_number(from)?, energy, &session()?.task(true))?)
    }

    /// The density of states on each site, from what comes in through a lead: a Series by site. Summed over
    /// all leads it is the local density of states, but for levels that no lead reaches;
    /// the very energy of one is refused.
    ///
    /// # Options
    /// - `carries` (Matrix, none): a Hermitian matrix of the orbitals of a site: the density of that, as of a spin,
    ///   sum psi^dagger S psi/(2 pi), in place of that of states.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(4).boundary("open"));
    /// m.nearest(-1.0);
    /// let c = model(lattice::chain(1));
    /// c.nearest(-1.0);
    /// let s = transport::system(m, #{ leads: [transport::lead(c, #{ side: -1 }), transport::lead(c, #{ side: 1 })] });
    /// // half of an infinite chain's 1/(pi sqrt(4 - E^2))
    /// assert_close(s.density(0, 0.5)[2], 0.5 / (PI * sqrt(3.75)), 1e-9);
    /// ```
    #[rhai_fn(global, name = "density", pure, return_raw)]
    pub fn density_from(
        ctx: NativeCallContext,
        s: &mut ScriptSample,
        from: INT,
        energy: Dynamic,
        o: Options,
    ) -> Fallible<Series> {
        let energy = one(&energy)?;
        tell(&ctx, &s.0, &s.2, &[energy])?;
        let carries = o.maybe::<Matrix>("carries");
        let found = s.0.density(lead_number(from)?, energy, carries.as_ref(), &session()?.task(true))?;
        Ok(Series::Real(found))
    }

    /// The currents over the bonds, from what comes in through a lead with one particle a channel: a table of `from`
    /// and `to` (sites) and `current`, positive from the first to the second. All currents across a cut add up to the
    /// transmission. Where there is pairing, the particles are quasiparticles, here and in `density`: what
    /// `transmission` tells with `sends` and `takes` is a current of charge.
    ///
    /// # Options
    /// - `carries` (Matrix, none): a Hermitian matrix S of the orbitals of a site: the current of that, as of a spin,
    ///   with (S H + H S)/2 for the hopping H of a bond. Where a hopping does not conserve it, that is half of what
    ///   leaves the one site and half of what reaches the other.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(4).boundary("open"));
    /// m.nearest(-1.0);
    /// let c = model(lattice::chain(1));
    /// c.nearest(-1.0);
    /// let s = transport::system(m, #{ leads: [transport::lead(c, #{ side: -1 }), transport::lead(c, #{ side: 1 })] });
    /// let j = s.currents(0, 0.5);
    /// assert_close((j.current - 1.0).abs().max(), 0.0, 1e-9);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn currents(
        ctx: NativeCallContext,
        s: &mut ScriptSample,
        from: INT,
        energy: Dynamic,
        o: Options,
    ) -> Fallible<Table> {
        let energy = one(&energy)?;
        tell(&ctx, &s.0, &s.2, &[energy])?;
        let carries = o.maybe::<Matrix>("carries");
        Ok(s.0.currents(lead_number(from)?, energy, carries.as_ref(), &session()?.task(true))?)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn lead_to_string(lead: &mut ScriptLead) -> String {
        format!("Lead with cells of {} rows", lead.0.rows())
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn sample_to_string(s: &mut ScriptSample) -> String {
        let (most, count) = s.0.slices();
        format!(
            "Sample of {} rows with {} leads, in {count} slices of at most {most} rows",
            s.0.rows(),
            s.0.leads()
        )
    }
}
