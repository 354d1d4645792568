//! What memory this process may still take: of the machine, of the control groups that containers and batch systems put
//! it in, and of its address space (`ulimit -v`). Nothing here allocates after the first call,
//! since the allocator asks.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Where no system says how much there is.
const UNKNOWN: u64 = 1 << 40;

/// What is left for reports, buffers of the system and threads.
const RESERVE: (u64, u64) = (12 << 20, 256 << 20);

/// Bytes that are allocated, as the allocator counts them; 0 in programs with another one.
pub(super) static LIVE: AtomicI64 = AtomicI64::new(0);

/// What the user lets this process take.
static WANTED: AtomicU64 = AtomicU64::new(u64::MAX);

static LIMITS: OnceLock<MemoryLimits> = OnceLock::new();

/// The limits that hold for the whole run.
struct MemoryLimits {
    groups: Vec<ControlGroup>,
    /// The least of them, the machine's memory, and the addresses.
    all: u64,
}

/// A control group with a limit.
struct ControlGroup {
    limit: u64,
    usage: PathBuf,
    statistics: PathBuf,
    /// The field of the statistics that counts pages of files, which the system takes back before it refuses memory.
    files: &'static str,
}

/// Bytes that can be allocated now; what was allocated and not yet written to counts as taken. Where the system does
/// not say, 2^40.
pub fn available() -> u64 {
    free_within(LIMITS.get_or_init(MemoryLimits::find), 0)
}

/// What can be allocated now, but for the reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsableMemory {
    /// All that there is, for this process or its control groups.
    pub total: u64,
    /// What other processes may take from, too.
    pub shared: u64,
    /// What bounds this process alone.
    pub alone: u64,
}

/// As [`available`], with what others take from apart from what is this process's own.
pub fn usable() -> UsableMemory {
    let limits = LIMITS.get_or_init(MemoryLimits::find);
    let (shared, alone) = free_of(limits, 0);
    let less = |free: u64| free.saturating_sub(limits.reserve());
    UsableMemory { total: limits.all, shared: less(shared), alone: less(alone) }
}

/// Lets this process take so many bytes, at most.
pub fn restrict(bytes: u64) {
    WANTED.store(bytes, Ordering::Relaxed);
}

/// The part of memory that is never given away: a 32nd of all, within bounds.
pub(super) fn reserve() -> u64 {
    LIMITS.get_or_init(MemoryLimits::find).reserve()
}

/// [`available`], when so many addresses more are taken, and [`reserve`], for the allocator; nothing before the first
/// call of either.
pub(super) fn known(addresses: u64) -> Option<(u64, u64)> {
    LIMITS.get().map(|limits| (free_within(limits, addresses), limits.reserve()))
}

/// The bytes of the processor's last cache, where the system says them; of several caches, one.
pub(super) fn last_cache() -> Option<u64> {
    let mut room = [0; 64];
    let size = text(Path::new("/sys/devices/system/cpu/cpu0/cache/index3/size"), &mut room);
    size.trim().strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)
}

fn live() -> u64 {
    LIVE.load(Ordering::Relaxed).max(0) as u64
}

fn free_within(limits: &MemoryLimits, more: u64) -> u64 {
    let (shared, alone) = free_of(limits, more);
    shared.min(alone)
}

/// What is free of the memory that others take from, too, and of what bounds this process alone.
fn free_of(limits: &MemoryLimits, more: u64) -> (u64, u64) {
    let mut room = [0; 8192];
    let machine = kilobytes(text(Path::new("/proc/meminfo"), &mut room), "MemAvailable:").unwrap_or(UNKNOWN);
    let groups = limits.groups.iter().filter_map(|group| {
        let used: u64 = text(&group.usage, &mut room).trim().parse().ok()?;
        let files = number(text(&group.statistics, &mut room), group.files).unwrap_or(0);
        Some(group.limit.saturating_sub(used.saturating_sub(files)))
    });
    let real = groups.fold(machine, u64::min);
    // In pages: all addresses, resident ones, those of files among them.
    let mut pages = text(Path::new("/proc/self/statm"), &mut room).split(' ').map(str::parse::<u64>);
    let mut bytes = || pages.next().and_then(|n| n.ok()).map_or(0, |n| n.saturating_mul(page()));
    let (addresses, resident, of_files) = (bytes(), bytes(), bytes());
    let written = resident.saturating_sub(of_files);
    let promised = live().saturating_sub(written);
    let wanted = WANTED.load(Ordering::Relaxed).saturating_sub(live().max(written));
    let room = address_space().saturating_sub(addresses.saturating_add(more));
    (real.saturating_sub(promised), wanted.min(room))
}

/// The beginning of a small file; empty where it cannot be read.
fn text<'a>(path: &Path, room: &'a mut [u8]) -> &'a str {
    let mut length = 0;
    if let Ok(mut file) = File::open(path) {
        while let Ok(n @ 1..) = file.read(&mut room[length..]) {
            length += n;
        }
    }
    std::str::from_utf8(&room[..length]).unwrap_or("")
}

/// The number behind a name at the begin of a line.
fn number(text: &str, name: &str) -> Option<u64> {
    let behind = |line: &str| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok();
    text.lines().find_map(behind)
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    number(text, name).map(|kib| kib.saturating_mul(1024))
}

#[cfg(unix)]
fn page() -> u64 {
    // SAFETY: asks for a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(not(unix))]
fn page() -> u64 {
    4096
}

/// How many addresses the process may have.
#[cfg(unix)]
fn address_space() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: writes the two numbers of a structure that is ours.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    limit.rlim_cur
}

#[cfg(not(unix))]
fn address_space() -> u64 {
    u64::MAX
}

impl MemoryLimits {
    fn find() -> MemoryLimits {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let groups = groups(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
        let machine = kilobytes(&read("/proc/meminfo"), "MemTotal:").unwrap_or(UNKNOWN);
        let all = groups.iter().map(|group| group.limit).fold(machine.min(address_space()), u64::min);
        MemoryLimits { groups, all }
    }

    fn reserve(&self) -> u64 {
        (self.all.min(WANTED.load(Ordering::Relaxed)) / 32).clamp(RESERVE.0, RESERVE.1)
    }
}

/// The folders of this process's control groups that can hold limits of memory, with their version: its own group's and
/// those of all groups around it.
fn folders(own: &str, mounts: &str) -> Vec<(PathBuf, bool)> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(kinds), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let second = kinds.is_empty();
        if !second && !kinds.split(',').any(|kind| kind == "memory") {
            continue;
        }
        for mount in mounts.lines() {
            let Some((place, kind)) = mount.split_once(" - ") else { continue };
            let (place, kind): (Vec<&str>, Vec<&str>) =
                (place.split(' ').collect(), kind.split(' ').collect());
            let (Some(root), Some(at), Some(name)) = (place.get(3), place.get(4), kind.first()) else {
                continue;
            };
            let memory = kind.get(2).is_some_and(|options| options.split(',').any(|o| o == "memory"));
            if !(if second { *name == "cgroup2" } else { *name == "cgroup" && memory }) {
                continue;
            }
            // A container may see a part of the tree, under its own root.
            let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
            let whole = Path::new(at).join(below);
            let inside = whole.ancestors().take_while(|folder| folder.starts_with(at));
            found.extend(inside.map(|folder| (folder.to_path_buf(), second)));
        }
    }
    found
}

fn groups(own: &str, mounts: &str) -> Vec<ControlGroup> {
    let with_limit = |(folder, second): (PathBuf, bool)| {
        let (limit, usage, files) = if second {
            ("memory.max", "memory.current", "inactive_file ")
        } else {
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
        };
        // `max`, or a number as large as the address space, means no limit.
        let limit = std::fs::read_to_string(folder.join(limit)).ok()?.trim().parse().ok()?;
        (limit < 1 << 60).then(|| ControlGroup {
            limit,
            usage: folder.join(usage),
            statistics: folder.join("memory.stat"),
            files,
        })
    };
    folders(own, mounts).into_iter().filter_map(with_limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_in_both_versions() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n\
            36 35 0:31 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            37 35 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        let second = folders("0::/batch/job7\n", mounts);
        let expected = ["/sys/fs/cgroup/batch/job7", "/sys/fs/cgroup/batch", "/sys/fs/cgroup"];
        assert_eq!(second, expected.map(|p| (PathBuf::from(p), true)));
        let first = folders("9:cpu:/docker/abc\n4:memory:/docker/abc/inner\n", mounts);
        let expected = ["/sys/fs/cgroup/memory/inner", "/sys/fs/cgroup/memory"];
        assert_eq!(first, expected.map(|p| (PathBuf::from(p), false)));
        assert!(folders("garbage\n4:memory\n", "more garbage").is_empty());
    }

    #[test]
    fn fields_are_read() {
        let text = "MemTotal:       1000 kB\nMemAvailable:    500 kB\n";
        assert_eq!(kilobytes(text, "MemAvailable:"), Some(512_000));
        assert_eq!(number("inactive_anon 3\ninactive_file 4096\n", "inactive_file "), Some(4096));
        assert_eq!(number("", "x"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn there_is_some_memory_and_not_without_end() {
        assert!((1 << 20..UNKNOWN).contains(&available()));
        assert!(known(0).is_some_and(|(free, reserve)| free > 0 && reserve >= RESERVE.0));
    }
}
