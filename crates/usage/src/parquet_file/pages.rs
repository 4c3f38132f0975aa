//! Validates pages of a column before they are decoded: the decoder panics on damaged ones.

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::ColumnDescriptor;

/// Does the column lie within the file? `bytes` is the file's length.
pub fn check_place(column: &ColumnChunkMetaData, bytes: usize) -> Result<()> {
    let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let end = begin.checked_add(column.compressed_size());
    let within = end.is_some_and(|end| end <= bytes as i64);
    if begin < 0 || column.compressed_size() < 0 || column.num_values() < 0 || !within {
        return Err(damaged("a column lies outside of it"));
    }
    Ok(())
}

/// Passes on only pages that decode safely.
pub struct Sound {
    inner: Box<dyn PageReader>,
    /// Text rather than numbers; its cells are not null.
    text: bool,
    /// Pages begin with definition levels.
    optional: bool,
    dictionary_seen: bool,
}

impl Sound {
    pub fn new(inner: Box<dyn PageReader>, column: &ColumnDescriptor) -> Sound {
        let text = column.physical_type() == Type::BYTE_ARRAY;
        Sound { inner, text, optional: column.max_def_level() > 0, dictionary_seen: false }
    }

    fn checked(&mut self, mut page: Page) -> Result<Page> {
        let (values, count) = (self.values(&page)?, page.num_values());
        match page.encoding() {
            _ if matches!(page, Page::DictionaryPage { .. }) => {
                if self.text {
                    check_texts(values, count)?;
                }
                self.dictionary_seen = true;
            }
            Encoding::PLAIN if self.text => check_texts(values, count)?,
            Encoding::PLAIN => {}
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                if !self.dictionary_seen {
                    return Err(damaged("a page refers to a dictionary that is not there"));
                }
            }
            Encoding::DELTA_BINARY_PACKED if !self.text => {
                // No numbers: the decoder would underflow if asked for one.
                if values.is_empty() || delta_count(values)? == 0 {
                    match &mut page {
                        Page::DataPage { encoding, .. } | Page::DataPageV2 { encoding, .. } => {
                            *encoding = Encoding::PLAIN;
                        }
                        Page::DictionaryPage { .. } => {}
                    }
                }
            }
            other => return Err(damaged(&format!("a page has the encoding {other}"))),
        }
        Ok(page)
    }

    /// The part of a page after its levels.
    fn values<'a>(&self, page: &'a Page) -> Result<&'a [u8]> {
        let (bytes, levels) = match page {
            Page::DictionaryPage { buf, .. } => (buf, 0),
            Page::DataPage { def_level_encoding, .. } if *def_level_encoding != Encoding::RLE => {
                return Err(damaged("its empty cells are in an encoding that no writer uses"));
            }
            Page::DataPage { buf, .. } if self.optional => {
                let length = buf.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
                (buf, length.map_or(usize::MAX, |length| length as usize + 4))
            }
            Page::DataPage { buf, .. } => (buf, 0),
            Page::DataPageV2 {
                buf,
                num_values,
                num_nulls,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                if num_nulls > num_values {
                    return Err(damaged("a page has more empty cells than cells"));
                }
                (buf, *def_levels_byte_len as usize + *rep_levels_byte_len as usize)
            }
        };
        bytes.get(levels..).ok_or_else(|| damaged("a page is shorter than it says"))
    }
}

/// Does the page hold `count` texts, each preceded by its length?
fn check_texts(mut values: &[u8], count: u32) -> Result<()> {
    for _ in 0..count {
        let text = values
            .split_first_chunk::<4>()
            .and_then(|(length, rest)| rest.get(u32::from_le_bytes(*length) as usize..));
        values = text.ok_or_else(|| damaged("a page has less text than it says"))?;
    }
    Ok(())
}

/// Number of values in a delta-encoded page. Walks its blocks, because the decoder panics at an
/// unterminated number. The decoder itself reports missing values.
fn delta_count(mut values: &[u8]) -> Result<u64> {
    let mut header = [0; 4];
    for number in &mut header {
        *number = take_number(&mut values)?;
    }
    let [block, parts, count, _] = header;
    let part = block.checked_div(parts).ok_or_else(|| damaged("a page has blocks of no parts"))?;
    let mut left = count.saturating_sub(1);
    while left > 0 && !values.is_empty() {
        let _least = take_number(&mut values)?;
        let widths = values.split_off(..parts.min(values.len() as u64) as usize);
        for &width in widths.unwrap_or_default() {
            if left == 0 {
                break;
            }
            let bytes = part / 8 * u64::from(width);
            values = values.get(bytes.min(values.len() as u64) as usize..).unwrap_or_default();
            left = left.saturating_sub(part);
        }
    }
    Ok(count)
}

/// Takes a varint from the front: seven bits per byte, the last byte below 128.
fn take_number(values: &mut &[u8]) -> Result<u64> {
    const LONGEST: usize = 10;
    let length = values.iter().take(LONGEST).position(|byte| byte & 0x80 == 0);
    let number = length.and_then(|last| values.split_off(..=last));
    let number = number.ok_or_else(|| damaged("a page has a number that does not end"))?;
    Ok(number.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)))
}

fn damaged(how: &str) -> ParquetError {
    ParquetError::General(format!("it is damaged: {how}"))
}

impl Iterator for Sound {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Sound {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        page.map(|page| self.checked(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use super::delta_count;

    #[test]
    fn numbers_in_delta_encoding_end() {
        let long = [0x80; 11];
        // Blocks of 128 in 4 parts; 34 numbers from 0 on, whose differences take a byte.
        let header = [0x80, 1, 4, 34, 0];
        let block = [&[2, 8, 8, 8, 8][..], &[1; 64]].concat();
        assert_eq!(delta_count(&[&header[..], &block].concat()).unwrap(), 34);
        assert_eq!(delta_count(&[&header[..], &block, &long].concat()).unwrap(), 34);
        for place in 0..header.len() {
            assert!(delta_count(&[&header[..place], &long].concat()).is_err(), "{place}");
        }
        assert!(delta_count(&[&header[..], &long].concat()).is_err());
        // 200 numbers need a second block, behind four parts of 32 bytes.
        let header = [0x80, 1, 4, 200, 1, 0];
        let block = [&[2, 8, 8, 8, 8][..], &[1; 128]].concat();
        assert!(delta_count(&[&header[..], &block, &long].concat()).is_err());
        assert_eq!(delta_count(&[&header[..], &block, &[2]].concat()).unwrap(), 200);
    }
}
