//! The language server: what editors ask while a script is written. It speaks the Language Server Protocol over standard input
//! and output (`umklapp lsp`): mistakes as `check` finds them, help under the pointer, completion, signatures, definitions.

mod answers;
mod place;

use std::collections::HashMap;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types as lsp;
use lsp_types::notification::Notification as _;
use lsp_types::request::Request as _;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::script::{Engine, Settings};
use crate::task::Interrupt;
use answers::Answers;

/// The scripts that the editor has open, and what is known of the language.
struct Server {
    engine: Engine,
    answers: Answers,
    texts: HashMap<lsp::Uri, String>,
}

/// Serves one editor until it leaves.
///
/// # Errors
/// A connection that breaks, an engine that does not start.
pub fn run() -> Result<()> {
    let settings = Settings { backend: "cpu".into(), quiet: true, ..Settings::default() };
    let engine = Engine::with(settings, Interrupt::default())?;
    let answers = Answers::new(&engine);
    let mut server = Server { engine, answers, texts: HashMap::new() };
    let (connection, threads) = Connection::stdio();
    let able = serde_json::to_value(abilities()).map_err(|e| broken(&e))?;
    connection.initialize(able).map_err(|e| broken(&e))?;
    for message in &connection.receiver {
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request).map_err(|e| broken(&e))? {
                    break;
                }
                let response = server.answer(request);
                connection.sender.send(response.into()).map_err(|e| broken(&e))?;
            }
            Message::Notification(told) => {
                if let Some(found) = server.hear(told) {
                    connection.sender.send(found.into()).map_err(|e| broken(&e))?;
                }
            }
            Message::Response(_) => {}
        }
    }
    drop(connection);
    threads.join().map_err(|e| broken(&e))
}

fn broken(e: &dyn std::fmt::Display) -> Error {
    Error::file(format!("the connection to the editor broke: {e}"))
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
    /// Follows the editor's changes; the mistakes of a script that changed.
    fn hear(&mut self, told: Notification) -> Option<Notification> {
        let uri = match told.method.as_str() {
            lsp::notification::DidOpenTextDocument::METHOD => {
                let opened: lsp::DidOpenTextDocumentParams = serde_json::from_value(told.params).ok()?;
                self.texts.insert(opened.text_document.uri.clone(), opened.text_document.text);
                opened.text_document.uri
            }
            lsp::notification::DidChangeTextDocument::METHOD => {
                let changed: lsp::DidChangeTextDocumentParams = serde_json::from_value(told.params).ok()?;
                let text = changed.content_changes.into_iter().last()?.text;
                self.texts.insert(changed.text_document.uri.clone(), text);
                changed.text_document.uri
            }
            lsp::notification::DidCloseTextDocument::METHOD => {
                let closed: lsp::DidCloseTextDocumentParams = serde_json::from_value(told.params).ok()?;
                self.texts.remove(&closed.text_document.uri);
                closed.text_document.uri
            }
            _ => return None,
        };
        let text = self.texts.get(&uri).map_or("", String::as_str);
        let diagnostics = answers::mistakes(&mut self.engine, text);
        let found = lsp::PublishDiagnosticsParams { uri, diagnostics, version: None };
        Some(Notification::new(lsp::notification::PublishDiagnostics::METHOD.into(), found))
    }

    fn answer(&self, request: Request) -> Response {
        let id = request.id.clone();
        match self.find(request) {
            Ok(Some(result)) => Response::new_ok(id, result),
            Ok(None) => Response::new_ok(id, Value::Null),
            Err((code, why)) => Response::new_err(id, code as i32, why),
        }
    }

    fn find(&self, request: Request) -> std::result::Result<Option<Value>, (ErrorCode, String)> {
        let method = request.method.as_str();
        let at: lsp::TextDocumentPositionParams = match method {
            lsp::request::HoverRequest::METHOD
            | lsp::request::Completion::METHOD
            | lsp::request::SignatureHelpRequest::METHOD
            | lsp::request::GotoDefinition::METHOD => serde_json::from_value(request.params.clone())
                .map_err(|e| (ErrorCode::InvalidParams, e.to_string()))?,
            _ => return Err((ErrorCode::MethodNotFound, format!("no request `{method}`"))),
        };
        let uri = &at.text_document.uri;
        let Some(text) = self.texts.get(uri) else { return Ok(None) };
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
        found.transpose().map_err(|e| (ErrorCode::InternalError, e.to_string()))
    }
}
