//! The reader of object files, tested on our compiled programs.

use crate::{ALL, Object, ObjectError, object};

/// Bytes of a name in the kernel, with the zero at its end (`TCP_CA_NAME_MAX`).
const NAME_BYTES: usize = 16;

/// Any of our programs that has a parameter.
fn sample() -> (Object, String) {
    let mut objects = ALL.iter().map(|program| object(program).unwrap());
    let found = objects.find_map(|object| {
        let name = object.constants().find(|it| it.starts_with("param_"));
        let name = name?.to_owned();
        Some((object, name))
    });
    found.expect("a program with a parameter")
}

#[test]
fn name_and_constants_can_be_changed() {
    let (mut object, constant) = sample();
    let before = object.bytes().to_vec();
    object.set_name("another.name_15").unwrap();
    object
        .set_constant(&constant, 0x1234_5678_9abc_def0)
        .unwrap();
    let again = Object::parse(object.bytes()).unwrap();
    assert_eq!(again.name(), "another.name_15");
    assert_eq!(again.constant(&constant), Some(0x1234_5678_9abc_def0));
    let changed = before
        .iter()
        .zip(again.bytes())
        .filter(|(old, new)| old != new);
    assert!(
        changed.count() <= 2 * NAME_BYTES + 8,
        "nothing else has changed"
    );
}

#[test]
fn names_and_constants_that_cannot_be_are_refused() {
    let (mut object, _) = sample();
    let mut refused = |name: &str| object.set_name(name).unwrap_err().to_string();
    assert!(refused("sixteen_letters_").contains("at most 15"));
    assert!(refused("a-b").contains("'a-b'"));
    assert!(refused("").contains("has no name"));
    let error = object.set_constant("param_nonsense", 1).unwrap_err();
    assert!(error.to_string().contains("'param_nonsense'"));
    let mut name = [0; NAME_BYTES];
    name[..object.name().len()].copy_from_slice(object.name().as_bytes());
    let with_name = |byte: u8| {
        let mut changed = object.bytes().to_vec();
        for at in 0..changed.len() - NAME_BYTES {
            if changed[at..at + NAME_BYTES] == name {
                changed[at..at + NAME_BYTES].fill(byte);
            }
        }
        Object::parse(&changed).unwrap_err()
    };
    assert_eq!(with_name(b'x'), ObjectError::BadName("x".repeat(16)));
    assert_eq!(with_name(0), ObjectError::NoName);
}

#[test]
fn foreign_and_broken_files_are_told_apart() {
    let (object, _) = sample();
    let bytes = object.bytes();
    let parse = |bytes: &[u8]| Object::parse(bytes).unwrap_err();
    assert_eq!(parse(b"#include <x.h>"), ObjectError::NotElf);
    assert_eq!(parse(b""), ObjectError::NotElf);
    let mut other = bytes.to_vec();
    other[18] = 62;
    assert_eq!(parse(&other), ObjectError::Machine);
    assert_eq!(parse(&bytes[..bytes.len() / 2]), ObjectError::Damaged);
    let rename = |from: &[u8], to: &[u8]| {
        let mut changed = bytes.to_vec();
        let windows = bytes.windows(from.len()).enumerate();
        for (at, _) in windows.filter(|(_, window)| *window == from) {
            changed[at..at + to.len()].copy_from_slice(to);
        }
        parse(&changed)
    };
    assert_eq!(
        rename(b"Dual MIT/GPL", b"Proprietary\0"),
        ObjectError::License("Proprietary".into())
    );
    assert_eq!(rename(b".BTF\0", b".xyz\0"), ObjectError::NoTypes);
    assert_eq!(
        rename(b".struct_ops.link", b".another_section"),
        ObjectError::NoOps
    );
    assert_eq!(
        rename(b"tcp_congestion_ops", b"sched_ext_ops_____"),
        ObjectError::OtherOps("sched_ext_ops_____".into())
    );
}

/// Files with any content are rejected or read, without a crash.
#[test]
fn no_file_brings_the_reader_down() {
    let (object, _) = sample();
    let bytes = object.bytes();
    // Each thread takes its share of the positions, of which there are tens of thousands.
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    std::thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || {
                let mut changed = bytes.to_vec();
                for at in (first..bytes.len()).step_by(threads) {
                    let _ = Object::parse(&bytes[..at]);
                    for value in [0, 0x7f, 0xff] {
                        changed[at] = value;
                        let _ = Object::parse(&changed);
                    }
                    changed[at] = bytes[at];
                }
            });
        }
    });
}
