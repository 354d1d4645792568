//! Messages on their way to and from an editor: a header with the length, a body of JSON (JSON-RPC 2.0), and the errors
//! of invalid bodies. The connection ends only if the length is lost.

use std::io::{BufRead, Read as _, Write};

use serde_json::{Value, json};

use crate::error::{Error, Result};

/// The longest line of a header that is read.
const LINE: u64 = 4096;

/// Why something asked for is not answered, by the numbers of JSON-RPC and of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    NoJson = -32700,
    NoRequest = -32600,
    NoMethod = -32601,
    WrongParams = -32602,
    Internal = -32603,
    TooEarly = -32002,
}

/// An answer, or why there is none.
pub(super) type Answer = std::result::Result<Value, (Code, String)>;

/// What an editor sends.
#[derive(Debug, PartialEq)]
pub(super) enum EditorMessage {
    /// It waits for the answer, which bears this name.
    Asked { id: Value, method: String, params: Value },
    /// It waits for none.
    Told { method: String, params: Value },
    /// An answer to us, who ask nothing.
    Answered,
    /// No message. The name is null where it cannot be read.
    Wrong { id: Value, code: Code, why: String },
}

/// The next message; none where the editor has left.
///
/// # Errors
/// A header without a length, an end in the middle of a message.
pub(super) fn read(from: &mut impl BufRead) -> Result<Option<EditorMessage>> {
    let Some(length) = length(from)? else { return Ok(None) };
    // As much memory as has come, whatever length was told.
    let mut body = Vec::new();
    from.take(length).read_to_end(&mut body).map_err(|e| Error::of_io(&e))?;
    if (body.len() as u64) < length {
        return Err(cut_off());
    }
    Ok(Some(understood(&body)))
}

fn cut_off() -> Error {
    Error::file("the editor left in the middle of a message")
}

/// What a header says of the length of the body. Other lines of it do not matter.
fn length(from: &mut impl BufRead) -> Result<Option<u64>> {
    let (mut length, mut begun) = (None, false);
    loop {
        let mut line = Vec::new();
        from.take(LINE).read_until(b'\n', &mut line).map_err(|e| Error::of_io(&e))?;
        if line.is_empty() {
            return if begun { Err(cut_off()) } else { Ok(None) };
        }
        let line = String::from_utf8_lossy(&line);
        match (line.trim().split_once(':'), begun) {
            (Some((name, value)), _) if name.trim().eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok();
            }
            (None, true) if line.trim().is_empty() => break,
            // Empty lines between messages.
            (None, false) if line.trim().is_empty() => continue,
            _ => {}
        }
        begun = true;
    }
    let lost = || {
        Error::file("the editor sent a message that does not tell its length")
            .hint("a message begins with a line `Content-Length: N` and an empty line")
    };
    length.ok_or_else(lost).map(Some)
}

/// What a body says.
fn understood(body: &[u8]) -> EditorMessage {
    let wrong = |id, code, why: &str| EditorMessage::Wrong { id, code, why: why.into() };
    let mut message = match serde_json::from_slice(body) {
        Ok(Value::Object(message)) => message,
        Ok(_) => return wrong(Value::Null, Code::NoRequest, "a message is an object"),
        Err(e) => return wrong(Value::Null, Code::NoJson, &format!("no JSON: {e}")),
    };
    let id = message.remove("id");
    let answered = id.is_some() && (message.contains_key("result") || message.contains_key("error"));
    let method = match message.remove("method") {
        None if answered => return EditorMessage::Answered,
        Some(Value::String(method)) => Some(method),
        _ => None,
    };
    let params = message.remove("params").unwrap_or_default();
    match (id, method) {
        (None, Some(method)) => EditorMessage::Told { method, params },
        (Some(id @ (Value::Number(_) | Value::String(_))), Some(method)) => {
            EditorMessage::Asked { id, method, params }
        }
        (Some(id @ (Value::Number(_) | Value::String(_))), None) => {
            wrong(id, Code::NoRequest, "a request names a `method`")
        }
        (Some(_), _) => wrong(Value::Null, Code::NoRequest, "an `id` is a number or a text"),
        (None, None) => wrong(Value::Null, Code::NoRequest, "a message names a `method`"),
    }
}

/// The message that answers the one of this name.
pub(super) fn answer(id: &Value, answer: Answer) -> Value {
    match answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err((code, message)) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code as i32, "message": message } })
        }
    }
}

/// The message that tells something unasked.
pub(super) fn notice(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Sends a message.
///
/// # Errors
/// An editor that does not listen any more.
pub(super) fn send(to: &mut impl Write, message: &Value) -> Result<()> {
    let text = message.to_string();
    let sent = write!(to, "Content-Length: {}\r\n\r\n{text}", text.len()).and_then(|()| to.flush());
    sent.map_err(|e| Error::of_io(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    fn first(text: &str) -> Result<Option<EditorMessage>> {
        read(&mut text.as_bytes())
    }

    #[test]
    fn what_is_no_message_is_told_apart() {
        let code = |body: &str| match first(&framed(body)) {
            Ok(Some(EditorMessage::Wrong { id, code, .. })) => (id, code),
            other => panic!("{body}: {other:?}"),
        };
        for body in ["", "{", "nonsense", "{\"id\": 1, \"method\": \"a\"", &"[".repeat(100_000)] {
            assert_eq!(code(body), (Value::Null, Code::NoJson), "{body}");
        }
        for body in ["[]", "1", "null", "{}", "{\"method\": 3}", "{\"id\": {}, \"method\": \"a\"}"] {
            assert_eq!(code(body), (Value::Null, Code::NoRequest), "{body}");
        }
        assert_eq!(code("{\"id\": 7}"), (json!(7), Code::NoRequest));
        assert_eq!(code("{\"id\": \"x\", \"method\": []}"), (json!("x"), Code::NoRequest));
        let bytes = [b"Content-Length: 2\r\n\r\n".as_slice(), &[0xff, 0xfe]].concat();
        let heard = read(&mut bytes.as_slice());
        assert!(matches!(heard, Ok(Some(EditorMessage::Wrong { code: Code::NoJson, .. }))), "{heard:?}");
    }

    #[test]
    fn headers_may_have_other_lines() {
        let told = EditorMessage::Told { method: "a".into(), params: Value::Null };
        for header in [
            "Content-Length: 14\r\nContent-Type: x; charset=utf-8\r\n\r\n",
            "nonsense\r\ncontent-length:14\n\n",
            "\r\n\r\nContent-Length: 14\r\n\r\n",
        ] {
            let heard = first(&format!("{header}{{\"method\":\"a\"}}"));
            assert_eq!(heard.ok().flatten().as_ref(), Some(&told), "{header}");
        }
    }

    #[test]
    fn a_lost_length_ends_the_connection() {
        for header in ["x: 1\r\n\r\n{}", "Content-Length: many\r\n\r\n{}", "Content-Length: -1\r\n\r\n{}"] {
            let error = first(header).err();
            assert!(
                error.is_some_and(|e| e.message().contains("length") && e.hint_text().is_some()),
                "{header}"
            );
        }
        for cut in ["Content-Length: 99999999999999\r\n\r\n{}", "Content-Length: 3\r\n", "Content"] {
            let error = first(cut).err();
            assert!(error.is_some_and(|e| e.message().contains("in the middle")), "{cut}");
        }
        assert_eq!(first("").ok(), Some(None));
    }
}
