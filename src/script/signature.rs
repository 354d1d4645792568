//! The types of a function written in Rhai, whose parameters have none: its doc comment tells them under `# Types`.

/// A key of a map or a column of a Table that a function returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultField {
    pub name: String,
    /// Its type as scripts name it; empty where it is not told.
    pub kind: String,
    /// Whether some results are without it.
    pub optional: bool,
}

impl ResultField {
    /// A column of a Table.
    pub fn column(name: &str) -> ResultField {
        ResultField { name: name.into(), kind: "Series".into(), optional: false }
    }
}

/// What stands under `# Types`: `(h: Operator or Moments, site: int) -> Table { energy, density, error? }`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Signature {
    /// Names of parameters with their types. The options are not among them.
    pub parameters: Vec<(String, String)>,
    /// The type that is returned; empty for any.
    pub returns: String,
    pub fields: Vec<ResultField>,
    /// Whether some results have other fields, too: `..` stands behind those that are told.
    pub more: bool,
}

const HEAD: &str = "# Types";

impl Signature {
    /// The signature that a doc comment tells, if it does.
    pub fn read(doc: &str) -> Option<Signature> {
        let section = section(doc);
        let text = section.strip_prefix(HEAD)?.split_whitespace().collect::<Vec<_>>().join(" ");
        let (parameters, returns) = text.trim_matches('`').trim().strip_prefix('(')?.split_once(')')?;
        let returns = returns.trim().trim_start_matches("->").trim();
        let (returns, fields) = match returns.split_once('{') {
            Some((kind, fields)) => (kind.trim(), fields),
            None => (returns, ""),
        };
        let mut fields: Vec<ResultField> = listed(fields.trim_end_matches('}')).map(field).collect();
        let told = fields.len();
        fields.retain(|field| field.name != "..");
        let more = fields.len() < told;
        if returns == "Table" {
            fields.iter_mut().filter(|f| f.kind.is_empty()).for_each(|f| f.kind = "Series".into());
        }
        let parameter = |(name, kind): (&str, &str)| (name.to_string(), kind.to_string());
        let parameters = listed(parameters).map(typed).map(parameter).collect();
        Some(Signature { parameters, returns: returns.to_string(), fields, more })
    }

    /// The parameters with their types, for a message.
    pub fn arguments(&self) -> String {
        let shown = |(name, kind): &(String, String)| match kind.as_str() {
            "" => name.clone(),
            kind => format!("{name}: {kind}"),
        };
        format!("({})", self.parameters.iter().map(shown).collect::<Vec<_>>().join(", "))
    }

    /// The type of a parameter; empty for any.
    pub fn kind(&self, parameter: &str) -> &str {
        self.parameters.iter().find(|(name, _)| name == parameter).map_or("", |(_, kind)| kind)
    }
}

/// The section of a doc comment that tells types, up to the next one; empty where there is none.
pub(super) fn section(doc: &str) -> String {
    parted(doc).0
}

/// A doc comment without its types, which stand in the signature.
pub(super) fn without(doc: &str) -> String {
    parted(doc).1
}

fn parted(doc: &str) -> (String, String) {
    let mut parts = [Vec::new(), Vec::new()];
    let mut within = false;
    for line in doc.lines() {
        if line.starts_with("# ") {
            within = line.trim() == HEAD;
        }
        parts[usize::from(!within)].push(line);
    }
    let [types, rest] = parts.map(|lines| lines.join("\n").trim().to_string());
    (types, rest)
}

fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn typed(part: &str) -> (&str, &str) {
    part.split_once(':').map_or((part, ""), |(name, kind)| (name.trim(), kind.trim()))
}

fn field(part: &str) -> ResultField {
    let (name, kind) = typed(part);
    let (name, optional) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
    ResultField { name: name.into(), kind: kind.into(), optional }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_from_the_doc() {
        let doc = "Text.\n\n# Types\n`(h: Operator or Moments, t) ->\n Table { energy, error?, up: Series }`\n\n# \
             Options\n- `a` (1): b";
        let read = Signature::read(doc).unwrap();
        assert_eq!(
            (read.kind("h"), read.kind("t"), read.returns.as_str()),
            ("Operator or Moments", "", "Table")
        );
        let told: Vec<(&str, &str, bool)> =
            read.fields.iter().map(|f| (f.name.as_str(), f.kind.as_str(), f.optional)).collect();
        assert_eq!(told, [("energy", "Series", false), ("error", "Series", true), ("up", "Series", false)]);
        assert_eq!(without(doc), "Text.\n\n# Options\n- `a` (1): b");
        assert_eq!(Signature::read("# Types\n`(m: Model) -> Model`").unwrap().returns, "Model");
        assert_eq!(Signature::read("Text."), None);
    }
}
