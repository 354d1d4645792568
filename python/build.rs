//! Sends `abort` of this library, and of no other, to `__wrap_abort` in `src/memory.rs`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--wrap=abort");
    }
}
