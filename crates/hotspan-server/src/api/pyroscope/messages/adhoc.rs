//! Profiles that are uploaded to be looked at. Flame graphs are flamebearer JSON in a text; times are milliseconds since 1970.

use super::schema::messages;

messages! {
    /// `profile` is a file in base64.
    AdHocUploadRequest { 1 name: text, 2 profile: text, 3 max_nodes: maybe_int64 }

    /// Without a type, the first of the file.
    AdHocGetRequest { 1 id: text, 2 profile_type: text, 3 max_nodes: maybe_int64 }

    /// A profile: the flame graph of one of its types, and which others there are.
    AdHocProfile {
        1 id: text,
        2 name: text,
        3 uploaded_at: int64,
        4 profile_type: text,
        5 profile_types: texts,
        6 flamebearer_profile: text,
    }

    AdHocListResponse { 1 profiles: many AdHocListed }

    AdHocListed { 1 id: text, 2 name: text, 3 uploaded_at: int64 }

    AdHocDiffRequest { 1 left_id: text, 2 right_id: text, 3 profile_type: text, 4 max_nodes: maybe_int64 }

    /// A comparison in one of the types that both sides have.
    AdHocDiffResponse { 1 profile_types: texts, 2 flamebearer_profile: text }
}
