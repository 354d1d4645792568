//! A backend whose rows are divided between the ranks of a run. Each rank computes with its rows on its own backend,
//! and products exchange the rows across a cut (Kreutzer, Hager, Wellein, Pieper, Alvermann, Fehske, IPDPS 2015, 417).
//! All ranks make the same calls in the same order. A query of a vector concerns all its rows: results are the same on
//! all ranks, with sums in the order of ranks. Spinors live in boxes of their lattice. Every rank holds the whole of
//! vectors whose operators are not divided; each rank computes some blocks of a superblock's product. If ranks have
//! cards that reach each other, long vectors of superblocks are distributed over the cards. With different backends,
//! undivided data live on one rank only (`uneven.rs`).

mod distributed;
mod faces;
mod held;
mod kernel;
mod lone;
mod one;
mod passes;
mod records;
mod rows;
mod splines;
mod team;
mod together;
mod uneven;
mod whole;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::backend::algebra::conformal;
pub(crate) use crate::backend::cut::least_surface;
use crate::backend::cut::speed::RowShares;
use crate::backend::cut::{RowCut, share};
use crate::backend::distributed::Distributed;
use crate::backend::matrix::Stencil;
use crate::backend::matrix::outer::Superblocks;
use crate::backend::shared::{RowsChange, RowsSummand, SharedRows, TwoRowsChange};
use crate::backend::{
    Backend, BlockVector, DenseSolver, Device, DeviceMemory, Grid, Kernel, Matrices, MatrixKeeper,
    MatrixSpec, MonteCarlo, Random, Recorder, Rows, Vectors,
};
use crate::error::{Error, Result};
use crate::number::{C64, DType};
use crate::ranks::World;
pub(in crate::backend) use held::OwnRows;
use held::{RankDevices, local, other_cut, own, own_mut};
use team::Team;
use together::RankAssembly;
use uneven::AllRanks;
pub(in crate::backend) use uneven::{Mixed, Uneven};

/// Rows below which every rank has all of them, unless the user says otherwise:
/// an exchange takes longer than such a product.
const FEW_ROWS: usize = 1 << 12;

/// Rows from which vectors of superblocks are spread over ranks whose cards reach each other, unless the user says
/// otherwise: below some number, sums over ranks take longer than what a card saves. A search among 700 000 rows takes
/// as long on one card as on two, one among 185 000 is slower on two.
const MANY_ROWS: usize = 1 << 19;

/// Numbers from which cards that reach each other bring together what each has of them.
/// Fewer go by messages in less time.
const MANY_NUMBERS: usize = 1 << 17;

/// Rows a rank below which a superblock's vectors are never spread.
const EACH: usize = 64;

/// The ranks of a run as one backend.
pub struct Ranks {
    team: Team,
    places: RankDevices,
    /// Ranks in each direction of a lattice, where the user has said so.
    grid: Option<Vec<usize>>,
    /// What is to be noted, and whether it was that the grid does not serve all lattices.
    note: Box<dyn Fn(&str) + Send + Sync>,
    noted: AtomicBool,
    /// Rows from which vectors are shared out, and those of superblocks on cards.
    least: usize,
    many: usize,
    together: Arc<RankAssembly>,
    /// None if all ranks are the same and share alike.
    uneven: Option<Uneven>,
    kinds: OnceLock<(bool, bool)>,
    /// Whether the rank that has all that lives whole solves dense matrices, if there is one such.
    solves: OnceLock<bool>,
    cuts: Mutex<HashMap<(usize, Option<Grid>), Arc<RowCut>>>,
}

impl std::fmt::Debug for Ranks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {} ranks", self.places.device.name(), self.team.world.size())
    }
}

impl Ranks {
    /// The ranks of a world, each with a backend of its own, in boxes of a grid where one is given; `note` says what
    /// users should know. Vectors of `least` rows and more are shared out; of some thousand if it is none.
    ///
    /// # Errors
    /// A grid of another number of ranks, or of ranks that weigh differently.
    pub(in crate::backend) fn new(
        world: &'static World,
        device: Device,
        grid: Option<Vec<usize>>,
        note: Box<dyn Fn(&str) + Send + Sync>,
        least: Option<usize>,
        uneven: Option<Uneven>,
    ) -> Result<Self> {
        let weights = uneven.as_ref().and_then(|uneven| uneven.shares.by_hand()).unwrap_or_default();
        if grid.is_some() && weights.iter().any(|weight| *weight != weights[0]) {
            return Err(Error::input("a grid of ranks has boxes of one size, and these weights make others")
                .hint("leave out `--grid` or `--weights`"));
        }
        if let Some(grid) = &grid {
            let wanted = grid.iter().try_fold(1usize, |n, k| n.checked_mul(*k));
            if wanted != Some(world.size()) {
                let text = grid.iter().map(|n| n.to_string()).collect::<Vec<_>>().join("x");
                return Err(Error::input(format!("a grid of {text} for {} ranks", world.size()))
                    .hint("the numbers of ranks in each direction multiply to that of all"));
            }
        }
        let (least, many) = (least.unwrap_or(FEW_ROWS), least.unwrap_or(MANY_ROWS).max(EACH * world.size()));
        let (team, kinds, solves, cuts) =
            (Team { world }, OnceLock::new(), OnceLock::new(), Mutex::default());
        let together = Arc::new(RankAssembly::new(team, device.clone()));
        let host = uneven.as_ref().map(|uneven| uneven.host.clone());
        let name = uneven.as_ref().and_then(|uneven| Some(uneven.mixed.as_ref()?.name));
        let places = RankDevices { device, host, name };
        let noted = AtomicBool::new(false);
        Ok(Ranks { team, places, grid, note, noted, least, many, together, uneven, kinds, solves, cuts })
    }

    /// The cut of vectors of so many rows, on a lattice or on none.
    fn cut(
        &self,
        rows: usize,
        grid: Option<Grid>,
        make: impl FnOnce() -> Result<RowCut>,
    ) -> Result<Arc<RowCut>> {
        let mut cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cut) = cuts.get(&(rows, grid)) {
            return Ok(cut.clone());
        }
        let cut = Arc::new(if rows < self.least {
            self.undivided(rows)
        } else {
            self.team.same(rows)?;
            make()?
        });
        cuts.insert((rows, grid), cut.clone());
        Ok(cut)
    }

    /// What is told of backends that differ, if they do.
    fn mixed(&self) -> Option<&Mixed> {
        self.uneven.as_ref()?.mixed.as_ref()
    }

    /// The host of ranks whose backends differ.
    fn host(&self) -> Option<&Device> {
        self.uneven.as_ref().filter(|uneven| uneven.mixed.is_some()).map(|uneven| &uneven.host)
    }

    /// Rows that are not shared out: on every rank, or on one where backends differ.
    fn undivided(&self, rows: usize) -> RowCut {
        let place = self.team.place();
        match &self.uneven {
            Some(Uneven { shares, mixed: Some(_), .. }) => shares.one(rows).of(place.0),
            _ => RowCut::whole(rows, place),
        }
    }

    /// Rows shared out by weight, where they are not shared out evenly.
    fn by_weight(
        &self,
        make: impl FnOnce(&RowShares, &AllRanks) -> Result<RowCut>,
    ) -> Result<Option<RowCut>> {
        let all = AllRanks { team: self.team, device: &self.places.device };
        let Some(uneven) = &self.uneven else { return Ok(None) };
        Ok(Some(make(&uneven.shares, &all)?.of(self.team.world.rank())))
    }

    /// Whether the grid that the user has named is one for a lattice.
    fn takes_grid(&self) -> bool {
        self.grid.is_some() && self.uneven.as_ref().is_none_or(Uneven::is_for_all)
    }

    fn cut_of(&self, rows: &Rows) -> Result<Arc<RowCut>> {
        let place = self.team.place();
        self.cut(rows.global, rows.grid, || {
            if (rows.grid.is_none() || !self.takes_grid())
                && let Some(cut) = self.by_weight(|shares, all| shares.of_rows(rows, all))?
            {
                return Ok(cut);
            }
            let Some(Grid { dims, per_site }) = rows.grid else {
                return Ok(RowCut::ranges(rows.global, place));
            };
            // Products on a lattice look one site far.
            let grid = self.grid_for(&dims, &[1; 4]);
            Ok(grid.map_or_else(
                || RowCut::whole(rows.global, place),
                |grid| RowCut::boxes(&dims, per_site, &grid, place),
            ))
        })
    }

    /// Ranks in each direction of a lattice; none if it cannot be shared out to so many.
    fn grid_for(&self, cells: &[usize], reach: &[usize]) -> Option<Vec<usize>> {
        if let Some(grid) = &self.grid {
            let wide = grid.iter().rposition(|n| *n > 1).map_or(0, |k| k + 1);
            if wide <= cells.len() {
                let mut fitted = grid[..wide].to_vec();
                fitted.resize(cells.len(), 1);
                return Some(fitted);
            }
            if !self.noted.swap(true, Ordering::Relaxed) {
                (self.note)(&format!(
                    "a lattice of fewer directions than the grid of ranks, {} and {wide}, is cut into the boxes of \
                     least surface",
                    cells.len()
                ));
            }
        }
        least_surface(cells, reach, self.team.world.size())
    }

    fn cut_of_matrix(&self, rows: usize, spec: &MatrixSpec) -> Result<Arc<RowCut>> {
        self.cut(rows, None, || {
            let place = self.team.place();
            if (!matches!(spec, MatrixSpec::Stencil(_)) || !self.takes_grid())
                && let Some(cut) = self.by_weight(|shares, all| shares.of_matrix(rows, Some(spec), all))?
            {
                return Ok(cut);
            }
            let MatrixSpec::Stencil(stencil) = spec else { return Ok(RowCut::ranges(rows, place)) };
            let grid = self.grid_for(&stencil.cells, &share::reach(stencil));
            Ok(grid.map_or_else(
                || RowCut::ranges(rows, place),
                |grid| RowCut::boxes(&stencil.cells, stencil.orbitals, &grid, place),
            ))
        })
    }

    /// A block made on the local backend with this rank's rows, or with all of them.
    fn build(
        &self,
        rows: Rows,
        make: impl FnOnce(&Device, Rows) -> Result<BlockVector>,
    ) -> Result<BlockVector> {
        let cut = self.cut_of(&rows)?;
        if cut.is_whole() {
            return make(&self.places.device, rows);
        }
        let block = make(self.places.at(&cut), cut.held(&rows))?;
        Ok(self.places.wrap(cut, rows, block))
    }

    /// A vector with its rows where `like` has them.
    fn as_like<'a>(&self, v: &'a BlockVector, like: &BlockVector) -> Result<Cow<'a, BlockVector>> {
        match (own(v), own(like)) {
            (None, None) => Ok(Cow::Borrowed(v)),
            (Some(a), Some(b)) if a.cut == b.cut => Ok(Cow::Borrowed(v)),
            (Some(a), None) => {
                let all = self.gathered(a, v.columns)?;
                self.places.device.upload(v.dtype, v.rows, v.columns, &all).map(Cow::Owned)
            }
            (None, Some(b)) if b.cut.rows == v.rows.global => {
                let all = self.places.device.download(v)?;
                self.places.cut_out(v.dtype, v.rows, v.columns, &all, b.cut.clone()).map(Cow::Owned)
            }
            (Some(a), Some(b)) if self.mixed().is_some() && a.cut.rows == b.cut.rows => {
                let all = self.gathered(a, v.columns)?;
                self.places.cut_out(v.dtype, v.rows, v.columns, &all, b.cut.clone()).map(Cow::Owned)
            }
            _ => {
                conformal("vectors of one operation", v, like)?;
                Err(other_cut())
            }
        }
    }

    /// What ranks have made of their rows, over all of them; vectors without a cut live whole on each.
    fn summed(&self, cut: Option<&RowCut>, numbers: Vec<C64>) -> Result<Vec<C64>> {
        match (cut, self.lone_rank()) {
            (None, _) => Ok(numbers),
            (Some(cut), Some(lone)) if cut.lone() == Some(lone.rank) => self.team.told(numbers, lone.rank),
            _ => self.team.total(numbers),
        }
    }

    /// A matrix that one rank has whole, since all rows of its vectors are there.
    fn on_one(
        &self,
        spec: &MatrixSpec,
        cuts: (&Arc<RowCut>, &Arc<RowCut>),
    ) -> Result<Option<Arc<dyn Kernel>>> {
        let lone = cuts.0.lone().filter(|part| self.uneven.is_some() && cuts.1.lone() == Some(*part));
        if lone.is_none() {
            return Ok(None);
        }
        let shape = share::kernel_shape(spec);
        let there = || match spec {
            MatrixSpec::Wilson(spec) => spec.undivided().map(|spec| MatrixSpec::Wilson(Arc::new(spec))),
            _ => Ok(spec.clone()),
        };
        one::prepare(self, shape, there, (cuts.0.clone(), cuts.1.clone())).map(Some)
    }

    /// A block with the same rows, made of `v`.
    fn map(
        &self,
        v: &BlockVector,
        f: impl FnOnce(&Device, &BlockVector) -> Result<BlockVector>,
    ) -> Result<BlockVector> {
        match own(v) {
            None => f(&self.places.device, v),
            Some(own) => {
                Ok(self.places.wrap(own.cut.clone(), v.rows, f(self.places.at(&own.cut), &own.block)?))
            }
        }
    }
}

impl SharedRows for Ranks {
    fn is_cut(&self, v: &BlockVector) -> Result<bool> {
        Ok(own(v).is_some_and(|own| self.uneven.is_none() || own.cut.lone().is_none()))
    }

    fn sum(&self, blocks: &[&BlockVector], f: &RowsSummand) -> Result<Vec<C64>> {
        let Some(first) = blocks.first() else { return f(&self.places.device, &[]) };
        let blocks = blocks.iter().map(|v| self.as_like(v, first)).collect::<Result<Vec<_>>>()?;
        let device = own(first).map_or(&self.places.device, |own| self.places.at(&own.cut));
        let numbers = f(device, &blocks.iter().map(|v| local(v)).collect::<Vec<_>>())?;
        self.summed(own(first).map(|own| &*own.cut), numbers)
    }

    fn change(&self, blocks: &[&BlockVector], y: &mut BlockVector, f: &RowsChange) -> Result<()> {
        let blocks = blocks.iter().map(|v| self.as_like(v, y)).collect::<Result<Vec<_>>>()?;
        let here: Vec<&BlockVector> = blocks.iter().map(|v| local(v)).collect();
        match own_mut(y) {
            Some(own) if own.cut.local() == 0 => Ok(()),
            Some(own) => f(&self.places.device, &here, &mut own.block),
            None => f(&self.places.device, &here, y),
        }
    }

    fn change_two(
        &self,
        blocks: &[&BlockVector],
        [first, second]: [&mut BlockVector; 2],
        f: &TwoRowsChange,
    ) -> Result<Vec<C64>> {
        let blocks = blocks.iter().map(|v| self.as_like(v, first)).collect::<Result<Vec<_>>>()?;
        let here: Vec<&BlockVector> = blocks.iter().map(|v| local(v)).collect();
        let cut = own(first).map(|own| own.cut.clone());
        let numbers = match (own_mut(first), own_mut(second)) {
            (Some(first), Some(second)) if first.cut == second.cut => {
                let device = self.places.at(&first.cut);
                f(device, &here, [&mut first.block, &mut second.block])?
            }
            (None, None) => f(&self.places.device, &here, [first, second])?,
            _ => return Err(other_cut()),
        };
        self.summed(cut.as_deref(), numbers)
    }
}

impl Backend for Ranks {
    fn name(&self) -> &'static str {
        self.mixed().map_or(self.places.device.name(), |mixed| mixed.name)
    }

    fn describe(&self) -> String {
        if let Some(mixed) = self.mixed() {
            return mixed.description.clone();
        }
        format!("{} ranks of {}", self.team.world.size(), self.places.device.describe())
    }

    /// Of all ranks together. Free is what fits if each takes its share of it.
    fn memory(&self) -> DeviceMemory {
        let own = self.places.device.memory();
        let words = [own.place, own.total as u64, own.shared as u64, own.alone as u64, own.used as u64];
        let Ok(words) = self.team.world.gather_words(words.to_vec()) else { return own };
        let all: Vec<DeviceMemory> = words
            .chunks_exact(5)
            .map(|of| {
                let [total, shared, alone, used] = [1, 2, 3, 4].map(|which| of[which] as usize);
                DeviceMemory::new((total, used), (shared, alone), of[0])
            })
            .collect();
        let size = self.team.world.size();
        let shares = match &self.uneven {
            None => vec![1.0 / size as f64; size],
            Some(Uneven { shares, .. }) => shares.known_or_primary(size),
        };
        let (total, free) = DeviceMemory::total_and_free(&all, &shares);
        let used = all.iter().map(|memory| memory.used).sum();
        DeviceMemory::new((total, used), (free, usize::MAX), own.place)
    }

    fn workers(&self) -> usize {
        self.mixed().map_or_else(|| self.places.device.workers(), |mixed| mixed.workers)
    }

    fn preferred_columns(&self) -> usize {
        self.mixed().map_or_else(|| self.places.device.preferred_columns(), |mixed| mixed.columns)
    }

    fn synchronize(&self) -> Result<()> {
        self.places.device.synchronize()
    }

    fn alone(&self) -> Option<&Device> {
        Some(&self.places.device)
    }

    // What each rank would do by itself, with other bits than the next one, is done by the hosts,
    // or by one rank for all (`lone.rs`).
    fn recorder(&self) -> Option<&dyn Recorder> {
        if self.mixed().is_some() { None } else { self.places.device.recorder() }
    }

    fn dense_solver(&self) -> Option<&dyn DenseSolver> {
        match self.lone_rank() {
            None => self.places.device.dense_solver(),
            Some(lone) => self.solves_alone(lone).then_some(self as &dyn DenseSolver),
        }
    }

    fn keeper(&self) -> Option<&dyn MatrixKeeper> {
        match self.mixed() {
            None => self.places.device.keeper(),
            Some(mixed) => mixed.keeps.then_some(self as &dyn MatrixKeeper),
        }
    }

    fn superblocks(&self) -> Option<&dyn Superblocks> {
        let makes = self.mixed().is_some_and(|mixed| mixed.superblocks);
        (makes || self.uneven.is_none()).then_some(self as &dyn Superblocks)
    }

    fn monte_carlo(&self) -> Option<&dyn MonteCarlo> {
        self.places.device.monte_carlo().map(|_| self as &dyn MonteCarlo)
    }

    fn distributed(&self) -> Option<&dyn Distributed> {
        Some(self)
    }
}

impl Vectors for Ranks {
    fn zeros(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector> {
        self.build(rows, |device, rows| device.zeros(dtype, rows, columns))
    }

    fn room(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector> {
        self.build(rows, |device, rows| device.room(dtype, rows, columns))
    }

    fn fill_random(&self, v: &mut BlockVector, random: Random) -> Result<()> {
        let global = v.rows.global;
        let Some(OwnRows { cut, block, .. }) = own_mut(v) else {
            return self.places.device.fill_random(v, random);
        };
        if cut.local() == 0 {
            return Ok(());
        }
        // Numbers belong to rows of the whole vector, so that they do not depend on who holds them.
        if let Some(start) = cut.start() {
            let rows = block.rows;
            block.rows = Rows { global, start, ..rows };
            let filled = self.places.device.fill_random(block, random);
            block.rows = rows;
            return filled;
        }
        let (starts, length) = cut.even_runs(cut.part)?;
        self.places.device.fill_random_runs(block, random, &starts, length)
    }

    fn set_entries(&self, v: &mut BlockVector, entries: &[(usize, usize, C64)]) -> Result<()> {
        v.check_entries(entries)?;
        let Some(OwnRows { cut, block, .. }) = own_mut(v) else {
            return self.places.device.set_entries(v, entries);
        };
        let here = entries.iter().map(|&(row, column, value)| (cut.holder(row), column, value));
        let here: Vec<_> = here
            .filter(|((rank, _), ..)| *rank == cut.part)
            .map(|((_, row), column, value)| (row, column, value))
            .collect();
        if here.is_empty() { Ok(()) } else { self.places.device.set_entries(block, &here) }
    }

    fn columns(&self, v: &BlockVector, range: Range<usize>) -> Result<BlockVector> {
        self.map(v, |device, block| device.columns(block, range))
    }

    fn set_columns(&self, v: &mut BlockVector, at: usize, source: &BlockVector) -> Result<()> {
        self.change(&[source], v, &|device, source, v| device.set_columns(v, at, source[0]))
    }

    fn convert(&self, v: &BlockVector, dtype: DType) -> Result<BlockVector> {
        self.map(v, |device, block| device.convert(block, dtype))
    }

    /// All rows, on every rank.
    fn download(&self, v: &BlockVector) -> Result<Vec<C64>> {
        match own(v) {
            None => self.places.device.download(v),
            Some(own) => self.gathered(own, v.columns),
        }
    }

    fn download_real(&self, v: &BlockVector) -> Result<Option<Vec<f64>>> {
        if let Some(lone) = self.lone_rank() {
            return self.reals_of_one(lone, v);
        }
        match own(v) {
            None => self.places.device.download_real(v),
            Some(own) if self.meet(own)? => {
                self.together.with(&own.cut, &own.block, |all| self.places.device.download_real(all))
            }
            Some(_) => Ok(None),
        }
    }

    fn download_part(&self, v: &BlockVector, range: Range<usize>) -> Result<Vec<f64>> {
        match self.lone_rank() {
            Some(lone) => self.part_of_one(lone, v, range),
            None => self.places.device.download_part(local(v), range),
        }
    }

    fn all_rows(&self, v: &BlockVector) -> Result<Option<BlockVector>> {
        if let Some(lone) = self.lone_rank() {
            return self.rows_of_one(lone, v);
        }
        own(v).map_or_else(|| self.places.device.all_rows(v), |own| self.brought(own))
    }

    fn upload(&self, dtype: DType, rows: Rows, columns: usize, data: &[C64]) -> Result<BlockVector> {
        rows.check_numbers(columns, data.len())?;
        let cut = self.cut_of(&rows)?;
        if cut.is_whole() {
            return self.places.device.upload(dtype, rows, columns, data);
        }
        self.places.cut_out(dtype, rows, columns, data, cut)
    }
}

impl Matrices for Ranks {
    fn prepare(&self, spec: MatrixSpec) -> Result<Arc<dyn Kernel>> {
        let rows = match &spec {
            MatrixSpec::Wilson(spec) => Some(spec.rows()),
            MatrixSpec::SiteDiagonal { rows, .. } => Some(*rows),
            _ => None,
        };
        if let Some(rows) = rows {
            let cut = self.cut_of(&rows)?;
            if let Some(kernel) = self.on_one(&spec, (&cut, &cut))? {
                return Ok(kernel);
            }
            if let MatrixSpec::Wilson(spec) = &spec
                && let Some(kernel) = kernel::prepare_wilson(self.team, &self.places.device, spec, &cut)?
            {
                return Ok(kernel);
            }
            let Some((dtype, share)) = share::on_sites(&spec, &cut)? else {
                return Ok(whole::whole(self.team, &self.places.device, self.places.device.prepare(spec)?));
            };
            return kernel::prepare(
                self.team,
                &self.places.device,
                dtype,
                share,
                (rows, None),
                (cut.clone(), cut),
            );
        }
        let Some((rows, cols)) = share::shape(&spec) else {
            if self.mixed().is_some() {
                let shape = share::kernel_shape(&spec);
                let cut = Arc::new(self.undivided(shape.cols));
                self.cut(shape.cols, None, || Ok(RowCut::clone(&cut)))?;
                return one::prepare(self, shape, || Ok(spec), (cut.clone(), cut));
            }
            if let Some(kernel) = self.spread_records(&spec)? {
                return Ok(kernel);
            }
            let inner = self.shared_records(&spec)?.map_or_else(|| self.places.device.prepare(spec), Ok)?;
            for rows in [inner.rows().global, inner.cols()] {
                self.cut(rows, None, || Ok(RowCut::whole(rows, self.team.place())))?;
            }
            return Ok(whole::whole(self.team, &self.places.device, inner));
        };
        share::validate(&spec)?;
        let (row_cut, col_cut) = (self.cut_of_matrix(rows, &spec)?, self.cut_of_matrix(cols, &spec)?);
        if row_cut.is_whole() || col_cut.is_whole() {
            return Ok(whole::whole(self.team, &self.places.device, self.places.device.prepare(spec)?));
        }
        if let Some(kernel) = self.on_one(&spec, (&row_cut, &col_cut))? {
            return Ok(kernel);
        }
        let share = share::share(&spec, &row_cut, &col_cut)?;
        let all = (Rows::all(rows), spec.entries()?);
        kernel::prepare(self.team, &self.places.device, share::dtype(&spec), share, all, (row_cut, col_cut))
    }

    /// Whether the backends of all ranks do.
    fn takes_stencil(&self, stencil: &Stencil) -> bool {
        let own = self.places.device.takes_stencil(stencil);
        self.team.world.gather_words(vec![own.into()]).is_ok_and(|all| all.iter().all(|takes| *takes > 0))
    }
}
