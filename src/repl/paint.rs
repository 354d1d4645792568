//! The colours of the session: the terminal's own sixteen, so that they fit its theme.

fn paint(code: &str, text: &str) -> String {
    // Each line is coloured by itself, since the editor may redraw one.
    let lines: Vec<String> = text.split('\n').map(|line| format!("\x1b[{code}m{line}\x1b[0m")).collect();
    lines.join("\n")
}

pub(super) fn prompt(text: &str) -> String {
    paint("32", text)
}

pub(super) fn keyword(text: &str) -> String {
    paint("35", text)
}

pub(super) fn text(text: &str) -> String {
    paint("33", text)
}

pub(super) fn number(text: &str) -> String {
    paint("36", text)
}

pub(super) fn faint(text: &str) -> String {
    paint("2", text)
}

pub(super) fn partner(text: &str) -> String {
    paint("1;4", text)
}

pub(super) fn bold(text: &str) -> String {
    paint("1", text)
}
