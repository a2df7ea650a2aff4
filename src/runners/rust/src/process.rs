//! What Linux knows of this process.

use std::ffi::{c_int, c_long};
use std::fs;

/// Memory that the process held at most, in bytes; None where Linux does not tell.
pub fn peak_memory() -> Option<u64> {
    let text = status("VmHWM")?;
    let kilobytes: u64 = text.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The cores that it may use, such as `0-1`.
pub fn cpus_allowed() -> Option<String> {
    status("Cpus_allowed_list")
}

/// The mapped file that holds ONNX Runtime.
pub fn library_file() -> Option<String> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let mut files = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]));
    files
        .find(|file| file.contains("libonnxruntime.so"))
        .map(str::to_owned)
}

fn status(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut values = status
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    values.next().map(|value| value.trim().to_owned())
}

/// `CLOCK_MONOTONIC`, which `Instant` reads too but does not show.
pub fn monotonic_ns() -> u64 {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: c_long,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    }
    const CLOCK_MONOTONIC: c_int = 1;
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: Linux's C library on 64-bit machines, whose time holds two 64-bit numbers.
    let code = unsafe { clock_gettime(CLOCK_MONOTONIC, &mut time) };
    assert_eq!(code, 0, "every Linux has a monotonic clock");
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}
