//! One declaration per parameter: [`params!`](crate::params) makes the struct that holds the values, the list of
//! [`ParamSpec`](crate::ParamSpec)s and the reader.

use super::{FileRef, Params, Value};
use crate::{Bytes, Rate, Span};

/// Declares the parameters of a registry entry, each exactly once: its field, kind, range and unit, default, sentence
/// and source.
///
/// The sentence is the field's documentation. The kind is the name of a [`Kind`](crate::Kind), or of an enum that
/// [`choice!`](crate::choice) declares, with the allowed words if only some are. The range is in base units (ns, bit/s,
/// bytes), and a unit is named if the kind has none. The default is written as in scenarios; a parameter without one is
/// required, unless its kind is an `Option`: then it may be absent. The default of a `File` is a name that drivers look
/// up, so that scenarios may leave it out; the core always needs the file. `Packets` are real numbers, as windows in packets
/// are, and a `PacketCount` is whole; another type may follow the kind (`Bytes as u64`). `#[trial("...")]` gives values
/// for test kits that fit the other parameters (see [`ParamSpec::trial`](crate::ParamSpec::trial)). The struct has
/// `PARAMS` for the registry and `read` for the constructor.
///
/// ```
/// use narrows_units::{Params, Span, choice, params};
///
/// choice! {
///     /// Rule by which the window grows.
///     enum Growth { Linear = "linear", Cubic = "cubic" }
/// }
///
/// params! {
///     /// Parameters of a scheme.
///     struct ExampleParams {
///         /// Share of the data in flight kept after a loss.
///         beta: Ratio(0.05..=0.95) = 0.5, "RFC 5681, equation 4";
///         /// Growth per round trip.
///         step: Number(0.1..=10.0, "packets") = 1, "RFC 5681, section 3.1";
///         /// Time for which the minimum RTT is valid.
///         min_rtt_window: Span = "10 s", "Linux tcp_bbr.c";
///         /// Rule by which the window grows.
///         growth: Growth = "cubic", "RFC 9438";
///         /// Largest window, if there is one.
///         max_cwnd: Option<Packets>(2.0..=1e6);
///     }
/// }
///
/// let params = ExampleParams::read(&Params::resolve(ExampleParams::PARAMS, []).unwrap());
/// assert_eq!((params.beta, params.step), (0.5, 1.0));
/// assert_eq!(params.min_rtt_window, Span::from_ms(10_000));
/// assert_eq!((params.growth, params.max_cwnd), (Growth::Cubic, None));
/// ```
#[macro_export]
macro_rules! params {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[trial($($trial:literal),+)])?
                $field:ident : $kind:ident $(<$inner:ident>)? $(as $as:ident)? $([$($word:literal),+])? $(($range:expr $(, $unit:literal)?))? $(= $default:literal)? $(, $source:expr)?;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $vis struct $name {
            $($(#[doc = $doc])+ $vis $field: $crate::params!(@value $kind $($inner)? $($as)?),)+
        }

        impl $name {
            /// Their descriptions, for the registry.
            $vis const PARAMS: &'static [$crate::ParamSpec] = &[$({
                let doc: &str = concat!($($doc),+);
                let kind = $crate::params!(@kind $kind $($inner)? $($($word)+)?);
                let spec = $crate::ParamSpec::new(stringify!($field), kind, doc.trim_ascii());
                $(let spec = spec.source($source);)?
                $(let spec = spec.trial(&[$($trial),+]);)?
                $(
                    let spec = spec.range(*$range.start(), *$range.end());
                    $(let spec = spec.unit($unit);)?
                )?
                $crate::params!(@default spec $($inner)? $($default)?)
            }),+];

            /// Their values.
            $vis fn read(params: &$crate::Params) -> Self {
                $name { $($field: params.read(stringify!($field)),)+ }
            }
        }
    };
    (@default $spec:ident $default:literal) => { $spec.default(concat!($default)) };
    (@default $spec:ident) => { $spec.required() };
    (@default $spec:ident $optional:ident) => { $spec };
    (@value Option $kind:ident) => { Option<$crate::params!(@value $kind)> };
    (@value $kind:ident $as:ident) => { $as };
    (@value Rate) => { $crate::Rate };
    (@value Span) => { $crate::Span };
    (@value Bytes) => { $crate::Bytes };
    (@value Packets) => { f64 };
    (@value PacketCount) => { u64 };
    (@value Count) => { u64 };
    (@value Ratio) => { f64 };
    (@value Number) => { f64 };
    (@value Flag) => { bool };
    (@value Counts) => { Vec<u64> };
    (@value RateSteps) => { Vec<(u64, u64)> };
    (@value SpanSteps) => { Vec<(u64, u64)> };
    (@value File) => { $crate::FileRef };
    (@value $choice:ident) => { $choice };
    (@kind Option $kind:ident) => { $crate::params!(@kind $kind) };
    (@kind Rate) => { $crate::Kind::Rate };
    (@kind Span) => { $crate::Kind::Span };
    (@kind Bytes) => { $crate::Kind::Bytes };
    (@kind Packets) => { $crate::Kind::Packets };
    (@kind PacketCount) => { $crate::Kind::Packets };
    (@kind Count) => { $crate::Kind::Count };
    (@kind Ratio) => { $crate::Kind::Ratio };
    (@kind Number) => { $crate::Kind::Number };
    (@kind Flag) => { $crate::Kind::Flag };
    (@kind Counts) => { $crate::Kind::Counts };
    (@kind RateSteps) => { $crate::Kind::RateSteps };
    (@kind SpanSteps) => { $crate::Kind::SpanSteps };
    (@kind File) => { $crate::Kind::File };
    (@kind $choice:ident $($word:literal)+) => { $crate::Kind::Choice(&[$($word),+]) };
    (@kind $choice:ident) => { $crate::Kind::Choice($choice::WORDS) };
}

/// Declares enums whose values are the words of parameters.
#[macro_export]
macro_rules! choice {
    ($($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal),+ $(,)? })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$inner])* $variant),+ }

        impl $name {
            /// The words in scenarios.
            #[allow(dead_code)] // Where each parameter lists its own.
            $vis const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl $crate::ReadParam for $name {
            fn read_param(value: &$crate::Value) -> Option<Self> {
                match value {
                    $($crate::Value::Word(word) if word == $word => Some($name::$variant),)+
                    _ => None,
                }
            }
        }
    )+};
}

/// A type that can represent the value of a parameter.
pub trait ReadParam: Sized {
    /// The value, if it is of this type.
    fn read_param(value: &Value) -> Option<Self>;

    /// The value of an absent parameter, if it may be absent.
    fn absent() -> Option<Self> {
        None
    }
}

impl<T: ReadParam> ReadParam for Option<T> {
    fn read_param(value: &Value) -> Option<Self> {
        T::read_param(value).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

macro_rules! read_param {
    ($($type:ty: $($pattern:pat => $read:expr),+;)+) => {$(
        impl ReadParam for $type {
            fn read_param(value: &Value) -> Option<Self> {
                match value {
                    $($pattern => Some($read),)+
                    _ => None,
                }
            }
        }
    )+};
}

read_param! {
    u64: Value::Integer(number) => *number;
    u32: Value::Integer(number) => *number as u32;
    f64: Value::Real(number) => *number, Value::Integer(number) => *number as f64;
    bool: Value::Flag(flag) => *flag;
    Rate: Value::Integer(bps) => Rate::from_bps(*bps);
    Span: Value::Integer(ns) => Span::from_ns(*ns);
    Bytes: Value::Integer(bytes) => Bytes::new(*bytes);
    Vec<u64>: Value::Counts(list) => list.clone();
    Vec<(u64, u64)>: Value::Steps(steps) => steps.clone();
    FileRef: Value::File(file) => file.clone();
}

impl Params {
    /// The value called `name`.
    ///
    /// # Panics
    /// If the parameters were not resolved against a declaration of `name` with this type.
    pub fn read<T: ReadParam>(&self, name: &str) -> T {
        self.get(name)
            .map_or_else(T::absent, T::read_param)
            .unwrap_or_else(|| panic!("parameter '{name}' is not declared with this type"))
    }
}
