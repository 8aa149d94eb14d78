//! Reports tests that were skipped.
//!
//! Rust's test harness does not support tests that are skipped at run time: without the privileges, programs or files
//! that it needs, a test returns early and counts as passed. Such a test calls [`skip`] before it returns. The call is
//! recorded in the file that `NARROWS_SKIPS` names, which `make test` summarises at its end; if `CI` is `true`, it is a
//! failure unless `tests/may-skip.txt` lists the test with the reason why it cannot run.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;

/// Tests that may be skipped even in a complete environment.
const LIST: &str = include_str!("../../may-skip.txt");

/// Records that the running test is skipped, and why: a clause. (Only the harness's threads know the name of their
/// test: call this on the thread of the test.)
///
/// # Panics
/// If `CI` is `true` and the test is not listed in `tests/may-skip.txt`.
pub fn skip(why: impl Display) {
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    let file = std::env::var_os("NARROWS_SKIPS");
    skip_with(
        &name(),
        &why.to_string(),
        file.as_deref().map(Path::new),
        ci,
    );
}

fn skip_with(test: &str, why: &str, file: Option<&Path>, ci: bool) {
    let why = why.replace(['\n', '\t'], " ");
    eprintln!("skipped {test}: {why}");
    if let Some(file) = file {
        let line = format!("{test}\t{why}\n");
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(file);
        // One call for the line: other test programs write to the same file.
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("NARROWS_SKIPS names a file that can be written");
    }
    assert!(
        !ci || may_skip(LIST, test),
        "{test} was skipped ({why}), and tests/may-skip.txt does not list it"
    );
}

/// Whether the list has a test.
fn may_skip(list: &str, test: &str) -> bool {
    list.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(": "))
        .any(|(name, reason)| name == test && !reason.trim().is_empty())
}

/// Package and test, as in `narrows-agent::emulate::an_ordinary_user_can_emulate`.
fn name() -> String {
    // Cargo passes the package to a test program; without cargo, use the program's name.
    let program = std::env::args().next().unwrap_or_default();
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or(program);
    let thread = std::thread::current();
    // With a single thread the harness runs tests on its main thread.
    match thread.name() {
        Some(test) if test != "main" => format!("{package}::{test}"),
        _ => package,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_the_name_that_the_harness_prints() {
        let name = name();
        assert!(
            name.ends_with("::tests::a_test_has_the_name_that_the_harness_prints"),
            "{name}"
        );
    }

    #[test]
    fn skips_are_noted_one_per_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skips");
        skip_with("x::a", "there is no\nship", Some(&file), false);
        skip_with("x::b", "it is dark", Some(&file), false);
        assert_eq!(
            std::fs::read_to_string(file).unwrap(),
            "x::a\tthere is no ship\nx::b\tit is dark\n"
        );
    }

    #[test]
    #[should_panic(
        expected = "x::a was skipped (it is dark), and tests/may-skip.txt does not list it"
    )]
    fn what_is_not_listed_fails_in_continuous_integration() {
        skip_with("x::a", "it is dark", None, true);
    }

    #[test]
    fn the_list_gives_a_reason_for_each() {
        let list = "# x::a: a remark\nx::b: nobody has it\nx::c:  \n";
        assert_eq!(
            ["x::a", "x::b", "x::c", "x"].map(|test| may_skip(list, test)),
            [false, true, false, false]
        );
    }
}
