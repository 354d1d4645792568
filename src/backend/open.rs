//! Backends by name: one, several that share the work, or what there is.

use std::sync::Arc;

use super::Device;
use super::cpu::Cpu;
use super::cuda::Cuda;
use super::cut::joined;
use super::cut::speed::RowShares;
use super::ranks::{Mixed, Ranks, Uneven};
use super::split::SplitBackend;
use crate::error::{Error, Result};
use crate::ranks::{self, World};
use crate::task::Interrupt;

/// Which backend is wanted.
///
/// ```
/// use umklapp::backend::open::{BackendChoice, open};
/// use umklapp::task::Interrupt;
///
/// let choice = BackendChoice { name: "cpu".into(), threads: 2, ..BackendChoice::default() };
/// let device = open(&choice, &Interrupt::default(), |note| eprintln!("{note}"))?;
/// assert_eq!((device.name(), device.workers()), ("cpu", 2));
/// # Ok::<(), umklapp::error::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct BackendChoice {
    /// "cpu", "cuda", several of them joined by `+`, or "auto" (also if empty): a GPU where there is one,
    /// the CPU otherwise.
    pub name: String,
    /// Threads of the CPU in all; as many as there are processors if it is 0.
    pub threads: usize,
    /// How the work is shared out, a number for each of several backends or ranks; they are measured if there are none.
    pub weights: Vec<f64>,
    /// Numbers of the GPUs; the others follow the last one.
    pub gpus: Vec<u32>,
    /// Ranks in each direction of a lattice; the grid of least surface if it is empty.
    pub grid: Vec<usize>,
    /// Rows from which vectors are shared out to ranks; some thousand if it is none.
    pub share_from: Option<usize>,
    /// Whether each rank may have all rows of what lives on several backends, as a part of a script asks for.
    pub several_a_rank: bool,
}

/// The name of a backend, if it is one.
///
/// # Errors
/// For anything but `auto`, `cpu`, `cuda` and the latter two joined by `+`.
pub fn known(name: &str) -> Result<()> {
    if name == "auto" || name.split('+').all(|part| ["cpu", "cuda"].contains(&part)) {
        return Ok(());
    }
    Err(Error::backend(format!("no backend `{name}`"))
        .hint("the backends are auto, cpu, cuda, and several that share the work, as in cpu+cuda"))
}

/// Refuses what is said of ranks where there are none, and weights of one backend alone.
///
/// # Errors
/// When the choice is such.
pub fn check_ranks(choice: &BackendChoice) -> Result<()> {
    if ranks::world().is_some() {
        return Ok(());
    }
    if !choice.grid.is_empty() {
        return Err(Error::input("a grid of ranks without ranks")
            .hint("start them, as in `umklapp --ranks 8 --grid 4x2x1`"));
    }
    if !choice.name.contains('+') && !choice.weights.is_empty() {
        return Err(weights_of_one());
    }
    Ok(())
}

/// Opens it. Only "auto" falls back to the CPU, and tells `note` why; several that share the work tell it how.
///
/// # Errors
/// No such backend, weights for one alone, no such GPU, no memory for threads.
pub fn open(
    choice: &BackendChoice,
    interrupt: &Interrupt,
    note: impl Fn(&str) + Send + Sync + 'static,
) -> Result<Device> {
    check_ranks(choice)?;
    let Some(world) = ranks::world() else {
        return open_here(choice, interrupt, note);
    };
    if choice.several_a_rank && choice.name.contains('+') {
        return open_here(choice, interrupt, note);
    }
    let note = Arc::new(note);
    let tell = note.clone();
    let found = ranks::agreed(open_own(world, choice, interrupt, move |text: &str| tell(text)))?;
    let grid = Some(choice.grid.clone()).filter(|grid| !grid.is_empty());
    let say = note.clone();
    let uneven = uneven(world, choice, &found, interrupt, Box::new(move |text| say(text)))?;
    let note = Box::new(move |text: &str| note(text));
    Ok(Arc::new(Ranks::new(world, found.device, grid, note, choice.share_from, uneven)?))
}

/// What a rank computes on.
struct OpenedDevice {
    device: Device,
    /// Its place among the names that it was given.
    name: usize,
    names: usize,
}

/// Which of several names the rank at a place of its machine takes: each has as many ranks as if all took them in turn,
/// but GPUs go to the first. Rank 0 does what one rank does for all, and others wait for it less where it is fast.
fn taken(names: &[&str], (place, count): (usize, usize)) -> usize {
    let mut turns: Vec<usize> = (0..count.max(place + 1)).map(|place| place % names.len()).collect();
    turns.sort_by_key(|&turn| names[turn] == "cpu");
    turns[place]
}

/// Opens the backend of one of several ranks: those of a node share the names, and its GPUs.
fn open_own(
    world: &World,
    choice: &BackendChoice,
    interrupt: &Interrupt,
    note: impl Fn(&str) + Send + Sync + 'static,
) -> Result<OpenedDevice> {
    let place = world.local().0;
    let text = if choice.name.is_empty() { "auto" } else { &choice.name };
    let names: Vec<&str> = text.split('+').collect();
    // Weights of single ranks are given for ranks that take the names in turn.
    let each = choice.weights.len() == world.size() && choice.weights.len() != names.len();
    let turn = if each { place % names.len() } else { taken(&names, world.local()) };
    let name = names[turn];
    let seat = [ranks::machine(), place as u64, (name != "cpu").into()];
    let seats = world.gather_words(seat.to_vec())?;
    known(text)?;
    if choice.several_a_rank && !choice.weights.is_empty() {
        return Err(weights_of_one());
    }
    let before = |other: &&[u64]| other[0] == seat[0] && other[1] < seat[1] && other[2] > 0;
    let before = seats.chunks_exact(seat.len()).filter(before).count();
    let numbers = gpus(&choice.gpus[..choice.gpus.len().min(before + 1)], before + 1)?;
    let (name, gpus, weights) = (name.to_string(), vec![numbers[before]], Vec::new());
    let device = open_here(&BackendChoice { name, gpus, weights, ..choice.clone() }, interrupt, note)?;
    Ok(OpenedDevice { device, name: turn, names: names.len() })
}

/// What is to know of ranks whose backends differ, or have names or weights of their own; none if all share alike.
fn uneven(
    world: &'static World,
    choice: &BackendChoice,
    found: &OpenedDevice,
    interrupt: &Interrupt,
    tell: Box<dyn Fn(&str) + Send + Sync>,
) -> Result<Option<Uneven>> {
    let device = &found.device;
    let described = format!("{} ({})", device.name(), device.describe());
    let told = [described, choice.name.clone(), device.name().into()].map(String::into_bytes);
    let [described, spelled, names] = told.map(|text| world.gather(text));
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let described: Vec<String> = described?.iter().map(text).collect();
    let (spelled, names): (_, Vec<String>) = (spelled?, names?.iter().map(text).collect());
    let alike = |all: &[String]| all.iter().all(|other| *other == all[0]);
    // Of each rank: its place among the names, how many they are, workers, columns, whether it keeps matrices,
    // and makes superblocks.
    let abilities = [device.keeper().is_some(), device.superblocks().is_some()].map(usize::from);
    let numbers = [found.name, found.names, device.workers(), device.preferred_columns()];
    let numbers = [&numbers[..], &abilities].concat();
    let each = numbers.len();
    let numbers = world.gather_words(numbers.into_iter().map(|n| n as u64).collect())?;
    let of = |which: usize| numbers.iter().skip(which).step_by(each).map(|n| *n as usize);
    let mixed = of(1).any(|names| names > 1) || !alike(&described);
    let weights = match &choice.weights[..] {
        [] if !mixed => return Ok(None),
        [] => None,
        given
            if given.len() == found.names
                && spelled.iter().all(|other| *other == spelled[0])
                && found.names > 1 =>
        {
            Some(of(0).map(|name| given[name]).collect())
        }
        given if given.len() == world.size() => Some(given.to_vec()),
        given => {
            return Err(Error::input(format!("{} weights for {} ranks", given.len(), world.size())).hint(
                "give one weight per rank, or one per name of `--backend`, as in `--backend cuda+cpu --weights 12:1`",
            ));
        }
    };
    // What the hosts compute has to be the same on all ranks.
    let host: Device = match device.name() {
        "cpu" => device.clone(),
        _ => Arc::new(Cpu::new(choice.threads, interrupt.clone())?),
    };
    let hosts: Vec<String> = world.gather(host.describe().into_bytes())?.iter().map(text).collect();
    if let Some(other) = hosts.iter().find(|other| **other != hosts[0]) {
        return Err(Error::backend(format!(
            "ranks on different processors would not compute the same: {}; {other}",
            hosts[0]
        ))
        .hint("use processors of one kind, and set `--threads` for all ranks"));
    }
    let names = names.iter().map(|name| joined(&[name])).collect();
    let shares = RowShares::new(names, weights, choice.share_from.is_some(), tell)?;
    let mixed = mixed.then(|| {
        let primary = shares.primary;
        let [workers, columns] = [2, 3].map(|which| of(which).nth(primary).unwrap_or(1));
        let [keeps, superblocks] = [4, 5].map(|which| of(which).nth(primary).unwrap_or(0) > 0);
        let (name, description) = (shares.name(), several(&described));
        Mixed { name, description, workers, columns, keeps, superblocks }
    });
    Ok(Some(Uneven { shares, host, mixed }))
}

/// What all ranks compute on, in words.
fn several(described: &[String]) -> String {
    let mut all: Vec<(&str, usize)> = Vec::new();
    for text in described {
        match all.iter_mut().find(|(other, _)| other == text) {
            Some((_, count)) => *count += 1,
            None => all.push((text, 1)),
        }
    }
    let rank = |(text, count): (&str, usize)| match count {
        1 => format!("1 rank of {text}"),
        _ => format!("{count} ranks of {text}"),
    };
    all.into_iter().map(rank).collect::<Vec<_>>().join(" + ")
}

fn weights_of_one() -> Error {
    Error::input("weights are for several backends that share the work")
        .hint("name them, as in `--backend cpu+cuda --weights 1:12`")
}

/// Opens the backend of this process.
fn open_here(
    choice: &BackendChoice,
    interrupt: &Interrupt,
    note: impl Fn(&str) + Send + Sync + 'static,
) -> Result<Device> {
    let name = if choice.name.is_empty() { "auto" } else { &choice.name };
    known(name)?;
    let cpu = |threads| -> Result<Device> { Ok(Arc::new(Cpu::new(threads, interrupt.clone())?)) };
    let cuda = |number| -> Result<Device> { Ok(Arc::new(Cuda::new(number, interrupt.clone())?)) };
    match name {
        "cpu" => cpu(choice.threads),
        "cuda" => cuda(gpus(&choice.gpus, 1)?[0]),
        "auto" => cuda(gpus(&choice.gpus, 1)?[0]).or_else(|e| {
            note(&format!("computing on the CPU: {}", e.message()));
            cpu(choice.threads)
        }),
        several => {
            let names: Vec<&str> = several.split('+').collect();
            let threads = threads_each(choice.threads, &names);
            let count = names.iter().filter(|name| **name == "cuda").count();
            let mut numbers = gpus(&choice.gpus, count)?.into_iter().peekable();
            let parts = names.iter().map(|name| match numbers.next_if(|_| *name == "cuda") {
                Some(number) => cuda(number),
                None => cpu(threads),
            });
            let parts = parts.collect::<Result<Vec<_>>>()?;
            let weights = Some(choice.weights.clone()).filter(|w| !w.is_empty());
            Ok(Arc::new(SplitBackend::new(parts, weights, note)?))
        }
    }
}

/// The numbers of so many GPUs: those named, then those that follow the last one.
///
/// # Errors
/// When more are named than there are parts for.
fn gpus(named: &[u32], count: usize) -> Result<Vec<u32>> {
    if named.len() > count.max(1) {
        let text = if count == 1 { "one GPU is".into() } else { format!("{count} GPUs are") };
        return Err(Error::input(format!("{} GPUs are named where {text} used", named.len())).hint(
            "give one number for `cuda` and two for `cuda+cuda`, as in `--backend cuda+cuda --device 0,2`",
        ));
    }
    let next = named.last().map_or(0, |last| last.saturating_add(1));
    let others = (next..).filter(|number| !named.contains(number));
    Ok(named.iter().copied().chain(others).take(count).collect())
}

/// Threads of each part that is a CPU: a GPU needs one to drive it where there are several.
fn threads_each(wanted: usize, names: &[&str]) -> usize {
    let there = std::thread::available_parallelism().map_or(1, |n| n.get());
    let cpus = names.iter().filter(|name| **name == "cpu").count().max(1);
    let drivers = names.len() - cpus.min(names.len());
    let all = if wanted > 0 { wanted } else { there - drivers.min(there / 4) };
    (all / cpus).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_follow_those_named() {
        assert_eq!(gpus(&[], 2).unwrap(), [0, 1]);
        assert_eq!(gpus(&[3], 3).unwrap(), [3, 4, 5]);
        assert_eq!(gpus(&[2, 0], 2).unwrap(), [2, 0]);
        assert_eq!(gpus(&[2, 0], 4).unwrap(), [2, 0, 1, 3]);
        assert!(gpus(&[0, 1], 1).is_err());
    }

    #[test]
    fn first_ranks_take_gpus() {
        let all =
            |names: &[&str], count| (0..count).map(|place| taken(names, (place, count))).collect::<Vec<_>>();
        assert_eq!(all(&["cpu", "cuda"], 2), [1, 0]);
        assert_eq!(all(&["cpu", "cuda", "cpu"], 3), [1, 0, 2]);
        // As many of each as in turn: one GPU for three ranks.
        assert_eq!(all(&["cpu", "cuda"], 3), [1, 0, 0]);
        assert_eq!(all(&["cuda", "cpu"], 4), [0, 0, 1, 1]);
        assert_eq!(all(&["cpu", "cpu"], 3), [0, 1, 0]);
        assert_eq!(all(&["cuda"], 2), [0, 0]);
        assert_eq!(all(&["cpu", "cuda"], 1), [0]);
    }

    #[test]
    fn names_are_known() {
        assert!(["auto", "cpu", "cuda", "cpu+cuda", "cpu+cpu+cpu"].iter().all(|n| known(n).is_ok()));
        assert!(["", "gpu", "cpu+", "auto+cpu", "cpu,cuda"].iter().all(|n| known(n).is_err()));
    }

    #[test]
    fn weights_are_for_several() {
        let choice = BackendChoice { name: "cpu".into(), weights: vec![1.0], ..BackendChoice::default() };
        assert!(open(&choice, &Interrupt::default(), |_| ()).is_err());
        let choice = BackendChoice {
            name: "cpu+cpu".into(),
            threads: 2,
            weights: vec![1.0, 2.0],
            ..BackendChoice::default()
        };
        assert_eq!(open(&choice, &Interrupt::default(), |_| ()).unwrap().name(), "cpu+cpu");
    }
}
