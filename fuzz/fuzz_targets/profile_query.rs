//! Questions about profiles: any text gives an answer, what was read can be written and read again, and what the
//! selector says holds whether it is asked in one piece or matcher by matcher.

#![no_main]

use hotspan_formats::profile_query::{ProfileQuery, SampleIds, top_query};
use hotspan_model::{Labels, ProfileType, Selector};
use libfuzzer_sys::fuzz_target;

/// The query in one spelling of many.
fn written(query: &ProfileQuery) -> String {
    let short = |short: &&str| short.parse().as_ref() == Ok(&query.profile_type);
    let name = match query.any_period {
        true => ProfileType::aliases().find(short).expect("what has no period has a short name").to_owned(),
        false => query.profile_type.to_string(),
    };
    let SampleIds { spans, traces } = &query.ids;
    let spans = spans.iter().map(|span| format!("span_id=\"{span}\""));
    let traces = traces.iter().map(|trace| format!("trace_id=\"{trace}\""));
    let matchers = query.selector.matchers.iter().map(ToString::to_string);
    format!("{name}{{{}}}", matchers.chain(spans).chain(traces).collect::<Vec<_>>().join(","))
}

fn check_selector(selector: &Selector) {
    let text = selector.to_string();
    assert_eq!(Selector::parse(&text).as_ref(), Ok(selector), "{text}");
    // The values that are asked for fit, unless another matcher is about the same label.
    let wanted = selector.matchers.iter().map(|matcher| (matcher.name.as_str(), matcher.equal_value().unwrap_or("x")));
    let labels = Labels::from_pairs(wanted);
    let one_by_one = selector.matchers.iter().all(|matcher| Selector::default().and(matcher.clone()).fits(&labels));
    assert_eq!(selector.fits(&labels), one_by_one, "{text}");
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(selector) = Selector::parse(text) {
        check_selector(&selector);
    }
    let (query, top) = match top_query(text) {
        Ok(taken) => taken,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    if let Some(count) = top {
        assert_eq!(top_query(&format!("topk({count}, {query})")), Ok((query, top)));
    }
    match ProfileQuery::parse(query) {
        Ok(read) => {
            check_selector(&read.selector);
            let again = written(&read);
            assert_eq!(ProfileQuery::parse(&again).as_ref(), Ok(&read), "{again}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
