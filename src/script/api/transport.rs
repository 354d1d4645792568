//! `transport`: samples between leads.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT, Map};

use super::contact::{ContactFunction, ScriptContact, tell};
use super::lattice::{ints, momentum};
use super::model::ScriptModel;
use super::sparse::indices;
use super::values::{as_number, numbered, type_of};
use crate::error::{Error, ErrorKind, Result};
use crate::lattice::Model;
use crate::method::{Contact, Lead, Particle, TransportSample};
use crate::number::{Matrix, Number, Series, Table};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};
use crate::task::Task;

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

/// Asks the functions of a sample's leads for their self-energies at all energies that these transmissions need: at the
/// edge of a band those beside it, for the limit.
pub(super) fn tell_all(ctx: &NativeCallContext, s: &ScriptSample, energies: &[f64]) -> Fallible<()> {
    let mut asked = energies.to_vec();
    if !s.2.is_empty() {
        let beside = energies.iter().map(|x| s.0.energies_asked(*x)).collect::<Result<Vec<_>>>()?;
        asked.extend(beside.into_iter().flatten());
    }
    tell(ctx, &s.0, &s.2, &asked)
}

/// What a function gives at one energy, with a bar, or at several, as a Series.
pub(super) fn at_energies(
    ctx: &NativeCallContext,
    s: &ScriptSample,
    energy: &Dynamic,
    what: &str,
    f: impl Fn(f64, &Task) -> Result<f64>,
) -> Fallible<Dynamic> {
    let task = session()?.task(true);
    let energies = EnergyArgument::of(energy)?;
    tell_all(ctx, s, energies.all())?;
    match energies {
        EnergyArgument::One(x) => Ok(Dynamic::from_float(f(x, &task)?)),
        EnergyArgument::Many(all) => Ok(Dynamic::from(at_each(all, what, &task, f)?)),
    }
}

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

pub(super) fn lead_number(lead: INT) -> Result<usize> {
    usize::try_from(lead).map_err(|_| Error::input(format!("lead {lead}")).hint("leads are counted from 0"))
}

pub(super) fn one(energy: &Dynamic) -> Result<f64> {
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
}

/// The values of a function at several energies. NaN stands where there is none, and a note tells where; an error where
/// there is none at all.
fn at_each(
    energies: Vec<f64>,
    what: &str,
    task: &Task,
    f: impl Fn(f64, &Task) -> Result<f64>,
) -> Fallible<Series> {
    let steps = task.start(what, energies.len());
    let quiet = task.quiet();
    let mut found = Vec::with_capacity(energies.len());
    let mut refused = Vec::new();
    for x in energies {
        found.push(match f(x, &quiet) {
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
        let mut places: Vec<String> = refused.iter().take(SHOWN).map(|(x, _)| x.to_string()).collect();
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
    Ok(Series::Real(found))
}

#[export_module(root = "crate::script::native")]
mod transport_functions {
    /// A semi-infinite lead for `transport::system`, from a model with a periodic direction. The cell of the model
    /// repeats without end in that direction (`side: 1`) or against it (`side: -1`). If terms differ between cells, all
    /// cells of the model together are one period. A field must be in a gauge that repeats. For a lead along direction
    /// 0 this is `m.flux(-alpha, 1, 0)`: the same field as `m.flux(alpha)`, with the vector potential along the lead.
    /// If the sample has another gauge, the lead is transformed to it.
    ///
    /// A lead may have another field than the sample, or none. The field of the sample then ends with the cell that
    /// both share, and the field of the lead begins after it. The vector potentials along the lead agree in the middle
    /// of the shared cell. Lead and sample must have the same field through the cross-section of the lead, and the same
    /// phase around a tube.
    ///
    /// `lead.channels(energy)` counts the channels that are open, `lead.surface(energy)` is the retarded surface
    /// Green's function of its first cell. Both are limits from the upper half plane of energies. This holds also at
    /// band crossings, in flat bands and at end states of the lead. Energies exactly at a band edge are refused: the
    /// number of open channels is not defined there. Energies inside or at the edges of gaps, bands and resonances
    /// narrower than about 1e-8 of the coupling between cells are refused as well. Such features narrower than 1e-13
    /// are not detected. Within 1e-9 of energies where bands touch, like 0 for zigzag ribbons, results are accurate to
    /// about 1e-6, and some energies are refused. At the energy itself they are limits.
    ///
    /// If the model is periodic across the lead as well, the lead is a tube with as many cells around as the model has
    /// across. The sample must then be periodic in this direction too. One cell across with the option `k` is the part
    /// of an infinitely wide lead with transverse momentum k; `transport::system` takes the same option. The sum over n
    /// momenta j / n is the result of a tube of n cells. A boundary `lattice::twisted(phase)` is a flux through the
    /// tube. Without pairing it is equivalent to `k: phase / (2.0 * PI)`. With pairing they differ: a flux gives holes
    /// the opposite phase, a momentum gives them the same phase.
    ///
    /// # Options
    /// - `side` (1 or -1, required): give 1 for a lead that goes on towards larger coordinates, -1 for smaller
    ///   ones.
    /// - `origin` (array, zeros): moves the lead by whole cells of its lattice, one number per direction, for a sample
    ///   wider than the lead.
    /// - `along` (int >= 0): the direction of the lead, counted from 0, if the model is periodic in several directions.
    /// - `k` (float or array, none): a transverse momentum, one number for every periodic direction except that of the
    ///   lead, in units of the model's reciprocal vectors as in `m.build(#{ k })`. It replaces the phase of the
    ///   boundary.
    /// - `conserves` (Matrix, none): a Hermitian matrix on the orbitals of a site that commutes with all terms of the
    ///   lead, such as a spin. Each channel then has one of its eigenvalues, in ascending order, and `transmission`
    ///   selects channels by it. Electrons and holes are then distinguished only by this matrix.
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

    /// A sample between leads. Each lead is attached where its cell coincides with outermost sites of the sample; the
    /// sample must be open there.
    ///
    /// `transmission` and `scattering` give what passes between the leads, `density` and `currents` show where. Leads
    /// are numbered from 0, in the order of `leads`.
    ///
    /// # Options
    /// - `leads` (array, required): give the leads, from `transport::lead` and `transport::contact`.
    /// - `k` (float or array, none): a transverse momentum, one number for every periodic direction of the sample, as
    ///   in `m.build(#{ k })`; its leads must have the same `k`.
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
        let sample = TransportSample::new(&model, leads)?;
        for lead in 0..sample.leads() {
            if sample.other_field(&model, lead)? {
                session()?.note(&format!(
                    "the magnetic field in lead {lead} is not that of the sample; `m.flux(alpha, 1, 0)` is \
                     `m.flux(-alpha)`"
                ));
            }
        }
        Ok(ScriptSample(Rc::new(sample), Rc::new(model), Rc::new(told)))
    }

    /// The number of open channels of the lead at an energy. Where bands touch, it is the number just below and just
    /// above that energy.
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

    /// The retarded Green's function of the first cell of the lead, without the sample, as a Matrix of the cell's rows.
    /// Exactly at the energy of an end state of the lead it is infinite, which is an error.
    #[rhai_fn(global, pure, return_raw)]
    pub fn surface(lead: &mut ScriptLead, energy: Dynamic) -> Fallible<Matrix> {
        let energy = one(&energy)?;
        Ok(lead.0.surface(energy)?)
    }

    /// The transmission from one lead to another at an energy, or at each of several (a Series or an array): the
    /// probabilities to pass, added up over the channels. From a lead to itself it is the reflection. The conductance
    /// is e^2/h times the transmission, for each spin. With pairing, electrons and holes come in and go out, and a
    /// normal lead distinguishes them. An electron that comes back as a hole leaves a pair behind (Andreev reflection).
    /// `s.conductance(e)` takes it so, and sums over both (Blonder, Tinkham, Klapwijk 1982).
    ///
    /// Where bands of a lead begin, or touch with zero velocity (a zigzag ribbon of graphene at E = 0), the
    /// transmission is a limit, if it is the same from both sides of the energy. `scattering`, `density` and `currents`
    /// are not defined there. If the limits differ, the transmission is not defined. This is an error for one energy.
    /// For several energies the result is NaN there, a gap in a plot, and a note names these energies.
    ///
    /// # Options
    /// - `sends` ("any" or "electron" or "hole" or float): what comes in; a number is an eigenvalue of the matrix that
    ///   the lead `conserves`.
    /// - `takes` ("any" or "electron" or "hole" or float): what goes out, likewise.
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
        at_energies(&ctx, s, &energy, "transmission", |x, task| s.0.transmission(from, to, x, task))
    }

    /// The waves that propagate in a lead at an energy: a table with one row per wave. `direction` is "in" (towards the
    /// sample) or "out". `momentum` is in units of the reciprocal vector, as in `bands` of the lead's model. `velocity`
    /// is the derivative of the energy with respect to the momentum in inverse lattice constants, positive along the
    /// model's periodic direction. A normal lead of a superconducting system (zero pairing) has also a column
    /// `particle` ("electron" or "hole"), electrons first. Evanescent waves are left out.
    ///
    /// Incoming waves are first. Waves that move along the periodic direction are in order of rising momentum, waves
    /// against it in order of falling momentum, and waves of equal momentum in order of speed. So a wave and its
    /// time-reversed partner have the same number. In a clean sample, so do an incoming wave and the wave that goes out
    /// at the other end. With a field, momenta are those in the lead's gauge.
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

    /// The amplitudes of the waves of `lead.modes(energy)` on the rows of one cell of the lead: a Matrix with one
    /// column per wave. Each wave carries a current of 1. The cell is the one that lead and sample share. One cell
    /// farther along the model's periodic direction, a wave of momentum k has the factor `exp(2 pi i k)`. Waves of
    /// equal momentum are orthogonal, also at equal velocity. Uncoupled parts, such as spins or parallel chains, have
    /// separate waves. The largest amplitude of a wave is real and positive.
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

    /// The scattering matrix at an energy: a map of `s`, a unitary Matrix with a row for each outgoing wave and a
    /// column for each incoming wave, lead by lead, and `channels`, the number for each lead. `outgoing` and `incoming`
    /// are tables that describe them: `lead`, `momentum` and `velocity`; `particle` if a lead distinguishes electrons
    /// from holes; and `conserved`, the eigenvalue of the matrix that a lead conserves. In each lead the waves are
    /// those of `lead.modes(energy)`. So |s|^2 gives the probabilities from wave to wave, for example from valley to
    /// valley.
    ///
    /// # Example
    /// ```rhai
    /// // a clean ribbon of 3 lines: all waves go straight on, with the phase of their momentum from one end
    /// // to the other
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

    /// The scattering states in the sample for waves that come in through a lead: a Matrix with a row for each row of
    /// the sample and a column for each incoming wave, in the order of `lead.modes(energy)`. The incoming wave carries
    /// a current of 1; reflected and evanescent waves are included. `psi.column(j)` is a Series.
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

    /// The density of states on each site from the waves that come in through a lead: a Series by site. Summed over all
    /// leads it is the local density of states, without bound levels that no lead reaches. The exact energy of such a
    /// level is refused.
    ///
    /// # Options
    /// - `carries` (Matrix, none): a Hermitian matrix S on the orbitals of a site, such as a spin: the result is its
    ///   density, sum psi^dagger S psi/(2 pi), instead of the density of states.
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

    /// The currents over the bonds due to the waves that come in through a lead, with one particle per channel: a table
    /// of `from` and `to` (sites) and `current`, positive from the first to the second site. All currents across a cut
    /// add up to the transmission. With pairing, the particles here and in `density` are quasiparticles. For the charge
    /// current use `transmission` with `sends` and `takes`.
    ///
    /// # Options
    /// - `carries` (Matrix, none): a Hermitian matrix S on the orbitals of a site, such as a spin: the result is its
    ///   current, with (S H + H S)/2 instead of the hopping H of a bond. If a hopping does not conserve S, this is half
    ///   of what leaves one site plus half of what reaches the other.
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

    /// The retarded Green's function of the sample with its leads, from some sites to others (a number or an array of
    /// them each): a Matrix with a row for each orbital of the sites `to` and a column for each orbital of the sites
    /// `from`. On the diagonal -1/pi times its imaginary part is the local density of states. Sites are numbered as in
    /// the sample's lattice. The exact energy of a level that no lead reaches is refused.
    ///
    /// # Example
    /// ```rhai
    /// // an infinite chain: exp(i k |x|)/(i v), with E = -2 cos k and v = 2 sin k
    /// let m = model(lattice::chain(6).boundary("open"));
    /// m.nearest(-1.0);
    /// let c = model(lattice::chain(1));
    /// c.nearest(-1.0);
    /// let s = transport::system(m, #{ leads: [transport::lead(c, #{ side: -1 }), transport::lead(c, #{ side: 1 })] });
    /// let k = PI / 3.0;
    /// assert_close(abs(s.green(4, 1, -1.0)[[0, 0]] - exp(3.0 * I * k) / (2.0 * I * sin(k))), 0.0, 1e-12);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn green(
        ctx: NativeCallContext,
        s: &mut ScriptSample,
        to: Dynamic,
        from: Dynamic,
        energy: Dynamic,
    ) -> Fallible<Matrix> {
        let energy = one(&energy)?;
        let sites = |value: &Dynamic| -> Result<Vec<usize>> {
            match value.as_int() {
                Ok(site) => Ok(vec![numbered(site, "site")?]),
                Err(_) => indices(value.clone(), "site"),
            }
        };
        let (to, from) = (sites(&to)?, sites(&from)?);
        tell(&ctx, &s.0, &s.2, &[energy])?;
        Ok(s.0.green(&to, &from, energy, &session()?.task(true))?)
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
