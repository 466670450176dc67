//! Profiles in.

use hotspan_formats::Limits;
use hotspan_formats::otlp::{WireVersion, decode_profiles_as};
use proptest::prelude::*;
use prost::Message as _;

use crate::dice::Dice;
use crate::profile_oracle::{describe, translate};
use crate::random_profiles;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Scenario: any request that the generated types can express, some of its indices pointing nowhere.
    /// Guarantee: the set says exactly what a plain translation of the generated types says.
    #[test]
    fn equals_the_generated_types(bytes in proptest::collection::vec(any::<u8>(), 0..1500)) {
        let request = random_profiles::request(&mut Dice::new(&bytes));
        let encoded = request.encode_to_vec();
        let (set, outcome, _) =
            decode_profiles_as(Some(WireVersion::V1_10), &encoded, &Limits::default(), 42).unwrap();
        let (lines, profiles, samples) = translate(&request, 42);
        prop_assert_eq!(describe(&set), lines);
        prop_assert_eq!((outcome.rejected, outcome.rejected_samples), (profiles, samples));
    }
}
