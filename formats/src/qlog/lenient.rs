//! JSON values of any type: a field that violates the format is reported, and only that field is lost.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A number, or a number as text (as drafts until 02 wrote large numbers).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Number(pub Option<f64>);

/// Text, or a number as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text(pub Option<String>);

/// An object or a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Field<T> {
    /// Not present.
    #[default]
    Absent,
    /// `null`, or of another kind.
    Odd,
    /// As expected.
    Known(T),
}

impl<T> Field<T> {
    /// The value, if it is as expected.
    pub(super) fn known(&self) -> Option<&T> {
        match self {
            Field::Known(value) => Some(value),
            _ => None,
        }
    }
}

/// The common part of visitors: all values are accepted, and most are ignored.
macro_rules! lenient {
    ($odd:expr) => {
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("any value")
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($odd)
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($odd)
        }
    };
    (numbers $odd:expr) => {
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($odd)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($odd)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($odd)
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($odd)
        }
    };
    (list $odd:expr) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok($odd)
        }
    };
    (object $odd:expr) => {
        fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
            while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($odd)
        }
    };
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Number;
            lenient!(Number(None));
            lenient!(list Number(None));
            lenient!(object Number(None));
            fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
                Ok(Number(Some(value as f64)))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
                Ok(Number(Some(value as f64)))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                Ok(Number(Some(value)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Number, E> {
                let number: Option<f64> = text.trim().parse().ok();
                Ok(Number(number.filter(|number| number.is_finite())))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Text;
            lenient!(Text(None));
            lenient!(list Text(None));
            lenient!(object Text(None));
            fn visit_u64<E>(self, value: u64) -> Result<Text, E> {
                Ok(Text(Some(value.to_string())))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Text, E> {
                Ok(Text(Some(value.to_string())))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Text, E> {
                Ok(Text(Some(value.to_string())))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(Some(text.to_owned())))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// An object with the fields of `T`.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Any<T> {
            type Value = Field<T>;
            lenient!(Field::Odd);
            lenient!(numbers Field::Odd);
            lenient!(list Field::Odd);
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Field<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(object)).map(Field::Known)
            }
        }
        deserializer.deserialize_any(Any(PhantomData))
    }
}

/// A list of elements of any type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct List<T>(pub Field<Vec<T>>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Any<T> {
            type Value = List<T>;
            lenient!(List(Field::Odd));
            lenient!(numbers List(Field::Odd));
            lenient!(object List(Field::Odd));
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(element) = list.next_element()? {
                    all.push(element);
                }
                Ok(List(Field::Known(all)))
            }
        }
        deserializer.deserialize_any(Any(PhantomData))
    }
}

/// First and last number of a range: `[4, 7]`, `[4]`, `4`, each also as text; `None` for anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberRange(pub Option<(u64, u64)>);

impl<'de> Deserialize<'de> for NumberRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = NumberRange;
            lenient!(NumberRange(None));
            lenient!(object NumberRange(None));
            fn visit_u64<E>(self, value: u64) -> Result<NumberRange, E> {
                Ok(NumberRange(Some((value, value))))
            }
            fn visit_i64<E>(self, _: i64) -> Result<NumberRange, E> {
                Ok(NumberRange(None))
            }
            fn visit_f64<E>(self, value: f64) -> Result<NumberRange, E> {
                let number = packet_number(Number(Some(value)));
                Ok(NumberRange(number.map(|number| (number, number))))
            }
            fn visit_str<E>(self, text: &str) -> Result<NumberRange, E> {
                let number: Option<u64> = text.trim().parse().ok();
                Ok(NumberRange(number.map(|number| (number, number))))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NumberRange, A::Error> {
                let (mut ends, mut count) = ([None; 2], 0);
                while let Some(number) = list.next_element::<Number>()? {
                    if let Some(end) = ends.get_mut(count) {
                        *end = packet_number(number);
                    }
                    count += 1;
                }
                let (first, last) = (ends[0], if count == 1 { ends[0] } else { ends[1] });
                let range = first.zip(last).filter(|_| count <= 2);
                Ok(NumberRange(range.map(|(a, b)| (a.min(b), a.max(b)))))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// A packet number, below 2^62 (RFC 9000, section 12.3).
pub(super) fn packet_number(number: Number) -> Option<u64> {
    let number = number.0.filter(|number| (0.0..4.7e18).contains(number))?;
    Some(number as u64)
}
