//! Defects: a few sites removed, on-site terms and hoppings changed, at many places of a model.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::block::OrbitalBlock;
use super::lattice::Bond;
use super::model::{Hop, HopValue, Model};
use super::table::{BlockTable, Builder};
use crate::error::{Error, Result};
use crate::number::memory;
use crate::number::philox::{self, Stream};
use crate::task::Task;

/// A site beside a defect's own cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefectSite {
    /// Displacement in cells from the defect's cell.
    pub shift: Vec<i64>,
    /// Site of that cell.
    pub site: usize,
}

/// What a defect changes, in coordinates of the cell that it lies at.
#[derive(Debug, Clone, Default)]
pub struct Defect {
    /// Sites that go.
    pub remove: Vec<DefectSite>,
    /// Terms added to those of sites.
    pub onsite: Vec<(DefectSite, OrbitalBlock)>,
    /// Hoppings instead of those that are there, from the first place to the second; zeros cut the bond.
    pub hops: Vec<(DefectSite, DefectSite, OrbitalBlock)>,
    /// Sites that come; of a sublattice that [`Model::with_sublattices`] made.
    pub add: Vec<DefectSite>,
    /// Sites that move, with what they have, to a site of such a sublattice.
    pub moves: Vec<(DefectSite, DefectSite)>,
}

/// Where defects go.
#[derive(Debug, Clone)]
pub enum DefectPlaces {
    /// To these cells.
    Cells(Vec<Vec<i64>>),
    /// To each cell with this probability.
    Fraction(f64),
    /// To so many cells at random.
    Count(usize),
}

/// A defect at a cell: which of several it is, and the sites it names, as numbered before removals.
struct PlacedDefect {
    kind: usize,
    sites: Vec<usize>,
    /// Those that come, and those that others move to.
    made: Vec<usize>,
}

/// What a call draws from: which defect a cell gets, and the number by which it has one.
struct DefectDraw<'a> {
    kinds: &'a [Defect],
    /// Whether defects may share sites.
    overlap: bool,
    seed: u64,
    /// How many draws the model has had before.
    call: u32,
}

impl DefectDraw<'_> {
    fn words(&self, cell: usize) -> [u32; 4] {
        philox::words(self.seed, Stream::Defects as u32, cell as u64, self.call)
    }

    /// Between 0 and 1, for each cell.
    fn number(&self, cell: usize) -> f64 {
        let w = self.words(cell);
        philox::unit(w[0], w[1])
    }

    fn kind(&self, cell: usize) -> usize {
        let (w, kinds) = (self.words(cell), self.kinds.len());
        ((philox::unit(w[2], w[3]) * kinds as f64) as usize).min(kinds - 1)
    }
}

/// The hopping that a bond of a cell gets: the cells that it leaves and reaches, and the block.
type Edits = BTreeMap<(Vec<i64>, usize, usize), Vec<(usize, usize, OrbitalBlock)>>;

impl Defect {
    /// All sites that it names, in order: those removed, those that move, those with terms, both ends of hoppings.
    fn places(&self) -> impl Iterator<Item = &DefectSite> {
        let ends = self.hops.iter().flat_map(|(a, b, _)| [a, b]);
        let gone = self.remove.iter().chain(self.moves.iter().map(|(from, _)| from));
        gone.chain(self.onsite.iter().map(|(place, _)| place)).chain(ends)
    }

    /// Sites that were not there before.
    fn made(&self) -> impl Iterator<Item = &DefectSite> {
        self.add.iter().chain(self.moves.iter().map(|(_, to)| to))
    }

    /// How many of the sites that it names are there no more.
    fn gone(&self) -> usize {
        self.remove.len() + self.moves.len()
    }

    /// The defect with its terms as the rows of the model have them.
    fn checked(&self, model: &Model) -> Result<Defect> {
        let mut defect = self.clone();
        for place in self.places().chain(self.made()) {
            // As a bond from the cell's own site: displacements and sites are checked alike.
            super::lattice::check_bond(
                &Bond { shift: place.shift[..].into(), from: 0, to: place.site },
                model.lattice.dimension(),
                model.lattice.basis().len(),
            )?;
        }
        for (_, block) in &mut defect.onsite {
            *block = model.checked_onsite(block, "the on-site term of a defect")?;
        }
        let mut seen: Vec<Bond> = Vec::new();
        for (a, b, block) in &mut defect.hops {
            block.check(model.particles(), "the hopping of a defect")?;
            *block = model.both(block.clone());
            let shift: Vec<i64> = b.shift.iter().zip(&a.shift).map(|(b, a)| b - a).collect();
            let bond = model.checked_bond(&shift, a.site, b.site)?;
            // The same bond at the same place, whichever way round.
            let ahead =
                Bond { shift: [&a.shift[..], &b.shift[..]].concat().into(), from: bond.from, to: bond.to };
            let back =
                Bond { shift: [&b.shift[..], &a.shift[..]].concat().into(), from: bond.to, to: bond.from };
            if seen.contains(&ahead) || seen.contains(&back) {
                return Err(Error::input("a defect names one of its hoppings twice")
                    .hint("its conjugate is implied: give each bond once"));
            }
            seen.push(ahead);
        }
        Ok(defect)
    }
}

impl Model {
    /// Puts defects into the model: each place gets one of `kinds`, evenly at random where there are several. A defect
    /// lies only where all sites that it names are there. Cell `c` is drawn by `unit(w0, w1)` of the words of
    /// `philox::words(seed, Stream::Defects, c, n)`, in the call that follows `n` disorders of any kind: cells are
    /// taken from the smallest number up, below the fraction or until there are enough, with `overlap` unset none that
    /// names a site of one before. `unit(w2, w3)` chooses the kind. Gives the number of defects.
    ///
    /// # Errors
    /// Terms and sites that do not fit the model, a fraction that is none, cells given where a site is missing or
    /// defects overlap, more defects than there is room for, no site left, no memory, interruption.
    /// The model is then as it was.
    pub fn defects(
        &mut self,
        kinds: &[Defect],
        places: &DefectPlaces,
        overlap: bool,
        seed: u64,
        task: &Task,
    ) -> Result<usize> {
        let kinds: Vec<Defect> = kinds.iter().map(|kind| kind.checked(self)).collect::<Result<_>>()?;
        if kinds.is_empty() || kinds.iter().any(|kind| kind.places().chain(kind.made()).next().is_none()) {
            return Err(Error::input("a defect that changes nothing")
                .hint("it has sites to `remove`, `add` or `move`, `onsite` terms or hoppings (`hop`)"));
        }
        // A site moves once.
        let overlap = overlap && kinds.iter().all(|kind| kind.moves.is_empty());
        let draw = DefectDraw { kinds: &kinds, overlap, seed, call: self.draws };
        let placed = self.place_defects(&draw, places, task)?;
        let gone: HashSet<usize> =
            placed.iter().flat_map(|at| &at.sites[..kinds[at.kind].gone()]).copied().collect();
        let (mut added, mut moved) = (BTreeSet::new(), BTreeMap::new());
        for at in &placed {
            let kind = &kinds[at.kind];
            let (new, ends) = at.made.split_at(kind.add.len());
            added.extend(new);
            moved.extend(at.sites[kind.remove.len()..].iter().copied().zip(ends.iter().copied()));
        }
        if !added.is_empty() || !moved.is_empty() {
            self.unstrained("a site is added")?;
            let mut model = self.clone();
            model.appear(&added, &moved)?;
            model.change(&kinds, &placed, &gone)?;
            *self = model;
        } else {
            self.change(&kinds, &placed, &gone)?;
        }
        Ok(placed.len())
    }

    /// Does what defects say, where the sites that come are there already.
    fn change(&mut self, kinds: &[Defect], placed: &[PlacedDefect], gone: &HashSet<usize>) -> Result<()> {
        let lattice = match gone.is_empty() {
            true => None,
            false => Some(self.lattice.without_sites(gone)?),
        };
        let cells = self.lattice.cell_count();
        let bonds: usize = kinds.iter().map(|kind| kind.hops.len()).sum();
        memory::ensure(
            4 * (bonds * cells + self.lattice.sites()) as u128,
            &format!("the hoppings of defects in {cells} cells"),
        )?;
        self.next_draw();
        self.defect_terms(kinds, placed)?;
        self.defect_hops(kinds, placed)?;
        if let Some(lattice) = lattice {
            self.renumber(lattice);
        }
        Ok(())
    }

    /// The defects of a call, in the order in which they are put in.
    fn place_defects(
        &self,
        draw: &DefectDraw,
        places: &DefectPlaces,
        task: &Task,
    ) -> Result<Vec<PlacedDefect>> {
        match *places {
            DefectPlaces::Cells(ref cells) => self.defects_in(cells, draw),
            DefectPlaces::Fraction(x) if (0.0..=1.0).contains(&x) => {
                self.scattered_defects(x, usize::MAX, draw, task)
            }
            DefectPlaces::Fraction(x) => {
                Err(Error::input(format!("a fraction of defects lies between 0 and 1, not at {x}"))
                    .hint("it is the probability that a cell has one; a whole number is how many there are"))
            }
            DefectPlaces::Count(n) => {
                let placed = self.scattered_defects(1.0, n, draw, task)?;
                if placed.len() < n {
                    return Err(Error::input(format!("{n} defects where {} found room", placed.len()))
                        .hint("take fewer, or a larger lattice"));
                }
                Ok(placed)
            }
        }
    }

    /// One defect in each of these cells.
    fn defects_in(&self, cells: &[Vec<i64>], draw: &DefectDraw) -> Result<Vec<PlacedDefect>> {
        let (mut taken, mut seen, mut placed) = (HashSet::new(), HashSet::new(), Vec::new());
        for at in cells {
            let cell = self.lattice.cell_at(at)?;
            if !seen.insert(cell) {
                return Err(Error::input(format!("cell {at:?} is given twice as a place of defects"))
                    .hint("a cell has one of them: give each once"));
            }
            let kind = draw.kind(cell);
            let (sites, made) = self.sites_of(&draw.kinds[kind], at).ok_or_else(|| {
                Error::input(format!("a defect at cell {at:?} names a site that is not there"))
                    .hint("it was removed, or lies beyond an open boundary")
            })?;
            if !draw.overlap && sites.iter().any(|site| taken.contains(site)) {
                return Err(Error::input(format!("the defect at cell {at:?} overlaps one before"))
                    .hint("take them farther apart, or leave `overlap` at true"));
            }
            taken.extend(sites.iter().copied());
            placed.push(PlacedDefect { kind, sites, made });
        }
        Ok(placed)
    }

    /// A defect in each cell whose number is `below`, from the smallest number up, where all its sites are there;
    /// `most` at most.
    fn scattered_defects(
        &self,
        below: f64,
        most: usize,
        draw: &DefectDraw,
        task: &Task,
    ) -> Result<Vec<PlacedDefect>> {
        let (lattice, all) = (&self.lattice, self.lattice.cell_count());
        memory::ensure((24.0 * below * all as f64) as u128, &format!("defects in {all} cells"))?;
        let mut order = Vec::new();
        let steps = task.start("defects", all);
        for cell in 0..all {
            if cell.is_multiple_of(65536) {
                steps.advance(cell)?;
            }
            let x = draw.number(cell);
            if x < below {
                order.push((x, cell));
            }
        }
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut taken: HashSet<usize> = HashSet::new();
        let mut placed = Vec::new();
        for (i, (_, cell)) in order.into_iter().enumerate() {
            if i.is_multiple_of(1024) {
                task.check()?;
            }
            if placed.len() == most {
                break;
            }
            let kind = draw.kind(cell);
            let at = &lattice.coordinates(cell)[..lattice.dimension()];
            let Some((sites, made)) = self.sites_of(&draw.kinds[kind], at) else { continue };
            if !draw.overlap {
                if sites.iter().any(|site| taken.contains(site)) {
                    continue;
                }
                taken.extend(&sites);
            }
            placed.push(PlacedDefect { kind, sites, made });
        }
        Ok(placed)
    }

    /// The sites that a defect at a cell names, if all are there or come with it, and those that come.
    fn sites_of(&self, defect: &Defect, at: &[i64]) -> Option<(Vec<usize>, Vec<usize>)> {
        let basis = self.lattice.basis().len();
        let one =
            |place: &DefectSite| Some(self.lattice.land(at, &place.shift, 1)?.cell * basis + place.site);
        let made: Vec<usize> = defect.made().map(one).collect::<Option<_>>()?;
        let there =
            |full: usize| (self.lattice.number(full).is_some() || made.contains(&full)).then_some(full);
        Some((defect.places().map(|place| one(place).and_then(there)).collect::<Option<_>>()?, made))
    }

    fn defect_terms(&mut self, kinds: &[Defect], placed: &[PlacedDefect]) -> Result<()> {
        let mut terms: HashMap<usize, OrbitalBlock> = HashMap::new();
        for at in placed {
            let kind = &kinds[at.kind];
            for (site, (_, block)) in at.sites[kind.gone()..].iter().zip(&kind.onsite) {
                let none = || OrbitalBlock::scalar(self.orbitals, 0.0);
                terms.entry(*site).or_insert_with(none).add(block);
            }
        }
        if terms.is_empty() {
            return Ok(());
        }
        let none = OrbitalBlock::scalar(self.orbitals, 0.0);
        let mut table = Builder::default();
        for site in 0..self.lattice.sites() {
            table.push(Some(terms.get(&self.lattice.full(site)).unwrap_or(&none).clone()))?;
        }
        self.local.push(Arc::new(table.finish()));
        Ok(())
    }

    fn defect_hops(&mut self, kinds: &[Defect], placed: &[PlacedDefect]) -> Result<()> {
        let basis = self.lattice.basis().len();
        let mut edits = Edits::new();
        for at in placed {
            let kind = &kinds[at.kind];
            let ends = at.sites[kind.gone() + kind.onsite.len()..].chunks_exact(2);
            for (ends, (a, b, block)) in ends.zip(&kind.hops) {
                let shift: Vec<i64> = b.shift.iter().zip(&a.shift).map(|(b, a)| b - a).collect();
                let back: Vec<i64> = shift.iter().map(|x| -x).collect();
                let (from, to) = (ends[0] / basis, ends[1] / basis);
                // Each bond under one name, whichever way round it is given.
                let (ahead, behind) = ((shift, a.site, b.site), (back, b.site, a.site));
                if behind < ahead {
                    edits.entry(behind).or_default().push((to, from, block.dagger()));
                } else {
                    edits.entry(ahead).or_default().push((from, to, block.clone()));
                }
            }
        }
        for ((shift, from, to), edits) in edits {
            self.replace_hops(&Bond { shift: shift.into(), from, to }, &edits)?;
        }
        Ok(())
    }

    /// Puts blocks in the place of what hoppings the model has over a bond.
    fn replace_hops(&mut self, bond: &Bond, edits: &[(usize, usize, OrbitalBlock)]) -> Result<()> {
        let cells = self.lattice.cell_count();
        let back = Bond { shift: bond.shift.iter().map(|x| -x).collect(), from: bond.to, to: bond.from };
        let over = |hop: &Hop| !hop.pairing && (hop.bond == *bond || hop.bond == back);
        if !self.hops.iter().any(over) {
            let value = HopValue::PerCell(Arc::new(BlockTable::absent(cells)));
            self.add_hop(Hop { bond: bond.clone(), value, scale: None, pairing: false });
        }
        let mut first = true;
        for hop in Arc::make_mut(&mut self.hops).iter_mut().filter(|hop| over(hop)) {
            let reversed = hop.bond != *bond;
            let before = match &hop.value {
                HopValue::Uniform(block) => BlockTable::same(block.clone(), cells),
                HopValue::PerCell(table) => table.as_ref().clone(),
            };
            let mut table = Builder::of(before);
            for (from, to, block) in edits {
                let at = if reversed { *to } else { *from };
                let zero = block.nonzero().next().is_none();
                let block = if reversed { block.dagger() } else { block.clone() };
                table.set(at, (first && !zero).then_some(block))?;
                if let Some(scale) = &mut hop.scale {
                    Arc::make_mut(scale)[at] = 1.0;
                }
            }
            hop.value = HopValue::PerCell(Arc::new(table.finish()));
            first = false;
        }
        Ok(())
    }
}
