//! The program: parse the command line, do it, exit with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    umklapp::cli::main()
}
