//! The conformance kit over the whole registry: every scheme in the list is tested without being named here.

use narrows_cc::{schemes, testing};
use proptest::prelude::*;

/// Whether an entry is tested: all are, or the one that NARROWS_ENTRY named when this was compiled.
fn is_chosen(name: &str) -> bool {
    option_env!("NARROWS_ENTRY").is_none_or(|only| only == name)
}

proptest! {
    // Few decisions each, but extreme ones: random decisions favour the middle.
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn any_bytes_are_a_history(
        scheme: u8,
        data in prop::collection::vec(prop_oneof![Just(0u8), Just(255u8), any::<u8>()], 0..1_000),
    ) {
        testing::fuzz(&[&[scheme][..], &data[..]].concat());
    }

    #[test]
    fn any_bytes_are_a_model_or_refused(
        kind: u8,
        data in prop::collection::vec(prop_oneof![Just(0u8), Just(255u8), any::<u8>()], 0..200),
    ) {
        testing::fuzz_models(&[&[kind][..], &data[..]].concat());
    }
}

#[test]
fn every_registered_scheme_conforms() {
    for scheme in schemes::ALL.iter().filter(|it| is_chosen(it.name)) {
        for seed in 0..64 {
            testing::check(scheme, seed, 5_000);
        }
    }
}

#[test]
fn every_file_begins_with_its_provenance() {
    for scheme in schemes::ALL {
        let page = schemes::page(scheme.name).unwrap();
        testing::check_page(scheme.name, &page, scheme.params);
    }
}

#[test]
fn names_are_unique_and_defaults_parse() {
    let schemes = schemes::ALL;
    for (index, scheme) in schemes.iter().enumerate() {
        assert!(
            schemes[..index]
                .iter()
                .all(|other| other.name != scheme.name)
        );
        assert!(!scheme.source.is_empty() && !scheme.summary.is_empty());
        for param in scheme.params {
            if param.default.is_some() {
                param.default_value();
            }
        }
    }
}
