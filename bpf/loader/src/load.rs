//! Loads one object into the kernel.

use crate::messages::{self, Reason};
use crate::{Problem, kernel};
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, MapType, ObjectBuilder, OpenObject};
use narrows_bpf_programs::Object;
use narrows_bpf_programs::protocol::{LoadObstacle, Loaded};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};

/// Maximum number of attempts to find an unused name, and thus of simultaneous runs with one program.
const ATTEMPTS: usize = 100;
/// Maximum length of a name in the kernel.
const LONGEST: usize = 15;
/// The congestion control belongs to a link instead of staying until it is deleted (linux/bpf.h,
/// BPF_F_LINK).
const LINKED: u32 = 1 << 13;

/// The link that keeps a congestion control registered.
#[derive(Debug)]
pub(crate) struct LoadedLink {
    _link: Link,
    object: libbpf_rs::Object,
}

/// Section in which a program counts the calls that the kernel omitted.
const MISSED: &str = ".bss.missed";

impl LoadedLink {
    /// Number of omitted calls that the program has detected so far; 0 if it does not count them.
    pub(crate) fn missed(&self) -> u64 {
        let map = self.object.maps().find(|map| map.name() == MISSED);
        let content = map.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?);
        let count = content.and_then(|it| Some(u32::from_ne_bytes(it.get(..4)?.try_into().ok()?)));
        count.map_or(0, u64::from)
    }
}

/// Registers the congestion control in `object`, under another name if its name is taken.
pub(crate) fn load(mut object: Object) -> Result<(LoadedLink, Loaded), Problem> {
    kernel::check()?;
    let own = object.name().to_owned();
    let taken = kernel::taken();
    let old = kernel::is_old();
    for number in 1..=ATTEMPTS {
        let name = number_name(&own, number);
        if taken.contains(&name) {
            continue;
        }
        object.set_name(&name).map_err(|error| Problem {
            obstacle: LoadObstacle::Object,
            message: error.to_string(),
        })?;
        // Another process may take the name between the check and the attempt.
        if let Some(done) = attempt(&object, &name, old)? {
            return Ok(done);
        }
    }
    Err(Problem {
        obstacle: LoadObstacle::Kernel,
        message: format!(
            "the kernel knows {ATTEMPTS} congestion controls like '{own}' already; end the runs that use them"
        ),
    })
}

/// `nw_vegas`, `nw_vegas_2` ...
fn number_name(name: &str, number: usize) -> String {
    if number == 1 {
        return name.to_owned();
    }
    let number = format!("_{number}");
    let room = LONGEST - number.len();
    format!("{}{number}", name.get(..room).unwrap_or(name))
}

/// Loads under this name; `None` if it has been taken in the meantime.
fn attempt(
    object: &Object,
    name: &str,
    old: bool,
) -> Result<Option<(LoadedLink, Loaded)>, Problem> {
    messages::listen();
    let (table, other) = object.tables(old);
    let opened = open(object.bytes(), other);
    let loaded = opened.and_then(OpenObject::load);
    let mut loaded = loaded.map_err(|error| problem(&error, Step::Load))?;
    let description = Loaded {
        kernel_name: name.to_owned(),
        tags: tags(&loaded),
        constants: constants(object, &loaded),
    };
    let mut map = loaded
        .maps_mut()
        .find(|map| map.name() == table)
        .expect("libbpf makes a map of every table of operations");
    match map.attach_struct_ops() {
        Ok(link) => Ok(Some((
            LoadedLink {
                _link: link,
                object: loaded,
            },
            description,
        ))),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(problem(&error, Step::Register)),
    }
}

fn open(bytes: &[u8], other: Option<&str>) -> libbpf_rs::Result<OpenObject> {
    let mut opened = ObjectBuilder::default()
        .name("narrows")?
        .open_memory(bytes)?;
    for mut map in opened.maps_mut() {
        if map.map_type() == MapType::StructOps {
            if other.is_some_and(|other| map.name() == other) {
                map.set_autocreate(false)?;
            }
            // Also for `.struct_ops`: no object may outlive this process.
            map.set_map_flags(LINKED)?;
        }
    }
    Ok(opened)
}

#[derive(Clone, Copy)]
enum Step {
    Load,
    Register,
}

fn problem(error: &libbpf_rs::Error, step: Step) -> Problem {
    let refused = |message: String| Problem {
        obstacle: LoadObstacle::Refused,
        message,
    };
    // The context that libbpf adds to the system's error is about our calls, not about the object.
    let cause = format!("{error:#}");
    let cause = cause.rsplit(": ").next().unwrap_or_default();
    match (messages::reason(), step) {
        (Reason::Verifier { function, line }, _) => refused(format!(
            "the kernel's verifier rejects its function '{function}': {line}"
        )),
        (_, Step::Load) if error.kind() == ErrorKind::PermissionDenied => {
            kernel::no_rights("the kernel refuses, as it does inside a user namespace")
        }
        (_, Step::Register) => refused(format!(
            "the kernel does not register it ({cause}); ssthresh, undo_cwnd, and cong_avoid or cong_control are needed"
        )),
        (Reason::Warning(text), Step::Load) => refused(format!("it cannot be loaded: {text}")),
        (Reason::Unknown, Step::Load) => refused(format!("it cannot be loaded: {cause}")),
    }
}

/// The kernel's tag of every function that is loaded.
fn tags(object: &libbpf_rs::Object) -> BTreeMap<String, String> {
    let programs = object.progs();
    let tag = |program: libbpf_rs::Program| {
        // A function that is not needed on this kernel is not loaded.
        let fd = program.as_fd().as_raw_fd();
        let facts = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
        let tag = facts.lines().find_map(|it| it.strip_prefix("prog_tag:"))?;
        let name = program.name().to_string_lossy().into_owned();
        Some((name, tag.trim().to_owned()))
    };
    programs.filter_map(tag).collect()
}

/// The constants as stored in the kernel.
fn constants(object: &Object, loaded: &libbpf_rs::Object) -> BTreeMap<String, u64> {
    let map = loaded
        .maps()
        .find(|map| map.name().to_string_lossy().ends_with(".rodata"));
    let content = map.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?);
    let content = content.unwrap_or_default();
    let value = |name: &str| Some((name.to_owned(), object.constant_in(&content, name)?));
    object.constants().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::number_name;

    #[test]
    fn numbered_names_fit() {
        assert_eq!(number_name("nw_vegas", 1), "nw_vegas");
        assert_eq!(number_name("nw_vegas", 2), "nw_vegas_2");
        assert_eq!(number_name("nw_cubic2008abc", 12), "nw_cubic2008_12");
    }
}
