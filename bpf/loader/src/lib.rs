//! The loader of BPF congestion controls: a separate program, `narrows-bpf`, that reads a [`LoadRequest`] from its
//! standard input, loads the objects, answers, and waits until the input ends.
//!
//! Each congestion control belongs to a link (`.struct_ops.link`) that this process holds; the kernel unregisters it
//! when the process ends for any reason. Connections that still use it keep it until they are closed.
//!
//! It is a separate program because of its requirements: libelf, which the agent must not depend on, and privileges,
//! which no other program should have.
#![forbid(unsafe_code)]

mod kernel;
mod load;
mod messages;

use narrows_bpf_programs::Object;
use narrows_bpf_programs::protocol::{
    ExitReport, LoadAnswer, LoadObstacle, LoadRequest, Loaded, RequestedObject,
};
use std::io::{self, BufRead, Read, Write};

/// The reason why an object was not loaded.
struct Problem {
    obstacle: LoadObstacle,
    message: String,
}

/// The whole program.
///
/// # Errors
/// The request cannot be read or the answer cannot be written.
pub fn serve() -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut line = String::new();
    input.read_line(&mut line)?;
    let request: LoadRequest = serde_json::from_str(&line)?;
    let mut links = Vec::new();
    let mut loaded = Vec::new();
    let mut answer = None;
    for (index, wanted) in request.objects.iter().enumerate() {
        let mut content = vec![0; wanted.length];
        input.read_exact(&mut content)?;
        match one(&content, wanted) {
            Ok((link, description)) => {
                links.push(link);
                loaded.push(description);
            }
            Err(problem) => {
                answer = Some(LoadAnswer::Failed {
                    object: index,
                    obstacle: problem.obstacle,
                    message: problem.message,
                });
                break;
            }
        }
    }
    let answer = answer.unwrap_or(LoadAnswer::Loaded(loaded));
    let mut output = io::stdout();
    writeln!(output, "{}", serde_json::to_string(&answer)?)?;
    output.flush()?;
    // The agent closes the pipe after the run; its death has the same effect.
    io::copy(&mut input, &mut io::sink())?;
    let missed = links.iter().map(load::LoadedLink::missed).collect();
    let farewell = ExitReport { missed };
    // The reader may have ended.
    let _ = writeln!(output, "{}", serde_json::to_string(&farewell)?);
    Ok(())
}

fn one(content: &[u8], wanted: &RequestedObject) -> Result<(load::LoadedLink, Loaded), Problem> {
    let object = |error: narrows_bpf_programs::ObjectError| Problem {
        obstacle: LoadObstacle::Object,
        message: error.to_string(),
    };
    let mut parsed = Object::parse(content).map_err(object)?;
    for (name, value) in &wanted.constants {
        parsed.set_constant(name, *value).map_err(object)?;
    }
    load::load(parsed)
}
