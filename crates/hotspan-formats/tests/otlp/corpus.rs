//! Seeds for the fuzzers, kept in the repository. `HOTSPAN_WRITE_SEEDS=1 cargo test -p hotspan-formats corpus` makes them
//! anew.

use std::io::Write as _;
use std::path::Path;

use prost::Message as _;
use serde_json::json;

use crate::dice::Dice;
use crate::{json, random_profiles, random_traces, versions};

/// Compares a seed with the one that is kept, or writes it if asked to.
fn seed(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let file = folder.join(format!("seed-{name}"));
    if std::env::var_os("HOTSPAN_WRITE_SEEDS").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&file, bytes).unwrap();
    }
    let kept = std::fs::read(&file).unwrap_or_default();
    assert!(kept == bytes, "{} is not what this code makes; HOTSPAN_WRITE_SEEDS=1 writes it anew", file.display());
}

/// Scenario: requests made from fixed dice, in every encoding and numbering that the fuzzers start from.
/// Guarantee: the corpus in the repository is that of this code.
#[test]
fn the_corpus_is_that_of_this_code() {
    let mut state = 7u64;
    for number in 0..6 {
        let bytes: Vec<u8> = (0..1200)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u8
            })
            .collect();
        let traces = random_traces::request(&mut Dice::new(&bytes[..500]));
        let profiles = random_profiles::request(&mut Dice::new(&bytes)).encode_to_vec();
        let json = json!({"resourceSpans": traces.resource_spans.iter().map(json::resource_spans).collect::<Vec<_>>()});
        seed("otlp_traces", &number.to_string(), &traces.encode_to_vec());
        seed("otlp_profiles", &number.to_string(), &profiles);
        seed("otlp_json", &format!("traces-{number}"), json.to_string().as_bytes());
        let mut gzip = flate2::write::GzEncoder::new(vec![0], flate2::Compression::fast());
        gzip.write_all(&profiles).unwrap();
        seed("decompress", &format!("gzip-{number}"), &gzip.finish().unwrap());
        let zstd = [vec![1], zstd::encode_all(&profiles[..], 3).unwrap()].concat();
        seed("decompress", &format!("zstd-{number}"), &zstd);
    }
    seed("otlp_json", "profiles", json::profiles_json(["samples", "values", "lines"]).to_string().as_bytes());
    seed("otlp_profiles", "v1.9", &versions::sample_request());
    // A root, a function, and two that it calls.
    seed("tree", "small", b"\0\0\x01\x04main\0\x02\x01a\x05\0\x01b\x07\0");
}
