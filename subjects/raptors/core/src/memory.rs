//! Memory for results. Freed large blocks are cached for the next result of the same size.
//!
//! A new block of a megabyte causes a page fault every 4 KiB, which takes longer than filling it. Therefore blocks from
//! [`KEPT_FROM`] are cached, up to `RAPTORS_CACHE_MB` in total, and blocks of at least 2 MiB request huge pages.

use crate::dispatch;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Mutex;

/// Alignment of every block: a cache line, and the widest vector.
const ALIGNMENT: usize = 64;
const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;
/// Smaller blocks are left to malloc, which caches them itself.
pub const KEPT_FROM: usize = 32 << 10;

/// Owned memory, uninitialized when it is new.
#[derive(Debug)]
pub struct Block {
    at: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block is the only owner of its memory.
unsafe impl Send for Block {}
// SAFETY: a shared block is only read.
unsafe impl Sync for Block {}

impl Block {
    /// A block for `len` elements; `None` if there is not enough memory.
    pub fn of<T>(len: usize) -> Option<Self> {
        let layout = layout(len.checked_mul(size_of::<T>())?)?;
        if layout.size() >= KEPT_FROM
            && let Ok(mut cache) = CACHE.try_lock()
            && let Some(at) = cache.take(layout.size())
        {
            return Some(Self { at, layout });
        }
        // SAFETY: the layout has a nonzero size.
        let at = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        if layout.size() >= HUGE_PAGE {
            ask_for_huge_pages(at, layout.size());
        }
        Some(Self { at, layout })
    }

    /// Pointer to its start.
    pub fn as_ptr<T>(&self) -> *mut T {
        self.at.as_ptr().cast()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Self { at, layout } = *self;
        if layout.size() >= KEPT_FROM
            && let Ok(mut cache) = CACHE.try_lock()
        {
            cache.keep(at, layout);
        } else {
            // SAFETY: it was allocated with this layout and nobody else has it.
            unsafe { std::alloc::dealloc(at.as_ptr(), layout) };
        }
    }
}

/// Sizes are rounded, so that results of similar shapes share blocks.
fn layout(bytes: usize) -> Option<Layout> {
    let (unit, alignment) = match bytes {
        HUGE_PAGE.. => (PAGE, HUGE_PAGE),
        KEPT_FROM.. => (PAGE, PAGE),
        _ => (ALIGNMENT, ALIGNMENT),
    };
    Layout::from_size_align(bytes.max(1).checked_next_multiple_of(unit)?, alignment).ok()
}

fn ask_for_huge_pages(at: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: the range is owned by this block. The advice does not change the content.
    unsafe {
        libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (at, bytes);
}

/// If it is locked, it is not used: another thread holds the lock, or held it when this process was forked.
static CACHE: Mutex<Cache> = Mutex::new(Cache { blocks: Vec::new(), bytes: 0 });

/// Free blocks, oldest first.
struct Cache {
    blocks: Vec<(NonNull<u8>, Layout)>,
    bytes: usize,
}

// SAFETY: the cache is the only owner of the memory in it.
unsafe impl Send for Cache {}

impl Cache {
    fn take(&mut self, size: usize) -> Option<NonNull<u8>> {
        let found = self.blocks.iter().rposition(|(_, layout)| layout.size() == size)?;
        self.bytes -= size;
        Some(self.blocks.remove(found).0)
    }

    /// Adds a block, and frees the oldest ones above the limit.
    fn keep(&mut self, at: NonNull<u8>, layout: Layout) {
        self.blocks.push((at, layout));
        self.bytes += layout.size();
        while self.bytes > dispatch::current().cache_bytes && !self.blocks.is_empty() {
            let (at, layout) = self.blocks.remove(0);
            self.bytes -= layout.size();
            // SAFETY: it was allocated with this layout and nobody else has it.
            unsafe { std::alloc::dealloc(at.as_ptr(), layout) };
        }
    }
}
