//! Policy: a network of your own decides, over inputs, steps and actions of your choice.
//!
//! Provenance: Narrows; the sets of inputs, the step rules and the actions are those of Indigo (Yan et al., USENIX ATC
//! 2018), Muses (github.com/StanfordSNR/indigo), Aurora (Jay et al., ICML 2019; github.com/PCCproject/PCC-RL), Orca
//! (Abbasloo et al., SIGCOMM 2020; github.com/Soheil-ab/Orca) and Remy (Winstein and Balakrishnan, SIGCOMM 2013).
//! Deviations: `orca` has no running normalisation of its inputs, and its actions multiply the window of a CUBIC that
//! does not notice, where the original overwrites CUBIC's window; `aurora` begins with the initial window over the first
//! RTT and has no slow start; packets sent while application-limited are excluded from steps in all sets but `remy`.
//!
//! The parameter `model` names the policy: a file with the layers of a network and its description, which
//! `narrows models add` keeps under a name (`docs/guide/learning.md`). At each step the network receives the members of
//! the observation set, and its outputs are scores of the actions, of which the largest is taken, or the action itself.
//! An action out of bounds counts as the nearest, and is counted in the state `clipped_actions`. After an action that is
//! not a number no further decisions are made, and window and rate do not change any more.
//!
//! The parameters `observation`, `step` and `action` are for programs that make the decisions themselves: a flow
//! without a model is refused otherwise.
//!
//! Pitfalls: a policy is good only where it was trained. The transport retransmits, and its clock is exact; `profile:
//! datagrams` has the transport and the clock of Indigo and Muses. Actions on the rate have no window: when
//! acknowledgements cease the flow sends on until the policy or the transport's timeout reacts.

use crate::parts::actions::{ACTION_SETS, ActionName, ActionSpace, Control};
use crate::parts::model_file::{self, Model, excerpt};
use crate::parts::observations::{OBSERVATION_SETS, ObservationName};
use crate::parts::step_rules::{STEP_RULES, StepRule, StepRuleName, Steps};
use crate::parts::{LayerKind, Network, Policy, neural_policy};
use crate::{CongestionControl, EcnUse, Profile, Recovery, Scheme, Setup};
use narrows_units::{ParamError, Params, ReadParam, Value, params};
use serde_json::{Map, Value as Json};

/// Kind of its models.
const KIND: &str = "policy";

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "policy",
    summary: "A network of your own, with inputs, steps and actions of your choice",
    source: "Narrows; docs/guide/learning.md",
    recovery: Recovery::Direct,
    ecn: EcnUse::None,
    loss_based: false,
    transport: &[],
    profiles: &[Profile {
        name: "datagrams",
        doc: "The transport and the clock of Indigo and Muses: nothing is retransmitted.",
        params: &[],
        transport: neural_policy::TRANSPORT,
    }],
    params: PolicyParams::PARAMS,
    build,
};

params! {
    /// Parameters.
    struct PolicyParams {
        /// The policy, by its name among the installed models, or a file.
        model: Option<File>, "docs/guide/learning.md";
        /// The inputs, where a program makes the decisions; otherwise part of the model.
        observation: Option<ObservationName>, "docs/guide/learning.md";
        /// The times of decisions, likewise.
        step: Option<StepRuleName>, "docs/guide/learning.md";
        /// Amount of the step: ms, or a share of the RTT.
        step_amount: Option<Number>(0.0..=10_000.0), "10 ms, 0.5 RTT or 20 ms by default";
        /// The kind of actions, likewise.
        action: Option<ActionName>, "docs/guide/learning.md";
    }
}

/// Everything that determines a policy except its network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Design {
    pub(super) observation: ObservationName,
    step: StepRule,
    pub(super) action: ActionName,
}

fn build(params: &Params, setup: Setup) -> Result<Box<dyn CongestionControl>, ParamError> {
    let params = PolicyParams::read(params);
    let conflict = |text: String| ParamError::Conflict(text);
    let Some(model) = &params.model else {
        let (Some(observation), Some(step), Some(action)) = (params.observation, params.step, params.action)
        else {
            return Err(conflict(
                "policy needs a model, such as {policy: mine.safetensors}, or observation, step and action where a \
                 program makes its decisions"
                    .into(),
            ));
        };
        let step = step.rule(params.step_amount).map_err(conflict)?;
        let design = Design { observation, step, action };
        return design.build(None, &setup);
    };
    if params.observation.is_some()
        || params.step.is_some()
        || params.step_amount.is_some()
        || params.action.is_some()
    {
        return Err(conflict(format!(
            "observation, step and action are part of the model {}; remove them",
            model.name
        )));
    }
    let (design, network) = model_file::load(model, &setup.files, |model| read(model, KIND))?;
    design.build(Some(network), &setup)
}

impl Design {
    pub(super) fn build(
        self,
        network: Option<Network>,
        setup: &Setup,
    ) -> Result<Box<dyn CongestionControl>, ParamError> {
        let set = self.observation.info();
        let below = match self.action {
            ActionName::CubicFactor => {
                let cubic = super::cubic::SCHEME;
                let params = Params::resolve(cubic.params, [])?;
                Some((cubic.build)(&params, setup.clone())?)
            }
            _ => None,
        };
        let policy = Policy::new(
            set.observer(setup.now),
            set.size(),
            Steps::new(self.step),
            Control::new(self.action, setup),
            network,
        );
        Ok(Box::new(policy.over(below).stopping()))
    }
}

/// The design and the network in a model file of the kind `kind`. Its description is JSON: `observation`, `step` (the name of a rule, or
/// `rule` and `amount`), `action`, and `layers`, each `{"kind": "dense", "activation": "tanh"}` or `{"kind": "lstm"}`.
pub(super) fn read(model: &Model<'_>, kind: &str) -> Result<(Design, Network), String> {
    model.expect_kind(kind)?;
    let text = model.policy().ok_or("its metadata lacks the description of the policy, policy")?;
    let json: Json = serde_json::from_str(text)
        .map_err(|error| format!("its description is not JSON: {}", excerpt(&error)))?;
    let json = json.as_object().ok_or("its description is not a JSON object")?;
    expect_members(json, "description", &["observation", "step", "action", "layers"])?;
    let observation: ObservationName = read_word(json, "observation", ObservationName::WORDS)?;
    let action: ActionName = read_word(json, "action", ActionName::WORDS)?;
    let step = match json.get("step") {
        Some(Json::Object(step)) => {
            expect_members(step, "step", &["rule", "amount"])?;
            let rule: StepRuleName = read_word(step, "rule", StepRuleName::WORDS)?;
            let amount = match step.get("amount") {
                None => None,
                Some(amount) => Some(amount.as_f64().ok_or_else(|| {
                    format!("its member amount is {}, where a number is needed", excerpt(amount))
                })?),
            };
            rule.rule(amount)?
        }
        _ => read_word::<StepRuleName>(json, "step", StepRuleName::WORDS)?.rule(None)?,
    };
    let layers = json.get("layers").and_then(Json::as_array);
    let layers = layers.ok_or("its description lacks the list layers")?;
    let kinds = layers.iter().map(read_layer).collect::<Result<Vec<_>, _>>()?;
    let outputs = action.info().space.outputs();
    let network = Network::read(model, &kinds, observation.info().size(), outputs)?;
    Ok((Design { observation, step, action }, network))
}

fn read_layer(json: &Json) -> Result<LayerKind, String> {
    let layer = json.as_object();
    let layer = layer.ok_or_else(|| format!("its layer {} is not a JSON object", excerpt(json)))?;
    expect_members(layer, "layer", &["kind", "activation"])?;
    let activation = layer.get("activation");
    match layer.get("kind").and_then(Json::as_str) {
        Some("lstm") if activation.is_none() => Ok(LayerKind::Lstm),
        Some("lstm") => Err("its layer lstm has an activation, which only dense ones have".into()),
        Some("dense") => match activation.map(|word| word.as_str().unwrap_or_default()) {
            Some("tanh") => Ok(LayerKind::Tanh),
            Some("relu") => Ok(LayerKind::Relu),
            Some("none") | None => Ok(LayerKind::Linear),
            Some(_) => Err(format!(
                "its layer has the activation {}, where tanh, relu or none is needed",
                excerpt(&activation.unwrap_or(&Json::Null))
            )),
        },
        _ => Err(format!(
            "its layer {} has no kind that is dense or lstm",
            excerpt(json)
        )),
    }
}

/// Refuses members besides `known`.
fn expect_members(json: &Map<String, Json>, place: &str, known: &[&str]) -> Result<(), String> {
    match json.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!(
            "its {place} has the member {}, where {} are known",
            excerpt(key),
            known.join(", ")
        )),
        None => Ok(()),
    }
}

/// The member `name`, which is one of a few words.
fn read_word<T: ReadParam>(json: &Map<String, Json>, name: &str, words: &[&str]) -> Result<T, String> {
    let found = json.get(name).unwrap_or(&Json::Null);
    let word = found.as_str().unwrap_or_default();
    T::read_param(&Value::Word(word.to_owned())).ok_or_else(|| {
        format!(
            "its {name} is {}, where one of {} is needed",
            excerpt(found),
            words.join(", ")
        )
    })
}

/// The tables of observation sets, step rules and actions, as Markdown.
pub(super) fn describe_parts() -> String {
    let with_unit = |unit: &str| if unit.is_empty() { String::new() } else { format!(" ({unit})") };
    let mut paragraphs = Vec::new();
    for set in OBSERVATION_SETS {
        let members = set.members.iter();
        let members: Vec<_> =
            members.map(|member| format!("{}{}: {}", member.name, with_unit(member.unit), member.doc)).collect();
        let times = if set.steps > 1 { format!(", for each of {} steps", set.steps) } else { String::new() };
        paragraphs.push(format!(
            "Observation `{}`, {} inputs{times}. {} {}.",
            set.name,
            set.size(),
            set.doc,
            members.join("; ")
        ));
    }
    for rule in STEP_RULES {
        paragraphs.push(format!("Step `{}`, {} {} by default. {}", rule.name, rule.default, rule.unit, rule.doc));
    }
    for set in ACTION_SETS {
        let space = match set.space {
            ActionSpace::Choice(names) => format!("one of {}: {}", names.len(), names.join(", ")),
            ActionSpace::Interval { unit, low, high } => format!("a number from {low} to {high}{}", with_unit(unit)),
        };
        paragraphs.push(format!("Action `{}`, {space}. {}", set.name, set.doc));
    }
    paragraphs.join("\n\n")
}

#[cfg(test)]
mod tests;
