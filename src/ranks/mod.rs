//! The ranks of a run: processes that run the same script, each with its own memory, and talk by MPI. Values of the
//! language are the same on all ranks; each rank computes everything that is not divided. Only rank 0 prints, writes
//! files and reads standard input. Decisions that ranks could take differently (whether a file is there, how much
//! memory is free, how long something took) are taken by rank 0 and told to the others.
//!
//! Without a launcher there are no ranks, and no library of MPI is opened.

pub mod launch;
#[cfg(target_os = "linux")]
mod machines;
#[cfg(unix)]
mod mpi;
#[cfg(not(unix))]
#[path = "none.rs"]
mod mpi;
mod shares;
mod told;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(not(target_os = "linux"))]
#[path = "unwatched.rs"]
mod watch;
mod world;

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use crate::error::{Error, ErrorKind, Result};
use mpi::Mpi;
pub use shares::{AlikeRanks, PieceShares, owners, weighted};
pub use told::Broadcast;
pub use world::{HostMemory, UnderWay, World};

static WORLD: OnceLock<World> = OnceLock::new();

/// The error for ranks that do not compute the same things.
pub fn apart(what: &str) -> Error {
    Error::new(ErrorKind::Parted, format!("the ranks have gone different ways{what}")).hint(
        "all ranks compute the same: the number of a rank may decide what is printed, not what is computed",
    )
}

/// Joins the world that a launcher has made, if one has: the first thing that the program does. `tell` shows what ends
/// the run while it waits for others.
///
/// # Errors
/// No library of MPI, or one that does not fit the launcher.
pub fn join(tell: impl Fn(&Error) + Send + 'static) -> Result<()> {
    let Some(launched) = launch::signs() else { return Ok(()) };
    if WORLD.get().is_some() {
        return Ok(());
    }
    let mpi = Mpi::open(&launch::libraries(launched.by), launched.by).map_err(|e| {
        e.context(format!("{} has started this program", launched.by))
            .hint("set UMKLAPP_MPI to the file of the launcher's library, such as /opt/mpi/lib/libmpi.so.40")
    })?;
    let ((rank, size), local) = mpi.places()?;
    if let Some(expected) = launched.ranks.filter(|n| *n != size) {
        return Err(Error::backend(format!(
            "{} has started {expected} ranks, and {} sees {size}: launcher and library are of different MPIs",
            launched.by,
            mpi.file()
        ))
        .hint(
            "start the program with the `mpiexec` of that library, or name another library in UMKLAPP_MPI",
        ));
    }
    mpi::end_with_the_launcher();
    if size > 1 {
        watch::begin(rank, size);
        let world = WORLD.get_or_init(|| World::of(mpi, (rank, size), local));
        #[cfg(target_os = "linux")]
        machines::begin(world, tell)?;
        #[cfg(not(target_os = "linux"))]
        let _ = (world, tell);
    } else {
        // One process needs no exchange, but the library has to be closed properly all the same.
        mpi.finalize();
    }
    Ok(())
}

/// The ranks, if there are several.
pub fn world() -> Option<&'static World> {
    WORLD.get()
}

/// What ends this process from now on is no accident, and has been told where it had to be.
pub fn farewell() {
    watch::farewell();
    #[cfg(target_os = "linux")]
    machines::farewell();
}

/// Whether this rank ends because another one cannot be reached any more; rank 0 has said so.
pub fn is_cut() -> bool {
    #[cfg(target_os = "linux")]
    return machines::is_cut();
    #[cfg(not(target_os = "linux"))]
    false
}

/// Whether this process speaks for the run: the only one, or rank 0.
pub fn first() -> bool {
    world().is_none_or(|world| world.rank() == 0)
}

/// Work that changes or asks something outside of the ranks, done by rank 0 alone; all ranks get its result. Nobody
/// reads any more what it is about to change: all ranks have come here.
///
/// # Errors
/// Those of the work, and of MPI.
pub fn once<T: Broadcast>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    once_helped(work, || Ok(()), || Ok(()))
}

/// [`once`], while the other ranks help: they answer what the work asks of them, until rank 0, which is through with it
/// or has failed, lets them go.
///
/// # Errors
/// Those of the work, and of MPI.
pub fn once_helped<T: Broadcast>(
    work: impl FnOnce() -> Result<T>,
    help: impl FnOnce() -> Result<()>,
    let_go: impl FnOnce() -> Result<()>,
) -> Result<T> {
    let Some(world) = world() else { return work() };
    world.meet()?;
    if world.rank() > 0 {
        help()?;
        return told::read(&world.broadcast(Vec::new())?);
    }
    let result = work();
    let_go()?;
    world.broadcast(told::written(&result))?;
    result
}

/// A value that may differ from rank to rank, as rank 0 has it.
///
/// # Errors
/// Those of MPI.
pub fn told<T: Broadcast>(own: T) -> Result<T> {
    let Some(world) = world() else { return Ok(own) };
    let own = Ok(own);
    if world.rank() > 0 {
        return told::read(&world.broadcast(Vec::new())?);
    }
    world.broadcast(told::written(&own))?;
    own
}

/// What one rank has done or has failed in, on all ranks; what the others bring is not looked at. It does not wait
/// until they have heard.
///
/// # Errors
/// That of the rank, and those of MPI.
pub fn result_of<T: Broadcast>(rank: usize, own: Result<T>) -> Result<T> {
    let Some(world) = world() else { return own };
    if world.rank() != rank {
        return told::read(&world.heard(rank)?);
    }
    world.say(&told::written(&own))?;
    own
}

/// The part of so many things that this rank takes care of.
pub fn own_of(count: usize) -> Range<usize> {
    let (rank, size) = world().map_or((0, 1), |world| (world.rank(), world.size()));
    let start = |rank: usize| (count as u128 * rank as u128 / size as u128) as usize;
    start(rank)..start(rank + 1)
}

/// The same by weight, where there are weights.
pub fn own_by(count: usize, weights: Option<&[f64]>) -> Range<usize> {
    match (weights, world()) {
        (Some(weights), Some(world)) if weights.len() == world.size() => {
            let starts = weighted(count, weights);
            starts[world.rank()]..starts[world.rank() + 1]
        }
        _ => own_of(count),
    }
}

/// What ranks have found for their parts, all of it on all of them, in the order of ranks; the error of the first rank
/// that has one.
///
/// # Errors
/// Those of any rank, and of MPI.
pub fn joined<T: Broadcast>(own: Result<Vec<T>>) -> Result<Vec<T>> {
    let Some(world) = world() else { return own };
    let mut all = Vec::new();
    for bytes in world.gather(told::written(&own))? {
        all.extend(told::read::<Vec<T>>(&bytes)?);
    }
    Ok(all)
}

/// Numbers, so many, that one rank has found, on all ranks; what the others bring is not looked at.
///
/// # Errors
/// That of the rank, and those of MPI.
pub fn told_by(rank: usize, own: Result<Vec<f64>>, count: usize) -> Result<Vec<f64>> {
    let Some(world) = world() else { return own };
    let mine = world.rank() == rank;
    // Whether it has what it should have, and how many numbers that are.
    let mut first = [f64::from(u8::from(own.as_ref().is_ok_and(|own| own.len() == count))), count as f64];
    world.tell(&mut first, rank)?;
    let parted = || apart(" in what one of them tells the others");
    if first[0] != 1.0 {
        agreed(own)?;
        return Err(parted());
    }
    // Known to this rank alone, whose error ends the others.
    if first[1] != count as f64 {
        return Err(parted());
    }
    let mut numbers = own?;
    if mine {
        world.hand_out(bytemuck::cast_slice(&numbers))?;
    } else {
        numbers = vec![0.0; count];
        world.share(bytemuck::cast_slice_mut(&mut numbers), rank)?;
    }
    Ok(numbers)
}

/// This rank's result if no rank has failed; else the error of the first one that has.
///
/// # Errors
/// As for [`joined`].
pub fn agreed<T>(own: Result<T>) -> Result<T> {
    if world().is_none() {
        return own;
    }
    let (kept, told) = match own {
        Ok(value) => (Some(value), Ok(Vec::<()>::new())),
        Err(e) => (None, Err(e)),
    };
    joined(told)?;
    kept.ok_or_else(|| Error::internal("a failure that nobody heard of"))
}

/// Refuses ranks that were given other texts than rank 0. Each text has before it what a rank does whose own differs,
/// as in "runs another script".
///
/// # Errors
/// For the first text that differs; those of MPI.
pub fn alike(texts: &[(&str, &str)]) -> Result<()> {
    let Some(world) = world() else { return Ok(()) };
    let all = world.gather_words(texts.iter().map(|(_, text)| hash(Some(text.to_string()))).collect())?;
    for (rank, own) in all.chunks_exact(texts.len()).enumerate() {
        if let Some(k) = (0..texts.len()).find(|k| own[*k] != all[*k]) {
            return Err(Error::input(format!("rank {rank} {} than rank 0", texts[k].0)));
        }
    }
    Ok(())
}

/// Refuses a file that is another one on some ranks, by its length, its beginning and its end. `name` is what the
/// user calls it.
///
/// # Errors
/// A file that differs, or is not everywhere; those of MPI.
pub fn alike_file(path: &Path, name: &str) -> Result<()> {
    if world().is_none() {
        return Ok(());
    }
    let known = std::fs::metadata(path);
    let what = match &known {
        Ok(known) if known.is_file() => format!("{} bytes {:x}", known.len(), ends(path, known.len())),
        Ok(_) => "no plain file".to_string(),
        Err(_) => String::new(),
    };
    alike(&[(&format!("finds another `{name}`, or none,"), &what)]).map_err(|e| {
        Error::file(e.message()).hint("all ranks read the same files: keep them where all machines see them")
    })
}

/// A number that the beginning and the end of a file have.
fn ends(path: &Path, bytes: u64) -> u64 {
    const MOST: u64 = 1 << 20;
    let Ok(mut file) = std::fs::File::open(path) else { return 0 };
    let mut read = Vec::new();
    let mut take = |from: u64| {
        let placed = file.seek(SeekFrom::Start(from));
        placed.and_then(|_| (&file).take(MOST).read_to_end(&mut read)).map(drop)
    };
    // What cannot be read is told by who needs it.
    let _ = take(0);
    if bytes > MOST {
        let _ = take((bytes - MOST).max(MOST));
    }
    hash_of(read.into_iter())
}

/// A line of a file that begins so.
fn line(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().find(|line| line.starts_with(name)).map(str::to_string)
}

fn hash(text: Option<String>) -> u64 {
    hash_of(text.iter().flat_map(|text| text.bytes()))
}

/// FNV-1a.
fn hash_of(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// A number that tells this machine from others, as long as it runs.
pub fn machine() -> u64 {
    hash(line("/proc/sys/kernel/random/boot_id", ""))
}

/// Worker threads of each rank: as many as are wanted, or a share of the processors, the same number on all ranks, so
/// that all of them sum alike. Without ranks, what is wanted.
///
/// # Errors
/// Those of MPI.
pub fn threads(wanted: usize) -> Result<usize> {
    let Some(world) = world() else { return Ok(wanted) };
    if wanted > 0 {
        return Ok(wanted);
    }
    // Ranks of one node that may use the same processors share them.
    let there = std::thread::available_parallelism().map_or(1, |n| n.get());
    let place = [machine(), hash(line("/proc/self/status", "Cpus_allowed_list")), there as u64];
    let all = world.gather_words(place.to_vec())?;
    let places: Vec<&[u64]> = all.chunks_exact(3).collect();
    let of = |place: &&[u64]| {
        let sharing = places.iter().filter(|other| other[..2] == place[..2]).count().max(1);
        (place[2] as usize / sharing).max(1)
    };
    Ok(places.iter().map(of).min().unwrap_or(1))
}
