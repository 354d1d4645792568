//! The CUDA driver, bound when it is first asked for: one program serves machines with and without one. The functions
//! that `cust_raw` declares are defined here as jumps through a table, which `bind` fills from `libcuda.so.1`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use cust::error::CudaError;
use cust::sys;

use crate::error::{Error, Result};

/// What every function does until the driver is bound: CUDA_ERROR_NOT_INITIALIZED.
extern "C" fn missing() -> i32 {
    3
}

macro_rules! forward {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        const COUNT: usize = NAMES.len();

        static TABLE: [AtomicPtr<()>; COUNT] =
            [const { AtomicPtr::new(missing as *const () as *mut ()) }; COUNT];

        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(usize)]
        enum Slot { $($name),* }

        #[allow(non_snake_case)]
        mod symbols {
            use super::{Slot, TABLE};
            $(
                // SAFETY: arguments and stack are left as they are, so that the function jumped to sees its caller's.
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                unsafe extern "C" fn $name() {
                    #[cfg(target_arch = "x86_64")]
                    core::arch::naked_asm!(
                        "mov r11, qword ptr [rip + {table} + {offset}]",
                        "jmp r11",
                        table = sym TABLE,
                        offset = const Slot::$name as usize * 8,
                    );
                    #[cfg(target_arch = "aarch64")]
                    core::arch::naked_asm!(
                        "adrp x16, {table}",
                        "add x16, x16, :lo12:{table}",
                        "ldr x16, [x16, #{offset}]",
                        "br x16",
                        table = sym TABLE,
                        offset = const Slot::$name as usize * 8,
                    );
                }
            )*
        }
    };
}

forward! {
    cuCtxEnablePeerAccess
    cuCtxSetCurrent
    cuDeviceCanAccessPeer
    cuDeviceGet
    cuDeviceGetAttribute
    cuDeviceGetCount
    cuDeviceGetName
    cuDeviceGetUuid_v2
    cuDevicePrimaryCtxRelease_v2
    cuDevicePrimaryCtxRetain
    cuDeviceTotalMem_v2
    cuEventCreate
    cuEventDestroy_v2
    cuEventQuery
    cuEventRecord
    cuEventSynchronize
    cuFuncSetAttribute
    cuGetErrorString
    cuGraphDestroy
    cuGraphExecDestroy
    cuGraphInstantiateWithFlags
    cuGraphLaunch
    cuInit
    cuIpcGetMemHandle
    cuIpcOpenMemHandle_v2
    cuLaunchCooperativeKernel
    cuLaunchKernel
    cuMemAlloc_v2
    cuMemFree_v2
    cuMemFreeHost
    cuMemGetInfo_v2
    cuMemHostAlloc
    cuMemcpyDtoDAsync_v2
    cuMemcpyDtoHAsync_v2
    cuMemcpyHtoDAsync_v2
    cuMemcpyPeerAsync
    cuMemsetD8Async
    cuModuleGetFunction
    cuModuleLoadDataEx
    cuModuleUnload
    cuOccupancyMaxActiveBlocksPerMultiprocessor
    cuStreamBeginCapture_v2
    cuStreamCreateWithPriority
    cuStreamDestroy_v2
    cuStreamEndCapture
    cuStreamSynchronize
    cuStreamWaitEvent
    cuStreamWriteValue32_v2
}

/// Binds the driver, once.
///
/// # Errors
/// When this machine has none, or it is too old.
pub(super) fn bind() -> Result<()> {
    static BOUND: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    let bound = BOUND.get_or_init(|| {
        // SAFETY: the driver's library is made to be loaded; it stays loaded until the program ends.
        let library = unsafe { libloading::Library::new("libcuda.so.1") }
            .map_err(|_| "no NVIDIA driver is installed (libcuda.so.1 is missing)".to_string())?;
        let library = Box::leak(Box::new(library));
        for (name, slot) in NAMES.iter().zip(&TABLE) {
            // SAFETY: only the address is taken; the types are those that `cust_raw` declares.
            if let Ok(symbol) = unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) } {
                slot.store(*symbol as *const () as *mut (), Ordering::Release);
            }
        }
        Ok(())
    });
    bound.clone().map_err(|text| Error::backend(text).hint("use `--backend cpu`"))
}

// Functions that `cust_raw` declares in an older form.
unsafe extern "C" {
    /// What the GPU says of itself, asked by the number of an attribute, which may be newer than `cust_raw`.
    pub(super) fn cuDeviceGetAttribute(
        value: *mut i32,
        attribute: i32,
        device: sys::CUdevice,
    ) -> sys::CUresult;

    /// A number that no other GPU has, nor another part of a GPU that is divided.
    pub(super) fn cuDeviceGetUuid_v2(uuid: *mut [u64; 2], device: sys::CUdevice) -> sys::CUresult;

    /// Lets a stream write a number to memory that the GPU reaches, after all that is queued (flags: 0).
    pub(super) fn cuStreamWriteValue32_v2(
        stream: sys::CUstream,
        address: u64,
        value: u32,
        flags: u32,
    ) -> sys::CUresult;
}

pub(super) const SUCCESS: sys::CUresult = sys::cudaError_enum::CUDA_SUCCESS;

/// What the driver says of a piece of work.
pub(super) fn check(what: &str, status: sys::CUresult) -> Result<()> {
    if status == SUCCESS { Ok(()) } else { Err(Error::backend(format!("{what}: {status:?}"))) }
}

pub(super) fn failure(what: &str, e: CudaError) -> Error {
    Error::backend(format!("{what}: {e}"))
}
