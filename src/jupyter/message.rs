//! Messages on the wire: the addresses of who asked, a delimiter, a signature, and four JSON objects.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::error::{Error, Result};

/// The version of the protocol.
pub(super) const PROTOCOL: &str = "5.3";

const DELIMITER: &[u8] = b"<IDS|MSG>";

/// What a frontend asks.
#[derive(Debug)]
pub(super) struct FrontendRequest {
    /// Whom to answer.
    pub from: Vec<Bytes>,
    /// Goes back as the parent of all that the request causes.
    pub header: Value,
    pub content: Value,
}

impl FrontendRequest {
    pub fn kind(&self) -> &str {
        self.header["msg_type"].as_str().unwrap_or_default()
    }
}

/// Signs messages and checks signatures.
pub(super) struct Wire {
    mac: Option<Hmac<Sha256>>,
    /// Names this run of the kernel.
    session: String,
}

/// A text that no other message has.
pub(super) fn unique() -> String {
    format!("{:032x}", rand::random::<u128>())
}

impl Wire {
    pub fn new(key: &[u8]) -> Result<Wire> {
        let mac = if key.is_empty() {
            None
        } else {
            Some(
                Hmac::new_from_slice(key)
                    .map_err(|e| Error::input(format!("the key of the connection: {e}")))?,
            )
        };
        Ok(Wire { mac, session: unique() })
    }

    fn mac(&self, parts: &[Bytes]) -> Option<Hmac<Sha256>> {
        let mut mac = self.mac.clone()?;
        parts.iter().for_each(|part| mac.update(part));
        Some(mac)
    }

    /// Reads what came in; none for what is no message or was signed by nobody who knows the key.
    pub fn read(&self, mut frames: Vec<Bytes>) -> Option<FrontendRequest> {
        let delimiter = frames.iter().position(|frame| frame.as_ref() == DELIMITER)?;
        let rest = frames.split_off(delimiter + 1);
        frames.pop();
        let [signature, signed @ ..] = rest.as_slice() else { return None };
        let [header, _parent, _metadata, content, ..] = signed else { return None };
        if let Some(mac) = self.mac(&signed[..4]) {
            mac.verify_slice(&unhex(signature)?).ok()?;
        }
        let object = |bytes: &Bytes| serde_json::from_slice(bytes).ok().filter(Value::is_object);
        Some(FrontendRequest { from: frames, header: object(header)?, content: object(content)? })
    }

    /// The frames of a message to these addresses.
    pub fn write(&self, to: &[Bytes], kind: &str, parent: &Value, content: &Value) -> Vec<Bytes> {
        let header = json!({
            "msg_id": unique(),
            "session": self.session,
            "username": "kernel",
            "date": date(SystemTime::now()),
            "msg_type": kind,
            "version": PROTOCOL,
        });
        let signed: Vec<Bytes> =
            [&header, parent, &json!({}), content].map(|part| Bytes::from(part.to_string())).to_vec();
        let mac = self.mac(&signed);
        let signature = mac.map_or(String::new(), |mac| hex(&mac.finalize().into_bytes()));
        let mut frames = to.to_vec();
        frames.push(Bytes::from_static(DELIMITER));
        frames.push(Bytes::from(signature));
        frames.extend(signed);
        frames
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
    let pairs = text.chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs.collect()
}

/// A time as ISO 8601 has it, in UTC.
fn date(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Years that begin in March end with the leap day.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", since.subsec_micros())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let wire = Wire::new(b"secret").unwrap();
        let to = [Bytes::from_static(b"\x00id"), Bytes::from_static(b"more")];
        let mut frames = wire.write(&to, "status", &json!({ "a": 1 }), &json!({ "x": "µ" }));
        let read = wire.read(frames.clone()).unwrap();
        assert_eq!(
            (read.from.as_slice(), read.kind(), &read.content),
            (&to[..], "status", &json!({ "x": "µ" }))
        );
        // Another key, changed content, an invalid signature, missing frames.
        assert!(Wire::new(b"other").unwrap().read(frames.clone()).is_none());
        let without = Wire::new(b"").unwrap();
        assert!(without.read(frames.clone()).is_some());
        let unsigned = without.write(&to, "status", &json!({}), &json!({}));
        assert!(wire.read(unsigned).is_none());
        frames.pop();
        assert!(wire.read(frames.clone()).is_none());
        frames.push(Bytes::from_static(b"{}"));
        assert!(wire.read(frames).is_none());
        assert!(wire.read(Vec::new()).is_none());
    }

    #[test]
    fn signatures_are_those_of_the_standard() {
        // RFC 4231, test case 2.
        let wire = Wire::new(b"Jefe").unwrap();
        let mac = wire.mac(&[Bytes::from_static(b"what do ya want "), Bytes::from_static(b"for nothing?")]);
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&mac.unwrap().finalize().into_bytes()), expected);
        assert_eq!(hex(&unhex(expected.as_bytes()).unwrap()), expected);
        assert!(unhex(b"5bd").is_none() && unhex(b"zz").is_none());
    }

    #[test]
    fn dates_have_leap_days() {
        let at = |seconds| date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000000Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59.000000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000000Z");
    }
}
