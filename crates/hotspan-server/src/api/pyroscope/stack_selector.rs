//! Which stacks a request is about: where they start, what they go through, and how much of each is wanted.

use hotspan_query::{FunctionTests, LeafTrim, QueryError, StackFilter};

use super::messages::StackTraceSelector;
use crate::api::ApiError;

/// The stacks that a selector lets through.
pub(super) fn stack_filter(selector: Option<&StackTraceSelector>) -> Result<StackFilter, ApiError> {
    let Some(StackTraceSelector { call_site, go_pgo, frame_filter }) = selector else {
        return Ok(StackFilter::default());
    };
    let call_site = match go_pgo {
        // Go's optimiser wants all stacks.
        Some(_) => Vec::new(),
        None => call_site.iter().map(|site| site.name.clone()).collect(),
    };
    let filter = frame_filter.clone().unwrap_or_default();
    let in_field = |field: &'static str| {
        move |error: QueryError| {
            let ApiError { status, message } = error.into();
            ApiError { status, message: format!("stack_trace_selector.frame_filter.{field}: {message}") }
        }
    };
    let with = FunctionTests::new(&filter.include_function_names, &filter.include_function_name_regexes);
    let without = FunctionTests::new(&filter.exclude_function_names, &filter.exclude_function_name_regexes);
    Ok(StackFilter {
        call_site,
        with: with.map_err(in_field("include_function_name_regexes"))?,
        without: without.map_err(in_field("exclude_function_name_regexes"))?,
    })
}

/// How much of each stack a selector wants.
pub(super) fn leaf_trim(selector: Option<&StackTraceSelector>) -> LeafTrim {
    match selector.and_then(|selector| selector.go_pgo.as_ref()) {
        Some(pgo) => LeafTrim { keep_frames: pgo.keep_locations as usize, ignore_leaf_line: pgo.aggregate_callees },
        None => LeafTrim::default(),
    }
}
