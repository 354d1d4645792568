//! The five sockets, on a thread of their own.

use std::sync::mpsc::Sender as Asked;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep, timeout_at};
use zeromq::{
    PubSocket, RepSocket, RouterRecvHalf, RouterSendHalf, RouterSocket, Socket, SocketRecv, SocketSend,
    ZmqMessage,
};

use super::about;
use super::connection::Connection;
use super::message::{FrontendRequest, Wire};
use super::no_thread;
use crate::error::{Error, Result};
use crate::output::files;
use crate::task::Interrupt;

/// How long what is printed may wait for more, so that many short lines are one message.
const PAUSE: Duration = Duration::from_millis(50);
/// How much of it waits.
const MOST: usize = 1 << 16;
/// How many messages may wait before a cell waits for the network.
const ROOM: usize = 256;
/// How long a cell may take to stop when the kernel is shut down.
const GRACE: Duration = Duration::from_secs(2);

/// What the kernel's thread is to do.
pub(super) enum KernelTask {
    Answer(FrontendRequest),
    /// The kernel is shut down.
    Leave,
}

/// Who hears a message.
#[derive(Debug, Clone)]
pub(super) enum To {
    Shell(Vec<Bytes>),
    Control(Vec<Bytes>),
    Everyone,
}

/// What leaves the kernel.
pub(super) enum OutgoingMessage {
    Message {
        to: To,
        kind: &'static str,
        parent: Arc<Value>,
        content: Value,
    },
    /// Printed text, which is joined with what follows.
    Stream {
        name: &'static str,
        parent: Arc<Value>,
        text: String,
    },
    /// Everything before has left; the receiver is told.
    End(mpsc::Sender<()>),
}

/// Sends messages from any thread but that of the sockets.
#[derive(Clone)]
pub(super) struct MessageSender(Sender<OutgoingMessage>);

impl MessageSender {
    pub fn say(&self, said: OutgoingMessage) {
        // Without sockets nobody listens.
        let _ = self.0.blocking_send(said);
    }

    pub fn message(&self, to: To, kind: &'static str, parent: &Arc<Value>, content: Value) {
        self.say(OutgoingMessage::Message { to, kind, parent: parent.clone(), content });
    }
}

pub(super) struct Sockets {
    voice: MessageSender,
}

impl Sockets {
    pub fn voice(&self) -> MessageSender {
        self.voice.clone()
    }

    /// Waits until all has left.
    pub fn close(self) {
        let (ended, heard) = mpsc::channel();
        self.voice.say(OutgoingMessage::End(ended));
        let _ = heard.recv_timeout(GRACE);
    }
}

/// Opens the sockets of a connection. Requests go to `asked`, but for those that come while a cell runs: interruptions
/// raise the flag.
pub(super) fn open(
    connection: &Connection,
    interrupt: Interrupt,
    asked: Asked<KernelTask>,
) -> Result<Sockets> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
    let wire = Arc::new(Wire::new(&connection.key)?);
    let bound = runtime.block_on(bind(connection))?;
    let (sender, said) = channel(ROOM);
    let control =
        ControlRequest { wire: wire.clone(), voice: sender.clone(), interrupt, asked: asked.clone() };
    let serve = move || serve(&runtime, bound, wire, said, asked, control);
    std::thread::Builder::new().name("jupyter".into()).spawn(serve).map_err(no_thread)?;
    Ok(Sockets { voice: MessageSender(sender) })
}

struct BoundSockets {
    shell: RouterSocket,
    control: RouterSocket,
    stdin: RouterSocket,
    iopub: PubSocket,
    heartbeat: RepSocket,
}

async fn bind(connection: &Connection) -> Result<BoundSockets> {
    async fn at<S: Socket>(address: String) -> Result<S> {
        let mut socket = S::new();
        socket.bind(&address).await.map_err(|e| {
            Error::backend(format!("cannot listen at `{address}`: {e}"))
                .hint("another program may have taken the port: start the kernel again")
        })?;
        Ok(socket)
    }
    Ok(BoundSockets {
        shell: at(connection.address(connection.shell)).await?,
        control: at(connection.address(connection.control)).await?,
        stdin: at(connection.address(connection.stdin)).await?,
        iopub: at(connection.address(connection.iopub)).await?,
        heartbeat: at(connection.address(connection.heartbeat)).await?,
    })
}

fn serve(
    runtime: &Runtime,
    bound: BoundSockets,
    wire: Arc<Wire>,
    said: Receiver<OutgoingMessage>,
    asked: Asked<KernelTask>,
    control: ControlRequest,
) {
    runtime.block_on(async move {
        let (shell_out, shell_in) = bound.shell.split();
        let (control_out, control_in) = bound.control.split();
        // This socket stays silent: scripts read no input.
        let _stdin = bound.stdin;
        tokio::spawn(beat(bound.heartbeat));
        tokio::spawn(hear(shell_in, wire.clone(), asked));
        tokio::spawn(control.serve(control_in));
        speak(said, SendSockets { shell: shell_out, control: control_out, everyone: bound.iopub, wire })
            .await;
    });
}

/// Sends back what it gets, so that the frontend knows that the kernel lives.
async fn beat(mut socket: RepSocket) {
    loop {
        if let Ok(message) = socket.recv().await {
            let _ = socket.send(message).await;
        } else {
            // Nobody answers, or not in this protocol.
            sleep(PAUSE).await;
        }
    }
}

async fn hear(mut socket: RouterRecvHalf, wire: Arc<Wire>, asked: Asked<KernelTask>) {
    while let Ok(message) = socket.recv().await {
        let Some(request) = wire.read(message.into_vec()) else { continue };
        if asked.send(KernelTask::Answer(request)).is_err() {
            return;
        }
    }
}

/// What is asked while a cell runs.
struct ControlRequest {
    wire: Arc<Wire>,
    voice: Sender<OutgoingMessage>,
    interrupt: Interrupt,
    asked: Asked<KernelTask>,
}

impl ControlRequest {
    async fn serve(self, mut socket: RouterRecvHalf) {
        while let Ok(message) = socket.recv().await {
            if let Some(request) = self.wire.read(message.into_vec()) {
                self.answer(request).await;
            }
        }
    }

    async fn answer(&self, request: FrontendRequest) {
        let parent = Arc::new(request.header.clone());
        self.say(To::Everyone, "status", &parent, about::busy()).await;
        let (kind, content) = match request.kind() {
            "interrupt_request" => {
                self.interrupt.raise();
                ("interrupt_reply", json!({ "status": "ok" }))
            }
            "shutdown_request" => {
                ("shutdown_reply", json!({ "status": "ok", "restart": request.content["restart"] }))
            }
            "kernel_info_request" => ("kernel_info_reply", about::about()),
            other => {
                let reply = if other == "debug_request" { "debug_reply" } else { "error" };
                (reply, json!({ "status": "error", "ename": "Unknown", "evalue": other, "traceback": [] }))
            }
        };
        self.say(To::Control(request.from), kind, &parent, content.clone()).await;
        let leaves = kind == "shutdown_reply";
        if leaves {
            self.say(To::Everyone, kind, &parent, content).await;
        }
        self.say(To::Everyone, "status", &parent, about::idle()).await;
        if leaves {
            self.interrupt.raise();
            // Work that looks at the flag ends in good order.
            let _ = self.asked.send(KernelTask::Leave);
            sleep(GRACE).await;
            files::atomic::give_up();
            std::process::exit(0);
        }
    }

    async fn say(&self, to: To, kind: &'static str, parent: &Arc<Value>, content: Value) {
        // Without sockets nobody listens.
        let _ = self.voice.send(OutgoingMessage::Message { to, kind, parent: parent.clone(), content }).await;
    }
}

struct SendSockets {
    shell: RouterSendHalf,
    control: RouterSendHalf,
    everyone: PubSocket,
    wire: Arc<Wire>,
}

impl SendSockets {
    /// Sends a message. Frontends come and go: what cannot be delivered is forgotten.
    async fn send(&mut self, to: &To, kind: &str, parent: &Value, content: &Value) {
        let topic = [Bytes::from(kind.to_string())];
        let addresses = match to {
            To::Shell(from) | To::Control(from) => from.as_slice(),
            To::Everyone => &topic,
        };
        let Ok(message) = ZmqMessage::try_from(self.wire.write(addresses, kind, parent, content)) else {
            return;
        };
        let _ = match to {
            To::Shell(_) => self.shell.send(message).await,
            To::Control(_) => self.control.send(message).await,
            To::Everyone => self.everyone.send(message).await,
        };
    }
}

/// Printed text that waits for more.
struct HeldText {
    name: &'static str,
    parent: Arc<Value>,
    text: String,
    until: Instant,
}

/// Sends what is said in the order in which it was.
async fn speak(mut said: Receiver<OutgoingMessage>, mut mouth: SendSockets) {
    let mut open: Option<HeldText> = None;
    loop {
        let next = match &open {
            Some(open) => timeout_at(open.until, said.recv()).await.ok(),
            None => Some(said.recv().await),
        };
        if let (Some(open), Some(Some(OutgoingMessage::Stream { name, parent, text }))) = (&mut open, &next)
            && open.name == *name
            && Arc::ptr_eq(&open.parent, parent)
            && open.text.len() < MOST
            && open.until > Instant::now()
        {
            open.text.push_str(text);
            continue;
        }
        if let Some(HeldText { name, parent, text, .. }) = open.take() {
            mouth.send(&To::Everyone, "stream", &parent, &json!({ "name": name, "text": text })).await;
        }
        match next {
            None => {}
            Some(None) => return,
            Some(Some(OutgoingMessage::Stream { name, parent, text })) => {
                open = Some(HeldText { name, parent, text, until: Instant::now() + PAUSE });
            }
            Some(Some(OutgoingMessage::Message { to, kind, parent, content })) => {
                mouth.send(&to, kind, &parent, &content).await;
            }
            Some(Some(OutgoingMessage::End(ended))) => {
                // The sockets write on in the background.
                sleep(2 * PAUSE).await;
                let _ = ended.send(());
            }
        }
    }
}
