//! What an input asks for: help, a command, the shell, or to run a piece of script.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rhai::Dynamic;

use super::input::{self, Input};
use super::magic::LIST;
use super::paste;
use super::session::{AfterInput, ReplSession};
use crate::confine;
use crate::error::Error;
use crate::number::memory::human;
use crate::ranks;
use crate::script::lex;
use crate::script::{api, examples, manual, search, stdlib};

impl ReplSession {
    /// Takes what was typed or pasted: one input, or several in turn until one fails.
    pub fn take_block(&mut self, text: &str) -> AfterInput {
        let plain = paste::without_prompts(&self.parser, text);
        let inputs: Vec<(usize, String)> = paste::inputs(&self.parser, &plain)
            .into_iter()
            .map(|(line, piece)| (line, piece.to_string()))
            .collect();
        for (line, piece) in inputs {
            match self.take(&piece, line + 1) {
                AfterInput::Next => {}
                step => return step,
            }
        }
        AfterInput::Next
    }

    /// Takes one input; `first` is the number of its first line among all inputs.
    pub fn take(&mut self, line: &str, first: usize) -> AfterInput {
        match input::read(line) {
            Input::Nothing => AfterInput::Next,
            Input::Leave => AfterInput::Leave(0),
            Input::Help(name) => self.help(name),
            Input::Source(name) => self.source(name),
            Input::Search(word) => self.search(word),
            Input::Variables => self.variables(),
            // Variables and functions of these names are the user's.
            Input::Examples(_) | Input::Tour(_) if self.is_own(first_word(line.trim())) => {
                self.script(line, first)
            }
            Input::Examples(question) => self.examples(question),
            Input::Tour(step) => self.tour(step),
            Input::Magic(name, rest) => self.magic(line, name, rest),
            // `!ready` asks whether a variable is false.
            Input::Shell(command) if self.engine.scope().contains(first_word(command)) => {
                self.script(line, first)
            }
            Input::Shell(command) => self.shell(command),
            Input::Script(text) => self.script(text, first),
        }
    }

    /// Runs a command of the system.
    fn shell(&self, command: &str) -> AfterInput {
        if command.is_empty() {
            return self.fail(&Error::input("no command follows `!`").hint("like `!ls`"));
        }
        if confine::active() {
            return self.fail(&Error::input("`--confine` allows no system commands"));
        }
        let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        // Of several ranks one runs it for all.
        let mut process = Command::new(shell);
        process.args([flag, command]);
        let ended = ranks::once(|| match self.carried_out(process) {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Error::file(format!("`{command}` ended with {status}"))),
            Err(e) => Err(Error::file(format!("`{shell}` cannot be run: {e}"))),
        });
        // Ctrl-C was for the command.
        self.engine.session().interrupt().clear();
        ended.map_or_else(|e| self.fail(&e), |()| AfterInput::Next)
    }

    /// Runs a command to its end: at a terminal it has the terminal, in a notebook its lines are shown as they come,
    /// and an interruption ends it.
    fn carried_out(&self, mut process: Command) -> std::io::Result<ExitStatus> {
        if self.front.is_none() {
            return process.status();
        }
        let interrupt = self.engine.session().interrupt();
        interrupt.clear();
        process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        let mut child = process.spawn()?;
        let (sender, lines) = channel();
        let readers: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        ];
        for pipe in readers.into_iter().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                    // Nobody listens after an interruption.
                    let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
                }
            });
        }
        drop(sender);
        loop {
            match lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) => self.say(&line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return child.wait(),
            }
            if interrupt.raised() {
                end_all(&mut child);
                return child.wait();
            }
        }
    }

    /// The text of a function of the stdlib or of the user.
    pub fn written(&self, name: &str) -> Option<String> {
        let (module, function) = name.rsplit_once("::").unwrap_or(("", name));
        let own =
            self.texts().filter_map(|text| written(text, function)).last().filter(|_| module.is_empty());
        own.or_else(|| stdlib::texts(module).find_map(|text| written(text, function)))
    }

    /// How a function is written: one of the stdlib, or of the user.
    fn source(&self, name: &str) -> AfterInput {
        if let Some(text) = self.written(name) {
            self.say(&text);
            return AfterInput::Next;
        }
        let known = self.names.borrow().entries.iter().any(|e| e.path() == name);
        if known {
            return self.fail(
                &Error::input(format!("`{name}` is compiled, not written in the language"))
                    .hint(format!("`?{name}` is its page")),
            );
        }
        self.fail(&Error::input(manual::no_page(&self.names.borrow().entries, name)))
    }

    /// The user's variables, in order of their names; of a name that was defined twice the last, which scripts see.
    pub fn own_variables(&self) -> Vec<(String, Dynamic)> {
        let mut seen = BTreeSet::new();
        let all: Vec<(&str, bool, Dynamic)> = self.engine.scope().iter().collect();
        let mut own: Vec<(String, Dynamic)> = all
            .into_iter()
            .rev()
            .filter(|(name, constant, _)| {
                let given = matches!(*name, "I" | "Out") || (matches!(*name, "args" | "PI") && *constant);
                !given && seen.insert(name.to_string())
            })
            .map(|(name, _, value)| (name.to_string(), value))
            .collect();
        own.sort_by(|a, b| a.0.cmp(&b.0));
        own
    }

    /// The page of a function, a module or a type; of a variable its value in short, and the page of its type.
    pub fn page(&self, name: &str) -> Option<String> {
        let style = self.style();
        let names = self.names.borrow();
        if let Some(page) = manual::page(&names.entries, name, style) {
            return Some(page);
        }
        let value = self.engine.scope().get(name)?;
        let page = manual::page(&names.entries, &self.engine.type_of(value), style);
        let value = format!("{name} = {}", self.brief(value));
        Some(page.map_or(value.clone(), |page| format!("{value}\n\n{page}")))
    }

    pub fn help(&self, name: &str) -> AfterInput {
        let names = self.names.borrow();
        if name.is_empty() {
            self.say(&format!("{}\n\n{}", LIST, manual::overview(&names.entries, self.style())));
            return AfterInput::Next;
        }
        if name.starts_with(['%', '!']) {
            let about: Vec<&str> = LIST.lines().filter(|line| line.contains(name)).collect();
            self.say(&if about.is_empty() { LIST.to_string() } else { about.join("\n") });
            return AfterInput::Next;
        }
        match self.page(name).or_else(|| search::answer(&names.entries, name, self.style())) {
            Some(page) => {
                self.say(&page);
                AfterInput::Next
            }
            None => self.fail(&Error::input(manual::no_page(&names.entries, name))),
        }
    }

    fn search(&self, word: &str) -> AfterInput {
        match search::answer(&self.names.borrow().entries, word, self.style()) {
            Some(found) => self.say(&found),
            None => return self.fail(&Error::input(format!("no text mentions `{word}`"))),
        }
        AfterInput::Next
    }

    /// Whether the user has a variable or a function of this name.
    fn is_own(&self, name: &str) -> bool {
        self.engine.scope().contains(name) || self.engine.functions().any(|f| f.name == name)
    }

    /// Scripts that answer a question, or the text of the one that is named.
    fn examples(&self, question: &str) -> AfterInput {
        if let Some((path, text)) = examples::script(question) {
            self.say(&format!("// {path}\n{}", text.trim_end()));
            return AfterInput::Next;
        }
        match examples::search(question, self.style()) {
            Some(found) => {
                self.say(&format!("{found}\n\n`examples(\"name\")` shows one of them"));
                AfterInput::Next
            }
            None => self.fail(
                &Error::input(format!("no example is about `{question}`"))
                    .hint("`examples()` lists all, `lookfor word` searches the functions"),
            ),
        }
    }

    fn variables(&self) -> AfterInput {
        let rows: Vec<[String; 4]> = self
            .own_variables()
            .into_iter()
            .map(|(name, value)| {
                let text = self.brief(&value);
                let first = text.lines().next().unwrap_or_default().to_string();
                // What takes little is not worth a number.
                let bytes = api::bytes_of(&value).filter(|bytes| *bytes >= 1024);
                let bytes = bytes.map_or(String::new(), human);
                [name, self.engine.type_of(&value), bytes, first]
            })
            .collect();
        let wide = |k: usize| rows.iter().map(|row| row[k].chars().count()).max().unwrap_or(0);
        let (names, kinds, sizes) = (wide(0), wide(1), wide(2));
        let room = self.style().width.saturating_sub(names + kinds + sizes + 8).max(20);
        let lines: Vec<String> = rows
            .iter()
            .map(|[name, kind, size, text]| {
                let text: String = text.chars().take(room).collect();
                let size = if sizes == 0 { String::new() } else { format!("{size:>sizes$}  ") };
                format!("  {name:names$}  {kind:kinds$}  {size}{text}")
            })
            .collect();
        self.say(&if lines.is_empty() { "no variables".to_string() } else { lines.join("\n") });
        AfterInput::Next
    }
}

/// Ends a command with all that it has started.
fn end_all(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(group) = i32::try_from(child.id()) {
        let group = nix::unistd::Pid::from_raw(group);
        // It may have ended by itself.
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGTERM);
    }
    let _ = child.kill();
}

/// The name that a text begins with; empty for anything else.
fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// The definitions of a function in a text, with the comments above them.
fn written(text: &str, name: &str) -> Option<String> {
    let found: Vec<&str> = lex::definitions(text, name).into_iter().map(|bytes| &text[bytes]).collect();
    (!found.is_empty()).then(|| found.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_with_their_comments() {
        let text = "let x = 1;\n/// Doubles.\nfn f(x) { 2 * x }\nfn g(x) { f(x); { x } }\nprivate fn f(x, y) {\n  \
             x\n}\n";
        let f = written(text, "f").unwrap();
        assert_eq!(f, "/// Doubles.\nfn f(x) { 2 * x }\n\nprivate fn f(x, y) {\n  x\n}");
        assert_eq!(written(text, "g").unwrap(), "fn g(x) { f(x); { x } }");
        assert_eq!(written(text, "x"), None);
    }

    #[test]
    fn every_function_of_the_stdlib_shows_its_source() {
        // Of the first file of a module, and of others.
        for (module, name) in
            [("kpm", "conductivity"), ("kpm", "dos"), ("dmrg", "finite"), ("dmrg", "thermal")]
        {
            let text = stdlib::texts(module).find_map(|text| written(text, name)).unwrap();
            let head = format!("\nfn {name}(");
            assert!(text.starts_with("///") && text.ends_with('}') && text.contains(&head), "{text}");
        }
        for nothing in ["nothing", "", "internal"] {
            assert!(stdlib::texts(nothing).next().is_none(), "{nothing}");
        }
    }
}
