//! The `with(…)` hints an engine knows.

use crate::ast::{Hint, Literal};

/// Hints in typed form; unknown ones are kept in [`Query::hints`](crate::ast::Query::hints) only.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hints {
    /// `most_recent`: newest traces first, exactly.
    pub most_recent: Option<bool>,
    /// `exemplars`: how many exemplars a metrics query gives; `true` means the server's default.
    pub exemplars: Option<Exemplars>,
    /// `sample`, `span_sample` or `trace_sample`: the share to look at; `true` leaves it to the server.
    pub sample: Option<Sampling>,
    /// `extrapolate`: scale counts by the sampling that the spans say they underwent.
    pub extrapolate: bool,
    /// `precise_quantiles`: quantiles within 0.5 % instead of Tempo's powers of two.
    pub precise_quantiles: bool,
}

/// The `exemplars` hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exemplars {
    /// None.
    Off,
    /// As many as the server gives by default.
    Default,
    /// At most this many.
    Count(u32),
}

/// What is sampled, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Whole traces or single spans; `None` leaves it to the server.
    pub traces: Option<bool>,
    /// The share, over 0 up to 1; `None` leaves it to the server.
    pub share: Option<f64>,
}

impl Hints {
    pub(crate) fn of(hints: &[Hint]) -> Self {
        let mut known = Self::default();
        for Hint { name, value, .. } in hints {
            let share = match value {
                Literal::Float(share) => Some(*share),
                Literal::Int(1) => Some(1.0),
                _ => None,
            };
            let is_on = *value != Literal::Bool(false);
            match name.as_str() {
                "most_recent" => known.most_recent = Some(is_on),
                "extrapolate" => known.extrapolate = is_on,
                "precise_quantiles" => known.precise_quantiles = is_on,
                "exemplars" => {
                    known.exemplars = Some(match value {
                        Literal::Int(count) => Exemplars::Count(u32::try_from(*count).unwrap_or(u32::MAX)),
                        Literal::Bool(false) => Exemplars::Off,
                        _ => Exemplars::Default,
                    });
                }
                "sample" if is_on => known.sample = Some(Sampling { traces: None, share }),
                "span_sample" if is_on => known.sample = Some(Sampling { traces: Some(false), share }),
                "trace_sample" if is_on => known.sample = Some(Sampling { traces: Some(true), share }),
                _ => {}
            }
        }
        known
    }
}
