//! The available memory, checked before large arrays are allocated, so a request beyond it gives an error message and
//! no abort. Allocations without this check meet the program's allocator, [`WatchedAllocator`], which refuses requests
//! that do not fit.

mod allocator;
mod emergency;
mod limits;
mod read;

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

pub use allocator::{Refused, WatchedAllocator, forget_refusal, unwind_if_refused};
pub use limits::{UsableMemory, available, restrict, usable};
pub use read::{open, read};

/// Requests below this size are not looked at one by one.
const SMALL: u128 = 1 << 16;
/// So much of them, together, is.
const TOGETHER: u64 = 1 << 21;
/// What was asked for since the system was last asked.
static UNASKED: AtomicU64 = AtomicU64::new(0);

/// What the standard library says of sizes that no machine can have.
const OVERFLOW: &str = "capacity overflow";

/// How the panics of `faer` begin whose matrices found no memory, and what they say of sizes that no machine can have.
const UNWRAPPED: &str = "called `Result::unwrap()` on an `Err` value: AllocError";
const UNWRAPPED_SIZE: &str = "called `Result::unwrap()` on an `Err` value: CapacityOverflow";

/// Begins to watch the memory: finds out how much there is, from when on the allocator refuses more. Called by programs
/// and libraries whose allocator is [`WatchedAllocator`], before they run scripts.
pub fn watch() {
    available();
    let before = std::panic::take_hook();
    // If memory was refused, the script gets an error, and a panic message beside it would only confuse.
    std::panic::set_hook(Box::new(move |info| {
        if panic_of_memory(info.payload()).is_none() {
            before(info);
        }
    }));
}

/// The error behind a panic that tells of memory refused, else nothing: [`Refused`], sizes beyond all addresses, and
/// the `unwrap` of a failed allocation inside a library.
pub fn panic_of_memory(payload: &(dyn Any + Send)) -> Option<Error> {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    if let Some(Refused { bytes }) = payload.downcast_ref() {
        let (asked, free) = (human(*bytes), human(available()));
        let error = Error::memory(format!("{asked} more are asked for, and {free} of memory are free"));
        return Some(match limits::last_cache() {
            Some(cache) if *bytes as u64 == 2 * cache => error.hint(
                "the first product of larger matrices takes twice the processor's last cache: allow this much more",
            ),
            _ => error.hint("ask for fewer elements, or let go of what is not needed: `x = ();`"),
        });
    }
    let text = text?;
    if text.starts_with(UNWRAPPED) {
        return Some(
            Error::memory(format!(
                "a matrix needs more memory than the {} that are free",
                human(available())
            ))
            .hint("ask for fewer elements, or let go of what is not needed: `x = ();`"),
        );
    }
    (text == OVERFLOW || text == UNWRAPPED_SIZE).then(|| {
        Error::memory("more elements are asked for than any memory holds").hint("ask for fewer elements")
    })
}

/// An error unless `bytes` can be allocated; `what` is the thing that needs them, for the message.
///
/// # Errors
/// [`crate::error::ErrorKind::Memory`] when more is asked for than is available.
pub fn ensure(bytes: u128, what: &str) -> Result<()> {
    // The system is asked once for many small things, which the reserve has room for.
    if bytes < SMALL {
        let sum = UNASKED.fetch_add(bytes as u64 + 1, Ordering::Relaxed);
        if sum < TOGETHER {
            return Ok(());
        }
    }
    UNASKED.store(0, Ordering::Relaxed);
    let free = available();
    if bytes.saturating_add(limits::reserve().into()) > u128::from(free) {
        return Err(Error::memory(format!("{what} takes {}, and {} are free", human(bytes), human(free)))
            .hint("ask for fewer sites, states or elements"));
    }
    Ok(())
}

/// Bytes for people: `4.2 MB`.
pub fn human(bytes: impl TryInto<u128>) -> String {
    let bytes = bytes.try_into().unwrap_or(u128::MAX);
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
        assert!(ensure(u128::MAX, "a vector").is_err());
        assert_eq!(human(999), "999 B");
    }

    #[test]
    fn refusals_of_the_first_product_say_what_asks() {
        let hint = |bytes: u64| {
            let error = panic_of_memory(&Refused { bytes: bytes as usize }).expect("a refusal");
            error.hint_text().expect("a hint").to_string()
        };
        assert!(hint(1000).starts_with("ask for fewer elements"));
        let of_the_product = limits::last_cache().map(|cache| hint(2 * cache));
        assert!(of_the_product.is_none_or(|hint| hint.contains("the processor's last cache")));
    }

    #[test]
    fn a_matrix_of_faer_without_memory_is_no_bug() {
        let panic = std::panic::catch_unwind(|| faer::Mat::<f64>::zeros(1 << 28, 1 << 28)).unwrap_err();
        let e = panic_of_memory(&*panic).expect("a panic of memory");
        assert!(e.message().contains("matrix") || e.message().contains("any memory"), "{e}");
        let panic = std::panic::catch_unwind(|| faer::Mat::<f64>::zeros(1 << 32, 1 << 32)).unwrap_err();
        assert!(panic_of_memory(&*panic).is_some());
        let text: std::result::Result<(), &str> = std::hint::black_box(Err("AllocError"));
        let bug = std::panic::catch_unwind(|| text.unwrap()).unwrap_err();
        assert!(panic_of_memory(&*bug).is_none());
    }
}
