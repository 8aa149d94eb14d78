//! Flows whose ends are programs, in the record and in its judgement.

use crate::judgement::{ProgramMeasurements, ProgramTraffic, judge_program};
use crate::{Cell, Flow, Program, ProgramReport, Role};
use narrows_record::RunDocument;
use serde_json::json;
use std::collections::BTreeMap;

/// The reports of the programs' processes, by flow and end.
#[derive(Debug, Default)]
pub struct ProgramReports(BTreeMap<(u16, &'static str), ProgramReport>);

impl ProgramReports {
    /// Collects the reports of the ends of flows.
    pub fn new(reports: impl Iterator<Item = (u16, Role, ProgramReport)>) -> Self {
        let named = reports.map(|(flow, role, report)| ((flow, role.name()), report));
        ProgramReports(named.collect())
    }

    fn report(&self, flow: &Flow, role: Role) -> Option<&ProgramReport> {
        self.0.get(&(flow.flow, role.name()))
    }

    /// Describes the programs in the summaries of their flows, and judges them.
    pub fn describe(
        &self,
        run: &mut RunDocument,
        cell: &Cell,
        traffic: &BTreeMap<u16, ProgramTraffic>,
    ) {
        let none = ProgramTraffic::default();
        for (flow, program) in cell.programs() {
            let traffic = traffic.get(&flow.flow).unwrap_or(&none);
            let reports =
                [Role::Sender, Role::Receiver].map(|role| (role, self.report(flow, role)));
            let summary = run.flows.iter_mut().find(|one| one.flow == flow.flow);
            if let Some(summary) = summary {
                let version = reports
                    .iter()
                    .find_map(|(_, report)| report.as_ref()?.version.as_ref());
                let first = version.and_then(|text| text.lines().next());
                summary.fingerprint.version = first.map(str::to_owned);
                let described = description(cell, flow, program, reports, traffic);
                summary.other.insert("program".to_owned(), described);
            }
            judge_program(
                run,
                &ProgramMeasurements {
                    flow: flow.flow,
                    name: &flow.name,
                    program,
                    stop_ns: flow.stop.min(cell.duration).ns(),
                    reports,
                    traffic,
                },
            );
        }
    }
}

/// A program in the summary of its flow.
fn description(
    cell: &Cell,
    flow: &Flow,
    program: &Program,
    reports: [(Role, Option<&ProgramReport>); 2],
    traffic: &ProgramTraffic,
) -> serde_json::Value {
    let first = traffic.sender.first_ns;
    let mut described = json!({
        "name": program.name,
        "variant": program.variant,
        "manifest": program.manifest,
        "data": program.data,
        "reports": program.reports,
        "listener_of": cell.leader(flow.flow),
        "first_data_ns": first,
        "start_up_ns": first.map(|first| first.saturating_sub(flow.start.ns())),
        "traffic": traffic,
    });
    if let Some(root) = &program.root {
        described["root"] = json!(root);
    }
    for (role, report) in reports {
        described[program.side_at(role).name()] = json!(report);
    }
    described
}
