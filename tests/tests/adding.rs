//! Adding a scheme, a queue, a link element, a rate or a metric touches one file and one line, and adding a column of
//! states one line: done here, in a copy of the workspace. All users of the registries (conformance kit, registry,
//! simulation, verifier) stay unchanged.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Limit for compiling the copy on a busy machine; usually it takes a minute, and less without changes.
const LIMIT: Duration = Duration::from_mins(25);

/// A scheme that allows no data after the first loss: flows make no progress.
const STUCK: &str = r#"//! Stuck: nothing after a loss.
//!
//! Provenance: this test. Deviations: none.

use crate::{AckEvent, Allowance, CongestionControl, EcnUse, LossEvent, Recovery, Scheme};
use narrows_units::Bytes;

/// Registry line.
pub const SCHEME: Scheme = Scheme {
    name: "added",
    summary: "Nothing after a loss",
    source: "this test",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    loss_based: false,
    transport: &[],
    profiles: &[],
    params: &[],
    build: |_, setup| Ok(Box::new(Stuck(setup.initial_cwnd()))),
};

struct Stuck(Bytes);

impl CongestionControl for Stuck {
    fn on_ack(&mut self, _: &AckEvent<'_>) {}

    fn on_loss(&mut self, _: &LossEvent<'_>) {
        self.0 = Bytes::ZERO;
    }

    fn allowance(&self) -> Allowance {
        Allowance {
            cwnd: Some(self.0),
            ..Allowance::default()
        }
    }
}
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

/// The copy. It stays where it is, so that the next run compiles only what has changed.
fn copy() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("adding")
}

/// Folder of the crates in the copy. Cargo identifies a crate by its path in the workspace: under the same paths,
/// crates compiled here would be mistaken for the original ones.
const INSIDE: &str = "copied";

/// All sources of the workspace by their paths in the copy.
fn sources() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in ["Cargo.lock", "rust-toolchain.toml"] {
        files.insert(name.into(), fs::read(root().join(name)).unwrap());
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (head, rest) = manifest.split_once("members = [").unwrap();
    let (members, rest) = rest.split_once(']').unwrap();
    let (mut moved, mut profiles) = (Vec::new(), String::new());
    for member in members.split('"').skip(1).step_by(2) {
        gather(Path::new(member), &mut files);
        moved.push(format!("\"{INSIDE}/{member}\""));
        profiles += &quick(member);
    }
    let rest = rest.replace("path = \"", &format!("path = \"{INSIDE}/"));
    let manifest = format!("{head}members = [{}]{rest}{profiles}", moved.join(", "));
    files.insert("Cargo.toml".into(), manifest.into());
    files
}

/// A part of the manifest: the copies of our crates run for seconds only, so that optimising them would take longer.
/// Dependencies keep their settings, to avoid recompiling them.
fn quick(member: &str) -> String {
    let manifest = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
    let (_, name) = manifest.split_once("\nname = \"").unwrap();
    let (name, _) = name.split_once('"').unwrap();
    format!("\n[profile.release.package.{name}]\nopt-level = 0\ndebug = false\n")
}

fn gather(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            // Tests of other languages, and tables.
            if !["target", "python", "golden"]
                .iter()
                .any(|&other| path.ends_with(other))
            {
                gather(&path, files);
            }
        } else {
            let content = fs::read(root().join(&path)).unwrap();
            files.insert(Path::new(INSIDE).join(path), content);
        }
    }
}

/// One additional file and line.
struct Addition {
    /// The file with the list, from the root of the workspace.
    list: &'static str,
    /// A line of it, and the text that is added behind that.
    behind: &'static str,
    line: &'static str,
    /// The new file and its content, if there is one.
    file: Option<(&'static str, String)>,
}

impl Addition {
    /// An entry `added` that is `original` under another name.
    fn copy_of(
        list: &'static str,
        folder: &'static str,
        original: &str,
        word: [&'static str; 2],
    ) -> Self {
        let source = root().join(folder).with_file_name(format!("{original}.rs"));
        let source = fs::read_to_string(source).unwrap();
        let named = |name: &str| format!("name: \"{name}\"");
        let known = [original.to_owned(), format!("{original}_bps")];
        let known = known
            .iter()
            .find(|name| source.contains(&named(name)))
            .unwrap();
        let name = known.replace(original, "added");
        Addition {
            list,
            behind: word[0],
            line: word[1],
            file: Some((folder, source.replace(&named(known), &named(&name)))),
        }
    }
}

/// Copies of known entries, which must behave identically, and a column.
fn additions() -> Vec<Addition> {
    let copy = Addition::copy_of;
    vec![
        copy(
            "core/cc/src/schemes.rs",
            "core/cc/src/schemes/added.rs",
            "reno",
            ["    reno,", "    added,"],
        ),
        copy(
            "core/net/src/queues.rs",
            "core/net/src/queues/added.rs",
            "droptail",
            ["dyn Queue<P>, QueueEffects:", "    added,"],
        ),
        copy(
            "core/net/src/links.rs",
            "core/net/src/links/added.rs",
            "gilbert",
            ["dyn Element<P>, LinkEffects:", "    added,"],
        ),
        copy(
            "core/net/src/rates.rs",
            "core/net/src/rates/added.rs",
            "constant",
            ["dyn RateServer:", "    added,"],
        ),
        copy(
            "core/record/src/metrics/mod.rs",
            "core/record/src/metrics/added.rs",
            "throughput",
            ["metrics!(", "    added,"],
        ),
        Addition {
            list: "core/record/src/schema.rs",
            behind: "        pub cwnd_bytes: Option<u64>,",
            line: "        #[doc = \"Added.\"] pub added_bytes: Option<u64>,",
            file: None,
        },
    ]
}

/// Copies the workspace with the additions.
fn prepare(additions: &[Addition]) {
    let mut files = sources();
    for added in additions {
        let list = files.get_mut(&Path::new(INSIDE).join(added.list)).unwrap();
        let old = String::from_utf8(list.clone()).unwrap();
        let mut lines: Vec<&str> = old.lines().collect();
        let place = lines.iter().position(|line| line.ends_with(added.behind));
        let place =
            place.unwrap_or_else(|| panic!("{} has no line '{}'", added.list, added.behind));
        lines.insert(place + 1, added.line);
        *list = (lines.join("\n") + "\n").into();
        if let Some((file, content)) = &added.file {
            let file = Path::new(INSIDE).join(file);
            assert!(
                files.insert(file, content.clone().into()).is_none(),
                "one file"
            );
        }
    }
    clear(&copy().join(INSIDE), &files);
    for (path, content) in files {
        let place = copy().join(path);
        // Cargo decides by the time of a file whether to compile it.
        if fs::read(&place).is_ok_and(|old| old == content) {
            continue;
        }
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }
}

/// Removes files from `folder` of the copy that are no longer in the workspace: cargo would still find them.
fn clear(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            clear(&path, files);
        } else if !files.contains_key(path.strip_prefix(copy()).unwrap()) {
            fs::remove_file(path).unwrap();
        }
    }
}

/// Runs cargo in the copy on all crates at once, so that dependencies are compiled with the same features. The results
/// go to the shared target folder.
///
/// The kits run on the new entries: on the others they run in the workspace.
fn cargo(what: &[&str], program: &[&str]) -> Output {
    let [said, told] = ["stdout.txt", "stderr.txt"].map(|name| copy().join(name));
    let mut child = Command::new(env!("CARGO"))
        .args(what)
        .args(["--release", "--offline", "--locked", "--quiet"])
        .args(["--workspace", "--exclude", "narrows-native"])
        .args(program)
        .current_dir(copy())
        .env("CARGO_TARGET_DIR", target())
        .env("NARROWS_ENTRY", "added")
        .stdin(Stdio::null())
        .stdout(File::create(&said).unwrap())
        .stderr(File::create(&told).unwrap())
        .spawn()
        .unwrap();
    let limit = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > limit {
            let _ = child.kill();
            panic!(
                "cargo has not ended: {}",
                fs::read_to_string(&told).unwrap()
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Output {
        status,
        stdout: fs::read(&said).unwrap(),
        stderr: fs::read(&told).unwrap(),
    }
}

/// The output of the copy's example `try_entries` for a scheme, a queue, a link element and a rate.
fn tried(names: [&str; 4]) -> Value {
    let example = target().join("release/examples/try_entries");
    let output = Command::new(example).args(names).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The conformance kits, without the tests that choose entries by themselves.
const KITS: [&str; 7] = [
    "--test",
    "conformance",
    "--",
    "--skip",
    "any_bytes",
    "--skip",
    "lateness",
];

#[test]
fn adding_an_entry_touches_one_file_and_one_line() {
    let mut additions = additions();
    prepare(&additions);
    let kit = cargo(&["test"], &KITS);
    assert!(kit.status.success(), "{kit:?}");
    let built = cargo(&["build"], &["--example", "try_entries"]);
    assert!(built.status.success(), "{built:?}");
    let known = tried(["reno", "droptail", "gilbert", "constant"]);
    let added = tried(["added", "added", "added", "constant"]);
    for family in ["schemes", "queues", "links"] {
        assert_eq!(added[family]["name"], "added");
        for member in ["page", "params", "summary", "example"] {
            assert_eq!(added[family][member], known[family][member]);
        }
    }
    assert!(
        known["metrics"]["throughput_bps"].as_f64().unwrap() > 1e6,
        "{known}"
    );
    assert_eq!(added["metrics"], known["metrics"]);
    assert_eq!(
        added["metrics"]["added_bps"],
        added["metrics"]["throughput_bps"]
    );
    // The verifier checks as much as for the others.
    assert_eq!(added["findings"], known["findings"]);
    assert_eq!(added["findings"]["ok"], true, "{added}");
    assert!(added["states"].as_u64() > Some(100));
    // Losses of the new element bound a flow of the new scheme.
    assert_eq!(known["bound"], "loss of 0.200 % at forward.2");
    assert_eq!(added["bound"], known["bound"]);
    assert_eq!(added["columns"][1], "added_bytes");
    // The rate comes from the record, as it does not follow from the cell alone.
    let rate = tried(["reno", "droptail", "gilbert", "added"]);
    assert_eq!(rate["rates"]["name"], "added");
    assert_eq!(rate["findings"]["ok"], true, "{rate}");
    assert_eq!(
        rate["metrics"]["throughput_bps"],
        known["metrics"]["throughput_bps"]
    );
    // The kit also detects a new scheme that violates its rules.
    additions[0].file.as_mut().unwrap().1 = STUCK.to_owned();
    prepare(&additions);
    let kit = cargo(&["test"], &KITS);
    let words = String::from_utf8_lossy(&kit.stdout) + String::from_utf8_lossy(&kit.stderr);
    assert!(!kit.status.success(), "{words}");
    assert!(words.contains("added: window of zero"), "{words}");
}
