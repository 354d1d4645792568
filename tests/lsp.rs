//! The language server, talked to as an editor does.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

const URI: &str = "file:///work/a.rhai";

struct Editor {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    asked: u64,
}

impl Editor {
    fn open() -> Editor {
        let mut editor = Editor::start();
        let able = editor.ask("initialize", json!({ "capabilities": {} }));
        assert_eq!(able["capabilities"]["hoverProvider"], json!(true));
        editor.tell("initialized", json!({}));
        editor
    }

    fn start() -> Editor {
        let mut child = Command::new(env!("CARGO_BIN_EXE_umklapp"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().unwrap());
        Editor { child, to, from, asked: 0 }
    }

    fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    fn send_text(&mut self, text: &str) {
        let to = self.to.as_mut().unwrap();
        write!(to, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        to.flush().unwrap();
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let answer = self.hear();
            if answer["id"] == json!(id) {
                assert!(answer.get("error").is_none(), "{answer}");
                return answer["result"].clone();
            }
        }
    }

    fn hear(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the server is gone");
            if let Some(text) = line.strip_prefix("Content-Length: ") {
                length = text.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// Puts a text into the editor and returns the mistakes that the server finds.
    fn write(&mut self, text: &str) -> Vec<Value> {
        let document = json!({ "uri": URI, "languageId": "rhai", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
        let told = self.hear();
        assert_eq!(told["method"], json!("textDocument/publishDiagnostics"), "{told}");
        told["params"]["diagnostics"].as_array().unwrap().clone()
    }

    fn at(&mut self, method: &str, line: u32, character: u32) -> Value {
        let place = json!({ "line": line, "character": character });
        self.ask(method, json!({ "textDocument": { "uri": URI }, "position": place }))
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_editor_is_served() {
    let mut editor = Editor::open();
    let mistakes =
        editor.write("let h = tight_bindin(lattice::chain(8));\nlet d = kpm::dos(h, #{ momens: 8 });\n");
    let messages: Vec<&str> = mistakes.iter().map(|m| m["message"].as_str().unwrap()).collect();
    assert!(messages.len() == 2 && messages[0].contains("no function `tight_bindin`"), "{messages:?}");
    assert!(messages[1].starts_with("unknown option `momens`"), "{messages:?}");
    assert_eq!(mistakes[1]["range"]["start"], json!({ "line": 1, "character": 23 }));
    // A mistake of syntax hides no others.
    let several = editor.write("let a = ;\nlet b = (1 + 2;\nlinspce(0, 1, 2);\n1.5.sites;\n");
    let lines: Vec<u64> = several.iter().map(|m| m["range"]["start"]["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [0, 1, 2, 3], "{several:?}");
    editor.write("kpm::dos(h, #{ mom");
    let found = editor.at("textDocument/completion", 0, 18);
    assert_eq!(found[0]["label"], json!("moments"), "{found}");
    assert!(found[0]["detail"].as_str().unwrap().contains("even int"), "{found}");
    assert!(found[0]["documentation"].as_str().unwrap().len() > 5, "{found}");
    let mended = "let h = tight_binding(lattice::chain(8));\nlet d = kpm::dos(h, #{ moments: 8 });\nh.";
    assert_eq!(editor.write(&mended[..mended.len() - 2]).len(), 0);
    editor.write(mended);
    let hover = editor.at("textDocument/hover", 1, 14);
    assert!(hover["contents"]["value"].as_str().unwrap().contains("kpm::dos("), "{hover}");
    let found = editor.at("textDocument/completion", 2, 2);
    let has = |label: &str| found.as_array().unwrap().iter().any(|item| item["label"] == json!(label));
    assert!(has("velocity") && has("dagger") && !has("with_column"), "{found}");
    let help = editor.at("textDocument/signatureHelp", 1, 20);
    assert_eq!(help["activeParameter"], json!(1), "{help}");
    let place = editor.at("textDocument/definition", 1, 17);
    assert_eq!(place["range"]["start"], json!({ "line": 0, "character": 4 }), "{place}");
    // An unknown request is an error, and the server goes on.
    editor.send(&json!({ "jsonrpc": "2.0", "id": 99, "method": "textDocument/nonsense", "params": {} }));
    assert_eq!(editor.hear()["error"]["code"], json!(-32601));
    assert_eq!(editor.ask("shutdown", Value::Null), Value::Null);
    editor.tell("exit", Value::Null);
    editor.to = None;
    assert_eq!(editor.child.wait().unwrap().code(), Some(0));
}

#[test]
fn malformed_messages_are_answered() {
    let mut editor = Editor::start();
    let ask = |id: u64, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method }).to_string();
    let refused = |editor: &mut Editor, text: &str, id: Value, code: i64| {
        editor.send_text(text);
        let answer = editor.hear();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{text}: {answer}");
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty(), "{answer}");
    };
    refused(&mut editor, &ask(1, "textDocument/hover"), json!(1), -32002);
    editor.ask("initialize", json!({ "capabilities": {} }));
    editor.tell("initialized", json!({}));
    refused(&mut editor, "{ nonsense", Value::Null, -32700);
    refused(&mut editor, "", Value::Null, -32700);
    refused(&mut editor, "[]", Value::Null, -32600);
    refused(&mut editor, "{\"id\": 5, \"params\": {}}", json!(5), -32600);
    refused(&mut editor, "{\"id\": [5], \"method\": \"shutdown\"}", Value::Null, -32600);
    refused(&mut editor, &ask(6, "textDocument/hover"), json!(6), -32602);
    refused(&mut editor, &ask(7, "initialize"), json!(7), -32600);
    // Changes without a document, and answers to nothing, are passed over.
    editor.tell("textDocument/didOpen", json!([1, 2]));
    editor.send(&json!({ "jsonrpc": "2.0", "id": 3, "result": 1 }));
    assert_eq!(editor.write("let a = 1 + 2;").len(), 0);
    assert_eq!(editor.ask("shutdown", Value::Null), Value::Null);
    refused(&mut editor, &ask(8, "textDocument/hover"), json!(8), -32600);
    editor.tell("exit", Value::Null);
    assert_eq!(editor.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_header_without_a_length_ends_the_server_with_a_sentence() {
    let mut editor = Editor::start();
    editor.to.as_mut().unwrap().write_all(b"Content-Type: x\r\n\r\n{}").unwrap();
    let mut said = String::new();
    editor.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("a message that does not tell its length") && !said.contains("panicked"), "{said}");
    assert_ne!(editor.child.wait().unwrap().code(), Some(0));
}
