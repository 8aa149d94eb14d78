//! Each link element compared with its law: statistically if it is random, exactly otherwise.

mod exact;
mod random;

use narrows_net::testing::TestPacket;
use narrows_net::{Element, ElementSetup, Outcomes, links};
use narrows_units::Time;
use serde_json::Value;

const MS: u64 = 1_000_000;

fn setup() -> ElementSetup {
    let mut setup = ElementSetup::new(11, "forward.0");
    let delays = b"time_s,delay_ms\n0,20\n0.1,5\n0.3,0\n";
    setup.files.insert("00", delays.to_vec());
    setup
}

fn element(name: &str, params: &Value) -> Box<dyn Element<TestPacket>> {
    links::build(name, params.as_object().unwrap(), &setup()).unwrap()
}

fn packet(uid: u64, size: u32) -> TestPacket {
    TestPacket {
        uid,
        size,
        ..TestPacket::default()
    }
}

/// Packets that left (ns, packet), and packets that were dropped (ns, number).
#[derive(Default)]
struct Out {
    left: Vec<(u64, TestPacket)>,
    drops: Vec<(u64, u64)>,
    copies: Vec<u64>,
}

impl Out {
    fn times(&self) -> Vec<(u64, u64)> {
        self.left
            .iter()
            .map(|(at, packet)| (*at, packet.uid))
            .collect()
    }
}

fn play(
    element: &mut dyn Element<TestPacket>,
    script: impl IntoIterator<Item = (u64, TestPacket)>,
) -> Out {
    let mut out = Out::default();
    let mut outcomes = Outcomes::new();
    let mut until =
        |element: &mut dyn Element<TestPacket>, outcomes: &mut Outcomes<_>, at: Time| {
            while element.next_wakeup() <= at && element.next_wakeup() < Time::FAR {
                let now = element.next_wakeup();
                let left = element.pop(now, outcomes);
                out.left.extend(left.map(|packet| (now.ns(), packet)));
            }
        };
    for (at, packet) in script {
        let at = Time::from_ns(at);
        until(element, &mut outcomes, at);
        element.push(at, packet, &mut outcomes);
    }
    until(element, &mut outcomes, Time::FAR);
    out.drops = outcomes
        .drops
        .iter()
        .map(|drop| (drop.at.ns(), drop.packet.uid))
        .collect();
    out.copies = outcomes.copies.iter().map(|copy| copy.packet.uid).collect();
    out
}

/// `count` packets of 1000 bytes, `gap` ns apart, numbered from 1.
fn stream(count: u64, gap: u64) -> impl Iterator<Item = (u64, TestPacket)> {
    (0..count).map(move |index| (index * gap, packet(index + 1, 1000)))
}
