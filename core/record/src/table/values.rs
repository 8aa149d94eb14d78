//! Values of columns in memory, as parquet has them.

use std::sync::Arc;

/// The values of a column.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    /// Also the bits of numbers without sign.
    Int32(Vec<i32>),
    /// Also the bits of numbers without sign.
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Boolean(Vec<bool>),
    /// Indices of words.
    Words(Vec<u32>, Arc<Vec<String>>),
}

/// The values of a column in some rows.
#[derive(Clone, Debug)]
pub struct Values {
    /// Values to be written: those of the rows that have one. Values that were read: one for each row, any value where
    /// the row has none.
    pub(crate) data: Data,
    /// For each row 1 if it has a value, else 0; empty if all rows have one.
    pub(crate) levels: Vec<i16>,
}

impl From<Data> for Values {
    fn from(data: Data) -> Self {
        Values {
            data,
            levels: Vec::new(),
        }
    }
}

/// Collects optional numbers as values to be written.
pub(crate) fn optional_int64(rows: impl Iterator<Item = Option<i64>>) -> Values {
    let mut numbers = Vec::with_capacity(rows.size_hint().0);
    let mut levels = Vec::with_capacity(rows.size_hint().0);
    for number in rows {
        levels.push(i16::from(number.is_some()));
        numbers.extend(number);
    }
    Values {
        data: Data::Int64(numbers),
        levels,
    }
}

impl Values {
    /// Words to be written: for each row the index of a word, or none.
    pub(crate) fn words(rows: impl Iterator<Item = Option<u32>>, words: Arc<Vec<String>>) -> Self {
        let mut keys = Vec::with_capacity(rows.size_hint().0);
        let mut levels = Vec::with_capacity(rows.size_hint().0);
        for key in rows {
            levels.push(i16::from(key.is_some()));
            keys.extend(key);
        }
        Values {
            data: Data::Words(keys, words),
            levels,
        }
    }

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        match &self.data {
            Data::Int32(values) => values.len(),
            Data::Int64(values) => values.len(),
            Data::Double(values) => values.len(),
            Data::Boolean(values) => values.len(),
            Data::Words(keys, _) => keys.len(),
        }
    }

    /// True if a row has a value.
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        self.levels.get(row).is_none_or(|&level| level > 0)
    }

    /// True if no row has a value.
    pub(crate) fn is_all_null(&self) -> bool {
        !self.levels.is_empty() && self.levels.iter().all(|&level| level == 0)
    }

    pub(crate) fn int32(&self) -> &[i32] {
        let Data::Int32(values) = &self.data else {
            unreachable!("files with columns of other types are not opened")
        };
        values
    }

    pub(crate) fn int64(&self) -> &[i64] {
        let Data::Int64(values) = &self.data else {
            unreachable!("files with columns of other types are not opened")
        };
        values
    }

    pub(crate) fn double(&self) -> &[f64] {
        let Data::Double(values) = &self.data else {
            unreachable!("files with columns of other types are not opened")
        };
        values
    }

    pub(crate) fn boolean(&self) -> &[bool] {
        let Data::Boolean(values) = &self.data else {
            unreachable!("files with columns of other types are not opened")
        };
        values
    }

    /// Indices of the words of rows, and the words.
    pub(crate) fn keys(&self) -> (&[u32], &[String]) {
        let Data::Words(keys, words) = &self.data else {
            unreachable!("files with columns of other types are not opened")
        };
        (keys, words)
    }

    /// The word of a row that has one.
    pub(crate) fn word(&self, row: usize) -> &str {
        let (keys, words) = self.keys();
        &words[keys[row] as usize]
    }

    /// Moves values that were decoded, one for each row that has one, to their rows.
    pub(crate) fn spread(&mut self) {
        fn to_rows<T: Copy + Default>(values: &mut Vec<T>, levels: &[i16]) {
            let mut from = values.len();
            values.resize(levels.len(), T::default());
            for (row, &level) in levels.iter().enumerate().rev() {
                if level > 0 {
                    from -= 1;
                    values[row] = values[from];
                }
            }
        }
        if self.levels.iter().all(|&level| level > 0) {
            self.levels.clear();
            return;
        }
        match &mut self.data {
            Data::Int32(values) => to_rows(values, &self.levels),
            Data::Int64(values) => to_rows(values, &self.levels),
            Data::Double(values) => to_rows(values, &self.levels),
            Data::Boolean(values) => to_rows(values, &self.levels),
            Data::Words(keys, _) => to_rows(keys, &self.levels),
        }
    }
}

/// Rows that were read together.
#[derive(Debug)]
pub struct Batch {
    pub(crate) rows: usize,
    /// The columns that the file has, in the order of the format.
    pub(crate) columns: Vec<Values>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_move_to_their_rows() {
        let mut values = optional_int64([None, Some(7), None, None, Some(8), None].into_iter());
        values.spread();
        let rows = (0..6).map(|row| values.is_valid(row).then(|| values.int64()[row]));
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [None, Some(7), None, None, Some(8), None]
        );
        assert!(!values.is_all_null());

        let mut whole = optional_int64([Some(1), Some(2)].into_iter());
        whole.spread();
        assert!(whole.levels.is_empty() && whole.int64() == [1, 2]);

        let mut none = optional_int64([None, None].into_iter());
        none.spread();
        assert!(none.is_all_null() && none.int64().len() == 2);
    }
}
