//! The language server: it answers editors while a script is written. It speaks the Language Server Protocol over
//! standard input and output (`umklapp lsp`): mistakes as `check` finds them, help under the pointer, completion,
//! signatures, definitions.

mod answers;
mod place;
mod wire;

use std::collections::HashMap;

use lsp_types as lsp;
use lsp_types::notification::Notification as _;
use lsp_types::request::Request as _;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::script::{Engine, Settings};
use crate::task::Interrupt;
use answers::Answers;
use wire::{Answer, Code, EditorMessage};

/// The scripts that the editor has open, and what is known of the language.
struct Server {
    engine: Engine,
    answers: Answers,
    texts: HashMap<lsp::Uri, String>,
    stage: Stage,
}

/// How far the talk with the editor has come.
enum Stage {
    /// It has not been told what the server can do.
    Before,
    Open,
    /// It is about to leave.
    Over,
}

/// Serves one editor until it leaves.
///
/// # Errors
/// A connection that breaks, an engine that does not start.
pub fn run() -> Result<()> {
    let settings = Settings { backend: "cpu".into(), quiet: true, ..Settings::default() };
    let engine = Engine::with(settings, Interrupt::default())?;
    let answers = Answers::new(&engine);
    let mut server = Server { engine, answers, texts: HashMap::new(), stage: Stage::Before };
    let (mut from, mut to) = (std::io::stdin().lock(), std::io::stdout());
    let broke = |e: Error| e.context("the connection to the editor broke");
    while let Some(heard) = wire::read(&mut from).map_err(broke)? {
        let said = match heard {
            EditorMessage::Asked { id, method, params } => {
                Some(wire::answer(&id, server.answer(&method, params)))
            }
            EditorMessage::Told { method, .. } if method == lsp::notification::Exit::METHOD => break,
            EditorMessage::Told { method, params } => server.hear(&method, params),
            EditorMessage::Answered => None,
            EditorMessage::Wrong { id, code, why } => Some(wire::answer(&id, Err((code, why)))),
        };
        if let Some(said) = said {
            wire::send(&mut to, &said).map_err(broke)?;
        }
    }
    Ok(())
}

fn abilities() -> lsp::ServerCapabilities {
    let triggers = |all: &[&str]| Some(all.iter().map(|t| (*t).to_string()).collect());
    lsp::ServerCapabilities {
        text_document_sync: Some(lsp::TextDocumentSyncCapability::Kind(lsp::TextDocumentSyncKind::FULL)),
        hover_provider: Some(lsp::HoverProviderCapability::Simple(true)),
        completion_provider: Some(lsp::CompletionOptions {
            trigger_characters: triggers(&[".", ":", "{", ",", " "]),
            ..lsp::CompletionOptions::default()
        }),
        signature_help_provider: Some(lsp::SignatureHelpOptions {
            trigger_characters: triggers(&["(", ","]),
            ..lsp::SignatureHelpOptions::default()
        }),
        definition_provider: Some(lsp::OneOf::Left(true)),
        ..lsp::ServerCapabilities::default()
    }
}

impl Server {
    /// Follows the editor's changes; tells the mistakes of a script that changed.
    fn hear(&mut self, method: &str, params: Value) -> Option<Value> {
        if !matches!(self.stage, Stage::Open) {
            return None;
        }
        let uri = match method {
            lsp::notification::DidOpenTextDocument::METHOD => {
                let opened: lsp::DidOpenTextDocumentParams = serde_json::from_value(params).ok()?;
                self.texts.insert(opened.text_document.uri.clone(), opened.text_document.text);
                opened.text_document.uri
            }
            lsp::notification::DidChangeTextDocument::METHOD => {
                let changed: lsp::DidChangeTextDocumentParams = serde_json::from_value(params).ok()?;
                let text = changed.content_changes.into_iter().last()?.text;
                self.texts.insert(changed.text_document.uri.clone(), text);
                changed.text_document.uri
            }
            lsp::notification::DidCloseTextDocument::METHOD => {
                let closed: lsp::DidCloseTextDocumentParams = serde_json::from_value(params).ok()?;
                self.texts.remove(&closed.text_document.uri);
                closed.text_document.uri
            }
            _ => return None,
        };
        let text = self.texts.get(&uri).map_or("", String::as_str);
        let diagnostics = answers::mistakes(&mut self.engine, text);
        let found = lsp::PublishDiagnosticsParams { uri, diagnostics, version: None };
        let found = serde_json::to_value(found).ok()?;
        Some(wire::notice(lsp::notification::PublishDiagnostics::METHOD, &found))
    }

    /// What a request is answered, at this stage of the talk.
    fn answer(&mut self, method: &str, params: Value) -> Answer {
        match (method, &self.stage) {
            (lsp::request::Initialize::METHOD, Stage::Before) => {
                self.stage = Stage::Open;
                Ok(json!({ "capabilities": abilities() }))
            }
            (_, Stage::Before) => Err((Code::TooEarly, "`initialize` comes first".into())),
            (lsp::request::Initialize::METHOD, _) => Err((Code::NoRequest, "`initialize` comes once".into())),
            (_, Stage::Over) => Err((Code::NoRequest, "behind `shutdown` comes `exit` only".into())),
            (lsp::request::Shutdown::METHOD, Stage::Open) => {
                self.stage = Stage::Over;
                Ok(Value::Null)
            }
            (_, Stage::Open) => self.find(method, params),
        }
    }

    fn find(&self, method: &str, params: Value) -> Answer {
        let at: lsp::TextDocumentPositionParams = match method {
            lsp::request::HoverRequest::METHOD
            | lsp::request::Completion::METHOD
            | lsp::request::SignatureHelpRequest::METHOD
            | lsp::request::GotoDefinition::METHOD => {
                serde_json::from_value(params).map_err(|e| (Code::WrongParams, e.to_string()))?
            }
            _ => return Err((Code::NoMethod, format!("no request `{method}`"))),
        };
        let uri = &at.text_document.uri;
        let Some(text) = self.texts.get(uri) else { return Ok(Value::Null) };
        let byte = place::byte(text, at.position);
        let found = match method {
            lsp::request::HoverRequest::METHOD => self.answers.hover(text, byte).map(serde_json::to_value),
            lsp::request::Completion::METHOD => {
                Some(serde_json::to_value(self.answers.completion(text, byte)))
            }
            lsp::request::SignatureHelpRequest::METHOD => {
                self.answers.signature(text, byte).map(serde_json::to_value)
            }
            _ => self.answers.definition(uri, text, byte).map(serde_json::to_value),
        };
        let found = found.transpose().map_err(|e| (Code::Internal, e.to_string()))?;
        Ok(found.unwrap_or_default())
    }
}
