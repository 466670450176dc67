//! A profile file, opened to be drawn: its types, and the flame graph of one.

use hotspan_formats::sample_types::SampleType;
use hotspan_formats::{DecodeOptions, FileError, Limits, decode_file};
use hotspan_model::{FlameTree, ProfileSet};

use crate::api::ApiError;
use crate::receive::Refusal;

/// A file of any format that is known here.
#[derive(Debug)]
pub(super) struct ProfileFile<'a> {
    /// Which one it is, for a person whose file can't be read.
    what: &'static str,
    limits: &'a Limits,
    set: ProfileSet<'a>,
    types: Vec<SampleType>,
}

impl<'a> ProfileFile<'a> {
    /// Reads a file.
    pub(super) fn read(what: &'static str, content: &'a [u8], limits: &'a Limits) -> Result<Self, ApiError> {
        if content.len() > limits.max_bytes {
            let error = FileError::too_large("file", limits.max_bytes, "bytes", limits.max_bytes as u64);
            return Err(unreadable(what, error));
        }
        let options = DecodeOptions { limits: limits.clone(), ..DecodeOptions::default() };
        let set = decode_file(content, &options).map_err(|error| unreadable(what, error))?;
        let types = SampleType::all_of(&set);
        if types.is_empty() {
            return Err(ApiError::invalid(format!("{what} holds no samples")));
        }
        Ok(Self { what, limits, set, types })
    }

    /// What can be drawn of it.
    pub(super) fn types(&self) -> impl Iterator<Item = &SampleType> {
        self.types.iter()
    }

    /// The types that another file has as well, each as it is here and there.
    pub(super) fn types_in_common<'f>(&'f self, other: &'f Self) -> Vec<(&'f SampleType, &'f SampleType)> {
        let pair = |own| Some((own, other.types.iter().find(|others| others.compares_with(own))?));
        self.types.iter().filter_map(pair).collect()
    }

    /// All that was measured of a type.
    pub(super) fn tree(&self, sample_type: &SampleType) -> Result<FlameTree, ApiError> {
        sample_type.tree_of(&self.set, self.limits).map_err(|error| unreadable(self.what, error))
    }
}

fn unreadable(what: &str, error: FileError) -> ApiError {
    let error = ApiError::from(Refusal::from(error));
    ApiError { message: format!("{what} can't be read: {}", error.message), ..error }
}
