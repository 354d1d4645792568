//! What the kernel says of itself.

use serde_json::{Value, json};

use super::message::PROTOCOL;
use super::spec::LANGUAGE;

pub(super) fn busy() -> Value {
    json!({ "execution_state": "busy" })
}

pub(super) fn idle() -> Value {
    json!({ "execution_state": "idle" })
}

/// What the kernel is.
pub(super) fn about() -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "status": "ok",
        "protocol_version": PROTOCOL,
        "implementation": "umklapp",
        "implementation_version": version,
        "language_info": {
            "name": LANGUAGE,
            "version": version,
            "mimetype": "text/x-rhai",
            "file_extension": ".rhai",
            // The most similar language that highlighters know.
            "pygments_lexer": "rust",
            "codemirror_mode": "rust",
        },
        "banner": format!("Umklapp {version}: `help()` lists what there is, `?name` explains it"),
        "help_links": [],
        "debugger": false,
        "supported_features": [],
    })
}
