//! Checks that entries named by a scenario can be built, before a run starts.

use crate::CellError;
use narrows_cc::{Setup, schemes};
use narrows_transport::Config;
use narrows_units::{Bytes, Files, Params, Stream, Time};
use serde_json::{Map, Value};

/// Builds the scheme `name` with `params` (base units) once; `files` contains the files that they
/// name. With `decided_outside` the caller will make its decisions.
///
/// # Errors
/// An unknown scheme, rejected parameters, a model that cannot be used, or decisions that nothing makes.
pub fn check_scheme(
    name: &str,
    params: &Map<String, Value>,
    files: &Files,
    decided_outside: bool,
) -> Result<(), CellError> {
    let Some(scheme) = schemes::find(name) else {
        return Err(CellError::Conflict(format!(
            "the scheme {name} does not exist"
        )));
    };
    let config = Config::default();
    let setup = Setup {
        mss: Bytes::new(config.mss()),
        initial_window: config.initial_window,
        now: Time::ZERO,
        random: Stream::new(0, "check"),
        ecn: false,
        files: files.clone(),
    };
    let refused = |error| CellError::Params {
        at: name.to_owned(),
        error,
    };
    let params = Params::from_json(scheme.params, params).map_err(refused)?;
    let built = schemes::build(scheme, &params, setup).map_err(refused)?;
    if decided_outside {
        return Ok(());
    }
    schemes::expect_own_decisions(&*built, name).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_cc::testing::{example_file, example_files};
    use serde_json::json;

    #[test]
    fn a_scheme_is_checked_with_its_model() {
        let file = example_file("indigo");
        let params = json!({"model": {"name": file.name, "sha256": file.sha256}});
        let params = params.as_object().unwrap();
        assert_eq!(
            check_scheme("indigo", params, &example_files(), false),
            Ok(())
        );
        let problem = |name, files: &Files| {
            check_scheme(name, params, files, false)
                .unwrap_err()
                .to_string()
        };
        assert!(problem("remy", &example_files()).contains("kind indigo"));
        assert!(problem("indigo", &Files::default()).contains("not at hand"));
        assert!(problem("nothing", &Files::default()).contains("does not exist"));
        let design = json!({"observation": "raw", "step": "time", "action": "rate"});
        let design = design.as_object().unwrap();
        assert_eq!(
            check_scheme("policy", design, &Files::default(), true),
            Ok(())
        );
        let caller = check_scheme("policy", design, &Files::default(), false);
        assert!(
            caller
                .unwrap_err()
                .to_string()
                .contains("policy needs a model")
        );
        let none = check_scheme("muses", &Map::new(), &Files::default(), false).unwrap_err();
        assert!(none.to_string().contains("'model' is missing"));
    }
}
