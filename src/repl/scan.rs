//! What a text tells about itself while it is written, for editors and notebooks: its variables and functions, the name
//! and the call at a place, what a proposal is.

use std::any::TypeId;
use std::ops::Range;

use super::complete::{self, CompletionProposal, Names, Variable};
use crate::script::lex::{self, Token, TokenKind};
use crate::script::registry::{CallForm, RegisteredFunction};

/// What a proposal stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Function,
    Method,
    Property,
    Module,
    Option,
    Keyword,
    Variable,
}

/// What a proposal stands for, and its entry where the language has one.
pub fn sort<'a>(
    entries: &'a [RegisteredFunction],
    proposal: &CompletionProposal,
) -> (Sort, Option<&'a RegisteredFunction>) {
    // An option may be called as a function is.
    if proposal.put.ends_with(": ") {
        return (Sort::Option, None);
    }
    let entry = entries.iter().find(|e| e.name == proposal.shown && !e.doc.is_empty());
    let sort = match entry.map(|e| e.form) {
        Some(CallForm::Function) => Sort::Function,
        Some(CallForm::Method) => Sort::Method,
        Some(CallForm::Property) => Sort::Property,
        None if proposal.put.ends_with("::") => Sort::Module,
        None if proposal.put.ends_with('(') => Sort::Function,
        None if lex::KEYWORDS.contains(&proposal.put.as_str()) => Sort::Keyword,
        None => Sort::Variable,
    };
    (sort, entry)
}

/// Names that are known with the variables and functions of a text.
pub fn with_text(mut names: Names, text: &str) -> Names {
    let tokens: Vec<Token> = lex::tokens(text)
        .into_iter()
        .filter(|t| !matches!(t.kind, TokenKind::Space | TokenKind::Comment))
        .collect();
    let word = |k: usize| tokens.get(k).map_or("", |t| &text[t.range.clone()]);
    for k in 0..tokens.len() {
        let new = matches!(word(k), "let" | "const" | "for")
            && tokens.get(k + 1).is_some_and(|t| t.kind == TokenKind::Word);
        if word(k) == "fn" && tokens.get(k + 1).is_some_and(|t| t.kind == TokenKind::Word) {
            names.variables.push(Variable {
                name: word(k + 1).into(),
                id: TypeId::of::<()>(),
                fields: vec![],
            });
        }
        if !new {
            continue;
        }
        // The type of what the variable is set to, where it is a call.
        let end = (k..tokens.len()).find(|&j| word(j) == ";").unwrap_or(tokens.len());
        let value: Vec<String> = (k + 3..end).map(|j| word(j).to_string()).collect();
        let known = complete::receiver(&names, &value);
        let (id, fields) = match &known {
            Some(known) => (known.id(&names), known.fields.to_vec()),
            None => (None, Vec::new()),
        };
        let id = id.unwrap_or(TypeId::of::<()>());
        names.variables.push(Variable { name: word(k + 1).into(), id, fields });
    }
    names
}

/// The call that is open at a byte, and which of its arguments is being written, from 0.
pub fn call_at(text: &str, byte: usize) -> Option<(String, usize)> {
    let tokens: Vec<String> = lex::tokens(&text[..byte])
        .into_iter()
        .filter(|t| !matches!(t.kind, TokenKind::Space | TokenKind::Comment))
        .map(|t| text[t.range].to_string())
        .collect();
    complete::call(&tokens)
}

/// The name at a byte with the module before it, and the bytes of its last word.
pub fn name_at(text: &str, byte: usize) -> Option<(String, Range<usize>)> {
    let tokens = lex::tokens(text);
    let at = tokens
        .iter()
        .position(|t| t.kind == TokenKind::Word && t.range.start <= byte && byte <= t.range.end)?;
    let word = |k: usize| &text[tokens[k].range.clone()];
    let path = match at.checked_sub(2) {
        Some(module) if word(at - 1) == "::" && tokens[module].kind == TokenKind::Word => {
            format!("{}::{}", word(module), word(at))
        }
        _ => word(at).to_string(),
    };
    Some((path, tokens[at].range.clone()))
}
