//! Replaces the build helper that `cust_raw` calls. The driver is bound at run time (`src/backend/cuda/driver`), so a
//! build needs neither toolkit nor libcuda, and nothing has to be found or linked.

use std::path::PathBuf;

/// Would point the linker at an installed toolkit; there is nothing to link.
pub fn include_cuda() {}

/// The installed toolkit, which no part of this build uses.
pub fn find_cuda_root() -> Option<PathBuf> {
    None
}

/// The toolkit's library folders, which no part of this build uses.
pub fn find_cuda_lib_dirs() -> Vec<PathBuf> {
    Vec::new()
}
