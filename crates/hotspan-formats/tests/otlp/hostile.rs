//! Damage: bytes flipped, cut, repeated. Nothing may panic, and nothing may take more memory than allowed.

use hotspan_formats::Limits;
use hotspan_formats::otlp::{decode_profiles, decode_traces};
use proptest::prelude::*;
use prost::Message as _;

use crate::dice::Dice;
use crate::trace_oracle::Told;
use crate::{random_profiles, random_traces};

/// Flips, cuts and repeats bytes as `damage` says.
fn damaged(mut bytes: Vec<u8>, damage: &[(u16, u8)]) -> Vec<u8> {
    for (at, change) in damage {
        if bytes.is_empty() {
            break;
        }
        let at = usize::from(*at) % bytes.len();
        match change % 4 {
            0 => bytes[at] = bytes[at].wrapping_add(*change),
            1 => bytes.truncate(at),
            2 => drop(bytes.remove(at)),
            _ => bytes.insert(at, *change),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Scenario: damaged requests of both kinds, and pure noise.
    /// Guarantee: an answer, whatever it is; and whatever the generated types accept is accepted.
    #[test]
    fn damage_never_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        damage in proptest::collection::vec(any::<(u16, u8)>(), 0..6),
    ) {
        let limits = Limits::default();
        let traces = damaged(random_traces::request(&mut Dice::new(&bytes)).encode_to_vec(), &damage);
        let read = decode_traces(&traces, &limits, &mut Told::default());
        let generated = opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest::decode(&traces[..]);
        prop_assert!(read.is_ok() || generated.is_err(), "{:?}", read);
        let profiles = damaged(random_profiles::request(&mut Dice::new(&bytes)).encode_to_vec(), &damage);
        let _ = decode_profiles(&profiles, &limits, 0);
        let _ = decode_traces(&bytes, &limits, &mut Told::default());
        let _ = decode_profiles(&bytes, &limits, 0);
    }
}
