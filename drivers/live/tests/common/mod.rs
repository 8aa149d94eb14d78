//! Running a test inside a private network, as root or as an ordinary user.

use narrows_live::sys::process::start_in_private_network;
use std::process::Command;

const INSIDE: &str = "NARROWS_TEST_INSIDE";

/// Runs `body` in a network namespace of its own: the test program starts itself again there and
/// executes only the test called `name`. Where the machine forbids namespaces, says so and passes.
pub(crate) fn in_private_network(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1");
    start_in_private_network(&mut command);
    match command.status() {
        Ok(status) => assert!(status.success(), "{name} failed inside its private network"),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            eprintln!("skipped {name}: this machine forbids namespaces ({error})");
        }
        Err(error) => panic!("{name} could not be started: {error}"),
    }
}
