//! Our congestion controls for the Linux kernel, compiled: every C file in `src/c` becomes an object (see `build.rs`)
//! that is embedded here. Names, parameters and the format of objects are in `programs/`, which needs no clang.
//!
//! ```text
//! src/c/vegas.bpf.c --clang--> object --embedded--> agent
//!        |                                            |
//!        v                     narrows-bpf (loader/) <+   object, constants
//! programs/: registry                 |
//!                                     v  libbpf
//!                                  kernel: TCP_CONGESTION "nw_vegas", until the loader ends
//! ```
//!
//! Nothing is loaded here. A separate program loads objects ([`protocol`], `loader/`), because that needs libelf,
//! privileges, and a process whose end unloads them.
#![forbid(unsafe_code)]

pub use narrows_bpf_programs::{ALL, Object, ObjectError, Program, find, protocol};

/// Objects by the names of their programs; empty if this was not built for Linux.
const OBJECTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The object file of one of our programs, examined.
///
/// # Errors
/// Only if this was not built for Linux: the tests examine every object.
pub fn object(program: &Program) -> Result<Object, ObjectError> {
    let found = OBJECTS.iter().find(|(name, _)| *name == program.name);
    Object::parse(found.map_or(&[], |(_, object)| object))
}

#[cfg(test)]
mod tests {
    mod object_files;

    use super::*;
    use narrows_bpf_programs::{PARAM, encode};

    /// A default in C that differs from the native scheme's would be another scheme under its name.
    #[test]
    fn every_program_can_be_loaded_as_far_as_its_file_tells_and_has_the_defaults_of_its_native_scheme()
     {
        for program in ALL {
            let name = program.name;
            let object = object(program).unwrap_or_else(|error| panic!("{name}: {error}"));
            let expected: String = name.chars().filter(|it| !"-+".contains(*it)).collect();
            assert_eq!(object.name(), format!("nw_{expected}"));
            assert!(
                !program.page().is_empty() && !program.summary().is_empty(),
                "{name}"
            );
            let constants = object.constants().filter_map(|it| it.strip_prefix(PARAM));
            let mut constants: Vec<&str> = constants.collect();
            constants.sort_unstable();
            let mut declared: Vec<&str> = program.declared_params().collect();
            declared.sort_unstable();
            assert_eq!(constants, declared, "{name}");
            let known = program.params();
            for constant in constants {
                let spec = known.iter().find(|spec| spec.name == constant);
                let Some(spec) = spec else {
                    assert!(
                        program.native().is_none(),
                        "{name} has a parameter '{constant}' that the native scheme does not have"
                    );
                    continue;
                };
                let compiled = object.constant(&format!("{PARAM}{constant}"));
                let default = spec.default_value().and_then(|value| encode(spec, &value));
                assert_eq!(compiled, default, "{name}: default of {constant}");
            }
        }
    }
}
