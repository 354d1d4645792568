//! Finds the rank that died first. Every rank of this machine has a connection to the program that started the
//! launcher, and signs off on it before it ends. A connection that breaks without this message belongs to a killed
//! rank. Launchers end the other ranks at once, and some launchers do not name a rank. If that program itself is
//! killed, the ranks notice it by their connections, and end.

use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// The variable that tells ranks where the line ends.
const LINE: &str = "UMKLAPP_LINE";

/// What a rank says last.
pub(super) const FAREWELL: u8 = b'.';

/// The end of the lines at the program that started the launcher.
pub(super) struct Watch {
    name: String,
    listener: UnixListener,
    /// Lines are found ready in the order in which they became so: the first that broke comes first.
    ready: Epoll,
    lines: Vec<Line<UnixStream>>,
    /// Whether some rank has said farewell: those that end after it were ended.
    over: bool,
    lost: Option<usize>,
    /// When rank 0 has ended.
    first_ended: Option<Instant>,
}

/// One end of a line, and what the other end has said.
pub(super) struct Line<S> {
    pub(super) stream: Arc<S>,
    pub(super) said: Vec<u8>,
    /// Whether the system has given it up, and not the other end.
    pub(super) cut: bool,
}

impl Line<UnixStream> {
    /// Rank, how many there are, number of the process.
    fn place(&self) -> Option<[usize; 3]> {
        let first = self.said.split(|b| *b == b'\n').next()?;
        let numbers: Vec<usize> =
            std::str::from_utf8(first).ok()?.split(' ').map_while(|n| n.parse().ok()).collect();
        numbers.try_into().ok()
    }
}

impl<S> Line<S>
where
    for<'a> &'a S: Read,
{
    pub(super) fn of(stream: S) -> Line<S> {
        Line { stream: Arc::new(stream), said: Vec::new(), cut: false }
    }

    pub(super) fn has_said_farewell(&self) -> bool {
        self.said.last() == Some(&FAREWELL)
    }

    /// Whether it is broken, after what was said has been read.
    pub(super) fn broken(&mut self) -> bool {
        let mut some = [0; 64];
        loop {
            match (&*self.stream).read(&mut some) {
                Ok(0) => return true,
                Ok(n) => self.said.extend(&some[..n]),
                Err(e) => match e.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return false,
                    kind => {
                        self.cut = kind != ErrorKind::ConnectionReset;
                        return true;
                    }
                },
            }
        }
    }
}

impl Watch {
    /// None where the system refuses: then nothing is known of ranks that die.
    pub(super) fn new() -> Option<Watch> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let name = format!("umklapp-{}-{now}", std::process::id());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).ok()?).ok()?;
        listener.set_nonblocking(true).ok()?;
        let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).ok()?;
        ready.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, 0)).ok()?;
        Some(Watch { name, listener, ready, lines: Vec::new(), over: false, lost: None, first_ended: None })
    }

    /// What ranks find in their environment.
    pub(super) fn variable(&self) -> (&'static str, &str) {
        (LINE, &self.name)
    }

    /// Waits for so long, at most until ranks begin, say something or end.
    pub(super) fn look(&mut self, time: Duration) {
        let time = EpollTimeout::try_from(time).unwrap_or(EpollTimeout::ZERO);
        let mut events = [EpollEvent::empty(); 64];
        let count = self.ready.wait(&mut events, time).unwrap_or(0);
        for event in &events[..count] {
            match (event.data() as usize).checked_sub(1) {
                None => self.accept(),
                Some(k) => self.hear(k),
            }
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, self.lines.len() as u64 + 1);
            if stream.set_nonblocking(true).is_ok() && self.ready.add(&stream, event).is_ok() {
                self.lines.push(Line::of(stream));
            }
        }
    }

    fn hear(&mut self, k: usize) {
        let line = &mut self.lines[k];
        let broken = line.broken();
        self.over |= line.has_said_farewell();
        if !broken {
            return;
        }
        let _ = self.ready.delete(&*line.stream);
        if line.place().is_some_and(|place| place[0] == 0) {
            self.first_ended = Some(Instant::now());
        }
        if self.lost.is_none() && !self.over && line.place().is_some() {
            self.lost = Some(k);
        }
    }

    /// The rank that was the first to end without a word, before any farewell, if one has, how many there are,
    /// and the number of its process.
    pub(super) fn lost(&self) -> Option<[usize; 3]> {
        self.lines[self.lost?].place()
    }

    /// How long ago rank 0 has ended, if it has.
    pub(super) fn alone(&self) -> Option<Duration> {
        self.first_ended.map(|ended| ended.elapsed())
    }

    /// Whether rank 0, which speaks for all, has ended in good order or with a message of its own.
    pub(super) fn has_spoken(&self) -> bool {
        self.lines.iter().any(|line| line.has_said_farewell() && line.place().is_some_and(|p| p[0] == 0))
    }
}

/// How long this rank may take to end where the others do not.
const GRACE: Duration = Duration::from_secs(1);

/// Waits until a line breaks without a farewell of the other end: true; false where it says farewell.
pub(super) fn breaks(mut line: impl Read) -> bool {
    let mut said = [0];
    loop {
        match line.read(&mut said) {
            Ok(1) if said[0] == FAREWELL => return false,
            Ok(1..) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return true,
        }
    }
}

/// Ends this rank, as soon as what it computes hears of it, and soon in any case.
pub(super) fn end_soon() -> ! {
    // As Ctrl-C does, so that what was computed stays.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGTERM);
    std::thread::sleep(GRACE);
    std::process::exit(1);
}

static OWN: OnceLock<UnixStream> = OnceLock::new();

/// Opens the line of this rank, where there is one.
pub(super) fn begin(rank: usize, size: usize) {
    let Ok(name) = std::env::var(LINE) else { return };
    let line = SocketAddr::from_abstract_name(name).and_then(|to| UnixStream::connect_addr(&to));
    // Ranks of other machines have none.
    let Ok(line) = line else { return };
    let _ = (&line).write_all(format!("{rank} {size} {}\n", std::process::id()).as_bytes());
    if let Ok(other) = line.try_clone() {
        std::thread::spawn(move || {
            // The program at the other end was killed, with no time to end the ranks.
            if breaks(other) {
                end_soon();
            }
        });
    }
    let _ = OWN.set(line);
}

/// What happens to this process from now on is no accident.
pub(super) fn farewell() {
    if let Some(mut line) = OWN.get() {
        let _ = line.write_all(&[FAREWELL]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(watch: &Watch, words: &str) -> UnixStream {
        let to = SocketAddr::from_abstract_name(watch.variable().1).unwrap();
        let mut line = UnixStream::connect_addr(&to).unwrap();
        line.write_all(words.as_bytes()).unwrap();
        line
    }

    fn look(watch: &mut Watch) {
        (0..6).for_each(|_| watch.look(Duration::from_millis(1)));
    }

    #[test]
    fn the_first_that_ends_without_a_word_is_known() {
        let mut watch = Watch::new().unwrap();
        let lines = [0, 1, 2, 3].map(|k| rank(&watch, &format!("{k} 4 {}\n", 100 + k)));
        look(&mut watch);
        assert!(watch.lost().is_none() && !watch.has_spoken());
        let [zero, one, mut two, three] = lines;
        // All of them end before anybody looks.
        drop(three);
        two.write_all(&[FAREWELL]).unwrap();
        [two, zero, one].into_iter().for_each(drop);
        look(&mut watch);
        assert_eq!(watch.lost(), Some([3, 4, 103]));
        assert!(!watch.has_spoken());
    }

    #[test]
    fn strangers_and_the_last_words_of_rank_0() {
        let mut watch = Watch::new().unwrap();
        drop(rank(&watch, "hello\n"));
        drop(rank(&watch, ""));
        look(&mut watch);
        assert!(watch.lost().is_none() && !watch.has_spoken());
        let other = rank(&watch, "1 2 8\n");
        drop(rank(&watch, "0 2 7\n."));
        look(&mut watch);
        assert!(watch.has_spoken());
        // Who ends after a farewell was ended.
        drop(other);
        look(&mut watch);
        assert!(watch.lost().is_none());
    }
}
