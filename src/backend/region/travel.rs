//! Values of sites on their way between ranks. Without a division there is no exchange.

use std::ops::Range;

use bytemuck::Pod;

use super::Region;
use super::plan::{ExchangedSites, HaloPlan};
use crate::error::{Error, Result};
use crate::ranks::{self, HostMemory, World};

/// Messages between regions; those of one kind overtake none of another.
const TAG: i32 = 3;

/// Bytes of a long message.
const LONG: usize = 1 << 20;

fn world() -> Result<&'static World> {
    ranks::world().ok_or_else(|| Error::internal("sites of other ranks without ranks"))
}

/// Memory for so many values, and their bytes.
fn memory<T: Pod>(count: usize) -> (Vec<u64>, usize) {
    let bytes = count * size_of::<T>();
    (vec![0; bytes.div_ceil(8)], bytes)
}

/// The values in memory that a message brought.
fn values<T: Pod>(memory: &dyn HostMemory, count: usize) -> &[T] {
    bytemuck::cast_slice(&memory.bytes()[..count * size_of::<T>()])
}

fn send<T: Pod>(list: &[T], to: usize) -> Result<ranks::UnderWay> {
    let (mut memory, bytes) = memory::<T>(list.len());
    memory.bytes_mut()[..bytes].copy_from_slice(bytemuck::cast_slice(list));
    world()?.send(Box::new(memory), bytes, to, TAG)
}

fn receive<T: Pod>(count: usize, from: usize) -> Result<Vec<T>> {
    let (memory, bytes) = memory::<T>(count);
    let message = world()?.receive(Box::new(memory), bytes, from, TAG)?;
    Ok(values(&*world()?.arrive(message)?, count).to_vec())
}

/// Carries out a plan: `each` values a site, which `pack` takes from a place. The memories of the messages that are
/// received, in their order.
fn travel<T: Pod>(
    own: usize,
    plan: &HaloPlan,
    each: usize,
    pack: impl Fn(usize, &mut [T]),
) -> Result<Vec<Box<dyn HostMemory>>> {
    let world = world()?;
    let packed = |message: &ExchangedSites| {
        let (mut memory, bytes) = memory::<T>(each * message.places.len());
        let list: &mut [T] = bytemuck::cast_slice_mut(&mut memory.bytes_mut()[..bytes]);
        list.chunks_exact_mut(each).zip(&message.places).for_each(|(to, &place)| pack(place, to));
        (Box::new(memory), bytes)
    };
    let mut coming = Vec::new();
    for message in plan.receives.iter().filter(|message| message.rank != own) {
        let (memory, bytes) = memory::<T>(each * message.places.len());
        coming.push(world.receive(Box::new(memory), bytes, message.rank, TAG)?);
    }
    let (mut going, mut kept) = (Vec::new(), None);
    for message in &plan.sends {
        let (memory, bytes) = packed(message);
        if message.rank == own {
            kept = Some(memory);
        } else {
            going.push(world.send(memory, bytes, message.rank, TAG)?);
        }
    }
    let (mut coming, mut all) = (coming.into_iter(), Vec::<Box<dyn HostMemory>>::new());
    for message in &plan.receives {
        let memory = if message.rank == own {
            kept.take().map(|memory| memory as Box<dyn HostMemory>)
        } else {
            coming.next().map(|message| world.arrive(message)).transpose()?
        };
        all.push(memory.ok_or_else(|| Error::internal("a message that nobody sends"))?);
    }
    going.into_iter().try_for_each(|message| world.arrive(message).map(drop))?;
    Ok(all)
}

impl Region {
    /// Renews the halo of a field of `each` values a site; of these, the ones in `which`.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn exchange<T: Pod>(&self, field: &mut [T], each: usize, which: Range<usize>) -> Result<()> {
        let Some((_, rank)) = self.cut else { return Ok(()) };
        for d in (0..4).filter(|&d| self.is_cut(d)) {
            let plan = self.halo_plan(d);
            // Messages take memory besides the field: long ones go value by value.
            let long = self.widest(d) * which.len() * size_of::<T>() > LONG;
            for some in which.clone().step_by(if long { 1 } else { which.len().max(1) }) {
                let some = some..if long { some + 1 } else { which.end };
                let of = |place: usize| each * place + some.start..each * place + some.end;
                let messages = travel(rank, &plan, some.len(), |place, to: &mut [T]| {
                    to.copy_from_slice(&field[of(place)])
                })?;
                for (message, memory) in plan.receives.iter().zip(messages) {
                    let list: &[T] = values(&*memory, message.places.len() * some.len());
                    for (from, &place) in list.chunks_exact(some.len()).zip(&message.places) {
                        field[of(place)].copy_from_slice(from);
                    }
                }
            }
        }
        Ok(())
    }

    /// The values, one a site, that are found so many steps on in a direction across which the lattice was cut; of
    /// places of the halo, some value or other.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn shifted<T: Pod>(&self, d: usize, steps: usize, value: impl Fn(usize) -> T) -> Result<Vec<T>> {
        let mut field = vec![T::zeroed(); self.places()];
        let Some((_, rank)) = self.cut else { return Err(Error::internal("a shift of what is not shared")) };
        let plan = self.shift_plan(d, steps);
        let messages = travel(rank, &plan, 1, |place, to: &mut [T]| to[0] = value(place))?;
        for (message, memory) in plan.receives.iter().zip(messages) {
            let list: &[T] = values(&*memory, message.places.len());
            list.iter().zip(&message.places).for_each(|(x, &place)| field[place] = *x);
        }
        Ok(field)
    }

    /// Goes through the boxes along a direction, from the first to the last: each makes `count` values of those that
    /// the one before has made. What the last one makes, there.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn in_turn<T: Pod>(
        &self,
        d: usize,
        count: usize,
        make: impl FnOnce(Option<Vec<T>>) -> Vec<T>,
    ) -> Result<Option<Vec<T>>> {
        if self.own.contains(&0) {
            return Ok(None);
        }
        let (Some((here, starts, stride)), Some((_, rank))) = (self.line(d), &self.cut) else {
            return Ok(Some(make(None)));
        };
        // Boxes without sites are left out.
        let filled = |part: &usize| starts[*part] < starts[*part + 1];
        let before = (0..here).rev().find(filled).map(|part| rank + part * stride - here * stride);
        let after = (here + 1..starts.len() - 1).find(filled).map(|part| rank + (part - here) * stride);
        let made = make(before.map(|from| receive(count, from)).transpose()?);
        let Some(to) = after else { return Ok(Some(made)) };
        let message = send(&made, to)?;
        world()?.arrive(message).map(|_| None)
    }

    /// The words of all ranks, in their order; this one's alone where the sites are not shared.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn gathered(&self, own: Vec<u64>) -> Result<Vec<Vec<u64>>> {
        if !self.is_shared() {
            return Ok(vec![own]);
        }
        let all = world()?.gather(bytemuck::cast_slice(&own).to_vec())?;
        let words = |bytes: Vec<u8>| {
            bytes.chunks_exact(8).map(|b| u64::from_ne_bytes(b.try_into().unwrap_or_default())).collect()
        };
        Ok(all.into_iter().map(words).collect())
    }

    /// The largest of the numbers of all ranks.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn largest(&self, own: f64) -> Result<f64> {
        let all = self.gathered(vec![own.to_bits()])?;
        // Written so that NaN is kept.
        let larger = |most: f64, x: f64| if x <= most { most } else { x };
        Ok(all.into_iter().flatten().map(f64::from_bits).fold(f64::NEG_INFINITY, larger))
    }

    /// The values of all sites in the order of their numbers, `each` a site, on every rank.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn all<T: Pod>(&self, each: usize, field: &[T]) -> Result<Vec<T>> {
        let everything = 0..self.sites();
        let own = self.piece(&everything, each, field);
        if !self.is_shared() {
            return Ok(own);
        }
        let mut all = vec![T::zeroed(); each * self.sites()];
        for (rank, bytes) in world()?.gather(bytemuck::cast_slice(&own).to_vec())?.iter().enumerate() {
            let region = self.of_rank(rank);
            for (k, values) in bytes.chunks_exact(each * size_of::<T>()).enumerate() {
                let at = each * region.number(region.own_place(k));
                bytemuck::cast_slice_mut::<T, u8>(&mut all[at..at + each]).copy_from_slice(values);
            }
        }
        Ok(all)
    }

    /// This rank's result if no rank has failed, else the error of the first one that has.
    ///
    /// # Errors
    /// Those of any rank.
    pub fn agreed<T>(&self, own: Result<T>) -> Result<T> {
        if self.is_shared() { ranks::agreed(own) } else { own }
    }

    /// The values of sites with consecutive numbers, `each` a site, on every rank.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn some<T: Pod>(&self, numbers: Range<usize>, each: usize, field: &[T]) -> Result<Vec<T>> {
        let own = self.piece(&numbers, each, field);
        let Some((_, rank)) = &self.cut else { return Ok(own) };
        self.put_together(&numbers, each, |holder, count| {
            let mut piece = if holder == *rank { own.clone() } else { vec![T::zeroed(); count] };
            world()?.share(bytemuck::cast_slice_mut(&mut piece), holder)?;
            Ok(piece)
        })
    }

    /// The values of sites with consecutive numbers from the pieces of the ranks that have some, which `piece` brings:
    /// of a rank so many values.
    fn put_together<T: Pod>(
        &self,
        numbers: &Range<usize>,
        each: usize,
        mut piece: impl FnMut(usize, usize) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); each * numbers.len()];
        for rank in 0..world()?.size() {
            let region = self.of_rank(rank);
            let theirs = region.among(numbers);
            if theirs.is_empty() {
                continue;
            }
            let piece = piece(rank, each * theirs.len())?;
            for (k, values) in theirs.zip(piece.chunks_exact(each)) {
                let at = each * (region.number(region.own_place(k)) - numbers.start);
                all[at..at + each].copy_from_slice(values);
            }
        }
        Ok(all)
    }

    /// Of the sites of the box, which ones have their numbers in a range: they stand together.
    fn among(&self, numbers: &Range<usize>) -> Range<usize> {
        let first_from = |number: usize| {
            let (mut low, mut high) = (0, self.own_sites());
            while low < high {
                let middle = low + (high - low) / 2;
                if self.number(self.own_place(middle)) < number {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        first_from(numbers.start)..first_from(numbers.end)
    }

    /// The values of this box for sites whose numbers are in a range.
    fn piece<T: Pod>(&self, numbers: &Range<usize>, each: usize, field: &[T]) -> Vec<T> {
        let places = self.among(numbers).map(|k| self.own_place(k));
        places.flat_map(|place| field[each * place..each * (place + 1)].iter().copied()).collect()
    }

    /// The values of sites with consecutive numbers, `each` a site, for rank 0, which asks for them; other ranks
    /// [`Region::serve`] meanwhile. For no sites, nobody serves any longer.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn ask<T: Pod>(&self, numbers: Range<usize>, each: usize, field: &[T]) -> Result<Vec<T>> {
        if !self.is_shared() {
            return Ok(self.piece(&numbers, each, field));
        }
        let question = [numbers.start as u64, numbers.end as u64];
        world()?.broadcast(bytemuck::cast_slice(&question).to_vec())?;
        self.put_together(&numbers, each, |rank, count| match rank {
            0 => Ok(self.piece(&numbers, each, field)),
            _ => receive(count, rank),
        })
    }

    /// Answers rank 0, which asks for values, until it has all it wants.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn serve<T: Pod>(&self, each: usize, field: &[T]) -> Result<()> {
        while self.is_shared() {
            let question = world()?.broadcast(Vec::new())?;
            let ends: Vec<u64> = question
                .chunks_exact(8)
                .map(|b| u64::from_ne_bytes(b.try_into().unwrap_or_default()))
                .collect();
            let numbers = match ends[..] {
                [start, end] if start < end => start as usize..end as usize,
                _ => return Ok(()),
            };
            let piece = self.piece(&numbers, each, field);
            if !piece.is_empty() {
                let message = send(&piece, 0)?;
                world()?.arrive(message)?;
            }
        }
        Ok(())
    }
}
