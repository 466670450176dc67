//! `name{label=value}`: any text gives an answer, and what was read can be written and read again.

#![no_main]

use hotspan_formats::app_name::AppName;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match AppName::parse(text) {
        Ok(app) => {
            let labels: Vec<String> = app.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let written = format!("{}{{{}}}", app.name, labels.join(","));
            assert_eq!(AppName::parse(&written).as_ref(), Ok(&app), "{written}");
            let _ = app.text_type(100);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
