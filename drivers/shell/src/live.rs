//! The live line: current traffic.

use super::counts::Meter;
use super::plan::ShellOptions;
use super::report::{bits, bytes};
use narrows_sys::{clock, process};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::fd::AsFd;

/// Minimum time between two lines.
const MIN_INTERVAL_NS: u64 = 190_000_000;

/// A line on standard error that is updated repeatedly.
#[derive(Debug)]
pub(super) struct LiveLine {
    wanted: bool,
    /// Columns, if it is a terminal.
    width: Option<u16>,
    last_ns: u64,
    last_bytes: [u64; 2],
    shown: bool,
}

impl LiveLine {
    pub(super) fn new(options: &ShellOptions) -> Self {
        let width = process::terminal_width(io::stderr().as_fd());
        LiveLine {
            wanted: options.live_anywhere || (options.live && width.is_some()),
            width,
            last_ns: clock::mono_ns(),
            last_bytes: [0; 2],
            shown: false,
        }
    }

    /// Shows the meters of both directions, if enough time has passed.
    pub(super) fn show(&mut self, meters: &[Meter; 2]) {
        let now = clock::mono_ns();
        let passed = now - self.last_ns;
        if !self.wanted || passed < MIN_INTERVAL_NS {
            return;
        }
        self.last_ns = now;
        let mut text = String::new();
        for (index, name) in ["up", "down"].into_iter().enumerate() {
            let [left, dropped, backlog] = meters[index].read();
            let rate = (left - self.last_bytes[index]) as f64 * 8e9 / passed as f64;
            self.last_bytes[index] = left;
            if index > 0 {
                text.push_str(" | ");
            }
            let (rate, backlog) = (bits(rate), bytes(backlog));
            let _ = write!(text, "{name} {rate}, queue {backlog}, {dropped} dropped");
        }
        if let Some(width) = self.width {
            text.truncate(usize::from(width).saturating_sub(1));
            print(&format!("\r{text}\x1b[K"));
            self.shown = true;
        } else {
            print(&format!("{text}\n"));
        }
    }

    /// Removes the line from the terminal.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            print("\r\x1b[K");
        }
    }
}

fn print(text: &str) {
    // A closed terminal needs no line.
    let _ = io::stderr().write_all(text.as_bytes());
}
