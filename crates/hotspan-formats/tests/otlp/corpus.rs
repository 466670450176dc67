//! Seeds for the fuzzers: `cargo test -p hotspan-formats --test otlp write_seed_corpus -- --ignored`.

use std::io::Write as _;
use std::path::Path;

use prost::Message as _;
use serde_json::json;

use crate::dice::Dice;
use crate::{json, random_profiles, random_traces, versions};

fn write(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("seed-{name}")), bytes).unwrap();
}

/// Scenario: asked for by name only, since it writes into the source tree.
/// Guarantee: the seeds are those of this code.
#[test]
#[ignore = "writes the seeds of the fuzzers"]
fn write_seed_corpus() {
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
        write("otlp_traces", &number.to_string(), &traces.encode_to_vec());
        write("otlp_profiles", &number.to_string(), &profiles);
        write("otlp_json", &format!("traces-{number}"), json.to_string().as_bytes());
        let mut gzip = flate2::write::GzEncoder::new(vec![0], flate2::Compression::fast());
        gzip.write_all(&profiles).unwrap();
        write("decompress", &format!("gzip-{number}"), &gzip.finish().unwrap());
        let zstd = [vec![1], zstd::encode_all(&profiles[..], 3).unwrap()].concat();
        write("decompress", &format!("zstd-{number}"), &zstd);
    }
    write("otlp_json", "profiles", json::profiles_json(["samples", "values", "lines"]).to_string().as_bytes());
    write("otlp_profiles", "v1.9", &versions::sample_request());
}
