//! Messages from tables of their fields: number, name and kind, for protobuf and for protobuf JSON at once.
//!
//! ```text
//! messages! { ProfileTypesRequest { 1 start: int64, 2 end: int64 } }
//! ```
//!
//! Each kind is one rule below: how it is on the wire, how in JSON, and its type here.

/// Defines messages.
macro_rules! messages {
    ($($(#[$meta:meta])* $name:ident { $($fields:tt)* })*) => {
        $(messages! { @fields [$(#[$meta])* $name] [] $($fields)* })*
    };
    (@fields [$(#[$meta:meta])* $name:ident] [$($done:tt)*]) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, prost::Message, serde::Serialize, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(crate) struct $name { $($done)* }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: text $(, $($rest:tt)*)?) => {
        messages! { @add $head $done [#[prost(string, tag = $tag)]] $field String [$($($rest)*)?] }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: texts $(, $($rest:tt)*)?) => {
        messages! { @add $head $done [#[prost(string, repeated, tag = $tag)]] $field Vec<String> [$($($rest)*)?] }
    };
    // Every client spells the name of this one in its own way.
    (@fields $head:tt $done:tt $tag:tt $field:ident: type_id $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(string, tag = $tag)] #[serde(rename = "profileTypeID", alias = "profileTypeId")]]
            $field String [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: profile_id $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(string, tag = $tag)] #[serde(rename = "ID")]] $field String [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: int64 $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(int64, tag = $tag)] #[serde(with = "crate::api::pyroscope::json_forms::int64_text")]]
            $field i64 [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: maybe_int64 $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(int64, optional, tag = $tag)] #[serde(with = "crate::api::pyroscope::json_forms::maybe_int64")]]
            $field Option<i64> [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: uint64 $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(uint64, tag = $tag)]
             #[serde(serialize_with = "crate::api::pyroscope::json_forms::uint64_text::serialize")]]
            $field u64 [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: uint32 $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(uint32, tag = $tag)]
             #[serde(deserialize_with = "crate::api::pyroscope::json_forms::uint32_number")]]
            $field u32 [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: flag $(, $($rest:tt)*)?) => {
        messages! { @add $head $done [#[prost(bool, tag = $tag)]] $field bool [$($($rest)*)?] }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: double $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(double, tag = $tag)]
             #[serde(deserialize_with = "crate::api::pyroscope::json_forms::double_number")]]
            $field f64 [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: doubles $(, $($rest:tt)*)?) => {
        messages! { @add $head $done [#[prost(double, repeated, tag = $tag)]] $field Vec<f64> [$($($rest)*)?] }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: int32s $(, $($rest:tt)*)?) => {
        messages! { @add $head $done [#[prost(int32, repeated, tag = $tag)]] $field Vec<i32> [$($($rest)*)?] }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: int64s $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(int64, repeated, tag = $tag)]
             #[serde(serialize_with = "crate::api::pyroscope::json_forms::int64_texts")]]
            $field Vec<i64> [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: profile_format $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(int32, tag = $tag)]
             #[serde(deserialize_with = "crate::api::pyroscope::json_forms::profile_format")]]
            $field i32 [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: maybe_aggregation $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(int32, optional, tag = $tag)]
             #[serde(deserialize_with = "crate::api::pyroscope::json_forms::maybe_aggregation")]]
            $field Option<i32> [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: exemplar_type $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(int32, tag = $tag)]
             #[serde(deserialize_with = "crate::api::pyroscope::json_forms::exemplar_type")]]
            $field i32 [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: heatmap_type $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(int32, tag = $tag)]
             #[serde(deserialize_with = "crate::api::pyroscope::json_forms::heatmap_type")]]
            $field i32 [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: one $message:ident $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(message, optional, tag = $tag)] #[serde(skip_serializing_if = "Option::is_none")]]
            $field Option<$message> [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: many $message:ident $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(message, repeated, tag = $tag)]] $field Vec<$message> [$($($rest)*)?]
        }
    };
    // For what most answers do not have.
    (@fields $head:tt $done:tt $tag:tt $field:ident: any $message:ident $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(message, repeated, tag = $tag)] #[serde(skip_serializing_if = "Vec::is_empty")]]
            $field Vec<$message> [$($($rest)*)?]
        }
    };
    (@fields $head:tt $done:tt $tag:tt $field:ident: maybe_text $(, $($rest:tt)*)?) => {
        messages! { @add $head $done
            [#[prost(string, tag = $tag)] #[serde(skip_serializing_if = "String::is_empty")]]
            $field String [$($($rest)*)?]
        }
    };
    (@add $head:tt [$($done:tt)*] [$($attributes:tt)*] $field:ident $type:ty [$($rest:tt)*]) => {
        messages! { @fields $head [$($done)* $($attributes)* pub(crate) $field: $type,] $($rest)* }
    };
}

pub(super) use messages;
