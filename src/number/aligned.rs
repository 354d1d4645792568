//! Vectors of numbers aligned for vector loads and large pages.

use std::collections::TryReserveError;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Bytes of a large page. With small pages, kernels that read from many places at once would have to look up too many
/// page addresses.
const PAGE: usize = 2 << 20;

/// A vector of numbers that begins at a cache line, so that no vector load crosses one. A large vector begins at a
/// large page, which the system is asked for and may refuse.
#[derive(Debug)]
pub struct Aligned<F> {
    data: Vec<F>,
    /// Elements before the first.
    skip: usize,
}

impl<F: Copy + Default> Aligned<F> {
    /// An empty vector with room for `count` elements.
    ///
    /// # Errors
    /// When the system refuses the memory.
    pub fn with_room(count: usize) -> Result<Self, TryReserveError> {
        let bytes = count.saturating_mul(size_of::<F>());
        let large = bytes > 2 * PAGE;
        let pad = if large { PAGE } else { LINE } / size_of::<F>();
        let mut data: Vec<F> = Vec::new();
        data.try_reserve_exact(count.saturating_add(pad))?;
        let skip = data.as_ptr().align_offset(pad * size_of::<F>()).min(pad);
        if large {
            advise(data.as_mut_ptr().wrapping_add(skip).cast(), bytes);
        }
        data.resize(skip, F::default());
        Ok(Aligned { data, skip })
    }

    /// `count` zeros.
    ///
    /// # Errors
    /// When the system refuses the memory.
    pub fn zeros(count: usize) -> Result<Self, TryReserveError> {
        let mut new = Self::with_room(count)?;
        new.data.resize(new.skip + count, F::default());
        Ok(new)
    }

    /// The `count` elements behind the last one, not yet written, of the room there is.
    pub fn spare(&mut self, count: usize) -> &mut [MaybeUninit<F>] {
        &mut self.data.spare_capacity_mut()[..count]
    }

    /// Counts `count` elements more as written.
    ///
    /// # Safety
    /// All that many elements of [`Aligned::spare`] have been written.
    pub unsafe fn written(&mut self, count: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.data.set_len(self.data.len() + count) }
    }
}

impl<F> Aligned<F> {
    /// Bytes taken from the system.
    pub fn bytes(&self) -> usize {
        self.data.capacity() * size_of::<F>()
    }
}

impl<F: Copy + Default> Clone for Aligned<F> {
    fn clone(&self) -> Self {
        match Self::with_room(self.len()) {
            Ok(mut copy) => {
                copy.data.extend_from_slice(self);
                copy
            }
            // As any vector that the system has no room for.
            Err(_) => Aligned { data: self.to_vec(), skip: 0 },
        }
    }
}

impl<F> Deref for Aligned<F> {
    type Target = [F];
    fn deref(&self) -> &[F] {
        &self.data[self.skip..]
    }
}

impl<F> DerefMut for Aligned<F> {
    fn deref_mut(&mut self) -> &mut [F] {
        &mut self.data[self.skip..]
    }
}

fn advise(at: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: the range lies in memory that is ours; the advice does not change what it holds.
    unsafe {
        libc::madvise(at.cast(), bytes, libc::MADV_HUGEPAGE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (at, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_begin_where_loads_like_it() {
        for count in [1, 1000, 3 << 20] {
            let x = Aligned::<f32>::zeros(count).expect("little memory");
            assert_eq!((x.len(), x.as_ptr() as usize % LINE), (count, 0));
            assert_eq!(x.clone().len(), count);
        }
    }
}
