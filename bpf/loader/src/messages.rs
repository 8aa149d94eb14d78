//! Messages of libbpf and of the kernel's verifier, and the line among them that explains a failure.

use libbpf_rs::{PrintLevel, set_print};
use std::sync::Mutex;

static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn record(_: PrintLevel, message: String) {
    if let Ok(mut messages) = MESSAGES.lock() {
        messages.push(message);
    }
}

/// Starts collecting messages; discards earlier ones.
pub(crate) fn listen() {
    if let Ok(mut messages) = MESSAGES.lock() {
        messages.clear();
    }
    set_print(Some((PrintLevel::Warn, record)));
}

/// The reason of the last failure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The verifier rejected a function, with its last message.
    Verifier { function: String, line: String },
    /// libbpf's first warning.
    Warning(String),
    /// No message.
    Unknown,
}

/// Messages since [`listen`].
pub(crate) fn reason() -> Reason {
    MESSAGES
        .lock()
        .map_or(Reason::Unknown, |messages| explain(&messages))
}

fn explain(messages: &[String]) -> Reason {
    let verdict = messages.iter().find_map(|message| {
        let (before, log) = message.split_once("-- BEGIN PROG LOAD LOG --")?;
        let log = log.split("-- END PROG LOAD LOG --").next()?;
        let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
        // The last line is about the verifier itself: processed 12 insns (limit 1000000) ...
        let line = lines.rfind(|line| !is_statistics(line))?;
        let function = before.split('\'').nth(1).unwrap_or("?");
        Some(Reason::Verifier {
            function: function.to_owned(),
            line: line.to_owned(),
        })
    });
    let warning = || {
        let first = messages
            .iter()
            .map(|it| it.trim())
            .find(|it| !it.is_empty())?;
        let first = first.lines().next()?.trim_start_matches("libbpf: ");
        Some(Reason::Warning(first.trim_end_matches('.').to_owned()))
    };
    verdict.or_else(warning).unwrap_or(Reason::Unknown)
}

fn is_statistics(line: &str) -> bool {
    [
        "processed ",
        "verification time ",
        "stack depth ",
        "max_states",
    ]
    .iter()
    .any(|word| line.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_last_words_explain_a_refusal() {
        let messages = [
            "libbpf: prog 'ssthresh': BPF program load failed: -EACCES\n".to_owned(),
            "libbpf: prog 'ssthresh': -- BEGIN PROG LOAD LOG --\n0: R1=ctx() R10=fp0\n1: (79) r1 = *(u64 *)(r1 +0)\nR1 invalid mem access 'scalar'\nprocessed 2 insns (limit 1000000) max_states_per_insn 0\n-- END PROG LOAD LOG --\n".to_owned(),
        ];
        assert_eq!(
            explain(&messages),
            Reason::Verifier {
                function: "ssthresh".into(),
                line: "R1 invalid mem access 'scalar'".into()
            }
        );
        let messages = [
            "libbpf: extern (func ksym) 'x': not found.\n".to_owned(),
            "libbpf: failed\n".to_owned(),
        ];
        assert_eq!(
            explain(&messages),
            Reason::Warning("extern (func ksym) 'x': not found".into())
        );
        assert_eq!(explain(&[]), Reason::Unknown);
    }
}
