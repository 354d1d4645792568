//! The Rust programs of `examples/` do what they say: each checks its own results.

use std::process::ExitCode;

#[path = "../examples/embed.rs"]
mod embed;
#[path = "../examples/own_operator.rs"]
mod own_operator;

/// Exit codes cannot be compared, but they can be shown.
fn succeeds(code: ExitCode) {
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
}

#[test]
fn a_script_runs_inside_a_program() {
    succeeds(embed::main());
}

#[test]
fn an_own_operator_works_in_every_method() {
    succeeds(own_operator::main());
}
