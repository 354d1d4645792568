//! What the server answers: from the names of the language and the text of one script.

use lsp_types as lsp;

use super::place;
use crate::output::folders;
use crate::repl::complete::{self, Names, Proposals};
use crate::repl::scan::{self, Sort};
use crate::script::lex::{self, Token, TokenKind};
use crate::script::manual::{self, TextStyle};
use crate::script::registry::{self, CallForm, RegisteredFunction};
use crate::script::{Engine, stdlib};

/// How wide pages are where an editor shows them.
const STYLE: TextStyle = TextStyle { colour: false, width: 80 };

/// What is known of the language.
pub(super) struct Answers {
    entries: Vec<RegisteredFunction>,
}

/// The mistakes of a script.
pub(super) fn mistakes(engine: &mut Engine, text: &str) -> Vec<lsp::Diagnostic> {
    let reports = engine.check(text, None);
    let diagnostic = |report: crate::script::diagnostics::Report| {
        let start = place::of_report(text, report.position.unwrap_or((1, 1)));
        // From the place to the end of the word that stands there.
        let word = lex::tokens(&text[start..]).first().map_or(0, |t| t.range.end);
        let end = start + word.min(text[start..].find('\n').unwrap_or(word));
        let hint = report.hint.map_or(String::new(), |hint| format!("\nhint: {hint}"));
        lsp::Diagnostic {
            range: place::range(text, start..end),
            severity: Some(if report.warning {
                lsp::DiagnosticSeverity::WARNING
            } else {
                lsp::DiagnosticSeverity::ERROR
            }),
            source: Some("umklapp".into()),
            message: format!("{}{hint}", report.message),
            ..lsp::Diagnostic::default()
        }
    };
    reports.into_iter().map(diagnostic).collect()
}

impl Answers {
    pub fn new(engine: &Engine) -> Answers {
        Answers { entries: registry::entries(engine.rhai(), true) }
    }

    /// The page of the name at a byte; of a key in a map of options, what the function declares of it.
    pub fn hover(&self, text: &str, byte: usize) -> Option<lsp::Hover> {
        let (path, bytes) = scan::name_at(text, byte)?;
        let function = path.rsplit("::").next().unwrap_or(&path);
        let own = lex::definition(text, function).filter(|_| !path.contains("::"));
        let page = match (self.option(text, &path, &bytes), own) {
            (Some(option), _) => option,
            (None, Some(bytes)) => text[bytes].to_string(),
            (None, None) => manual::page(&self.entries, &path, STYLE)?,
        };
        let value = format!("```text\n{}\n```", page.replace("```", "'''"));
        let contents =
            lsp::HoverContents::Markup(lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value });
        Some(lsp::Hover { contents, range: Some(place::range(text, bytes)) })
    }

    /// What the function declares of the option whose key stands there, if it is one.
    fn option(&self, text: &str, key: &str, bytes: &std::ops::Range<usize>) -> Option<String> {
        let behind = text[bytes.end..].trim_start();
        if !behind.starts_with(':') || behind.starts_with("::") {
            return None;
        }
        let before = &text[..bytes.start];
        let names = scan::with_text(Names { entries: self.entries.clone(), variables: Vec::new() }, before);
        let option = complete::options_at(&names, before).into_iter().find(|option| option.key == key)?;
        Some(format!("{} ({}): {}", option.key, option.summary(), option.meaning))
    }

    /// What may follow at a byte.
    pub fn completion(&self, text: &str, byte: usize) -> Vec<lsp::CompletionItem> {
        let names = Names { entries: self.entries.clone(), variables: Vec::new() };
        let names = scan::with_text(names, &text[..byte]);
        // A call may begin on an earlier line.
        let Proposals::Words(start, found) = complete::proposals(&names, &text[..byte]) else {
            return Vec::new();
        };
        let range = place::range(text, start..byte);
        let options = complete::options_at(&names, &text[..byte]);
        let item = |proposal: complete::CompletionProposal| {
            let (sort, entry) = scan::sort(&self.entries, &proposal);
            let option = options.iter().find(|o| sort == Sort::Option && o.key == proposal.shown);
            let meaning = option.map(|option| option.meaning.clone());
            let kind = match sort {
                Sort::Function => lsp::CompletionItemKind::FUNCTION,
                Sort::Method => lsp::CompletionItemKind::METHOD,
                Sort::Property => lsp::CompletionItemKind::PROPERTY,
                Sort::Module => lsp::CompletionItemKind::MODULE,
                Sort::Option => lsp::CompletionItemKind::FIELD,
                Sort::Keyword => lsp::CompletionItemKind::KEYWORD,
                Sort::Variable => lsp::CompletionItemKind::VARIABLE,
            };
            lsp::CompletionItem {
                label: proposal.shown,
                kind: Some(kind),
                detail: option.map(|option| option.summary()).or(entry.map(RegisteredFunction::signature)),
                documentation: meaning.filter(|text| !text.is_empty()).map(lsp::Documentation::String),
                text_edit: Some(lsp::CompletionTextEdit::Edit(lsp::TextEdit {
                    range,
                    new_text: proposal.put,
                })),
                ..lsp::CompletionItem::default()
            }
        };
        found.into_iter().map(item).collect()
    }

    /// The signature of the call that a byte lies in, with the argument that is being written.
    pub fn signature(&self, text: &str, byte: usize) -> Option<lsp::SignatureHelp> {
        let (path, argument) = scan::call_at(text, byte)?;
        let ways: Vec<&RegisteredFunction> = self
            .entries
            .iter()
            .filter(|e| e.form != CallForm::Property && e.path() == path && !e.doc.is_empty())
            .collect();
        let fit =
            |e: &&RegisteredFunction| e.parameters.len() - usize::from(e.form == CallForm::Method) > argument;
        let active = ways.iter().position(fit).or_else(|| ways.len().checked_sub(1))?;
        let signatures = ways
            .iter()
            .map(|e| lsp::SignatureInformation {
                label: e.signature(),
                documentation: e
                    .doc
                    .split("\n\n")
                    .next()
                    .map(|text| lsp::Documentation::String(text.replace('\n', " "))),
                parameters: Some(
                    e.parameters
                        .iter()
                        .skip(usize::from(e.form == CallForm::Method))
                        .map(|p| lsp::ParameterInformation {
                            label: lsp::ParameterLabel::Simple(p.name.clone()),
                            documentation: None,
                        })
                        .collect(),
                ),
                active_parameter: None,
            })
            .collect();
        Some(lsp::SignatureHelp {
            signatures,
            active_signature: Some(active as u32),
            active_parameter: Some(argument as u32),
        })
    }

    /// Where the function or variable at a byte is defined: in the script, or in the stdlib, a copy of which is written
    /// where the program keeps what it remembers.
    pub fn definition(&self, uri: &lsp::Uri, text: &str, byte: usize) -> Option<lsp::Location> {
        let (path, _) = scan::name_at(text, byte)?;
        let (module, name) = path.rsplit_once("::").unwrap_or(("", &path));
        if module.is_empty() {
            let bytes = lex::definition(text, name).or_else(|| variable(text, name, byte))?;
            return Some(lsp::Location { uri: uri.clone(), range: place::range(text, bytes) });
        }
        let source = stdlib::texts(module).collect::<Vec<_>>().join("\n");
        let bytes = lex::definition(&source, name)?;
        let file = folders::state().ok()?.join(format!("{module}.rhai"));
        if std::fs::read_to_string(&file).ok().as_ref() != Some(&source) {
            std::fs::write(&file, &source).ok()?;
        }
        let uri =
            format!("file://{}", file.to_str()?.replace('%', "%25").replace(' ', "%20")).parse().ok()?;
        Some(lsp::Location { uri, range: place::range(&source, bytes) })
    }
}

/// The last definition of a variable before a byte.
fn variable(text: &str, name: &str, byte: usize) -> Option<std::ops::Range<usize>> {
    let tokens: Vec<Token> = lex::tokens(text).into_iter().filter(|t| t.kind != TokenKind::Space).collect();
    let word = |t: &Token| &text[t.range.clone()];
    let defines = |w: &&[Token]| matches!(word(&w[0]), "let" | "const" | "for") && word(&w[1]) == name;
    let found: Vec<_> = tokens.windows(2).filter(defines).map(|w| w[1].range.clone()).collect();
    found.iter().rev().find(|range| range.start <= byte).or(found.first()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "/// Twice.\nfn twice(x) {\n    2 * x\n}\nlet h = tight_binding(lattice::chain(8));\nlet d = \
         kpm::dos(h, #{ moments: 8 });\nprint(twice(1));\n";

    fn answers() -> Answers {
        Answers::new(&Engine::new().unwrap())
    }

    fn at(text: &str) -> usize {
        SCRIPT.find(text).unwrap()
    }

    #[test]
    fn names_have_pages_and_places() {
        let answers = answers();
        let hover = |byte| {
            let lsp::HoverContents::Markup(m) = answers.hover(SCRIPT, byte).unwrap().contents else {
                panic!()
            };
            m.value
        };
        assert!(
            hover(at("dos(h") + 1).contains("kpm::dos(") && hover(at("tight_binding")).contains("Options")
        );
        assert!(hover(at("twice(1)")).contains("/// Twice.\nfn twice(x) {"));
        let key = hover(at("moments: 8"));
        assert!(
            key.contains("moments (2 <= even int") && !key.contains("kpm::moments("),
            "an option of the call: {key}"
        );
        assert!(answers.hover(SCRIPT, at("2 *")).is_none());
        let uri: lsp::Uri = "file:///a.rhai".parse().unwrap();
        let place = answers.definition(&uri, SCRIPT, at("twice(1)")).unwrap();
        assert_eq!((place.uri, place.range.start.line), (uri.clone(), 0));
        let h = answers.definition(&uri, SCRIPT, at("(h, #") + 1).unwrap();
        assert_eq!(h.range, place::range(SCRIPT, at("h = tight")..at(" = tight")));
    }

    #[test]
    fn completion_knows_the_script() {
        let answers = answers();
        let labels = |more: &str| -> Vec<String> {
            let text = format!("{SCRIPT}{more}");
            answers.completion(&text, text.len()).into_iter().map(|item| item.label).collect()
        };
        assert_eq!(labels("twi"), ["twice"]);
        assert!(labels("h.veloc").contains(&"velocity".to_string()));
        assert!(labels("kpm::d").contains(&"dos".to_string()));
        assert!(labels("kpm::dos(h, #{\n    ker").contains(&"kernel".to_string()));
        assert_eq!(labels("kpm::dos(h, #{ kernel: \"l"), ["lorentz", "lanczos"]);
        // What functions of the stdlib give: their columns and keys, and the methods of their type.
        let of_table = labels("d.");
        assert!(
            ["density", "with_column"].iter().all(|name| of_table.contains(&name.to_string())),
            "{of_table:?}"
        );
        assert!(!of_table.contains(&"velocity".to_string()));
        let of_map = labels("let e = models::exponentials(|r| 1.0 / r);\ne.");
        assert!(of_map.contains(&"ratios".to_string()) && of_map.len() < 60, "{of_map:?}");
        assert!(labels("models::exponentials(|r| 1.0 / r).ratios.").contains(&"cumsum".to_string()));
    }

    #[test]
    fn options_say_their_kind_default_and_meaning() {
        let answers = answers();
        let text = "plot(dos, #{ title: \"a\", st";
        let found = answers.completion(text, text.len());
        let [style] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            style.detail.as_deref(),
            Some("\"lines\" or \"points\" or \"both\" or \"bars\", default \"lines\"")
        );
        let Some(lsp::Documentation::String(meaning)) = &style.documentation else { panic!("{style:?}") };
        assert!(meaning.contains("curves"), "{meaning}");
    }

    #[test]
    fn signatures_follow_the_argument() {
        let text = "kpm::dos(linspace(0.0, 1.0, 3), ";
        let answers = answers();
        let help = answers.signature(text, text.len()).unwrap();
        assert_eq!(help.active_parameter, Some(1));
        assert!(help.signatures[0].label.starts_with("kpm::dos("));
        let inside = text.find(" 3").unwrap();
        let help = answers.signature(text, inside).unwrap();
        assert!(help.active_parameter == Some(2) && help.signatures[0].label.starts_with("linspace("));
        assert!(answers.signature("1 + ", 4).is_none());
    }

    #[test]
    fn mistakes_have_their_places() {
        let mut engine = Engine::new().unwrap();
        let found = mistakes(&mut engine, "let a = 1;\nlet b = \"µ𝒂\" + linspce(0, 1, 2);\n");
        assert_eq!(found.len(), 1, "{found:?}");
        let range = found[0].range;
        assert_eq!((range.start, range.end), (lsp::Position::new(1, 16), lsp::Position::new(1, 23)));
        assert!(found[0].message.contains("hint: did you mean `linspace"), "{}", found[0].message);
        assert!(mistakes(&mut engine, SCRIPT).is_empty());
        assert_eq!(mistakes(&mut engine, "let = 3").len(), 1);
    }
}
