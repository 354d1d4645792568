//! The interactive session, talked to through a pseudo-terminal, and read from a pipe.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::common::Folder;

/// A session that hangs fails its test after this long; nothing is asserted about speed.
const PATIENCE: Duration = Duration::from_secs(120);

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_umklapp"));
    command
        .args(["--threads", "1"])
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder)
        .env("XDG_CONFIG_HOME", folder)
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    command
}

/// A session at a terminal.
struct Terminal {
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    child: Child,
    raw: Vec<u8>,
    /// What has been matched already, in characters of the text without colours.
    matched: usize,
}

impl Terminal {
    fn open(folder: &Path, settings: &[(&str, &str)]) -> Terminal {
        let (mut master, mut slave) = (0, 0);
        let size = libc::winsize { ws_row: 40, ws_col: 110, ws_xpixel: 0, ws_ypixel: 0 };
        let none = std::ptr::null_mut();
        let opened = unsafe { libc::openpty(&mut master, &mut slave, none, std::ptr::null_mut(), &size) };
        assert_eq!(opened, 0, "no pseudo-terminal");
        let (master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        let mut command = program(folder);
        command.envs(settings.iter().copied());
        command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        unsafe {
            command.pre_exec(|| {
                // The terminal becomes the session's own, so that Ctrl-C reaches it.
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY as _, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        // The parent's copies of the terminal go away, so that its end is seen.
        drop(command);
        let mut reader = master.try_clone().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut terminal = Terminal { keyboard: master, screen, child, raw: Vec::new(), matched: 0 };
        terminal.expect("Ctrl-D leaves");
        terminal.expect("> ");
        terminal
    }

    fn text(&self) -> String {
        console::strip_ansi_codes(&String::from_utf8_lossy(&self.raw)).replace('\r', "")
    }

    /// Waits until the text appears behind what was matched before.
    fn expect(&mut self, wanted: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            let rest = text.get(self.matched..).unwrap_or_default();
            if let Some(at) = rest.find(wanted) {
                self.matched += at + wanted.len();
                return;
            }
            match self.screen.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.raw.extend(bytes),
                Err(e) => panic!("`{wanted}` did not come ({e}); since then:\n{rest}\nin all:\n{text}"),
            }
        }
    }

    fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line, and waits for what it prints.
    fn line(&mut self, line: &str, answer: &str) {
        self.keys(&format!("{line}\r"));
        self.expect(&format!("\n{answer}"));
    }

    /// Leaves, and waits for the end.
    fn leave(mut self) {
        self.keys("exit\r");
        self.ends();
    }

    fn ends(&mut self) {
        self.ends_with(0);
    }

    fn ends_with(&mut self, code: i32) {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert_eq!(status.code(), Some(code));
                return;
            }
            assert!(Instant::now() < until, "the session does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pipe(folder: &Path, input: &str) -> Output {
    let mut child =
        program(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn values_are_shown_and_kept() {
    let folder = Folder::new("values");
    let mut t = Terminal::open(&folder, &[]);
    assert!(t.text().contains("cpu: 1 thread, "), "{}", t.text());
    t.line("let x = 1 + 1", "x = 2\n");
    t.line("x * 21", "42\n");
    t.line("ans + 1", "43\n");
    t.line("let quiet = 17;", "> ");
    t.line("quiet", "17\n");
    t.line("x += 5", "x = 7\n");
    t.line("let t = table(#{ a: [1, 2] })", "t = Table of 2 rows: a\n");
    t.line("\"text\"", "\"text\"\n");
    t.line("fn half(x) { x / 2 }", "> ");
    t.line("let both = [|x| x, Fn(\"half\")]", "both = [function, function half]\n");
    t.line("whos", "  ans ");
    t.expect("quiet  int     17\n");
    t.leave();
}

#[test]
fn input_goes_on_until_it_is_complete() {
    let folder = Folder::new("lines");
    let mut t = Terminal::open(&folder, &[]);
    t.keys("fn twice(y) {\r");
    t.keys("2 * y\r");
    t.keys("}\r");
    t.line("twice(21)", "42\n");
    t.keys("let m = matrix([[1, 2],\r");
    t.keys("[3, 4]])\r");
    t.expect("m = Matrix 2 x 2, real\n  1.0  2.0\n  3.0  4.0\n");
    t.leave();
}

#[test]
fn help_is_at_hand() {
    let folder = Folder::new("help");
    let mut t = Terminal::open(&folder, &[]);
    t.line("?linspace", "linspace(a, b, n: int) -> Series\n");
    t.expect("Example\n");
    t.line("help(kpm::dos)", "kpm::dos(");
    t.expect("Options\n");
    t.line("help()", "  ?name, help(name)");
    t.expect("Modules\n");
    t.line("help(for)", "for\n");
    t.expect("counts 0, 1, 2");
    t.line("?%timeit", "  %timeit EXPR ");
    t.line("help(\"total spin\")", "  DmrgState.total_spin");
    t.line(":help", "error: syntax error: unexpected ':'\n");
    t.expect("commands of the session begin with `%`");
    t.line("history", "error: no variable `history`\n");
    t.expect("`%help` lists them");
    t.line("_", "error: syntax error: unexpected '_'\n");
    t.expect("in the session `ans` is the last value");
    t.line("lookfor trapezoidal", "  Series.integrate");
    t.line("lookfor VUMPS", "  dmrg::uniform");
    t.line("lookfor iTEBD", "time evolution of infinite chains (iTEBD) is not implemented");
    t.line("?linspce", "error: nothing is called `linspce`; did you mean `linspace`?");
    t.line("fn f(x) { x }", "> ");
    t.line("?f", "f(x)\n");
    // A comment that is typed line by line belongs to the function that follows.
    for line in ["/// Twice its argument.", "///", "/// Of any number.", "fn twice(y) {", "2 * y", "}"] {
        t.keys(&format!("{line}\r"));
    }
    t.line("?twice", "twice(y)\n");
    t.expect("Twice its argument.");
    t.expect("Of any number.");
    t.leave();
}

#[test]
fn errors_point_and_the_session_goes_on() {
    let folder = Folder::new("errors");
    let mut t = Terminal::open(&folder, &[]);
    t.line("linspce(0, 1, 2)", "error: no function `linspce(int, int, int)`\n");
    t.expect("1 | linspce(0, 1, 2)\n");
    t.expect("  | ^^^^^^^\n");
    t.expect("hint: did you mean `linspace(a, b, n: int) -> Series`?");
    t.line("let a = series([1, 2])[5]", "error: index 5 is outside a series of 2 elements\n");
    t.line("%foo", "error: no command `%foo`");
    t.line("1 +* 2", "error: ");
    t.line("n = 3", "error: no variable `n`\n");
    t.expect("hint: `let n = ..` makes a variable");
    t.line("lattice.square(3, 3)", "error: no variable `lattice`\n");
    t.expect("hint: `lattice` is a module: its functions are called as `lattice::function(..)`");
    t.line("range(3)", "error: no function `range(int)`\n");
    t.expect("hint: `for i in 0..3` counts 0, 1, 2");
    t.line("print(1, 2)", "error: no function `print(int, int)`\n");
    t.expect("hint: it takes one value");
    t.line("3^2", "warning: `^` is the exclusive or of bits\n");
    // A function of an earlier input is shown as it was typed there.
    t.line("fn half(v) { v.no_such_method() }", "> ");
    t.line("let b = 1; let c = half(b);", "error: no function `no_such_method(int)`\n");
    t.expect("an earlier input:1");
    t.expect("1 | fn half(v) { v.no_such_method() }\n");
    t.expect("in `half`, called at line 1\n");
    t.line("1 + 2", "3\n");
    t.leave();
}

#[test]
fn tab_completes() {
    let folder = Folder::new("tab");
    std::fs::write(folder.join("measured.csv"), "x\n1.0\n").unwrap();
    let mut t = Terminal::open(&folder, &[]);
    t.keys("linsp\t0, 1, 3)\r");
    t.expect("\nSeries of 3: 0.0, 0.5, 1.0\n");
    t.keys("lattice::honey\t2, 2).sites\r");
    t.expect("\n8\n");
    t.keys("let t = load(\"meas\t\")\r");
    t.expect("\nt = Table of 1 row: x\n");
    t.keys("kpm::dos(h, #{ mome\t");
    t.expect("kpm::dos(h, #{ moments: ");
    // Ctrl-C clears the line, Ctrl-D leaves; either is a key only while the prompt stands.
    t.keys("\x03");
    t.expect("\n> ");
    t.line("1 + 1", "2\n");
    t.expect("> ");
    t.keys("\x04");
    t.ends();
}

#[test]
fn ctrl_c_stops_work_and_keeps_the_variables() {
    let folder = Folder::new("interrupt");
    let mut t = Terminal::open(&folder, &[]);
    t.line("let kept = 17;", "> ");
    t.line("let h = tight_binding(lattice::cubic(32, 32, 32));", "> ");
    for work in
        ["loop { }", "kpm::moments(h, #{ moments: 100000000 })", "spectral_window(h); loop { kept += 0 }"]
    {
        // The screen shows what is typed, so the sign that work began must read otherwise.
        t.keys(&format!("let during = 1; print(\"be\" + \"gun\"); {work}\r"));
        t.expect("\nbegun\n");
        t.keys("\x03");
        t.expect("\ninterrupted\n");
        t.line("kept", "17\n");
    }
    t.line("during", "1\n");
    t.leave();
}

#[test]
fn a_signal_to_end_ends_the_session_at_the_prompt() {
    let folder = Folder::new("term");
    let mut t = Terminal::open(&folder, &[]);
    let settings = |t: &Terminal| {
        let mut settings = unsafe { std::mem::zeroed::<libc::termios>() };
        let got = unsafe { libc::tcgetattr(std::os::fd::AsRawFd::as_raw_fd(&t.keyboard), &mut settings) };
        assert_eq!(got, 0, "no terminal settings");
        settings.c_lflag & (libc::ICANON | libc::ECHO)
    };
    t.line("let x = 1", "x = 1\n");
    t.keys("let half_a_line");
    t.expect("let half_a_line");
    // On a busy machine the keys may be echoed before the editor takes the terminal.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while settings(&t) != 0 && std::time::Instant::now() < patience {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(settings(&t), 0, "the editor reads single keys");
    assert_eq!(unsafe { libc::kill(t.child.id() as i32, libc::SIGTERM) }, 0);
    t.ends_with(143);
    assert_eq!(settings(&t), libc::ICANON | libc::ECHO, "the terminal is as it was");
}

#[test]
fn a_session_becomes_a_script() {
    let folder = Folder::new("save");
    let mut t = Terminal::open(&folder, &[]);
    t.line("let x = 20", "x = 20\n");
    t.line("x + 1", "21\n");
    t.line("nonsense", "error: no variable `nonsense`");
    t.line("fn f(y) { 2 * y }", "> ");
    t.line("f(ans)", "42\n");
    t.line("%save session.rhai", "4 inputs in `session.rhai`\n");
    t.line("%run session.rhai", "21\n42\n");
    t.line("%time f(4)", "8\ntime: ");
    t.line("%timeit f(4)", "");
    t.expect(" a loop (best ");
    t.line("%backend", "cpu: 1 thread");
    t.leave();
    let run = Command::new(env!("CARGO_BIN_EXE_umklapp"))
        .arg("run")
        .arg(folder.join("session.rhai"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stdout), "21\n42\n");
}

/// A block that the terminal marks as pasted.
fn pasted(text: &str) -> String {
    format!("\x1b[200~{text}\x1b[201~\r")
}

#[test]
fn blocks_are_pasted() {
    let folder = Folder::new("paste");
    let mut t = Terminal::open(&folder, &[]);
    t.keys(&pasted("let a = 5\nfn f(x) {\n    x + a_b\n}\n\na * 3"));
    t.expect("\na = 5\n15\n");
    // An error points into the block.
    t.keys(&pasted("let b = 6\nlet c = nowhere"));
    t.expect("error: no variable `nowhere`");
    t.expect("2 | let c = nowhere");
    t.line("b", "6\n");
    // Nothing of a block with a mistake runs.
    t.keys(&pasted("let d = 7\nlet = 8"));
    t.expect("2 | let = 8");
    t.line("d", "error: no variable `d`");
    t.keys(&pasted("> let e = 1 + 1\ne = 2\n> e * 4\n8"));
    t.expect("\ne = 2\n8\n");
    t.leave();
}

#[test]
fn lines_within_brackets_are_indented() {
    let folder = Folder::new("indent");
    let mut t = Terminal::open(&folder, &[]);
    t.keys("let t = `a {\rb`\r");
    t.expect("t = \"a {\\nb\"\n");
    // What is typed before the prompt is there comes as a terminal passes on whole lines, which are not indented.
    t.expect("> ");
    t.keys("fn f(x) {\rlet y = `{\r`;\rif x {\r1\r}\r}\r");
    t.line("f(true)", "1\n");
    t.line("??f", "fn f(x) {\n    let y = `{\n`;\n    if x {\n        1\n");
    t.leave();
}

#[test]
fn the_session_has_its_commands() {
    let folder = Folder::new("commands");
    std::fs::write(folder.join("note.txt"), "from a file\n").unwrap();
    let mut t = Terminal::open(&folder, &[("EDITOR", "sed -i s/20/21/")]);
    t.line("let x = 20", "x = 20\n");
    t.line("x + 1", "21\n");
    t.line("x * 2", "40\n");
    t.line("Out[2] + Out[3]", "61\n");
    t.line("!cat note.txt", "from a file\n");
    t.line("!false", "error: `false` ended with");
    t.line("let ready = true", "ready = true\n");
    t.line("!ready", "false\n");
    t.line("%history 2", "  5  let ready = true\n  6  !ready\n");
    t.line("fn half(v) { v / 2 }", "> ");
    t.line("??half", "fn half(v) { v / 2 }\n");
    t.line("??kpm::dos", "/// ");
    t.expect("fn dos(");
    t.line("??linspace", "error: `linspace` is compiled, not written in the language\n");
    t.line("let big = linspace(0.0, 1.0, 4096);", "> ");
    t.line("whos", "  ");
    t.expect("32.8 kB");
    t.line("let y = 20", "y = 20\n");
    t.line("%edit", "let y = 21\ny = 21\n");
    t.line("%store kept", "5 variables in `kept`\n");
    t.line("%reset", "> ");
    t.line("x", "error: no variable `x`");
    t.line("%restore kept", "5 variables: ans, big, ready, x, y");
    t.line("x + y + big.len", "4137\n");
    // A second value takes the place of the first one, whatever its type; what is gone stays gone, and a file of
    // somebody else is no variable.
    t.line("%reset", "> ");
    t.line("let x = series([1.0, 2.0]);", "> ");
    t.line("let big = 7;", "> ");
    std::fs::write(folder.join("kept/other.npz"), "of somebody else").unwrap();
    t.line("%store kept", "2 variables in `kept`\n");
    assert!(folder.join("kept/x.npz").exists() && !folder.join("kept/big.npz").exists());
    assert!(folder.join("kept/other.npz").exists());
    t.line("%reset", "> ");
    t.line("%restore kept", "2 variables: big, x");
    t.line("[big, x.len]", "[7, 2]\n");
    t.line("%cd ..", "/");
    t.line("%restore kept", "error: ");
    t.leave();
}

#[test]
fn an_edited_module_is_read_again() {
    let folder = Folder::new("module");
    folder.file("inner.rhai", "fn size() { 10 }\n");
    folder.file("mine.rhai", "import \"inner\" as inner;\nfn f() { inner::size() + 1 }\n");
    let mut t = Terminal::open(&folder, &[]);
    t.line("import \"mine\" as mine;", "> ");
    t.line("mine::f()", "11\n");
    // The module that is named and one that it imports.
    folder.file("inner.rhai", "fn size() { 2000 }\n");
    t.line("mine::f()", "2001\n");
    folder.file("mine.rhai", "import \"inner\" as inner;\nfn f() { inner::size() + 22 }\n");
    t.line("mine::f()", "2022\n");
    // A file that is gone leaves what was in it.
    std::fs::remove_file(folder.join("inner.rhai")).unwrap();
    t.line("mine::f()", "2022\n");
    t.leave();
}

#[test]
fn a_session_begins_with_the_users_own_script() {
    let folder = Folder::new("startup");
    std::fs::create_dir_all(folder.join("umklapp")).unwrap();
    let own = folder.join("umklapp/startup.rhai");
    std::fs::write(&own, "let t_graphene = -2.7;\nfn twice(x) { 2 * x }\n").unwrap();
    let mut t = Terminal::open(&folder, &[]);
    t.line("twice(t_graphene)", "-5.4\n");
    t.leave();
    std::fs::write(&own, "let = 3;").unwrap();
    let mut t = Terminal::open(&folder, &[]);
    assert!(t.text().contains("startup.rhai:1"), "{}", t.text());
    t.line("1 + 1", "2\n");
    t.leave();
    assert_eq!(pipe(&folder, "1\n").stdout, b"1\n", "a pipe has no start-up script");
}

#[test]
fn inputs_are_remembered() {
    let folder = Folder::new("history");
    let mut t = Terminal::open(&folder, &[]);
    t.line("6 * 7", "42\n");
    t.leave();
    let mut t = Terminal::open(&folder, &[]);
    // The arrow up brings `exit` back, and then what was before it.
    t.keys("\x1b[A\x1b[A\r");
    t.expect("\n42\n");
    t.leave();
    // A place that cannot be written is a note, no more.
    let blocked = folder.join("file");
    std::fs::write(&blocked, "").unwrap();
    let mut t = Terminal::open(&folder, &[("XDG_STATE_HOME", blocked.to_str().unwrap())]);
    assert!(t.text().contains("note: inputs are not remembered"), "{}", t.text());
    t.line("6 * 7", "42\n");
    t.leave();
}

#[test]
fn no_colours_where_none_are_wanted() {
    let folder = Folder::new("colours");
    let typed = |settings: &[(&str, &str)]| {
        let mut t = Terminal::open(&folder, settings);
        t.line("let x = 12", "x = 12\n");
        let raw = String::from_utf8_lossy(&t.raw).into_owned();
        t.leave();
        raw.contains("\x1b[35m")
    };
    assert!(typed(&[]));
    assert!(!typed(&[("NO_COLOR", "1")]));
}

#[test]
fn a_pipe_is_read_statement_by_statement() {
    let folder = Folder::new("pipe");
    let done = pipe(&folder, "let x = 3\nfn f(a) {\n  a * 2\n}\nf(x)\nprint(\"a\");\n?no_such_thing_at_all");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "x = 3\n6\na\n");
    assert_eq!(done.status.code(), Some(1));
    let failed = pipe(&folder, "1\n\n\nf(2)\n5\n");
    assert_eq!(String::from_utf8_lossy(&failed.stdout), "1\n");
    assert!(String::from_utf8_lossy(&failed.stderr).contains("4 | f(2)"), "the line of the whole input");
    assert_eq!(failed.status.code(), Some(1));
    let earlier = pipe(&folder, "fn f(a) {\n  a.nothing()\n}\n2\nf(3)\n");
    let text = String::from_utf8_lossy(&earlier.stderr).into_owned();
    assert!(text.contains("2 |   a.nothing()") && text.contains("called at line 5"), "{text}");
    let open = pipe(&folder, "let x = [1,\n");
    assert_eq!(open.status.code(), Some(1));
    assert_eq!(pipe(&folder, "2\nexit\n3\n").stdout, b"2\n");
    assert_eq!(pipe(&folder, "").status.code(), Some(0));
}
