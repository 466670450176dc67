//! A request in protobuf.

use super::{PushError, Series, TakeProfile};
use crate::file_error::FileError;
use crate::limits::Limits;
use crate::protobuf::{Field, Fields};

/// Gives the profiles of a request.
pub fn each_profile<E: From<PushError>>(
    message: &[u8],
    limits: &Limits,
    take: &mut TakeProfile<'_, E>,
) -> Result<(), E> {
    let mut fields = Fields::new("PushRequest", message, 0);
    let mut index = 0;
    while let Some(field) = fields.next().map_err(PushError::from)? {
        if field.number == 1 {
            read_series(&field, Series::new(limits, index))?.give(take)?;
            index += 1;
        }
    }
    Ok(())
}

fn read_series<'m, 'l>(field: &Field<'m>, mut series: Series<'l, &'m [u8]>) -> Result<Series<'l, &'m [u8]>, PushError> {
    let mut fields = field.message()?;
    while let Some(field) = fields.next()? {
        match field.number {
            1 => {
                let (name, value) = read_label(&field)?;
                series.add_label(name, value)?;
            }
            2 => series.add_sample(read_sample(&field)?)?,
            _ => {}
        }
    }
    Ok(series)
}

fn read_label<'m>(field: &Field<'m>) -> Result<(&'m str, &'m str), FileError> {
    let mut label = ("", "");
    let mut fields = field.message()?;
    while let Some(field) = fields.next()? {
        match field.number {
            1 => label.0 = field.text()?,
            2 => label.1 = field.text()?,
            _ => {}
        }
    }
    Ok(label)
}

fn read_sample<'m>(field: &Field<'m>) -> Result<&'m [u8], FileError> {
    let mut raw: &[u8] = &[];
    let mut fields = field.message()?;
    while let Some(field) = fields.next()? {
        if field.number == 1 {
            raw = field.bytes()?;
        }
    }
    Ok(raw)
}

impl From<FileError> for PushError {
    fn from(error: FileError) -> Self {
        Self(format!("the request is broken: {error}"))
    }
}
