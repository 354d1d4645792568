//! All ranks as one of them sees them: what it sends to the others, hears of them and sums with them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::mpi::{Bytes, Message, Mpi};
use crate::error::Result;

/// Bytes of one message of a broadcast: the library counts with 32 bits.
const PIECE: usize = 1 << 28;

/// Numbers a rank and round of a sum: all of them meet on every rank.
const ROUND: usize = 8192;

/// How often a rank looks for a message at once: with many processors of its own, with one, and without one. The
/// shortest sleep takes longer than most sums.
const MANY_LOOKS: u32 = 4000;
const LOOKS: u32 = 500;
const FEW_LOOKS: u32 = 20;

/// Processors a rank that are many.
const MANY: usize = 8;

/// Messages that may be on their way from one rank at a time.
const MOST_LEAVING: usize = 64;

/// How long last words take through a launcher.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// How long a rank that has failed waits for the others to fail alike.
const PATIENCE: Duration = Duration::from_millis(1500);

/// All ranks, as one of them sees them.
pub struct World {
    mpi: Mpi,
    rank: usize,
    size: usize,
    /// Number of this rank on its node, and how many are there.
    local: (usize, usize),
    /// Looks for a message before this rank sleeps between two of them.
    looks: u32,
    /// Sums over all ranks so far.
    sums: AtomicU64,
    /// How often one rank has told the others numbers.
    told: AtomicU64,
    /// What this rank has told, as long as others may not have heard it.
    leaving: Mutex<VecDeque<Message>>,
    ended: AtomicBool,
}

/// Host memory, aligned for numbers of any type. Its bytes stay at their address as long as it lives.
pub trait HostMemory: Send {
    fn bytes(&self) -> &[u8];
    /// The bytes, to change them.
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl HostMemory for Vec<u64> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self)
    }
}

fn copied(bytes: &[u8]) -> Bytes {
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    words.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
    Box::new(words)
}

fn words(memory: &Bytes) -> Vec<u64> {
    memory.bytes().chunks_exact(8).map(|b| u64::from_ne_bytes(b.try_into().unwrap_or_default())).collect()
}

/// Rows or numbers under way to or from another rank.
pub struct UnderWay(Message);

impl World {
    /// The world of a library, with this rank's number and that of all, and the same on its node.
    pub(super) fn of(mpi: Mpi, (rank, size): (usize, usize), local: (usize, usize)) -> World {
        // Where ranks share processors, who looks for long keeps away the one that he waits for.
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let looks = match local.1 {
            ranks if ranks > cores => FEW_LOOKS,
            ranks if cores >= MANY * ranks => MANY_LOOKS,
            _ => LOOKS,
        };
        World {
            mpi,
            rank,
            size,
            local,
            looks,
            sums: AtomicU64::new(0),
            told: AtomicU64::new(0),
            leaving: Mutex::default(),
            ended: AtomicBool::new(false),
        }
    }

    /// Number of this rank, from 0 on.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Number of this rank on its node, and how many are there.
    pub fn local(&self) -> (usize, usize) {
        self.local
    }

    /// Name and version of the library.
    pub fn library(&self) -> String {
        self.mpi.version()
    }

    /// Sums over all ranks so far: what a test counts.
    pub fn sums(&self) -> u64 {
        self.sums.load(Ordering::Relaxed)
    }

    /// Waits for a message. Ranks may be far apart in time and share processors, so after a while this sleeps. Who
    /// gives its turn away instead waits for all other processes of a busy machine.
    fn wait(&self, message: &mut Message) -> Result<()> {
        let mut looks = 0u32;
        while !self.mpi.done(message)? {
            looks = looks.saturating_add(1);
            if looks < self.looks {
                std::hint::spin_loop();
            } else {
                let slept = looks - self.looks;
                std::thread::sleep(Duration::from_micros(u64::from(slept / 32).clamp(10, 500)));
            }
        }
        Ok(())
    }

    /// Waits until all ranks are here.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn meet(&self) -> Result<()> {
        self.wait(&mut self.mpi.meeting(false)?)
    }

    /// The words of all ranks, as many on each, in the order of ranks.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn gather_words(&self, own: Vec<u64>) -> Result<Vec<u64>> {
        let mut message = self.mpi.gather(Box::new(own), self.size)?;
        self.wait(&mut message)?;
        Ok(words(&message.take()))
    }

    /// Bytes of all ranks, of any number each, in the order of ranks.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn gather(&self, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let lengths = self.gather_words(vec![own.len() as u64])?;
        let mut own = Some(own);
        let mut all = Vec::with_capacity(self.size);
        for (root, length) in lengths.into_iter().enumerate() {
            let mut bytes = if root == self.rank { own.take().unwrap_or_default() } else { Vec::new() };
            bytes.resize(length as usize, 0);
            self.share(&mut bytes, root)?;
            all.push(bytes);
        }
        Ok(all)
    }

    /// Overwrites the bytes, as many on each rank, with those of rank `root`.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn share(&self, bytes: &mut [u8], root: usize) -> Result<()> {
        for piece in bytes.chunks_mut(PIECE) {
            let mut message = self.mpi.broadcast(copied(piece), piece.len(), root)?;
            self.wait(&mut message)?;
            if root != self.rank {
                piece.copy_from_slice(&message.take().bytes()[..piece.len()]);
            }
        }
        Ok(())
    }

    /// Bytes of rank 0 to all; what the others bring is not looked at.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn broadcast(&self, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
        if self.rank > 0 {
            return self.heard(0);
        }
        let mut length = (bytes.len() as u64).to_ne_bytes();
        self.share(&mut length, 0)?;
        self.share(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Bytes of another rank, which tells all ranks how many there are, and then what they are.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn heard(&self, root: usize) -> Result<Vec<u8>> {
        let mut length = [0; 8];
        self.share(&mut length, root)?;
        let mut bytes = vec![0; u64::from_ne_bytes(length) as usize];
        self.share(&mut bytes, root)?;
        Ok(bytes)
    }

    /// The other side of [`World::heard`]. This rank does not wait until the others have heard it.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn say(&self, bytes: &[u8]) -> Result<()> {
        self.hand_out(&(bytes.len() as u64).to_ne_bytes())?;
        self.hand_out(bytes)
    }

    /// [`World::share`] of this rank, which does not wait for the others. Long messages travel only while this rank
    /// calls the library, so this is for what nobody else is in a hurry to have.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn hand_out(&self, bytes: &[u8]) -> Result<()> {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.chunks(PIECE) {
            leaving.push_back(self.mpi.broadcast(copied(piece), piece.len(), self.rank)?);
        }
        while let Some(mut oldest) = leaving.pop_front() {
            if leaving.len() >= MOST_LEAVING {
                self.wait(&mut oldest)?;
            } else if !self.mpi.done(&mut oldest)? {
                leaving.push_front(oldest);
                break;
            }
        }
        Ok(())
    }

    /// Sums over ranks, added in their order: the same bits on every rank and in every run.
    ///
    /// # Errors
    /// Those of MPI; ranks that have gone different ways.
    pub fn sum(&self, x: &mut [f64]) -> Result<()> {
        let number = self.sums.fetch_add(1, Ordering::Relaxed);
        let length = x.len() as u64;
        for part in x.chunks_mut(ROUND) {
            let mut own = Vec::with_capacity(part.len() + 2);
            own.extend([number, length]);
            own.extend(part.iter().map(|x| x.to_bits()));
            let all = self.gather_words(own)?;
            part.fill(0.0);
            for of_rank in all.chunks_exact(part.len() + 2) {
                if of_rank[..2] != [number, length] {
                    return Err(super::apart(""));
                }
                part.iter_mut().zip(&of_rank[2..]).for_each(|(sum, x)| *sum += f64::from_bits(*x));
            }
        }
        Ok(())
    }

    /// Overwrites a few numbers, as many on each rank, with those of one rank, which does not wait for the others.
    ///
    /// # Errors
    /// Those of MPI; ranks that have gone different ways.
    pub fn tell(&self, x: &mut [f64], rank: usize) -> Result<()> {
        let own = [self.told.fetch_add(1, Ordering::Relaxed), x.len() as u64];
        let mut all: Vec<u64> = own.into_iter().chain(x.iter().map(|x| x.to_bits())).collect();
        if rank == self.rank {
            return self.hand_out(bytemuck::cast_slice(&all));
        }
        self.share(bytemuck::cast_slice_mut(&mut all), rank)?;
        if all[..2] != own {
            return Err(super::apart(""));
        }
        x.iter_mut().zip(&all[2..]).for_each(|(x, told)| *x = f64::from_bits(*told));
        Ok(())
    }

    /// Sends the first bytes of `memory` to another rank; messages of one tag arrive in the order they were sent.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn send(&self, memory: Box<dyn HostMemory>, bytes: usize, to: usize, tag: i32) -> Result<UnderWay> {
        self.mpi.send(memory, bytes, to, tag).map(UnderWay)
    }

    /// Receives so many bytes from another rank.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn receive(
        &self,
        memory: Box<dyn HostMemory>,
        bytes: usize,
        from: usize,
        tag: i32,
    ) -> Result<UnderWay> {
        self.mpi.receive(memory, bytes, from, tag).map(UnderWay)
    }

    /// Whether it has come or gone; lets the library work on it.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn arrived(&self, under_way: &mut UnderWay) -> Result<bool> {
        self.mpi.done(&mut under_way.0)
    }

    /// The memory of a message, once it has come or gone.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn arrive(&self, mut under_way: UnderWay) -> Result<Box<dyn HostMemory>> {
        self.wait(&mut under_way.0)?;
        Ok(under_way.0.take())
    }

    /// Whether all ranks have failed: they meet for a while.
    pub fn all_failed(&self) -> bool {
        self.all_meet(PATIENCE)
    }

    /// Whether all ranks end their scripts by themselves: one may have a file to write before,
    /// so that they meet for longer.
    pub fn all_end(&self) -> bool {
        self.all_meet(6 * PATIENCE)
    }

    fn all_meet(&self, patience: Duration) -> bool {
        let Ok(mut meeting) = self.mpi.meeting(true) else { return false };
        let began = Instant::now();
        while began.elapsed() < patience {
            match self.mpi.done(&mut meeting) {
                Ok(true) => return true,
                Ok(false) => std::thread::sleep(Duration::from_millis(1)),
                Err(_) => return false,
            }
        }
        false
    }

    /// Ends all ranks, whatever they do, with an exit code.
    pub fn abort(&self, code: u8) -> ! {
        super::farewell();
        // What this rank has said is on its way through the launcher, which may drop it as it ends.
        std::thread::sleep(LAST_WORDS);
        self.mpi.abort(code);
        std::process::exit(i32::from(code))
    }

    /// Leaves the world in good order, at the end of all work of all ranks.
    pub fn finish(&self) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            super::farewell();
            let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
            // An error here would be one of a library that is about to be closed.
            let _ = leaving.iter_mut().try_for_each(|message| self.wait(message));
            self.mpi.finalize();
        }
    }
}
