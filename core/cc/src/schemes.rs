//! THE REGISTRY of congestion control schemes.
//!
//! To add one: a file in `schemes/` with a `pub const SCHEME: Scheme`, and its name in the list below. `narrows schemes
//! NAME` shows the file's header, followed by the text of the function named after `with`, if any. Scenario validation, all planes, the command line, the reference, the conformance
//! kit, fuzzing and the golden tables follow from it.

use crate::{CongestionControl, Scheme, Setup};
use narrows_units::{ParamError, Params};

macro_rules! schemes {
    ($($module:ident $(with $describe:path)?),+ $(,)?) => {
        $(pub mod $module;)+

        /// All schemes, in the order of the reference.
        pub const ALL: &[Scheme] = &[$($module::SCHEME),+];

        /// The files of all schemes, in the same order.
        const FILES: &[&str] = &[$(include_str!(concat!("schemes/", stringify!($module), ".rs"))),+];

        /// More paragraphs of each page, in the same order, made from other registries.
        const GENERATED: &[&[fn() -> String]] = &[$(&[$($describe)?]),+];
    };
}

// In braces: rustfmt leaves it unchanged, one name per line.
schemes! {
    // Loss-based.
    tahoe,
    reno,
    newreno,
    cubic,
    cubic_linux,
    cubic2008,
    quic_cubic,
    // Loss-based, for large windows and long paths.
    scalable,
    highspeed,
    bic,
    htcp,
    hybla,
    // Delay-based, and based on delay and loss.
    vegas,
    vegas_linux,
    veno,
    westwood,
    illinois,
    yeah,
    compound,
    fast,
    // Mark-based.
    dctcp,
    prague,
    // Background transports.
    ledbat,
    lp,
    utp,
    ledbat_pp,
    // Model-based.
    bbr1,
    bbr3,
    bbr_draft,
    fillp,
    fillp_sheep,
    // Utility-based, measured over intervals at different rates.
    pcc_allegro,
    vivace,
    pcc_expr,
    // Delay-based, over datagrams.
    copa,
    koho,
    koho_calibrated,
    verus,
    // Machine-learned.
    remy,
    indigo,
    muses,
    aurora,
    policy with policy::describe_parts,
    // For teaching.
    exp,
    // For measuring paths.
    saturator,
}

/// The scheme called `name`.
pub fn find(name: &str) -> Option<&'static Scheme> {
    ALL.iter().find(|scheme| scheme.name == name)
}

/// The header of the file of the scheme called `name`: description, provenance, deviations, parameters. Markdown,
/// paragraphs separated by empty lines.
pub fn page(name: &str) -> Option<String> {
    let index = ALL.iter().position(|scheme| scheme.name == name)?;
    let mut page = header(FILES[index]);
    for describe in GENERATED[index] {
        page += "\n\n";
        page += &describe();
    }
    Some(page)
}

/// The comment at the head of a Rust file, as Markdown.
pub fn header(source: &str) -> String {
    let header = source.lines().map_while(|line| line.strip_prefix("//!"));
    let lines: Vec<&str> = header
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    lines.join("\n")
}

/// Checks that a flow that runs `scheme`, built from the registration `name`, makes its decisions itself.
///
/// # Errors
/// If it does not.
pub fn expect_own_decisions(scheme: &dyn CongestionControl, name: &str) -> Result<(), ParamError> {
    if scheme.needs_caller() {
        return Err(ParamError::Conflict(format!(
            "{name} needs a model, such as {{{name}: mine.safetensors}}, unless a program makes its decisions"
        )));
    }
    Ok(())
}

/// Builds `scheme` with checked parameters.
///
/// # Errors
/// Contradictory parameters.
pub fn build(
    scheme: &Scheme,
    params: &Params,
    setup: Setup,
) -> Result<Box<dyn CongestionControl>, ParamError> {
    (scheme.build)(params, setup)
}
