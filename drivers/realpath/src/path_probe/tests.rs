//! Two ends on the loopback of this machine.

use super::*;
use std::io::{BufReader, Read};
use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

const TOKEN: &str = "000102030405060708090a0b0c0d0e0f";
/// Far more than the loopback takes; only a failing test waits this long.
const PATIENCE: Duration = Duration::from_mins(1);

/// An end that is controlled through channels instead of pipes.
struct End {
    commands: Sender<Vec<u8>>,
    answers: Receiver<Vec<u8>>,
    rest: Vec<u8>,
}

struct Orders(Receiver<Vec<u8>>);

impl Read for Orders {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        // Lines are shorter than the buffer of the reader.
        Ok(self.0.recv().map_or(0, |line| {
            buffer[..line.len()].copy_from_slice(&line);
            line.len()
        }))
    }
}

struct Answers(Sender<Vec<u8>>);

impl Write for Answers {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.send(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn all_answers(port: &Value) -> u64 {
    let answers = port["answers"].as_object().unwrap();
    answers.values().map(|count| count.as_u64().unwrap()).sum()
}

impl End {
    fn start(token: &'static str) -> End {
        let (commands, inner_orders) = channel();
        let (inner_answers, answers) = channel();
        thread::spawn(move || {
            serve(BufReader::new(Orders(inner_orders)), Answers(inner_answers)).unwrap();
        });
        let mut end = End {
            commands,
            answers,
            rest: Vec::new(),
        };
        end.commands
            .send(format!("{token}\n").into_bytes())
            .unwrap();
        assert_eq!(end.line()["ready"], true);
        end
    }

    fn line(&mut self) -> Value {
        loop {
            if let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            self.rest
                .extend(self.answers.recv_timeout(PATIENCE).unwrap());
        }
    }

    fn say(&mut self, command: &Value) -> Value {
        self.commands
            .send(format!("{command}\n").into_bytes())
            .unwrap();
        self.line()
    }

    fn open(&mut self) -> u64 {
        let opened = self.say(&json!({"do": "open", "address": "127.0.0.1", "ports": [0]}));
        opened["opened"][0]["port"].as_u64().unwrap()
    }

    fn send(&mut self, to: u64, sizes: &[u32], answer: bool) -> Value {
        self.say(
            &json!({"do": "send", "from": 0, "to": format!("127.0.0.1:{to}"), "sizes": sizes,
            "copies": 2, "gap_us": 100, "answer": answer}),
        )
    }

    /// Adds up reports of the first port until `enough` returns true.
    fn reports(&mut self, enough: impl Fn(u64, u64, u64) -> bool) -> Value {
        let limit = Instant::now() + PATIENCE;
        let (mut packets, mut answers, mut strangers) = (0, 0, 0);
        let mut last = Value::Null;
        while Instant::now() < limit {
            let report = self.say(&json!({"do": "report"}));
            let port = &report["ports"][0];
            packets += port["packets"].as_u64().unwrap();
            answers += all_answers(port);
            strangers += port["strangers"].as_u64().unwrap();
            if !port["best"].is_null() || port["largest"].as_u64() > last["largest"].as_u64() {
                last = port.clone();
            }
            if enough(packets, answers, strangers) {
                return last;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("only {packets} packets, {answers} answers, {strangers} strangers");
    }
}

#[test]
fn questions_arrive_and_are_answered() {
    let (mut here, mut there) = (End::start(TOKEN), End::start(TOKEN));
    let own = here.open();
    let port = there.open();
    let sent = here.send(port, &[108, 1000, 1400], true);
    assert_eq!(sent, json!({"sent": 6, "refused": []}));
    let arrived = there.reports(|packets, _, _| packets == 6);
    assert_eq!(arrived["from"], format!("127.0.0.1:{own}"));
    let back = here.reports(|_, answers, _| answers == 6);
    let by_address = back["answers"].as_object().unwrap();
    assert_eq!(
        by_address.keys().collect::<Vec<_>>(),
        [&format!("127.0.0.1:{port}")]
    );
    let best = &back["best"];
    assert_eq!(
        best["seen"],
        format!("127.0.0.1:{own}"),
        "no address is translated here"
    );
    let stamp = |name: &str| best[name].as_u64().unwrap();
    // One clock, so that the stamps are in order.
    assert!(stamp("asked_ns") <= stamp("arrived_ns"));
    assert!(stamp("arrived_ns") <= stamp("answered_ns"));
    assert!(stamp("answered_ns") <= stamp("back_ns"));
}

#[test]
fn fillers_are_not_answered_and_the_largest_is_told() {
    let (mut here, mut there) = (End::start(TOKEN), End::start(TOKEN));
    here.open();
    let port = there.open();
    // The loopback takes packets of 65535 bytes, and none can be larger.
    here.send(port, &[200, 9000, 300], false);
    let arrived = there.reports(|packets, _, _| packets == 6);
    assert_eq!(arrived["largest"], 9000);
    let report = here.say(&json!({"do": "report"}));
    assert_eq!(all_answers(&report["ports"][0]), 0);
}

#[test]
fn strangers_get_no_answer_and_are_counted() {
    let mut there = End::start(TOKEN);
    let port = there.open();
    let mut stranger = End::start("ff0102030405060708090a0b0c0d0e0f");
    stranger.open();
    stranger.send(port, &[500], true);
    let raw = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [0, 1, 79, 80, 8000] {
        raw.send_to(&vec![b'n'; length], ("127.0.0.1", port as u16))
            .unwrap();
    }
    there.reports(|packets, _, strangers| packets == 0 && strangers == 7);
    let report = stranger.say(&json!({"do": "report"}));
    assert_eq!(all_answers(&report["ports"][0]), 0);
}

#[test]
fn orders_that_make_no_sense_are_refused_and_the_next_is_followed() {
    let mut end = End::start(TOKEN);
    let refused = |answer: &Value, word: &str| {
        let text = answer["error"].as_str().unwrap_or_default().to_owned();
        assert!(text.contains(word), "{answer}");
    };
    refused(&end.say(&json!({"do": "dance"})), "dance");
    refused(
        &end.say(&json!({"do": "open", "address": "here", "ports": []})),
        "not understood",
    );
    refused(&end.send(9, &[200], false), "has not been opened");
    refused(
        &end.say(&json!({"do": "open", "address": "127.0.0.1", "ports": vec![0; 65]})),
        "at most 64",
    );
    let port = end.open();
    refused(&end.send(port, &[107], false), "from 108");
    refused(&end.send(port, &[65_536], false), "to 65535");
    refused(
        &end.say(
            &json!({"do": "send", "from": 0, "to": "127.0.0.1:9", "sizes": vec![108; 100],
            "copies": 1000, "gap_us": 0, "answer": false}),
        ),
        "request less",
    );
    // A port in use is reported as such, and the others are opened.
    let answer = end.say(&json!({"do": "open", "address": "127.0.0.1", "ports": [port, 0]}));
    assert_eq!(answer["opened"][0]["port"], Value::Null);
    assert!(
        answer["opened"][0]["why"]
            .as_str()
            .unwrap()
            .contains("in use"),
        "{answer}"
    );
    assert!(answer["opened"][1]["port"].is_u64());
}

#[test]
fn a_way_begins_at_one_of_our_addresses() {
    let mut end = End::start(TOKEN);
    let route = end.say(&json!({"do": "route", "to": "127.0.0.1"}));
    assert_eq!(route["source"], "127.0.0.1");
}

#[test]
fn tokens_must_be_tokens() {
    for text in [
        "",
        "00",
        "zz0102030405060708090a0b0c0d0e0f",
        &format!("{TOKEN}0"),
        &"é".repeat(16),
    ] {
        let refused = serve(BufReader::new(format!("{text}\n").as_bytes()), Vec::new());
        assert!(matches!(refused, Err(RunError::Input(_))), "{text}");
    }
}
