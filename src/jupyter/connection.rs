//! The connection file: the addresses of the five sockets, and the key that messages are signed with.

use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::number::memory;

/// Where a kernel listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    ip: String,
    pub(super) shell: u16,
    pub(super) control: u16,
    pub(super) stdin: u16,
    pub(super) iopub: u16,
    pub(super) heartbeat: u16,
    /// Empty where messages are not signed.
    pub(super) key: Vec<u8>,
}

impl Connection {
    pub(super) fn read(path: &Path) -> Result<Connection> {
        let name = path.display();
        let bytes = memory::read(path).map_err(|e| Error::file(format!("`{name}` cannot be read: {e}")))?;
        let about: Value = serde_json::from_slice(&bytes)
            .map_err(|e| Error::file(format!("`{name}` is no connection file of Jupyter: {e}")))?;
        Connection::of(&about).map_err(|e| e.context(format!("`{name}`")))
    }

    fn of(about: &Value) -> Result<Connection> {
        let text = |key: &str, usual: &str| about[key].as_str().unwrap_or(usual).to_string();
        let port = |key: &str| {
            let port = about[key].as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
            port.ok_or_else(|| {
                Error::file(format!("`{key}` is no port"))
                    .hint("Jupyter writes this file when it starts a kernel: `umklapp jupyter install` makes it known \
                         there")
            })
        };
        let transport = text("transport", "tcp");
        if transport != "tcp" {
            return Err(Error::file(format!("the transport `{transport}` is not supported"))
                .hint("`c.KernelManager.transport = \"tcp\"` in the settings of Jupyter"));
        }
        let scheme = text("signature_scheme", "hmac-sha256");
        if !["", "hmac-sha256"].contains(&scheme.as_str()) {
            return Err(Error::file(format!("messages signed with `{scheme}` are not supported"))
                .hint("`c.Session.signature_scheme = \"hmac-sha256\"` in the settings of Jupyter"));
        }
        Ok(Connection {
            ip: text("ip", "127.0.0.1"),
            shell: port("shell_port")?,
            control: port("control_port")?,
            stdin: port("stdin_port")?,
            iopub: port("iopub_port")?,
            heartbeat: port("hb_port")?,
            key: text("key", "").into_bytes(),
        })
    }

    /// The address of a socket.
    pub(super) fn address(&self, port: u16) -> String {
        match self.ip.as_str() {
            // Every address of this machine.
            "*" | "" => format!("tcp://0.0.0.0:{port}"),
            ip if ip.contains(':') && !ip.starts_with('[') => format!("tcp://[{ip}]:{port}"),
            ip => format!("tcp://{ip}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file() -> Value {
        json!({ "shell_port": 1, "control_port": 2, "stdin_port": 3, "iopub_port": 4, "hb_port": 5,
            "ip": "127.0.0.1", "key": "secret", "transport": "tcp", "signature_scheme": "hmac-sha256" })
    }

    #[test]
    fn a_file_says_where_to_listen() {
        let found = Connection::of(&file()).unwrap();
        assert_eq!((found.shell, found.heartbeat, found.key.as_slice()), (1, 5, b"secret".as_slice()));
        assert_eq!(found.address(found.iopub), "tcp://127.0.0.1:4");
        let mut other = file();
        other["ip"] = json!("::1");
        assert_eq!(Connection::of(&other).unwrap().address(1), "tcp://[::1]:1");
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (key, value, words) in [
            ("transport", json!("ipc"), "the transport `ipc`"),
            ("signature_scheme", json!("hmac-md5"), "`hmac-md5`"),
            ("hb_port", json!(70000), "`hb_port` is no port"),
            ("shell_port", json!(0), "`shell_port` is no port"),
            ("iopub_port", json!("a"), "`iopub_port`"),
        ] {
            let mut other = file();
            other[key] = value;
            let error = Connection::of(&other).unwrap_err();
            assert!(error.to_string().contains(words) && error.hint_text().is_some(), "{error}");
        }
        assert!(Connection::of(&json!([])).is_err());
    }
}
