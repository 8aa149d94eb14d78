//! Types of columns: a physical type of parquet, and how its bits are read.

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};
use std::fmt;
use std::sync::Arc;

/// The type of a column that records and traces have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    UInt16,
    UInt32,
    UInt64,
    Int32,
    Int64,
    Float64,
    Boolean,
    /// Words in UTF-8.
    Utf8,
}

impl Kind {
    /// The field of a schema.
    pub(crate) fn field(self, name: &str, nullable: bool) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self {
            Kind::UInt16 => (Physical::INT32, Some(LogicalType::integer(16, false))),
            Kind::UInt32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Kind::UInt64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Kind::Int32 => (Physical::INT32, None),
            Kind::Int64 => (Physical::INT64, None),
            Kind::Float64 => (Physical::DOUBLE, None),
            Kind::Boolean => (Physical::BOOLEAN, None),
            Kind::Utf8 => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if nullable {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()?;
        Ok(Arc::new(field))
    }

    /// The type of a field, or words for a type that records and traces do not use.
    pub(crate) fn from_field(field: &Type) -> Result<Kind, String> {
        let info = field.get_basic_info();
        if !field.is_primitive()
            || info.has_repetition() && info.repetition() == Repetition::REPEATED
        {
            return Err("a structure".to_owned());
        }
        let physical = field.get_physical_type();
        let logical = info.logical_type_ref();
        if let Some((bits, signed)) = integer(logical, info.converted_type()) {
            return match (physical, bits, signed) {
                (Physical::INT32, 16, false) => Ok(Kind::UInt16),
                (Physical::INT32, 32, false) => Ok(Kind::UInt32),
                (Physical::INT32, 32, true) => Ok(Kind::Int32),
                (Physical::INT64, 64, false) => Ok(Kind::UInt64),
                (Physical::INT64, 64, true) => Ok(Kind::Int64),
                (_, bits, true) => Err(format!("Int{bits}")),
                (_, bits, false) => Err(format!("UInt{bits}")),
            };
        }
        match (physical, logical, info.converted_type()) {
            (Physical::INT32, None, ConvertedType::NONE) => Ok(Kind::Int32),
            (Physical::INT64, None, ConvertedType::NONE) => Ok(Kind::Int64),
            (Physical::DOUBLE, None, ConvertedType::NONE) => Ok(Kind::Float64),
            (Physical::FLOAT, None, ConvertedType::NONE) => Err("Float32".to_owned()),
            (Physical::BOOLEAN, ..) => Ok(Kind::Boolean),
            (Physical::BYTE_ARRAY, Some(LogicalType::String | LogicalType::Json), _)
            | (Physical::BYTE_ARRAY, None, ConvertedType::UTF8 | ConvertedType::JSON) => {
                Ok(Kind::Utf8)
            }
            (Physical::BYTE_ARRAY, None, ConvertedType::NONE) => Err("Binary".to_owned()),
            (_, Some(logical), _) => Err(format!("{logical:?}")),
            (physical, None, ConvertedType::NONE) => Err(physical.to_string()),
            (_, None, converted) => Err(converted.to_string()),
        }
    }
}

/// Bits and sign of an integer, if the field says that it is one.
fn integer(logical: Option<&LogicalType>, converted: ConvertedType) -> Option<(i8, bool)> {
    match (logical, converted) {
        (Some(LogicalType::Integer(number)), _) => Some((number.bit_width, number.is_signed)),
        (None, ConvertedType::UINT_8) => Some((8, false)),
        (None, ConvertedType::UINT_16) => Some((16, false)),
        (None, ConvertedType::UINT_32) => Some((32, false)),
        (None, ConvertedType::UINT_64) => Some((64, false)),
        (None, ConvertedType::INT_8) => Some((8, true)),
        (None, ConvertedType::INT_16) => Some((16, true)),
        (None, ConvertedType::INT_32) => Some((32, true)),
        (None, ConvertedType::INT_64) => Some((64, true)),
        _ => None,
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_kind_that_they_were_made_of() {
        for kind in [
            Kind::UInt16,
            Kind::UInt32,
            Kind::UInt64,
            Kind::Int32,
            Kind::Int64,
            Kind::Float64,
            Kind::Boolean,
            Kind::Utf8,
        ] {
            let field = kind.field("x", true).unwrap();
            assert_eq!(Kind::from_field(&field), Ok(kind));
        }
    }

    #[test]
    fn types_of_other_programs_have_words() {
        let words = |physical, logical| {
            let field = Type::primitive_type_builder("x", physical)
                .with_logical_type(logical)
                .build();
            Kind::from_field(&field.unwrap()).unwrap_err()
        };
        assert_eq!(
            words(Physical::INT32, Some(LogicalType::integer(16, true))),
            "Int16"
        );
        assert_eq!(words(Physical::FLOAT, None), "Float32");
        assert_eq!(words(Physical::BYTE_ARRAY, None), "Binary");
        assert_eq!(words(Physical::INT96, None), "INT96");
        assert_eq!(words(Physical::INT32, Some(LogicalType::Date)), "Date");
        let field = Kind::UInt64.field("x", true).unwrap();
        let group = Type::group_type_builder("g")
            .with_fields(vec![field])
            .build()
            .unwrap();
        assert_eq!(Kind::from_field(&group).unwrap_err(), "a structure");
    }
}
