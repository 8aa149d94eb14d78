//! Reads columns of words as indices: a page has them already where it uses a dictionary, and a million rows of two
//! words are not a million copies of them.

use super::{Data, Values};
use bytes::{Buf, Bytes};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The encodings of pages that are read here; other pages are read by the library, value by value.
pub(crate) const ENCODINGS: [Encoding; 4] = [
    Encoding::PLAIN,
    Encoding::RLE,
    Encoding::PLAIN_DICTIONARY,
    Encoding::RLE_DICTIONARY,
];

fn problem(text: &str) -> ParquetError {
    ParquetError::General(text.to_owned())
}

/// The different words of a column chunk.
#[derive(Default)]
pub(crate) struct Words {
    words: Arc<Vec<String>>,
    /// Their indices, only for words that are not behind an index in the file.
    indices: BTreeMap<String, u32>,
}

impl Words {
    /// Appends a word of the file's dictionary.
    fn push(&mut self, word: &[u8]) -> Result<(), ParquetError> {
        Arc::make_mut(&mut self.words).push(text(word)?.to_owned());
        Ok(())
    }

    /// The index of a word.
    pub(crate) fn find(&mut self, word: &[u8]) -> Result<u32, ParquetError> {
        let word = text(word)?;
        if let Some(&index) = self.indices.get(word) {
            return Ok(index);
        }
        let index = self.words.len() as u32;
        Arc::make_mut(&mut self.words).push(word.to_owned());
        self.indices.insert(word.to_owned(), index);
        Ok(index)
    }

    /// Values with these indices.
    pub(crate) fn with_keys(&self, keys: Vec<u32>, levels: Vec<i16>) -> Values {
        let data = Data::Words(keys, self.words.clone());
        Values { data, levels }
    }
}

fn text(word: &[u8]) -> Result<&str, ParquetError> {
    std::str::from_utf8(word).map_err(|_| problem("a word that is not UTF-8"))
}

/// Numbers in parquet's mixture of runs and packed bits, decoded on demand.
struct Hybrid {
    data: Bytes,
    bits: u32,
    /// Rows left of the current run, and its value.
    run: u64,
    value: u32,
    /// Numbers left in the current packed bits, and bits that were taken from `data` already.
    packed: u64,
    buffer: u64,
    buffered: u32,
}

impl Hybrid {
    fn new(data: Bytes, bits: u32) -> Result<Self, ParquetError> {
        if bits > 32 {
            return Err(problem("indices of more than 32 bits"));
        }
        Ok(Hybrid {
            data,
            bits,
            run: 0,
            value: 0,
            packed: 0,
            buffer: 0,
            buffered: 0,
        })
    }

    /// Appends `count` numbers.
    fn read(&mut self, count: usize, mut append: impl FnMut(u32)) -> Result<(), ParquetError> {
        let mut left = count as u64;
        while left > 0 {
            if self.run == 0 && self.packed == 0 {
                self.begin_run()?;
            }
            let run = self.run.min(left);
            for _ in 0..run {
                append(self.value);
            }
            self.run -= run;
            left -= run;
            let packed = self.packed.min(left);
            for _ in 0..packed {
                append(self.unpack()?);
            }
            self.packed -= packed;
            left -= packed;
        }
        Ok(())
    }

    fn begin_run(&mut self) -> Result<(), ParquetError> {
        let mut header = 0_u64;
        for shift in (0..).step_by(7) {
            let byte = self
                .data
                .try_get_u8()
                .map_err(|_| problem("a page without its last indices"))?;
            if shift > 56 {
                return Err(problem("a run of indices of impossible length"));
            }
            header |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        if header < 2 {
            return Err(problem("an empty run of indices"));
        }
        if header & 1 == 1 {
            self.packed = (header >> 1).saturating_mul(8);
            (self.buffer, self.buffered) = (0, 0);
        } else {
            let mut value = 0_u64;
            for byte in 0..self.bits.div_ceil(8) {
                let next = self
                    .data
                    .try_get_u8()
                    .map_err(|_| problem("a run without its index"))?;
                value |= u64::from(next) << (8 * byte);
            }
            self.run = header >> 1;
            self.value = value as u32;
        }
        Ok(())
    }

    /// The next of the packed numbers.
    fn unpack(&mut self) -> Result<u32, ParquetError> {
        while self.buffered < self.bits {
            // The last group may lack the bytes of numbers beyond the end.
            let byte = self
                .data
                .try_get_u8()
                .map_err(|_| problem("a page without its last indices"))?;
            self.buffer |= u64::from(byte) << self.buffered;
            self.buffered += 8;
        }
        let number = self.buffer & ((1 << self.bits) - 1);
        self.buffer >>= self.bits;
        self.buffered -= self.bits;
        Ok(number as u32)
    }
}

/// The words of a page that are left.
enum Rest {
    Keys(Hybrid),
    Plain(Bytes),
}

/// The words of one column of a row group.
pub(crate) struct WordReader {
    pages: Box<dyn PageReader>,
    nullable: bool,
    words: Words,
    /// Number of words in the dictionary.
    dictionary: u32,
    /// Rows left in the current page, whether they have a word, and the words.
    rows: usize,
    levels: Option<Hybrid>,
    rest: Rest,
}

impl WordReader {
    pub(crate) fn new(pages: Box<dyn PageReader>, nullable: bool) -> Self {
        WordReader {
            pages,
            nullable,
            words: Words::default(),
            dictionary: 0,
            rows: 0,
            levels: None,
            rest: Rest::Plain(Bytes::new()),
        }
    }

    /// The words of the next `count` rows, or of fewer at the end.
    pub(crate) fn read(&mut self, count: usize) -> Result<Values, ParquetError> {
        let mut keys = Vec::with_capacity(count);
        let mut levels = Vec::new();
        let mut left = count;
        while left > 0 && (self.rows > 0 || self.next_page()?) {
            let rows = self.rows.min(left);
            let known = match &mut self.levels {
                None => rows,
                Some(decoder) => {
                    let before = levels.len();
                    decoder.read(rows, |level| levels.push(i16::from(level > 0)))?;
                    levels[before..].iter().filter(|&&level| level > 0).count()
                }
            };
            self.decode(known, &mut keys)?;
            self.rows -= rows;
            left -= rows;
        }
        Ok(self.words.with_keys(keys, levels))
    }

    fn decode(&mut self, count: usize, keys: &mut Vec<u32>) -> Result<(), ParquetError> {
        match &mut self.rest {
            Rest::Keys(decoder) => {
                let mut largest = 0;
                decoder.read(count, |key| {
                    largest = largest.max(key);
                    keys.push(key);
                })?;
                if count > 0 && largest >= self.dictionary {
                    return Err(problem("an index beyond the dictionary"));
                }
            }
            Rest::Plain(data) => {
                for _ in 0..count {
                    keys.push(self.words.find(&next_plain(data)?)?);
                }
            }
        }
        Ok(())
    }

    /// Begins the next page with rows; `false` at the end.
    fn next_page(&mut self) -> Result<bool, ParquetError> {
        while self.rows == 0 {
            let Some(page) = self.pages.get_next_page()? else {
                return Ok(false);
            };
            match page {
                Page::DictionaryPage {
                    mut buf,
                    num_values,
                    encoding,
                    ..
                } => {
                    if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY)
                        || self.dictionary > 0
                    {
                        return Err(problem("a dictionary of an unknown kind"));
                    }
                    for _ in 0..num_values {
                        self.words.push(&next_plain(&mut buf)?)?;
                    }
                    self.dictionary = num_values;
                }
                Page::DataPage {
                    mut buf,
                    num_values,
                    encoding,
                    def_level_encoding,
                    ..
                } => {
                    self.levels = None;
                    if self.nullable {
                        if def_level_encoding != Encoding::RLE {
                            return Err(problem(
                                "levels in an encoding that is not in use any more",
                            ));
                        }
                        let length = buf
                            .try_get_u32_le()
                            .map_err(|_| problem("a page without its levels"))?;
                        self.levels = Some(Hybrid::new(split(&mut buf, length)?, 1)?);
                    }
                    self.begin_page(buf, num_values, encoding)?;
                }
                Page::DataPageV2 {
                    mut buf,
                    num_values,
                    encoding,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    ..
                } => {
                    split(&mut buf, rep_levels_byte_len)?;
                    let levels = split(&mut buf, def_levels_byte_len)?;
                    self.levels = if self.nullable {
                        Some(Hybrid::new(levels, 1)?)
                    } else {
                        None
                    };
                    self.begin_page(buf, num_values, encoding)?;
                }
            }
        }
        Ok(true)
    }

    fn begin_page(
        &mut self,
        mut data: Bytes,
        rows: u32,
        encoding: Encoding,
    ) -> Result<(), ParquetError> {
        self.rows = rows as usize;
        self.rest = match encoding {
            Encoding::PLAIN => Rest::Plain(data),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                // Where no row has a word there may be nothing.
                let bits = data.try_get_u8().unwrap_or(0);
                Rest::Keys(Hybrid::new(data, u32::from(bits))?)
            }
            _ => {
                return Err(problem(
                    "words in an encoding that the column does not announce",
                ));
            }
        };
        Ok(())
    }
}

fn split(data: &mut Bytes, length: u32) -> Result<Bytes, ParquetError> {
    let length = length as usize;
    if data.len() < length {
        return Err(problem("a page shorter than it should be"));
    }
    Ok(data.split_to(length))
}

/// The next word, behind its length.
fn next_plain(data: &mut Bytes) -> Result<Bytes, ParquetError> {
    let length = data
        .try_get_u32_le()
        .map_err(|_| problem("a page without its last words"))?;
    split(data, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &'static [u8], bits: u32, count: usize) -> Result<Vec<u32>, String> {
        let mut numbers = Vec::new();
        let mut decoder =
            Hybrid::new(Bytes::from_static(bytes), bits).map_err(|e| e.to_string())?;
        let done = decoder.read(count, |number| numbers.push(number));
        done.map_err(|e| e.to_string())?;
        Ok(numbers)
    }

    #[test]
    fn the_numbers_of_the_format_s_documentation_are_read() {
        // 0 to 7 in three bits: the example of "Encodings" in the documentation of parquet.
        let packed = &[0b0000_0011, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(read(packed, 3, 8).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        // A run of three fives, then the same.
        let both = &[6, 5, 0b0000_0011, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(read(both, 3, 6).unwrap(), [5, 5, 5, 0, 1, 2]);
        // Runs of 300 in two bytes of the index, without index bits, and across calls.
        assert_eq!(
            read(&[0xd8, 0x04, 0x01, 0x02], 10, 300).unwrap(),
            vec![513; 300]
        );
        assert_eq!(read(&[8], 0, 4).unwrap(), [0; 4]);
    }

    #[test]
    fn damaged_indices_are_refused() {
        let damaged: [(&'static [u8], u32, usize); 7] = [
            (&[], 1, 1),
            (&[0, 0], 1, 1),
            (&[1, 0], 1, 1),
            (&[6], 3, 1),
            (&[3, 0xff], 3, 8),
            (&[0xff; 12], 3, 8),
            (&[6, 5], 3, 4),
        ];
        for (bytes, bits, count) in damaged {
            read(bytes, bits, count).unwrap_err();
        }
        assert!(Hybrid::new(Bytes::new(), 33).is_err());
    }
}
