//! An allocator that ends the program with a sentence and exit code 1 when memory runs out. The standard library's
//! aborts, whose signal and backtrace look like a defect.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

const NO_MEMORY: &[u8] =
    b"narrows: memory ran out; allow more (ulimit -v), or ask for less at once\n";

/// The system's allocator, which never returns null.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExitingAllocator;

fn checked(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        // Standard error has no buffer, and allocates nothing.
        let _ = std::io::stderr().write_all(NO_MEMORY);
        // SAFETY: `_exit` may be called anywhere, and runs no handlers that would allocate.
        unsafe { libc::_exit(1) }
    }
    memory
}

// SAFETY: all calls go to the system's allocator with the caller's arguments.
unsafe impl GlobalAlloc for ExitingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is that of the system's allocator.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is that of the system's allocator.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract is that of the system's allocator.
        checked(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is that of the system's allocator.
        unsafe { System.dealloc(memory, layout) };
    }
}
