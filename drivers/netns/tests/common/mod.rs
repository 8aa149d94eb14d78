//! Running a test inside a private network, as root or as an ordinary user.

use narrows_sys::process::start_in_private_network;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

const INSIDE: &str = "NARROWS_TEST_INSIDE";

/// Far above the duration of any of these tests, even on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);

/// Runs `body` in a new network namespace: the test program starts itself again there and executes
/// only the test called `name`. If the machine forbids namespaces, prints that and passes.
pub(crate) fn in_private_network(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1");
    start_in_private_network(&mut command);
    match command.spawn() {
        Ok(mut child) => assert!(
            wait(name, &mut child).success(),
            "{name} failed inside its private network"
        ),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            narrows_skips::skip(format!("this machine forbids namespaces ({error})"));
        }
        Err(error) => panic!("{name} could not be started: {error}"),
    }
}

fn wait(name: &str, child: &mut Child) -> ExitStatus {
    let limit = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > limit {
            let _ = child.kill();
            panic!("{name} has not ended inside its private network after {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
