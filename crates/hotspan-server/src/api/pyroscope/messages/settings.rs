//! Settings that a client keeps with the server.

use super::schema::messages;

messages! {
    /// A name and its value. `modified_at` is in milliseconds since 1970.
    Setting { 1 name: text, 2 value: text, 3 modified_at: int64 }

    SettingsResponse { 1 settings: many Setting }

    /// One setting: what is to be set, and what was.
    SettingMessage { 1 setting: one Setting }

    DeleteSettingRequest { 1 name: text }
}
