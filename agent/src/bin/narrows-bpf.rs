//! `narrows-bpf`: loads congestion controls into the kernel on behalf of the agent.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match narrows_bpf_loader::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("narrows-bpf: {error}");
            ExitCode::FAILURE
        }
    }
}
