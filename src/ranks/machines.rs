//! Machines that can no longer be reached. On several machines each rank has a connection to rank 0. The systems at
//! both ends probe it while it is idle. A rank whose connection breaks ends, and rank 0 reports the lost rank. Without
//! these connections, ranks behind a cut network would wait as long as MPI's connections last, possibly forever. A rank
//! that cannot connect to rank 0, for example behind a firewall, is not watched.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{setsockopt, sockopt};

use super::World;
use super::watch::{self, FAREWELL, Line};
use crate::error::{Error, Result};

/// Seconds without a word after which a connection is probed, seconds between two probes, and how many of them may stay
/// without an answer: short breaks of a network, of some seconds, end nothing.
const QUIET: u32 = 5;
const BETWEEN: u32 = 3;
const PROBES: u32 = 5;

/// How long a connection may take to come about.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long a launcher may take to end all ranks, where one of another machine has died.
const GRACE: Duration = Duration::from_secs(3);

/// Ranks that are few enough for the number of open files that any system allows.
const FEW: usize = 200;

/// This rank's ends of the connections.
static OWN: Mutex<Vec<Arc<TcpStream>>> = Mutex::new(Vec::new());

/// Whether what happens to this process from now on is no accident.
static OVER: AtomicBool = AtomicBool::new(false);

/// Whether this rank ends because it has lost another one.
static CUT: AtomicBool = AtomicBool::new(false);

/// Whether this rank ends because it has lost another one; rank 0 has said so.
pub(super) fn is_cut() -> bool {
    CUT.load(Ordering::SeqCst)
}

/// Where rank 0 listens, as it tells the others. What each end says first tells it from strangers.
struct ListenerAddress {
    /// What rank 0 says first.
    answer: String,
    /// What the other ranks say first.
    key: String,
    port: u16,
    addresses: Vec<IpAddr>,
}

impl ListenerAddress {
    fn written(&self) -> Vec<u8> {
        let ListenerAddress { answer, key, port, addresses } = self;
        let mut words = vec![answer.clone(), key.clone(), port.to_string()];
        words.extend(addresses.iter().map(IpAddr::to_string));
        words.join(" ").into_bytes()
    }

    fn read(bytes: &[u8]) -> Option<ListenerAddress> {
        let mut words = std::str::from_utf8(bytes).ok()?.split(' ');
        let (answer, key) = (words.next()?.to_string(), words.next()?.to_string());
        let port = words.next()?.parse().ok()?;
        Some(ListenerAddress {
            answer,
            key,
            port,
            addresses: words.map_while(|word| word.parse().ok()).collect(),
        })
    }

    /// The connection of a rank, at the first address where rank 0 answers.
    fn connect(&self, rank: usize) -> Option<TcpStream> {
        self.addresses.iter().find_map(|&address| self.try_connect(address, rank).ok().flatten())
    }

    fn try_connect(&self, address: IpAddr, rank: usize) -> std::io::Result<Option<TcpStream>> {
        let mut stream = TcpStream::connect_timeout(&SocketAddr::new(address, self.port), PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut said = vec![0; self.answer.len()];
        stream.read_exact(&mut said)?;
        if said != self.answer.as_bytes() {
            return Ok(None);
        }
        stream.set_read_timeout(None)?;
        probe(&stream)?;
        let machine = nix::unistd::gethostname().unwrap_or_default();
        let machine = machine.to_string_lossy().replace(' ', "");
        stream.write_all(format!("{} {rank} {machine}\n", self.key).as_bytes())?;
        Ok(Some(stream))
    }
}

/// Lets the system probe a connection.
fn probe(stream: &TcpStream) -> std::io::Result<()> {
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    setsockopt(stream, sockopt::TcpKeepIdle, &QUIET)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &BETWEEN)?;
    Ok(setsockopt(stream, sockopt::TcpKeepCount, &PROBES)?)
}

/// Addresses of this machine, those that others may reach first.
fn addresses() -> Vec<IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs();
    let all = interfaces.into_iter().flatten().filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip())))
    });
    let local = |a: &IpAddr| matches!(a, IpAddr::V6(a) if a.is_unicast_link_local());
    let mut all: Vec<IpAddr> = all.filter(|a| !local(a)).collect();
    all.sort_by_key(|a| (a.is_loopback(), a.is_ipv6()));
    all
}

/// Rank 0's side of the connections.
struct Hub {
    place: ListenerAddress,
    listener: TcpListener,
    ready: Epoll,
    lines: Vec<Line<TcpStream>>,
    /// How many ranks there are.
    size: usize,
}

impl Hub {
    /// None where the system refuses: then nothing is watched.
    fn open(size: usize) -> Option<Hub> {
        if size > FEW {
            let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
            setrlimit(Resource::RLIMIT_NOFILE, most, most).ok()?;
        }
        let any = [IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
        let listener = any.iter().find_map(|&any| TcpListener::bind((any, 0)).ok())?;
        listener.set_nonblocking(true).ok()?;
        let port = listener.local_addr().ok()?.port();
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).ok()?;
        ready.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, 0)).ok()?;
        let word = || format!("{:032x}", rand::random::<u128>());
        let place = ListenerAddress { answer: word(), key: word(), port, addresses: addresses() };
        Some(Hub { place, listener, ready, lines: Vec::new(), size })
    }

    /// Watches the connections, to the end of the program or until one is lost.
    fn watch(mut self, tell: impl Fn(&Error)) {
        loop {
            let mut events = [EpollEvent::empty(); 64];
            let count = self.ready.wait(&mut events, EpollTimeout::NONE).unwrap_or(0);
            for event in &events[..count] {
                match (event.data() as usize).checked_sub(1) {
                    None => self.accept(),
                    Some(k) => {
                        if let Some((rank, machine, cut)) = self.hear(k) {
                            self.end(&rank, &machine, cut, &tell);
                        }
                    }
                }
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            if self.lines.len() > 4 * self.size {
                continue;
            }
            let event = EpollEvent::new(EpollFlags::EPOLLIN, self.lines.len() as u64 + 1);
            let said = stream.write_all(self.place.answer.as_bytes());
            let set = said.and_then(|()| stream.set_nonblocking(true)).and_then(|()| probe(&stream));
            if set.is_ok() && self.ready.add(&stream, event).is_ok() {
                let line = Line::of(stream);
                own().push(line.stream.clone());
                self.lines.push(line);
            }
        }
    }

    /// The rank at the other end and its machine, if the connection has broken without a farewell,
    /// and whether the network did it.
    fn hear(&mut self, k: usize) -> Option<(String, String, bool)> {
        let line = &mut self.lines[k];
        if !line.broken() {
            return None;
        }
        let _ = self.ready.delete(&*line.stream);
        let first = line.said.split(|b| *b == b'\n').next().unwrap_or_default();
        let words: Vec<String> = String::from_utf8_lossy(first).split(' ').map(str::to_string).collect();
        match &words[..] {
            [key, rank, machine] if *key == self.place.key && !line.has_said_farewell() => {
                Some((rank.clone(), machine.clone(), line.cut))
            }
            _ => None,
        }
    }

    fn end(&self, rank: &str, machine: &str, cut: bool, tell: &impl Fn(&Error)) {
        if !cut {
            // It has died. Launchers see that, too.
            std::thread::sleep(GRACE);
        }
        if OVER.load(Ordering::SeqCst) {
            return;
        }
        CUT.store(true, Ordering::SeqCst);
        tell(&Error::backend(format!("rank {rank} of {}, on `{machine}`, cannot be reached any more", self.size)).hint(
            "its machine is down, or the network to it is cut; the other ranks are ended, and what has been saved \
             stays",
        ));
        super::farewell();
        watch::end_soon();
    }
}

fn own() -> std::sync::MutexGuard<'static, Vec<Arc<TcpStream>>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the connections, where ranks are on several machines; `tell` shows an error, on rank 0.
///
/// # Errors
/// Those of MPI.
pub(super) fn begin(world: &World, tell: impl Fn(&Error) + Send + 'static) -> Result<()> {
    let several = world.local().1 < world.size();
    // Rank 0 knows whether all are on its machine; where they are, the broadcast is empty.
    let hub = if world.rank() == 0 && several { Hub::open(world.size()) } else { None };
    let place = world.broadcast(hub.as_ref().map(|hub| hub.place.written()).unwrap_or_default())?;
    let rank = world.rank();
    let work = move || match (hub, ListenerAddress::read(&place)) {
        (Some(hub), _) => hub.watch(tell),
        (None, Some(place)) if rank > 0 => {
            let Some(stream) = place.connect(rank) else { return };
            let stream = Arc::new(stream);
            own().push(stream.clone());
            if OVER.load(Ordering::SeqCst) {
                farewell();
            }
            if watch::breaks(&*stream) {
                CUT.store(true, Ordering::SeqCst);
                watch::end_soon();
            }
        }
        _ => {}
    };
    if several {
        // Without the thread, nothing is watched.
        let _ = std::thread::Builder::new().name("machines".into()).spawn(work);
    }
    Ok(())
}

/// What happens to this process from now on is no accident.
pub(super) fn farewell() {
    OVER.store(true, Ordering::SeqCst);
    for stream in own().iter() {
        let _ = (&**stream).write_all(&[FAREWELL]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the hub hears until so many have connected or broken.
    fn heard(hub: &mut Hub, lines: usize) -> Option<(String, String, bool)> {
        for _ in 0..200 {
            let mut events = [EpollEvent::empty(); 8];
            let count = hub.ready.wait(&mut events, 10u16).unwrap();
            for event in &events[..count] {
                match (event.data() as usize).checked_sub(1) {
                    None => hub.accept(),
                    Some(k) => {
                        if let Some(lost) = hub.hear(k) {
                            return Some(lost);
                        }
                    }
                }
            }
            if hub.lines.len() >= lines && count == 0 {
                return None;
            }
        }
        None
    }

    #[test]
    fn a_rank_that_ends_without_a_word_is_known_and_strangers_are_not() {
        let mut hub = Hub::open(4).unwrap();
        let place = ListenerAddress::read(&hub.place.written()).unwrap();
        // Nobody answers at once: the greeting comes when the connection is accepted.
        let others = std::thread::scope(|scope| {
            let place = &place;
            let ranks = [1, 2, 3].map(|rank| scope.spawn(move || place.connect(rank)));
            assert!(heard(&mut hub, 3).is_none());
            ranks.map(|rank| rank.join().unwrap().unwrap())
        });
        let [one, mut two, three] = others;
        drop(TcpStream::connect(("127.0.0.1", place.port)).unwrap());
        assert!(heard(&mut hub, 4).is_none());
        two.write_all(&[FAREWELL]).unwrap();
        drop(two);
        assert!(heard(&mut hub, 4).is_none());
        drop(three);
        let (rank, _, cut) = heard(&mut hub, 4).unwrap();
        assert_eq!((rank.as_str(), cut), ("3", false));
        drop(one);
    }
}
