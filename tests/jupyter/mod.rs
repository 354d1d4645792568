//! The kernel for Jupyter, talked to over its sockets, and by Jupyter's own client where there is one.

mod client;

use std::path::{Path, PathBuf};
use std::process::Command;

use client::{Client, KEY};
use serde_json::{Value, json};

use crate::common::Folder;

/// A notebook's cells of code.
fn cells(path: &Path) -> Vec<String> {
    let notebook: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let code = notebook["cells"].as_array().unwrap().iter().filter(|cell| cell["cell_type"] == "code");
    let joined = |lines: &Value| match lines {
        Value::Array(lines) => lines.iter().map(|line| line.as_str().unwrap()).collect(),
        text => text.as_str().unwrap().to_string(),
    };
    code.map(|cell| joined(&cell["source"])).collect()
}

fn gallery() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/notebooks");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "ipynb"))
        .collect();
    found.sort();
    found
}

#[test]
fn cells_have_values_texts_and_numbers() {
    let mut client = Client::start(&[]);
    let info = client.ask("kernel_info_request", json!({}));
    assert_eq!((&info["status"], &info["language_info"]["name"]), (&json!("ok"), &json!("rhai")));
    assert_eq!(info["protocol_version"], "5.3");

    let first = client.execute("let x = 20;\nprint(\"one\");\nprint(\"two\");\n2 * x + 2");
    assert_eq!(first.reply["status"], "ok");
    assert_eq!(first.reply["execution_count"], 1);
    assert_eq!(first.text("stdout"), "one\ntwo\n");
    assert_eq!(first.result()["data"]["text/plain"], "42");
    assert_eq!(first.result()["execution_count"], 1);
    assert_eq!(first.of("execute_input")[0]["execution_count"], 1);
    // Pieces without semicolons are statements of their own, as in the session; a value that ends in one is not shown.
    let second = client.execute("let y = x\ny + 1\ny + 2;");
    assert_eq!(second.of("execute_result").len(), 1);
    assert_eq!(
        (second.result()["data"]["text/plain"].as_str(), second.text("stdout")),
        (Some("21"), "y = 20\n".into())
    );
    // Numbers of cells are those of `Out`.
    let third = client.execute("[Out[1], Out[2], ans]");
    assert_eq!(third.result()["data"]["text/plain"], "[42, 22, 22]");
    assert_eq!(client.execute("").reply["execution_count"], 3);
    assert_eq!(client.execute("// nothing").of("execute_result").len(), 0);

    // What is silent has no number and shows nothing; what is not kept has no number.
    let silent = client.execute_with("x", json!({ "silent": true }));
    assert!(silent.of("execute_result").is_empty() && silent.of("execute_input").is_empty());
    let beside = client.execute_with(
        "7",
        json!({ "store_history": false, "user_expressions": { "a": "x + 1", "b": "nothing" } }),
    );
    assert_eq!(beside.reply["execution_count"], 4);
    let glances = &beside.reply["user_expressions"];
    assert_eq!(
        (&glances["a"]["data"]["text/plain"], &glances["b"]["status"]),
        (&json!("21"), &json!("error"))
    );
    assert_eq!(client.execute("8").reply["execution_count"], 5);

    let history = client
        .ask("history_request", json!({ "hist_access_type": "tail", "n": 2, "raw": true, "output": false }));
    assert_eq!(history["history"], json!([[0, 4, "// nothing"], [0, 5, "8"]]));
    let last = client
        .ask("history_request", json!({ "hist_access_type": "tail", "n": 1, "raw": true, "output": true }));
    assert_eq!(last["history"], json!([[0, 5, ["8", "8"]]]));
    let found =
        client.ask("history_request", json!({ "hist_access_type": "search", "pattern": "*Out*", "n": 5 }));
    assert_eq!(found["history"], json!([[0, 3, "[Out[1], Out[2], ans]"]]));
    let range = client
        .ask("history_request", json!({ "hist_access_type": "range", "session": 0, "start": 1, "stop": 2 }));
    assert_eq!(range["history"].as_array().map(Vec::len), Some(1));

    let help = client.execute("?linspace");
    assert!(help.text("stdout").contains("linspace("), "{}", help.text("stdout"));
    let shell = client.execute("!echo from the shell; exit 3");
    assert_eq!(shell.text("stdout"), "from the shell\n");
    assert!(shell.reply["evalue"].as_str().unwrap().contains("ended with"), "{}", shell.reply);
    client.leave();
}

#[test]
fn pictures_and_tables_are_shown_in_several_formats() {
    let mut client = Client::start(&[]);
    let table = client.execute("table([[\"<b>\", [1.0, 2.5]], [\"y\", [0.25, I]]])");
    let data = &table.result()["data"];
    assert!(data["text/html"].as_str().unwrap().contains("&lt;b&gt;</th>"), "{data}");
    assert!(data["text/html"].as_str().unwrap().contains(">2.5</td>"), "{data}");
    assert!(data["text/plain"].as_str().unwrap().starts_with("Table of 2 rows"));
    let matrix = client.execute("matrix([[1, 2], [3, 4]])");
    assert_eq!(matrix.result()["data"]["text/html"].as_str().unwrap().matches("<tr>").count(), 2);

    let plot = client.execute("let t = linspace(0, 6.28, 50);\nplot(t, sin(t), #{ title: \"A <wave>\" })");
    let shown = &plot.of("display_data")[0]["data"];
    let svg = shown["image/svg+xml"].as_str().unwrap();
    assert!(svg.trim_start().starts_with("<svg") && svg.contains("A &lt;wave&gt;"), "{}", &svg[..200]);
    // The signature of a PNG file, in base64.
    assert!(shown["image/png"].as_str().unwrap().starts_with("iVBORw0KGgo"));
    assert!(shown["text/plain"].as_str().unwrap().lines().count() > 10);
    // What goes into a file is shown as well.
    let file = client.execute("plot(t, sin(t), #{ file: \"wave.svg\" })");
    let shown = file.of("display_data");
    assert!(shown.len() == 1 && client.folder().join("wave.svg").exists());
    assert!(shown[0]["data"]["image/svg+xml"].as_str().unwrap().contains("<svg"));

    // Progress is one display, which is changed.
    let work = client.execute(
        "let h = tight_binding(lattice::square(200, 200));\nlet mu = kpm::moments(h, #{ moments: 2000, vectors: 8, \
         seed: 1 });",
    );
    assert_eq!(work.reply["status"], "ok", "{}", work.reply);
    let begun = work.of("display_data");
    if let Some(first) = begun.first() {
        assert!(first["data"]["text/plain"].as_str().unwrap().contains("moments"), "{first}");
        let id = &first["transient"]["display_id"];
        assert!(work.of("update_display_data").iter().all(|change| &change["transient"]["display_id"] == id));
    }
    client.leave();
}

#[test]
fn mistakes_have_carets_and_stop_what_waits() {
    let mut client = Client::start(&[]);
    let failed = client.execute("let a = 1;\nlet b = linspce(0, 1, 2);");
    assert_eq!((&failed.reply["status"], &failed.reply["ename"]), (&json!("error"), &json!("InputError")));
    let traceback: Vec<&str> =
        failed.reply["traceback"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let plain = console::strip_ansi_codes(&traceback.join("\n")).into_owned();
    assert!(
        plain.contains("cell 1:2:9") && plain.contains("^^^^^^^") && plain.contains("did you mean `linspace"),
        "{plain}"
    );
    assert_eq!(failed.of("error")[0]["traceback"], failed.reply["traceback"]);
    // A mistake in a function of an earlier cell lies there.
    client.execute("fn f(x) {\n    x + y\n}");
    let earlier = client.execute("f(1)");
    let plain = earlier.reply["traceback"].to_string();
    assert!(plain.contains("cell 2"), "{plain}");
    assert_eq!(client.execute("let = 3").reply["status"], "error");

    // Cells that were sent before the first one failed do not run, unless they were told to.
    let ids: Vec<String> = ["sleep(0.5); throw \"stop\"", "print(1)", "print(2)"]
        .map(|code| client.send_cell(code, json!({})))
        .to_vec();
    let states: Vec<Value> = ids.iter().map(|id| client.collect(id).reply["status"].clone()).collect();
    assert_eq!(states, ["error", "aborted", "aborted"]);
    let ids: Vec<String> = ["throw \"stop\"", "3"]
        .map(|code| client.send_cell(code, json!({ "stop_on_error": false })))
        .to_vec();
    let states: Vec<Value> = ids.iter().map(|id| client.collect(id).reply["status"].clone()).collect();
    assert_eq!(states, ["error", "ok"]);

    // What is sent once the failure is known runs.
    for _ in 0..50 {
        assert_eq!(client.execute("throw \"stop\"").reply["status"], "error");
        assert_eq!(client.execute("1").reply["status"], "ok");
    }

    // Warnings and notes are on standard error.
    let warned = client.execute("1 / 2");
    assert!(warned.text("stderr").contains("warning"), "{}", warned.text("stderr"));
    client.leave();
}

#[test]
fn work_is_interrupted() {
    let mut client = Client::start(&[]);
    let id = client.send_cell("let x = 1;\nprint(\"begun\");\nloop { x += 1; }", json!({}));
    client.wait_for_text(&id, "begun");
    assert_eq!(client.control("interrupt_request", json!({}))["status"], "ok");
    let stopped = client.collect(&id);
    assert_eq!(
        (&stopped.reply["ename"], &stopped.reply["evalue"]),
        (&json!("Interrupted"), &json!("interrupted"))
    );
    assert_eq!(client.execute("x > 1").result()["data"]["text/plain"], "true");
    // As another way, by a signal.
    #[cfg(unix)]
    {
        let id = client.send_cell("print(\"begun\");\nloop { x += 1; }", json!({}));
        client.wait_for_text(&id, "begun");
        client.signal(libc::SIGINT);
        assert_eq!(client.collect(&id).reply["ename"], "Interrupted");
        // A command of the system ends with all it has started.
        let id = client.send_cell("!echo begun; sleep 1000", json!({}));
        client.wait_for_text(&id, "begun");
        client.control("interrupt_request", json!({}));
        assert_eq!(client.collect(&id).reply["status"], "error");
    }
    assert_eq!(client.execute("1 + 1").result()["data"]["text/plain"], "2");
    // Shut down while something runs.
    let id = client.send_cell("print(\"begun\");\nloop { x += 1; }", json!({}));
    client.wait_for_text(&id, "begun");
    client.leave();
}

#[test]
fn names_are_completed_and_explained() {
    let mut client = Client::start(&[]);
    client.execute("/// Doubles.\nfn double(x) { 2 * x }\nlet d = table([[\"energy\", [1.0, 2.0]]]);");
    let matches = |client: &mut Client, code: &str| {
        let reply =
            client.ask("complete_request", json!({ "code": code, "cursor_pos": code.chars().count() }));
        let whole = |put: &str| {
            let start = reply["cursor_start"].as_u64().unwrap() as usize;
            code.chars().take(start).collect::<String>() + put
        };
        reply["matches"].as_array().unwrap().iter().map(|m| whole(m.as_str().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(matches(&mut client, "lins"), ["linspace("]);
    assert_eq!(matches(&mut client, "dou"), ["double("]);
    assert_eq!(matches(&mut client, "let µ = \"𝒂\"; d.ener"), ["let µ = \"𝒂\"; d.energy"]);
    assert_eq!(
        matches(&mut client, "let here = linspace(0, 1, 3);\nhere.integ"),
        ["let here = linspace(0, 1, 3);\nhere.integrate("]
    );
    assert_eq!(matches(&mut client, "let a = 1;\n%timei"), ["let a = 1;\n%timeit "]);
    assert_eq!(matches(&mut client, "kpm::dos(d, #{\n    vect"), ["kpm::dos(d, #{\n    vectors: "]);
    std::fs::write(client.folder().join("data_file.csv"), "x\n1\n").unwrap();
    assert_eq!(matches(&mut client, "load(\"data_f"), ["load(\"data_file.csv"]);
    assert!(matches(&mut client, "").is_empty());

    let page = |client: &mut Client, code: &str, at: usize, level: u8| {
        let reply =
            client.ask("inspect_request", json!({ "code": code, "cursor_pos": at, "detail_level": level }));
        assert_eq!(reply["status"], "ok");
        reply["data"]["text/plain"].as_str().map(|text| console::strip_ansi_codes(text).into_owned())
    };
    assert!(page(&mut client, "kpm::dos(h)", 6, 0).unwrap().contains("kpm::dos("));
    // Within the brackets of a call: the call.
    assert!(page(&mut client, "kpm::dos(1.0, ", 14, 0).unwrap().contains("kpm::dos("));
    assert!(page(&mut client, "kpm::dos(h)", 6, 1).unwrap().contains("fn dos("));
    assert!(page(&mut client, "d", 1, 0).unwrap().starts_with("d = Table of 2 rows"));
    assert!(page(&mut client, "double", 3, 0).unwrap().contains("Doubles."));
    assert_eq!(page(&mut client, "nothing_at_all", 3, 0), None);

    let complete =
        |client: &mut Client, code: &str| client.ask("is_complete_request", json!({ "code": code }));
    assert_eq!(complete(&mut client, "1 + 1")["status"], "complete");
    assert_eq!(complete(&mut client, "if true {")["indent"], "    ");
    assert_eq!(complete(&mut client, "let = 3")["status"], "invalid");
    assert_eq!(complete(&mut client, "let a = 1\n%time a")["status"], "complete");
    client.leave();
}

#[test]
fn several_notebooks_have_their_own_variables() {
    let (mut one, mut two) = (Client::start(&[]), Client::start(&["--threads", "1"]));
    one.execute("let x = 1;");
    assert_eq!(two.execute("x").reply["status"], "error");
    two.execute("let x = 2;");
    assert_eq!(one.execute("x").result()["data"]["text/plain"], "1");
    one.beats();
    two.beats();
    // What is signed with another key is not heard, and the kernel lives on.
    one.send_with_key(b"another", "execute_request", json!({ "code": "x = 5" }));
    one.send_with_key(KEY, "nothing_request", json!({}));
    assert_eq!(one.execute("x").result()["data"]["text/plain"], "1");
    one.leave();
    two.leave();
}

#[test]
fn a_notebook_of_a_stranger_stays_in_its_folder() {
    let folder = Folder::new("confined");
    let inside = folder.join("inside");
    std::fs::create_dir_all(&inside).unwrap();
    let mut client = Client::start(&["--confine", inside.to_str().unwrap(), "--quiet"]);
    let outside = client.execute(&format!("linspace(0, 1, 3).save({:?})", folder.join("a.csv")));
    assert_eq!(outside.reply["status"], "error");
    assert_eq!(client.execute("linspace(0, 1, 3).save(\"a.csv\")").reply["status"], "ok");
    assert!(inside.join("a.csv").exists() && !folder.join("a.csv").exists());
    assert_eq!(client.execute("!ls").reply["status"], "error");
    client.leave();
}

#[test]
fn the_session_ends_itself() {
    let mut client = Client::start(&[]);
    let left = client.execute("exit");
    assert_eq!(left.reply["payload"][0]["source"], "ask_exit");
    client.ends(0);
    let mut client = Client::start(&[]);
    assert_eq!(client.execute("exit(3)").reply["status"], "ok");
    client.ends(3);
}

#[test]
fn a_file_that_is_no_connection_is_refused() {
    let folder = Folder::new("refused");
    let file = folder.join("connection.json");
    for (text, words) in [("{}", "`shell_port` is no port"), ("x", "no connection file")] {
        std::fs::write(&file, text).unwrap();
        let ended =
            client::program().args(["jupyter", "kernel", "--connection-file"]).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success() && said.contains(words), "{said}");
    }
    let ended = client::program().args(["jupyter", "install", "--", "--no-such"]).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
}

#[test]
fn the_gallery_runs_and_holds_no_outputs() {
    let found = gallery();
    assert_eq!(found.len(), 4);
    for path in found {
        let notebook: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for cell in notebook["cells"].as_array().unwrap() {
            let empty = cell["cell_type"] != "code"
                || (cell["outputs"] == json!([]) && cell["execution_count"].is_null());
            assert!(empty, "{} has outputs", path.display());
        }
        let mut client = Client::start(&[]);
        let mut pictures = 0;
        for code in cells(&path) {
            let done = client.execute(&code);
            assert_eq!(done.reply["status"], "ok", "{}: {code}\n{}", path.display(), done.reply);
            pictures += done
                .of("display_data")
                .iter()
                .filter(|shown| shown["data"].get("image/png").is_some())
                .count();
        }
        assert!(pictures > 0, "{} shows no picture", path.display());
        client.leave();
    }
}

/// Jupyter's own client, where Python has it; `PYTHON` names which.
#[test]
fn jupyters_own_client_is_served() {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let there = Command::new(&python).args(["-c", "import jupyter_client"]).output();
    if !there.is_ok_and(|ended| ended.status.success()) {
        eprintln!("skipped: `{python}` has no jupyter_client");
        return;
    }
    let folder = Folder::new("python");
    let installed =
        client::program().args(["jupyter", "install", "--prefix"]).arg(&*folder).output().unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let ended = Command::new(&python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jupyter/client.py"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/notebooks"))
        .current_dir(&folder)
        .env("JUPYTER_PATH", folder.join("share/jupyter"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
}
