//! A frontend of its own, from the documents: ZMTP 3.0 (<https://rfc.zeromq.org/spec/23/>) over TCP, and Jupyter's
//! messages. It shares no code with the kernel, so that both would have to be wrong in the same way.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::common::Folder;

pub const KEY: &[u8] = b"a-key-of-the-tests";
/// A kernel that hangs fails its test after this long; nothing is asserted about speed.
const PATIENCE: Duration = Duration::from_secs(120);

pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_umklapp"))
}

/// One ZeroMQ connection.
struct Socket(TcpStream);

impl Socket {
    fn connect(port: u16, kind: &str) -> Socket {
        let began = Instant::now();
        let stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(e) => assert!(began.elapsed() < PATIENCE, "no kernel: {e}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut socket = Socket(stream);
        let mut greeting = [0u8; 64];
        greeting[0] = 0xff;
        greeting[9] = 0x7f;
        greeting[10] = 3;
        greeting[12..16].copy_from_slice(b"NULL");
        socket.0.write_all(&greeting).unwrap();
        let mut theirs = [0u8; 64];
        socket.0.read_exact(&mut theirs).unwrap();
        assert_eq!(
            (theirs[0], theirs[9], theirs[10], &theirs[12..17]),
            (0xff, 0x7f, 3, b"NULL\0".as_slice())
        );
        let mut ready = b"\x05READY\x0bSocket-Type".to_vec();
        ready.extend((kind.len() as u32).to_be_bytes());
        ready.extend(kind.as_bytes());
        socket.frame(4, &ready);
        let (flags, body) = socket.next_frame();
        assert!(flags & 4 == 4 && body.starts_with(b"\x05READY"));
        socket
    }

    fn frame(&mut self, flags: u8, body: &[u8]) {
        let mut bytes = Vec::with_capacity(body.len() + 9);
        match u8::try_from(body.len()) {
            Ok(short) => bytes.extend([flags, short]),
            Err(_) => {
                bytes.push(flags | 2);
                bytes.extend((body.len() as u64).to_be_bytes());
            }
        }
        bytes.extend(body);
        self.0.write_all(&bytes).unwrap();
    }

    fn next_frame(&mut self) -> (u8, Vec<u8>) {
        let mut flags = [0];
        self.0.read_exact(&mut flags).unwrap();
        let mut size = [0u8; 8];
        let from = if flags[0] & 2 == 2 { 0 } else { 7 };
        self.0.read_exact(&mut size[from..]).unwrap();
        let mut body = vec![0; usize::try_from(u64::from_be_bytes(size)).unwrap()];
        self.0.read_exact(&mut body).unwrap();
        (flags[0], body)
    }

    fn send(&mut self, frames: &[Vec<u8>]) {
        for (k, frame) in frames.iter().enumerate() {
            self.frame(u8::from(k + 1 < frames.len()), frame);
        }
    }

    fn receive(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            let (flags, body) = self.next_frame();
            if flags & 4 == 4 {
                continue;
            }
            frames.push(body);
            if flags & 1 == 0 {
                return frames;
            }
        }
    }
}

fn sign(key: &[u8], parts: &[Vec<u8>]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// A message that came: its kind, whose answer it is, what it says.
#[derive(Debug, Clone)]
struct Message {
    kind: String,
    parent: String,
    content: Value,
}

fn read(frames: &[Vec<u8>]) -> Message {
    let at = frames.iter().position(|frame| frame == b"<IDS|MSG>").unwrap();
    assert_eq!(frames[at + 1], sign(KEY, &frames[at + 2..at + 6]), "the signature of the kernel");
    let part = |k: usize| -> Value { serde_json::from_slice(&frames[at + k]).unwrap() };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let header = part(2);
    assert!(header["date"].as_str().unwrap().ends_with('Z') && header["version"] == "5.3");
    Message { kind: text(&header["msg_type"]), parent: text(&part(3)["msg_id"]), content: part(5) }
}

/// What an execution has led to.
pub struct Done {
    pub reply: Value,
    heard: Vec<(String, Value)>,
}

impl Done {
    /// All that everyone heard of this kind.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.heard.iter().filter(|(k, _)| k == kind).map(|(_, content)| content).collect()
    }

    pub fn result(&self) -> &Value {
        self.of("execute_result")
            .last()
            .copied()
            .unwrap_or_else(|| panic!("no value: {} {:?}", self.reply, self.heard))
    }

    pub fn text(&self, stream: &str) -> String {
        let streams = self.of("stream").into_iter().filter(|content| content["name"] == stream);
        streams.map(|content| content["text"].as_str().unwrap()).collect()
    }
}

/// A kernel and its frontend.
pub struct Client {
    child: Child,
    folder: Folder,
    shell: Socket,
    control: Socket,
    everyone: Socket,
    heartbeat: Socket,
    sent: u32,
    /// What everyone heard and nobody took yet.
    heard: VecDeque<Message>,
    replies: VecDeque<Message>,
}

impl Client {
    pub fn start(options: &[&str]) -> Client {
        let folder = Folder::new("kernel");
        let listeners: Vec<TcpListener> =
            (0..5).map(|_| TcpListener::bind(("127.0.0.1", 0)).unwrap()).collect();
        let ports: Vec<u16> = listeners.iter().map(|l| l.local_addr().unwrap().port()).collect();
        drop(listeners);
        let connection = json!({
            "transport": "tcp", "ip": "127.0.0.1", "signature_scheme": "hmac-sha256",
            "key": std::str::from_utf8(KEY).unwrap(),
            "shell_port": ports[0], "control_port": ports[1], "iopub_port": ports[2], "stdin_port": ports[3],
            "hb_port": ports[4],
        });
        let file = folder.join("connection.json");
        std::fs::write(&file, connection.to_string()).unwrap();
        let child = program()
            .args(options)
            .args(["jupyter", "kernel", "--connection-file"])
            .arg(&file)
            .current_dir(&folder)
            .env("XDG_CONFIG_HOME", &*folder)
            .env("XDG_STATE_HOME", &*folder)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut everyone = Socket::connect(ports[2], "SUB");
        everyone.send(&[b"\x01".to_vec()]);
        let mut client = Client {
            child,
            folder,
            shell: Socket::connect(ports[0], "DEALER"),
            control: Socket::connect(ports[1], "DEALER"),
            everyone,
            heartbeat: Socket::connect(ports[4], "REQ"),
            sent: 0,
            heard: VecDeque::new(),
            replies: VecDeque::new(),
        };
        // A subscription takes its time; what was said before is not heard.
        client.everyone.0.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < PATIENCE, "nothing is heard");
            client.ask_without_hearing("kernel_info_request");
            let mut first = [0];
            if client.everyone.0.peek(&mut first).is_ok() {
                break;
            }
        }
        client.everyone.0.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn message(&mut self, key: &[u8], kind: &str, content: &Value) -> (String, Vec<Vec<u8>>) {
        self.sent += 1;
        let id = format!("message-{}", self.sent);
        let header = json!({ "msg_id": id, "session": "tests", "username": "tests", "date": "2026-01-01T00:00:00Z",
            "msg_type": kind, "version": "5.3" });
        let parts = [header, json!({}), json!({}), content.clone()].map(|part| part.to_string().into_bytes());
        let mut frames = vec![b"<IDS|MSG>".to_vec(), sign(key, &parts)];
        frames.extend(parts);
        (id, frames)
    }

    pub fn send_with_key(&mut self, key: &[u8], kind: &str, content: Value) -> String {
        let (id, frames) = self.message(key, kind, &content);
        self.shell.send(&frames);
        id
    }

    fn ask_without_hearing(&mut self, kind: &str) {
        let id = self.send_with_key(KEY, kind, json!({}));
        self.reply(&id);
    }

    fn reply(&mut self, id: &str) -> Message {
        loop {
            if let Some(at) = self.replies.iter().position(|m| m.parent == id) {
                return self.replies.remove(at).unwrap();
            }
            let message = read(&self.shell.receive());
            self.replies.push_back(message);
        }
    }

    /// Asks and gives the reply, which has to be of the same kind.
    pub fn ask(&mut self, kind: &str, content: Value) -> Value {
        let id = self.send_with_key(KEY, kind, content);
        let reply = self.reply(&id);
        assert_eq!(reply.kind, kind.replace("_request", "_reply"));
        reply.content
    }

    /// Asks on the socket that is heard while a cell runs.
    pub fn control(&mut self, kind: &str, content: Value) -> Value {
        let (id, frames) = self.message(KEY, kind, &content);
        self.control.send(&frames);
        let reply = read(&self.control.receive());
        assert_eq!((reply.parent, reply.kind), (id, kind.replace("_request", "_reply")));
        reply.content
    }

    pub fn send_cell(&mut self, code: &str, more: Value) -> String {
        let mut content = json!({ "code": code, "silent": false, "store_history": true, "user_expressions": {},
            "allow_stdin": false, "stop_on_error": true });
        for (key, value) in more.as_object().unwrap() {
            content[key] = value.clone();
        }
        self.send_with_key(KEY, "execute_request", content)
    }

    /// Everything of a request: its reply, and what everyone heard until the kernel was idle again.
    pub fn collect(&mut self, id: &str) -> Done {
        let reply = self.reply(id);
        assert_eq!(reply.kind, "execute_reply");
        let mut own = Vec::new();
        let mut others = VecDeque::new();
        loop {
            let message = match self.heard.pop_front() {
                Some(message) => message,
                None => read(&self.everyone.receive()),
            };
            if message.parent != id {
                others.push_back(message);
                continue;
            }
            let idle = message.content["execution_state"] == "idle";
            own.push((message.kind, message.content));
            if idle {
                break;
            }
        }
        others.append(&mut self.heard);
        self.heard = others;
        assert_eq!(own[0].1["execution_state"], "busy");
        Done { reply: reply.content, heard: own }
    }

    pub fn execute(&mut self, code: &str) -> Done {
        self.execute_with(code, json!({}))
    }

    pub fn execute_with(&mut self, code: &str, more: Value) -> Done {
        let id = self.send_cell(code, more);
        self.collect(&id)
    }

    /// Waits until a cell has printed a text.
    pub fn wait_for_text(&mut self, id: &str, text: &str) {
        loop {
            let message = read(&self.everyone.receive());
            let there =
                message.parent == id && message.content["text"].as_str().is_some_and(|t| t.contains(text));
            let ended = message.parent == id && message.content["execution_state"] == "idle";
            self.heard.push_back(message);
            if there {
                return;
            }
            assert!(!ended, "it ended without saying so: {:?}", self.heard);
        }
    }

    #[cfg(unix)]
    pub fn signal(&self, signal: i32) {
        // SAFETY: sends a signal to the child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(i32::try_from(self.child.id()).unwrap(), signal) }, 0);
    }

    /// The heart beats.
    pub fn beats(&mut self) {
        for beat in [b"ping".to_vec(), vec![7; 1000]] {
            self.heartbeat.send(&[Vec::new(), beat.clone()]);
            assert_eq!(self.heartbeat.receive(), [Vec::new(), beat]);
        }
    }

    /// Shuts the kernel down.
    pub fn leave(mut self) {
        assert_eq!(self.control("shutdown_request", json!({ "restart": false }))["status"], "ok");
        self.ends(0);
    }

    /// Waits for the end.
    pub fn ends(mut self, code: i32) {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert_eq!(status.code(), Some(code));
                return;
            }
            assert!(began.elapsed() < PATIENCE, "the kernel does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Of a test that failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
