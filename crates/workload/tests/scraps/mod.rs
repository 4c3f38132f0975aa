//! Texts that are often nearly right: a right one with scraps in it.

use proptest::prelude::*;
use proptest::sample::Index;

/// A scrap in place of up to some bytes of the text.
pub type Edit = (Index, usize, &'static str);

/// Edits with these scraps, each of fewer than `longest` bytes.
pub fn edit(scraps: &[&'static str], longest: usize) -> impl Strategy<Value = Edit> + use<> {
    (any::<Index>(), 0..longest, prop::sample::select(scraps.to_vec()))
}

/// `text` with all edits made, in order.
pub fn edited(mut text: String, edits: Vec<Edit>) -> String {
    for (at, length, scrap) in edits {
        let boundary =
            |i: usize| (i..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(text.len());
        let start = boundary(at.index(text.len() + 1));
        let end = boundary((start + length).min(text.len()));
        text.replace_range(start..end, scrap);
    }
    text
}
