//! The types that a value can have: how each is read from text, shown, bounded and explained.

use std::path::PathBuf;
use std::time::Duration;

use super::units::{duration_text, parse_size, size_text};
use crate::listeners::Address;
use crate::parse_duration;
use crate::settings::{LogFilter, LogFormat};

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Where to listen.
    Address,
    /// A length of time.
    Duration,
    /// A number of bytes.
    Size,
    /// A whole number.
    Integer,
    /// Yes or no.
    Boolean,
    /// A folder.
    Folder,
    /// A folder, or none.
    OptionalFolder,
    /// Which log lines are written.
    LogLevel,
    /// How log lines are written.
    LogFormat,
}

impl Kind {
    /// Its name in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Duration => "duration",
            Self::Size => "size",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Folder => "folder",
            Self::OptionalFolder => "folder or off",
            Self::LogLevel => "log level",
            Self::LogFormat => "log format",
        }
    }

    /// What stands for the value in the help of a flag.
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Address => "ADDR",
            Self::Duration => "TIME",
            Self::Size => "SIZE",
            Self::Integer => "NUMBER",
            Self::Boolean => "BOOL",
            Self::Folder | Self::OptionalFolder => "DIR",
            Self::LogLevel => "LEVEL",
            Self::LogFormat => "FORMAT",
        }
    }

    /// What is allowed, as the end of "… is not".
    pub fn allowed(self) -> &'static str {
        match self {
            Self::Address => {
                "an address; use host:port such as 127.0.0.1:4040, :4040 for every interface, port 0 for a free one, or off"
            }
            Self::Duration => "a duration; use numbers with units, such as 250ms, 15m, 1h30m or 14d",
            Self::Size => "a size; use a number with a unit, such as 64MiB or 10MB, or a number of bytes",
            Self::Integer => "a whole number; use digits, such as 128",
            Self::Boolean => "a boolean; use true or false",
            Self::Folder => "a folder; use a path such as /var/lib/hotspan",
            Self::OptionalFolder => "a folder; use a path such as /src/shop, or off",
            Self::LogLevel => {
                "a log level; use off, error, warn, info, debug or trace, or levels by module such as info,hotspan_lake=debug"
            }
            Self::LogFormat => "a log format; use auto, text or json",
        }
    }
}

/// A number that a size or an integer is kept in.
pub(super) trait Amount {
    fn amount(&self) -> u64;
    /// Whether the number fits.
    fn set_amount(&mut self, amount: u64) -> bool;
}

impl Amount for u64 {
    fn amount(&self) -> u64 {
        *self
    }

    fn set_amount(&mut self, amount: u64) -> bool {
        *self = amount;
        true
    }
}

impl Amount for usize {
    fn amount(&self) -> u64 {
        *self as u64
    }

    fn set_amount(&mut self, amount: u64) -> bool {
        usize::try_from(amount).map(|amount| *self = amount).is_ok()
    }
}

/// One value inside the settings.
pub(super) enum Field<'a> {
    Address(&'a mut Address),
    Duration(&'a mut Duration),
    Size(&'a mut dyn Amount),
    Integer(&'a mut dyn Amount),
    Boolean(&'a mut bool),
    Folder(&'a mut PathBuf),
    OptionalFolder(&'a mut Option<PathBuf>),
    LogLevel(&'a mut LogFilter),
    LogFormat(&'a mut LogFormat),
}

impl Field<'_> {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Address(_) => Kind::Address,
            Self::Duration(_) => Kind::Duration,
            Self::Size(_) => Kind::Size,
            Self::Integer(_) => Kind::Integer,
            Self::Boolean(_) => Kind::Boolean,
            Self::Folder(_) => Kind::Folder,
            Self::OptionalFolder(_) => Kind::OptionalFolder,
            Self::LogLevel(_) => Kind::LogLevel,
            Self::LogFormat(_) => Kind::LogFormat,
        }
    }

    /// Takes the value that a text stands for; none, and no change, if it stands for none.
    pub(super) fn read(&mut self, text: &str) -> Option<()> {
        match self {
            Self::Address(field) => **field = text.parse().ok()?,
            Self::Duration(field) => **field = parse_duration(text)?,
            Self::Size(field) => return field.set_amount(parse_size(text)?).then_some(()),
            Self::Integer(field) => return field.set_amount(text.parse().ok()?).then_some(()),
            Self::Boolean(field) => **field = text.parse().ok()?,
            Self::Folder(_) | Self::OptionalFolder(_) if text.is_empty() => return None,
            Self::Folder(field) => **field = PathBuf::from(text),
            Self::OptionalFolder(field) => **field = (text != "off").then(|| PathBuf::from(text)),
            Self::LogLevel(field) => **field = text.parse().ok()?,
            Self::LogFormat(field) => **field = text.parse().ok()?,
        }
        Some(())
    }

    /// The value as text that [`Field::read`] takes.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Address(field) => field.to_string(),
            Self::Duration(field) => duration_text(**field),
            Self::Size(field) => size_text(field.amount()),
            Self::Integer(field) => field.amount().to_string(),
            Self::Boolean(field) => field.to_string(),
            Self::Folder(field) => field.display().to_string(),
            Self::OptionalFolder(field) => {
                field.as_ref().map_or_else(|| "off".to_owned(), |folder| folder.display().to_string())
            }
            Self::LogLevel(field) => field.to_string(),
            Self::LogFormat(field) => field.to_string(),
        }
    }

    /// The number to compare with bounds; nothing for what has no order.
    pub(super) fn measure(&self) -> u128 {
        match self {
            Self::Duration(field) => field.as_nanos(),
            Self::Size(field) | Self::Integer(field) => u128::from(field.amount()),
            _ => 0,
        }
    }
}
