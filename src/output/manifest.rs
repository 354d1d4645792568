//! Where a file came from: what is needed to make it again.

use serde_json::{Map, Value, json};

/// How a result was made. Every saved file can carry one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    /// The version of this program.
    pub version: String,
    /// The commit this program was built from, if it is known.
    pub git: Option<String>,
    /// A hash of the script that made the file.
    pub script_hash: Option<String>,
    /// The seed of random numbers for which none was named.
    pub seed: Option<u64>,
    /// The seeds that options named, in the order of their first use.
    pub named_seeds: Vec<u64>,
    /// The options the script was run with.
    pub options: Map<String, Value>,
    /// The backend: `cpu`, `cuda`, or several that share the work.
    pub backend: Option<String>,
    /// The device the backend ran on, in words; with the share of each, if there are several.
    pub device: Option<String>,
}

impl Manifest {
    /// A manifest that states only this program's version.
    pub fn new() -> Manifest {
        Manifest { version: env!("CARGO_PKG_VERSION").to_string(), ..Manifest::default() }
    }

    /// The manifest as a JSON object; what is not known is left out.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("program".into(), json!("umklapp"));
        object.insert("version".into(), json!(self.version));
        let texts = [
            ("git", &self.git),
            ("script_hash", &self.script_hash),
            ("backend", &self.backend),
            ("device", &self.device),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                object.insert(key.into(), json!(text));
            }
        }
        if let Some(seed) = self.seed {
            object.insert("seed".into(), json!(seed));
        }
        if !self.named_seeds.is_empty() {
            object.insert("named_seeds".into(), json!(self.named_seeds));
        }
        if !self.options.is_empty() {
            object.insert("options".into(), Value::Object(self.options.clone()));
        }
        Value::Object(object)
    }

    /// The manifest as lines of text, `key: value`, without line breaks inside one.
    pub fn lines(&self) -> Vec<String> {
        match self.to_json() {
            Value::Object(object) => object
                .iter()
                .map(|(key, value)| match value {
                    Value::String(text) => format!("{key}: {}", text.replace(['\n', '\r'], " ")),
                    other => format!("{key}: {other}"),
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_lines_or_json() {
        let manifest = Manifest { seed: Some(7), backend: Some("cpu\nx".into()), ..Manifest::new() };
        let lines = manifest.lines();
        assert_eq!(lines[0], "program: umklapp");
        assert!(lines.contains(&"seed: 7".to_string()) && lines.contains(&"backend: cpu x".to_string()));
        assert_eq!(manifest.to_json()["seed"], json!(7));
    }
}
