//! Coherent transport through a finite sample between semi-infinite leads: the scattering states that come in through a
//! lead are columns of the sample's Green's function (Fisher, Lee, PRB 23 (1981) 6851; Datta, Electronic Transport in
//! Mesoscopic Systems, chapter 3). A lead is described by the waves that it sends back (`reflection.rs`, `opening.rs`).
//! Energies are in the units of the model, hbar = 1.

mod beside;
mod conductance;
mod conserved;
mod dense;
mod edge;
mod escape;
mod gauge;
mod green;
mod lead;
mod modes;
mod newton;
mod opening;
mod passed;
mod reflection;
mod slab;
mod slices;

use std::borrow::Cow;
use std::ops::Range;

use faer::Mat;

use conserved::check_local;
pub use escape::{Escape, SelfEnergyAt};
pub use lead::Lead;
use modes::{Beam, Mode, Modes};
use opening::{Opening, unresolved};
use passed::{Openings, PassedByEnergy};
use slices::{SliceBlocks, Slices, Triplet};

use crate::backend::matrix::{Csr, Wrap};
use crate::error::{Error, Result};
use crate::lattice::Model;
use crate::number::{C64, Matrix, Series, Table, memory};
use crate::task::{self, Task};

/// A sample with its leads.
#[derive(Debug, Clone)]
pub struct TransportSample {
    h: Csr,
    orbitals: usize,
    leads: Vec<Attached>,
    slices: Slices,
    known: PassedByEnergy,
}

/// What particles come in and go out through.
#[derive(Debug, Clone)]
pub enum Contact {
    /// Cells that repeat without end.
    Lead(Box<Lead>),
    /// A self-energy.
    Escape(Escape),
}

impl From<Lead> for Contact {
    fn from(lead: Lead) -> Contact {
        Contact::Lead(Box::new(lead))
    }
}

#[derive(Debug, Clone)]
struct Attached {
    contact: Contact,
    /// Rows of a site, and those of electrons.
    orbitals: usize,
    electrons: usize,
    /// Rows of the sample in the order of the lead's rows.
    rows: Vec<usize>,
    /// Factors of the lead's amplitudes on these rows, for the sample's gauge.
    phases: Vec<C64>,
}

impl Attached {
    /// The lead at an energy, in the sample's gauge. None where it is not resolved.
    fn opening(&self, energy: f64) -> Result<Option<Opening>> {
        let lead = match &self.contact {
            Contact::Lead(lead) => lead,
            Contact::Escape(escape) => {
                return escape.opening(energy, self.orbitals, self.electrons).map(Some);
            }
        };
        let Some(mut own) = lead.opening(energy)? else { return Ok(None) };
        let (n, channels) = (self.rows.len(), own.back.nrows());
        let p = |i: usize| if i < n { self.phases[i] } else { C64::ONE };
        for i in 0..n + own.extra {
            (0..n + own.extra).for_each(|j| own.matrix[(i, j)] *= p(i) * p(j).conj());
            for c in 0..channels {
                own.source[(i, c)] *= p(i);
                own.out[(c, i)] *= p(i).conj();
            }
        }
        Ok(Some(own))
    }
}

impl Attached {
    /// Its waves, or the channels of a self-energy, which have no momenta.
    fn modes(&self, energy: f64, opening: &Opening) -> Result<Modes> {
        match &self.contact {
            Contact::Lead(lead) => lead.modes_of(energy, opening),
            Contact::Escape(_) => Ok(Modes::without_waves(opening)),
        }
    }
}

/// That a lead has the orbitals of a model, which is open where it begins.
fn check_fits(model: &Model, contact: &Contact, number: usize) -> Result<()> {
    let (orbitals, lattice) = (model.orbitals(), model.lattice());
    let lead = match contact {
        Contact::Lead(lead) => lead,
        Contact::Escape(escape) => {
            let outside = escape.sites().iter().find(|site| **site >= lattice.sites());
            return match outside {
                None => Ok(()),
                Some(site) => Err(Error::input(format!(
                    "lead {number} is on site {site} of a sample of {} sites",
                    lattice.sites()
                ))
                .hint("sites are numbered from 0")),
            };
        }
    };
    if lead.orbitals() != orbitals {
        return Err(Error::input(format!(
            "lead {number} has {} orbitals per site, and the sample {orbitals}",
            lead.orbitals()
        ))
        .hint("a lead and a sample have orbitals of one kind; a pairing of zero makes holes and no pairs"));
    }
    if lead.electrons() != model.particles() {
        return Err(Error::input(format!("lead {number} or the sample has holes, and the other has none"))
            .hint("a pairing of zero makes holes and no pairs"));
    }
    let along = lattice.cell_coordinates(lead.step());
    let closed = |(x, wrap): (&f64, &Wrap)| x.abs() > 1e-9 && *wrap != Wrap::Open;
    if along.iter().zip(lattice.wrap()).any(closed) {
        return Err(Error::input(format!("lead {number} at a sample that is periodic along it"))
            .hint("the sample must be open where leads begin"));
    }
    Ok(())
}

/// For a sample that is not determined inside by what comes in.
fn unreached() -> Error {
    Error::numeric("the sample has a level exactly at this energy that no lead reaches")
        .hint("move the energy by a little")
}

/// Subtracts what leads add on their rows.
fn subtract_leads(blocks: &mut SliceBlocks<'_>, rows: &[Vec<usize>], openings: &[Opening]) {
    for (rows, opening) in rows.iter().zip(openings) {
        for (i, &row) in rows.iter().enumerate() {
            for (j, &column) in rows.iter().enumerate() {
                let value = opening.matrix[(i, j)];
                if value != C64::ZERO {
                    blocks.subtract(row, column, value);
                }
            }
        }
    }
}

/// What comes in or goes out through a lead.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Particle {
    /// Whatever there is.
    #[default]
    Any,
    Electron,
    Hole,
    /// What has this value of the quantity that the lead conserves.
    Carrying(f64),
}

/// The scattering states of one or several leads.
struct States {
    /// One matrix per slice: the rows of the slice in their order, a column for each channel.
    slices: Vec<Mat<C64>>,
    /// Columns of each lead that was asked for.
    columns: Vec<Range<usize>>,
    /// What goes out through each lead: a row for each of its channels, a column for each that comes in.
    out: Vec<Mat<C64>>,
    openings: Openings,
    /// Whether a level that no lead reaches leaves them open inside the sample.
    open: bool,
}

/// The scattering matrix and its waves.
pub struct Scattering {
    /// Amplitudes, rows going out and columns coming in; lead by lead.
    pub matrix: Matrix,
    /// Open channels of each lead.
    pub channels: Vec<usize>,
    /// The waves that come in and those that go out: a row each of `lead`, `momentum`, `velocity`, and of `particle`
    /// where a lead tells electrons from holes.
    pub incoming: Table,
    pub outgoing: Table,
}

impl TransportSample {
    /// A model between leads.
    ///
    /// # Errors
    /// No leads, leads with other orbitals, leads that do not fit, no memory.
    pub fn new(model: &Model, leads: Vec<impl Into<Contact>>) -> Result<TransportSample> {
        let mut leads: Vec<Contact> = leads.into_iter().map(Into::into).collect();
        for k in 0..leads.len() {
            let (before, rest) = leads.split_at_mut(k);
            let Contact::Lead(own) = &mut rest[0] else { continue };
            for other in before {
                if let Contact::Lead(other) = other {
                    own.share(other);
                }
            }
        }
        if leads.is_empty() {
            return Err(Error::input("a sample without leads").hint("it takes one lead at least"));
        }
        let (orbitals, electrons) = (model.orbitals(), model.particles());
        let lattice = model.lattice();
        for (i, lead) in leads.iter().enumerate() {
            check_fits(model, lead, i)?;
        }
        let each = 24 + 8 * lattice.dimension() as u128;
        memory::ensure(each * lattice.sites() as u128, "the positions of a sample's sites")?;
        let position = |site| {
            task::poll()?;
            lattice.position(site)
        };
        let sites: Vec<Vec<f64>> = (0..lattice.sites()).map(position).collect::<Result<_>>()?;
        let h = model.to_csr(false)?;
        let attached = |(i, contact): (usize, Contact)| -> Result<Attached> {
            let lead = match &contact {
                Contact::Lead(lead) => lead,
                Contact::Escape(escape) => {
                    let rows = escape
                        .sites()
                        .iter()
                        .flat_map(|site| site * orbitals..(site + 1) * orbitals)
                        .collect();
                    return Ok(Attached { contact, orbitals, electrons, rows, phases: Vec::new() });
                }
            };
            let sites = lead.attach(&sites).map_err(|e| e.context(format!("lead {i}")))?;
            let rows = sites.iter().flat_map(|site| site * orbitals..(site + 1) * orbitals).collect();
            let phases = gauge::phases(model, lead, &sites).map_err(|e| e.context(format!("lead {i}")))?;
            Ok(Attached { contact, orbitals, electrons, rows, phases })
        };
        let leads: Vec<Attached> = leads.into_iter().enumerate().map(attached).collect::<Result<_>>()?;
        let slices = Slices::new(&h, &leads.iter().map(|l| &l.rows[..]).collect::<Vec<_>>());
        Ok(TransportSample { h, orbitals, leads, slices, known: PassedByEnergy::default() })
    }

    /// How many leads there are.
    pub fn leads(&self) -> usize {
        self.leads.len()
    }

    /// A lead with cells, and the sites of the sample that it has in common with it, in the order of its own.
    pub fn lead(&self, lead: usize) -> Option<(&Lead, Vec<usize>)> {
        let attached = self.leads.get(lead)?;
        let Contact::Lead(lead) = &attached.contact else { return None };
        let sites = attached.rows.iter().step_by(self.orbitals).map(|row| row / self.orbitals);
        Some((lead, sites.collect()))
    }

    /// Rows of the sample.
    pub fn rows(&self) -> usize {
        self.h.rows
    }

    /// The number of rows of the largest slice, and the number of slices: the size and number of steps of the
    /// elimination.
    pub fn slices(&self) -> (usize, usize) {
        (self.slices.rows.iter().map(Vec::len).max().unwrap_or(0), self.slices.rows.len())
    }

    fn check(&self, lead: usize) -> Result<()> {
        if lead < self.leads.len() {
            return Ok(());
        }
        Err(Error::input(format!("lead {lead} of {}", self.leads.len())).hint("leads are counted from 0"))
    }

    /// The slices with the leads' own rows, and all rows of each lead.
    fn with_leads(&self, openings: &[Opening]) -> (Cow<'_, Slices>, Vec<Vec<usize>>) {
        let extra = self.leads.iter().zip(openings).map(|(lead, opening)| (&lead.rows[..], opening.extra));
        self.slices.with(&extra.collect::<Vec<_>>(), self.h.rows)
    }

    /// The scattering states that come in through these leads. None where a lead is not resolved.
    fn states(&self, energy: f64, from: &[usize], task: &Task) -> Result<Option<States>> {
        let Some(openings) = self.openings(energy)? else { return Ok(None) };
        let (slices, rows) = self.with_leads(&openings);
        let mut blocks = SliceBlocks::new(&slices, &self.h, energy);
        subtract_leads(&mut blocks, &rows, &openings);
        let mut columns = Vec::new();
        let mut count = 0;
        for &lead in from {
            let open = openings[lead].back.nrows();
            columns.push(count..count + open);
            count += open;
        }
        let mut b: Vec<Vec<Triplet>> = vec![Vec::new(); slices.rows.len()];
        for (&lead, range) in from.iter().zip(&columns) {
            for (i, &row) in rows[lead].iter().enumerate() {
                let Some((slice, at)) = slices.place(row) else { continue };
                for (c, column) in range.clone().enumerate() {
                    b[slice].push((at, column, openings[lead].source[(i, c)]));
                }
            }
        }
        let (psi, open) = if count == 0 {
            (slices.rows.iter().map(|rows| Mat::zeros(rows.len(), 0)).collect(), false)
        } else {
            blocks.solve(&b, count, task)?
        };
        let out = rows.iter().zip(&*openings).enumerate().map(|(lead, (rows, opening))| {
            let mut out = Mat::<C64>::zeros(opening.back.nrows(), count);
            for (i, &row) in rows.iter().enumerate() {
                let Some((slice, at)) = slices.place(row) else { continue };
                for column in 0..count {
                    let psi = psi[slice][(at, column)];
                    (0..out.nrows()).for_each(|c| out[(c, column)] += opening.out[(c, i)] * psi);
                }
            }
            for (_, range) in from.iter().zip(&columns).filter(|(from, _)| **from == lead) {
                for (d, column) in range.clone().enumerate() {
                    (0..out.nrows()).for_each(|c| out[(c, column)] += opening.back[(c, d)]);
                }
            }
            out
        });
        let out = out.collect();
        Ok(Some(States { slices: psi, columns, out, openings, open }))
    }

    /// The states that come in through a lead, known inside the sample as well.
    fn states_inside(&self, energy: f64, from: usize, task: &Task) -> Result<States> {
        self.check(from)?;
        let states = self.states(energy, &[from], task)?.ok_or_else(|| unresolved(energy))?;
        if states.open {
            return Err(unreached());
        }
        Ok(states)
    }

    /// The scattering matrix between the waves of the leads, unitary.
    ///
    /// # Errors
    /// Where a lead is not resolved; no memory, interruption.
    pub fn scattering(&self, energy: f64, task: &Task) -> Result<Scattering> {
        let all: Vec<usize> = (0..self.leads.len()).collect();
        let states = self.states(energy, &all, task)?.ok_or_else(|| unresolved(energy))?;
        let modes = self.modes(energy, &states)?;
        let count = states.columns.last().map_or(0, |range| range.end);
        let mut s = Vec::with_capacity(count * count);
        for (out, of) in states.out.iter().zip(&modes) {
            let out = of.outward.channels.adjoint() * out;
            let parts: Vec<Mat<C64>> = states
                .columns
                .iter()
                .zip(&modes)
                .map(|(range, from)| out.subcols(range.start, range.len()) * &from.inward.channels)
                .collect();
            for c in 0..out.nrows() {
                parts.iter().for_each(|part| s.extend((0..part.ncols()).map(|d| part[(c, d)])));
            }
        }
        let table = |beam: &dyn Fn(&Modes) -> &Beam| {
            let of = |(lead, modes): (usize, &Modes)| vec![lead as f64; beam(modes).modes.len()];
            let leads: Vec<f64> = modes.iter().enumerate().flat_map(of).collect();
            let all: Vec<Mode> = modes.iter().flat_map(|modes| beam(modes).modes.iter().copied()).collect();
            modes::table("lead", leads, &all)
        };
        Ok(Scattering {
            matrix: Matrix::new(count, count, Series::Complex(s))?,
            channels: states.columns.iter().map(|range| range.len()).collect(),
            incoming: table(&|modes| &modes.inward)?,
            outgoing: table(&|modes| &modes.outward)?,
        })
    }

    fn modes(&self, energy: f64, states: &States) -> Result<Vec<Modes>> {
        self.leads.iter().zip(&*states.openings).map(|(own, opening)| own.modes(energy, opening)).collect()
    }

    /// The states that come in through a lead, one for each of its incoming waves, with which each carries a current of
    /// 1: a row for each row of the sample.
    ///
    /// # Errors
    /// As [`TransportSample::density`].
    pub fn waves(&self, from: usize, energy: f64, task: &Task) -> Result<Matrix> {
        let states = self.states_inside(energy, from, task)?;
        let modes = self.leads[from].modes(energy, &states.openings[from])?;
        let count = modes.inward.modes.len();
        memory::ensure(16 * (self.h.rows * count) as u128, "the waves in a sample")?;
        let mut all = vec![C64::ZERO; self.h.rows * count];
        for (rows, psi) in self.slices.rows.iter().zip(&states.slices) {
            // Behind the sample's own rows of a slice stand those of leads.
            let waves = psi.subrows(0, rows.len()) * &modes.inward.channels;
            for (i, &row) in rows.iter().enumerate() {
                (0..count).for_each(|c| all[row * count + c] = waves[(i, c)]);
            }
        }
        Matrix::new(self.h.rows, count, Series::Complex(all))
    }

    /// The transmission from one lead to another, summed over channels; from a lead to itself, the reflection. `sends`
    /// and `takes` choose among electrons and holes. At an energy where bands of a lead touch or begin it is the limit,
    /// where both sides have the same.
    ///
    /// # Errors
    /// A lead that is not there, and as [`TransportSample::scattering`].
    pub fn transmission(
        &self,
        (from, sends): (usize, Particle),
        (to, takes): (usize, Particle),
        energy: f64,
        task: &Task,
    ) -> Result<f64> {
        self.check(from)?;
        self.check(to)?;
        if let Some(passed) = self.passed(energy, from, task)? {
            return passed.sum((from, sends), (to, takes));
        }
        self.limit_at_edge((from, sends), (to, takes), energy, task)
    }

    /// The local density of states on each site of the states that come in through one lead: `sum |psi|^2 / (2 pi)`, or
    /// `sum psi^dagger S psi / (2 pi)` of what they carry, a Hermitian matrix of the orbitals of a site.
    ///
    /// # Errors
    /// As [`TransportSample::transmission`], and for a sample with a level at this energy that no lead reaches.
    pub fn density(
        &self,
        from: usize,
        energy: f64,
        carries: Option<&Matrix>,
        task: &Task,
    ) -> Result<Vec<f64>> {
        let carried = self.carried(carries)?;
        let states = self.states_inside(energy, from, task)?;
        let mut density = vec![0.0; self.h.rows / self.orbitals];
        for row in 0..self.h.rows {
            let Some((slice, i)) = self.slices.place(row) else { continue };
            let psi = &states.slices[slice];
            for &(orbital, value) in &carried[row % self.orbitals] {
                let Some((other, j)) = self.slices.place(row - row % self.orbitals + orbital) else {
                    continue;
                };
                let there = &states.slices[other];
                let sum: f64 =
                    (0..psi.ncols()).map(|c| (psi[(i, c)].conj() * value * there[(j, c)]).re).sum();
                density[row / self.orbitals] += sum / std::f64::consts::TAU;
            }
        }
        Ok(density)
    }

    /// The elements of a local matrix, row by row: those of one where there is none.
    fn carried(&self, carries: Option<&Matrix>) -> Result<Vec<Vec<(usize, C64)>>> {
        let n = self.orbitals;
        let Some(carries) = carries else { return Ok((0..n).map(|a| vec![(a, C64::ONE)]).collect()) };
        check_local(carries, n, "what is carried")?;
        let data = carries.data().to_complex();
        let row = |a: usize| (0..n).map(|b| (b, data[a * n + b])).filter(|(_, z)| *z != C64::ZERO).collect();
        Ok((0..n).map(row).collect())
    }

    /// The currents over the bonds of the sample from what comes in through one lead, a state a channel: a
    /// table of `from`, `to` (sites) and `current`, positive from the first to the second. What crosses any
    /// cut between two leads adds up to the transmission. With a Hermitian matrix of the orbitals of a site it is the
    /// current of that, half of what leaves the one site and half of what reaches the other where they differ.
    ///
    /// # Errors
    /// As [`TransportSample::density`].
    pub fn currents(&self, from: usize, energy: f64, carries: Option<&Matrix>, task: &Task) -> Result<Table> {
        let carried = self.carried(carries)?;
        let states = self.states_inside(energy, from, task)?;
        let n = self.orbitals;
        let mut bonds: std::collections::BTreeMap<(usize, usize), f64> = std::collections::BTreeMap::new();
        for row in 0..self.h.rows {
            if self.slices.place(row).is_none() {
                continue;
            }
            for entry in self.h.row_start[row]..self.h.row_start[row + 1] {
                let column = self.h.columns.get(entry);
                let (b, a) = (row / n, column / n);
                if a >= b {
                    continue;
                }
                // (S H + H S)/2 between the two sites, from this element of H.
                let here = carried[row % n].iter().map(|(o, s)| (b * n + o, column, s.conj()));
                let there = carried[column % n].iter().map(|(o, s)| (row, a * n + o, *s));
                for (i, j, s) in here.chain(there) {
                    let (Some((slice, i)), Some((other, j))) = (self.slices.place(i), self.slices.place(j))
                    else {
                        continue;
                    };
                    let (here, there) = (&states.slices[slice], &states.slices[other]);
                    let value = self.h.values.get(entry) * s;
                    let flow: f64 =
                        (0..here.ncols()).map(|c| (here[(i, c)].conj() * value * there[(j, c)]).im).sum();
                    *bonds.entry((a, b)).or_default() += flow;
                }
            }
        }
        let column = |f: &dyn Fn((&(usize, usize), &f64)) -> f64| bonds.iter().map(f).collect::<Vec<f64>>();
        Table::from_columns([
            ("from", column(&|(pair, _)| pair.0 as f64)),
            ("to", column(&|(pair, _)| pair.1 as f64)),
            ("current", column(&|(_, current)| *current)),
        ])
    }
}
