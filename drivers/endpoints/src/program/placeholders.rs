//! The placeholders of command lines and variables.

use super::EndpointTask;
use narrows_cell::addressing::FLOW_PORTS;
use narrows_cell::{Program, Role, Side};
use std::path::Path;

/// The values of the placeholders.
#[derive(Debug)]
pub(super) struct Placeholders {
    /// The flow's port.
    pub(super) port: u16,
    values: Vec<(&'static str, String)>,
}

impl Placeholders {
    pub(super) fn new(task: &EndpointTask, program: &Program, folder: &Path) -> Placeholders {
        let listener = match program.side_at(Role::Sender) {
            Side::Listener => Role::Sender,
            Side::Connector => Role::Receiver,
        };
        let address = task.address_at(task.cell.host_at(task.flow, listener));
        // A listener of several flows uses the port of the first.
        let port = FLOW_PORTS + task.cell.leader(task.flow.flow).unwrap_or(task.flow.flow);
        let length = task.stop().since(task.flow.start).ns();
        Placeholders {
            port,
            values: vec![
                ("{address}", address.to_string()),
                ("{port}", port.to_string()),
                ("{duration}", length.div_ceil(1_000_000_000).to_string()),
                ("{variant}", program.variant.clone()),
                ("{log}", folder.display().to_string()),
            ],
        }
    }

    /// The text with its placeholders replaced.
    pub(super) fn fill(&self, text: &str) -> String {
        let values = self.values.iter();
        values.fold(text.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
    }

    pub(super) fn fill_all(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.fill(text)).collect()
    }
}
