//! How much memory there is, asked before large arrays are allocated, so that a request beyond it is a sentence and
//! not an abort.

use crate::error::{Error, Result};

/// Bytes of main memory that can be allocated now (`MemAvailable` of `/proc/meminfo`); where the system does not say,
/// 2^40.
pub fn available() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else {
        return 1 << 40;
    };
    text.lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok())
        .map_or(1 << 40, |kib| kib.saturating_mul(1024))
}

/// An error unless `bytes` can be allocated; `what` is the thing that needs them, for the message.
///
/// # Errors
/// [`crate::error::Kind::Memory`] when more is asked for than is available.
pub fn ensure(bytes: u128, what: &str) -> Result<()> {
    let free = available();
    if bytes > u128::from(free) {
        return Err(Error::memory(format!(
            "{what} takes {}, and {} are free",
            human(bytes),
            human(free.into())
        ))
        .hint("ask for fewer sites, states or elements"));
    }
    Ok(())
}

/// Bytes for people: `4.2 MB`.
pub fn human(bytes: u128) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_an_error() {
        assert!(ensure(1000, "a vector").is_ok());
        let e = ensure(u128::from(u64::MAX), "a vector").unwrap_err();
        assert!(e.message().starts_with("a vector takes 18.4 EB"), "{e}");
        assert_eq!(human(999), "999 B");
    }
}
