//! The pages of a pipe: which messages they hold, and when there is room.

/// Pages of a pipe: PIPE_DEF_BUFFERS.
const PIPE_PAGES: usize = 16;

/// Bytes of a page.
pub(crate) const PAGE: u32 = 4096;

/// The pages of a pipe, as a ring.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    /// Bytes to be read in each.
    unread: [u16; PIPE_PAGES],
    first: u8,
    pub(crate) used: u8,
    /// Where the next small write goes on in the last page.
    fill: u16,
    /// A message of several pages found too few. The kernel would write a part of it and
    /// fill the pipe; here it waits whole, and the pipe counts as full.
    pub(crate) refused: bool,
}

impl Pages {
    pub(crate) const EMPTY: Pages =
        Pages { unread: [0; PIPE_PAGES], first: 0, used: 0, fill: 0, refused: false };

    #[inline]
    pub(crate) fn full(&self) -> bool {
        usize::from(self.used) == PIPE_PAGES
    }

    /// Bytes of a write that go to the last page: those beyond whole pages, if they fit.
    #[inline]
    fn merged(&self, bytes: u32, merges: bool) -> u32 {
        let odd = bytes % PAGE;
        if merges && self.used > 0 && u32::from(self.fill) + odd <= PAGE { odd } else { 0 }
    }

    /// Is there room for all of a message?
    #[inline]
    pub(crate) fn fits(&self, bytes: u32, merges: bool) -> bool {
        bytes <= PAGE && !self.full() || self.fits_whole(bytes, merges)
    }

    #[inline(never)]
    fn fits_whole(&self, bytes: u32, merges: bool) -> bool {
        let pages = (bytes - self.merged(bytes, merges)).div_ceil(PAGE);
        usize::from(self.used) + pages as usize <= PIPE_PAGES
    }

    /// Takes in a message if there is room for all of it.
    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: u32, merges: bool) -> bool {
        if !(1..PAGE).contains(&bytes) || self.full() {
            return self.put_whole(bytes, merges);
        }
        let mut at = usize::from(self.first + self.used);
        if merges && self.used > 0 && u32::from(self.fill) + bytes <= PAGE {
            at -= 1;
            self.unread[at % PIPE_PAGES] += bytes as u16;
            self.fill += bytes as u16;
        } else {
            self.unread[at % PIPE_PAGES] = bytes as u16;
            self.used += 1;
            self.fill = bytes as u16;
        }
        true
    }

    /// Of any size, and into a full pipe.
    #[inline(never)]
    fn put_whole(&mut self, bytes: u32, merges: bool) -> bool {
        let merged = self.merged(bytes, merges);
        if !self.fits(bytes, merges) {
            self.refused = !self.full();
            return false;
        }
        if merged > 0 {
            let last = usize::from(self.first + self.used - 1) % PIPE_PAGES;
            self.unread[last] += merged as u16;
            self.fill += merged as u16;
        }
        let mut left = bytes - merged;
        while left > 0 {
            let page = left.min(PAGE) as u16;
            self.unread[usize::from(self.first + self.used) % PIPE_PAGES] = page;
            self.used += 1;
            self.fill = page;
            left -= u32::from(page);
        }
        true
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, bytes: u32) {
        let page = &mut self.unread[usize::from(self.first) % PIPE_PAGES];
        if bytes < u32::from(*page) {
            *page -= bytes as u16;
            return;
        }
        let mut left = bytes;
        while left > 0 {
            let page = &mut self.unread[usize::from(self.first) % PIPE_PAGES];
            let part = left.min(u32::from(*page));
            *page -= part as u16;
            left -= part;
            if *page == 0 {
                self.first = (self.first + 1) % PIPE_PAGES as u8;
                self.used -= 1;
            }
        }
    }

    /// Unread bytes in all pages.
    #[cfg(any(test, debug_assertions))]
    pub(crate) fn bytes(&self) -> u64 {
        assert!(usize::from(self.used) <= PIPE_PAGES, "{self:?}");
        let page = |n| usize::from(self.first + n) % PIPE_PAGES;
        (0..self.used).map(|n| u64::from(self.unread[page(n)])).sum()
    }
}
