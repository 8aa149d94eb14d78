//! The conformance kit over the whole registry: every scheme in the list is tested without being named here.

use narrows_media::{schemes, testing};

/// Whether an entry is tested: all are, or the one that NARROWS_ENTRY named when this was compiled.
fn is_chosen(name: &str) -> bool {
    option_env!("NARROWS_ENTRY").is_none_or(|only| only == name)
}

#[test]
fn every_registered_scheme_conforms() {
    for scheme in schemes::ALL.iter().filter(|it| is_chosen(it.name)) {
        for seed in 0..6 {
            testing::check(scheme, seed, 60);
        }
    }
}

#[test]
fn every_file_begins_with_its_provenance() {
    for scheme in schemes::ALL {
        let page = schemes::page(scheme.name).unwrap();
        narrows_cc::testing::check_page(scheme.name, &page, scheme.params);
    }
}

#[test]
fn names_are_unique_and_parameters_have_sources() {
    let all = schemes::ALL;
    for (index, scheme) in all.iter().enumerate() {
        assert!(all[..index].iter().all(|other| other.name != scheme.name));
        assert!(
            narrows_cc::schemes::find(scheme.name).is_none(),
            "{}: a bulk scheme has the name",
            scheme.name
        );
        assert!(!scheme.source.is_empty() && !scheme.summary.is_empty());
        for param in scheme.params {
            assert!(!param.source.is_empty(), "{}: {}", scheme.name, param.name);
            param.default_value();
        }
        for profile in scheme.profiles {
            // Panics if a setting does not exist or is not allowed.
            testing::params(scheme, Some(profile.name), &[]);
            assert!(!profile.doc.is_empty());
        }
    }
}
