//! Entry points for fuzzers in addition to the trials of `narrows_net::testing::fuzz`: each function takes any bytes
//! and panics if the code under test violates its contract. Ordinary tests call them too.

use bytes::Bytes;
use narrows_cell::Cell;
use narrows_net::testing::{Dice, TestPacket, example_files};
use narrows_record::StepSeries;
use narrows_record::read::{read_bins, read_delays, read_queues, read_states};
use narrows_transport::{Body, wire};
use narrows_tunnel::clock::{ClockConfig, Clocks};
use narrows_tunnel::keys::{Key, Secret, Sender};
use narrows_tunnel::log::{self, Columns, Content, LogKind, TunnelLogRow};
use narrows_tunnel::wire::{self as datagram, Header};
use narrows_tunnel::{DatagramRefusal, OutgoingDatagram, Peer, PeerConfig, ReceivedDatagram, Role};
use narrows_units::{Span, Time};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};

/// Checks that a rejection is a sentence that fits into a line.
pub(crate) fn check_sentence(text: &str) {
    assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
}

/// A cell with all kinds of members.
fn rich_cell() -> Value {
    let bottleneck = |name: &str| {
        json!({"name": name, "kind": "bottleneck", "rate": {"kind": "square", "low": 1_000_000,
               "high": 9_000_000, "period": 300_000_000, "duty": 0.5},
               "queue": {"kind": "droptail", "bytes": 30_000, "packets": null}, "overhead": 38, "atm": false})
    };
    json!({
        "format": "narrows/cell/1", "id": "fuzz", "scheme": "reno", "run": 1, "where": "simulate",
        "seed": 1, "duration_ns": 10_000_000_000_u64, "record": "packets", "bin_ns": 100_000_000,
        "sample_ns": 10_000_000,
        "network": {"kind": "graph",
            "hosts": [{"name": "a", "settings": {"noise": "linux-vm"}}, {"name": "b"}], "routers": ["r"],
            "links": [
                {"name": "a-r", "from": "a", "to": "r", "elements": [
                    {"name": "a-r.gate", "kind": "gate", "open": true}, bottleneck("a-r.1"),
                    {"name": "a-r.2", "kind": "jitter", "law": "truncated", "spread": 5_000_000}]},
                {"name": "r-b", "from": "r", "to": "b", "elements": [
                    {"name": "r-b.0", "kind": "bottleneck",
                     "rate": {"kind": "trace", "file": {"name": "x.csv", "sha256": "rates"}},
                     "queue": {"kind": "unlimited"}},
                    {"name": "r-b.1", "kind": "gilbert", "p": 0.1, "r": 0.5}]},
                {"name": "b-a", "from": "b", "to": "a", "elements": [
                    {"name": "b-a.0", "kind": "delaysteps",
                     "steps": [[0, 20_000_000], [1_000_000_000, 40_000_000]]},
                    {"name": "b-a.1", "kind": "losslist", "packets": [3, 5, 9]}]}],
            "routes": [{"from": "a", "to": "b", "links": ["a-r", "r-b"]},
                       {"from": "b", "to": "a", "links": ["b-a"]}]},
        "timeline": [
            {"at_ns": 2_000_000_000_u64, "element": "a-r.gate", "set": {"open": false}},
            {"at_ns": 3_000_000_000_u64, "element": "a-r.1",
             "set": {"rate": {"kind": "constant", "rate": 600_000}, "queue": {"bytes": 9_000}}}],
        "flows": [{"flow": 1, "scheme": "reno", "params": {}, "from": "a", "to": "b",
                   "direction": "forward", "start_ns": 0, "stop_ns": 9_000_000_000_u64,
                   "extra_rtt_ns": 0, "traffic": {"kind": "bulk"}, "connections": 1, "dscp": 0,
                   "background": false}],
        "transport": {}
    })
}

/// Replaces one value somewhere inside `json`.
fn damage(json: &mut Value, dice: &mut Dice) {
    let children = match &*json {
        Value::Array(list) => list.len(),
        Value::Object(object) => object.len(),
        _ => 0,
    };
    // Deeper in three of four cases.
    if children > 0 && dice.percent(75) {
        let index = dice.below(children as u64) as usize;
        let child = match json {
            Value::Array(list) => list.get_mut(index),
            Value::Object(object) => object.values_mut().nth(index),
            _ => None,
        };
        if let Some(child) = child {
            damage(child, dice);
        }
        return;
    }
    let number = dice.below(1 << 16);
    *json = match dice.below(12) {
        0 => Value::Null,
        1 => json!(u64::MAX),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(number),
        5 => json!(number << 40),
        6 => json!(1e308),
        7 => json!(0.5),
        8 => json!([]),
        9 => json!({}),
        10 => json!(["a", "b", "a-r", "constant", "delay"][number as usize % 5]),
        _ => json!([[0, number], [number, 0]]),
    };
}

/// The text of a cell: rejected with one sentence, or a network that can be built. An odd first byte means the text
/// itself, an even one changes of a rich cell.
///
/// # Panics
/// When neither is the case.
pub fn cells(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let text = if first % 2 == 1 {
        String::from_utf8_lossy(rest).into_owned()
    } else {
        let mut cell = rich_cell();
        let mut dice = Dice::bytes(rest);
        for _ in 0..=(first / 2 % 4) {
            damage(&mut cell, &mut dice);
        }
        cell.to_string()
    };
    match Cell::parse_with(&text, |_| Ok(example_files())) {
        Err(error) => check_sentence(&error.to_string()),
        Ok(cell) => match cell.network::<TestPacket>() {
            Err(error) => check_sentence(&error.to_string()),
            Ok(network) => {
                // Values for the record that are computed for any network.
                for stage in network.stages() {
                    if let Some(server) = stage.element.server() {
                        let _ = server.capacity(narrows_units::Time::ZERO, cell.duration);
                        let _ = server.rate(cell.duration);
                    }
                    let _ = stage.element.propagation();
                }
            }
        },
    }
}

/// A datagram of our transport: rejected, or it can be written and read again.
///
/// # Panics
/// When neither is the case.
pub fn messages(data: &[u8]) {
    let mut body = Body::default();
    let header = match wire::decode(data, &mut body) {
        Err(error) => return check_sentence(&error.to_string()),
        Ok(header) => header,
    };
    let mut written = Vec::new();
    wire::encode(1, &header, &body, &mut written);
    let mut again = Body::default();
    let read = wire::decode(&written, &mut again).expect("what was written can be read");
    assert_eq!((read, again), (header, body));
}

/// Files of records and traces: rejected with one sentence or read. The last bytes modify a valid file.
///
/// # Panics
/// When neither is the case.
pub fn records(data: &[u8]) {
    let any = Bytes::copy_from_slice(data);
    let say = |result: Result<usize, narrows_record::RecordError>| {
        if let Err(error) = result {
            check_sentence(&error.to_string());
        }
    };
    say(read_bins(any.clone()).map(|rows| rows.len()));
    say(read_delays(any.clone()).map(|rows| rows.len()));
    say(read_queues(any.clone()).map(|rows| rows.len()));
    say(read_states(any).map(|rows| rows.len()));
    let steps = StepSeries {
        value: "rate_bps",
        times_ns: (0..100).collect(),
        values: (0..100).map(|value| value * 1_000).collect(),
    };
    let mut file = steps.write(Vec::new()).expect("memory takes everything");
    for change in data.chunks_exact(3) {
        let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % file.len();
        file[at] ^= change[2];
    }
    say(StepSeries::read(file.into()).map(|steps| steps.values.len()));
}

/// A datagram of the tunnel: rejected, or it can be written and read again.
///
/// # Panics
/// When neither is the case.
pub fn tunnel_datagrams(data: &[u8]) {
    if let Err(error) = datagram::claim(data) {
        check_sentence(&error.to_string());
    }
    let (header, body) = match datagram::decode(data) {
        Err(error) => return check_sentence(&error.to_string()),
        Ok(read) => read,
    };
    let key = Key::of_handshake(&Secret::new([1; 32]), Sender::Dialer);
    let mut written = Vec::new();
    datagram::encode(header, &body, data.len(), &key, &mut written);
    assert!(key.is_authentic(&written));
    assert_eq!(datagram::decode(&written), Ok((header, body)));
}

/// A caller that has the secret but sends false messages: the listener continues, counts all that it receives, answers
/// with valid datagrams, and its logs can be read.
///
/// # Panics
/// When that is not the case.
pub fn tunnel_liars(data: &[u8]) {
    const MTU: u32 = 1500;
    let mut dice = Dice::bytes(data);
    let secret = Secret::new([1; 32]);
    let mut now = Time::from_ns(1_000_000_000);
    let mut listener = Peer::new(
        PeerConfig {
            role: Role::Listener,
            secret: secret.clone(),
            salt: 5,
            clock_gap: Span::from_ms(100),
            silence: Span::from_ms(1_000),
            interface_mtu: MTU,
        },
        now,
    );
    let from = |dice: &mut Dice| {
        let port = 1 + dice.below(3) as u16;
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    };
    let mut liar = Liar::new(&secret);
    let (mut clocks, mut columns) = (
        Clocks::new(ClockConfig::default()),
        Columns::new(LogKind::Arrived),
    );
    let (mut told, mut taken, mut out) = (0, Vec::new(), Vec::new());
    for _ in 0..200 {
        now += Span::from_ns(dice.below(1 << 28));
        let (bytes, address) = liar.lie(&mut dice, now);
        let address = address.unwrap_or_else(|| from(&mut dice));
        let received = listener.receive(now, address, &bytes);
        told += 1;
        if let ReceivedDatagram::Clock {
            exchange: Some(exchange),
            ..
        } = &received
        {
            assert!(
                exchange.sent <= now,
                "nothing comes back that was not yet sent"
            );
            clocks.exchange(exchange);
        }
        if let ReceivedDatagram::Packet { id, sent, .. }
        | ReceivedDatagram::Clock { id, sent, .. } = received
        {
            let content = match received {
                ReceivedDatagram::Packet { .. } => Content::Packet,
                _ => Content::Clock,
            };
            taken.push(row(id, sent, now, bytes.len() as u32, content));
        }
        let mut answers = 0;
        while let Some(outgoing) = listener.transmit(now, &mut out) {
            answers += 1;
            assert!(
                answers <= 4,
                "no input makes it send more than it receives for long"
            );
            assert!(out.len() <= MTU as usize, "larger than the interface sends");
            liar.hear(&outgoing, &out);
        }
    }
    let counts = listener.counts();
    assert_eq!(
        counts.packets + counts.messages + counts.all_refused(),
        told
    );
    assert_eq!(
        counts.refused(DatagramRefusal::Forged),
        0,
        "all of it was authentic in some session"
    );
    if let Some(fit) = clocks.fit() {
        let _ = (fit.offset_ns(now), fit.error(now), fit.local_ns(now));
    }
    for row in &taken {
        columns.push(*row);
    }
    let (mut file, mut again) = (Vec::new(), Vec::new());
    columns.drain_into(&mut file);
    log::decode(LogKind::Arrived, &file, &mut again).expect("what was written can be read");
    assert_eq!(again, taken);
}

fn row(id: u64, sent: Time, arrived: Time, size: u32, content: Content) -> TunnelLogRow {
    TunnelLogRow {
        id,
        sent,
        arrived,
        size,
        content,
        tos: 0,
        flow: 0,
    }
}

/// The caller of [`tunnel_liars`].
struct Liar {
    hello: Key,
    secret: Secret,
    /// Nonces of its calls and of the answers.
    sessions: Vec<([u8; 16], [u8; 16])>,
    /// The request that it received, and from where.
    asked: Option<(Vec<u8>, SocketAddr)>,
    next_id: u64,
}

impl Liar {
    fn new(secret: &Secret) -> Liar {
        Liar {
            hello: Key::of_handshake(secret, Sender::Dialer),
            secret: secret.clone(),
            sessions: Vec::new(),
            asked: None,
            next_id: 0,
        }
    }

    /// An authentic message that may be false.
    fn lie(&mut self, dice: &mut Dice, now: Time) -> (Vec<u8>, Option<SocketAddr>) {
        let mut out = Vec::new();
        // The requested answer, mostly from the requested address.
        if let Some((bytes, address)) = self.asked.take_if(|_| dice.percent(70)) {
            return (bytes, dice.percent(80).then_some(address));
        }
        let times = [now.ns(), 0, 1, u64::MAX, 1 << 63, now.ns() / 2];
        let time = |dice: &mut Dice| Time::from_ns(times[dice.below(times.len() as u64) as usize]);
        let ids = [
            self.next_id,
            0,
            datagram::MAX_ID,
            u64::MAX,
            dice.below(1 << 20),
        ];
        let id = ids[if dice.percent(70) {
            0
        } else {
            dice.below(5) as usize
        }];
        self.next_id += 1;
        let sent = time(dice);
        if self.sessions.is_empty() || dice.percent(10) {
            let version = if dice.percent(80) {
                datagram::VERSION
            } else {
                dice.below(256) as u8
            };
            let dialer = [dice.below(4) as u8; 16];
            let header = Header {
                session: 0,
                id: id.min(datagram::MAX_ID),
                sent,
            };
            datagram::encode(
                header,
                &datagram::Body::Hello { version, dialer },
                0,
                &self.hello,
                &mut out,
            );
            return (out, None);
        }
        // Mostly in the newest session, sometimes in an earlier one.
        let newest = self.sessions.len() - 1;
        let at = if dice.percent(90) {
            newest
        } else {
            dice.below(newest as u64 + 1) as usize
        };
        let (dialer, listener) = self.sessions[at];
        let key = Key::of_session(&self.secret, Sender::Dialer, &dialer, &listener);
        // The number of a session is derived from this word by its key.
        let number = u64::from_be_bytes(key.tag(b"number")) as u32 & 0x00ff_ffff;
        // Packets and clock messages, rarely a closing message or an unknown kind.
        let kinds: &[u32] = if dice.percent(95) {
            &[5, 6]
        } else {
            &[7, 8, 9, 0, 255]
        };
        let kind = *dice.pick(kinds);
        out.extend(((kind << 24) | number.max(1)).to_be_bytes());
        out.extend(id.to_be_bytes());
        out.extend(sent.ns().to_be_bytes());
        for _ in 0..dice.below(4) {
            out.extend(time(dice).ns().to_be_bytes());
        }
        out.extend(vec![0xff; dice.below(80) as usize]);
        let tag = key.tag(&out);
        out.extend(tag);
        (out, None)
    }

    /// Learns the session and the request.
    fn hear(&mut self, outgoing: &OutgoingDatagram, bytes: &[u8]) {
        let in_session = outgoing.in_session;
        let (header, body) = datagram::decode(bytes).expect("the listener writes datagrams");
        match body {
            datagram::Body::Welcome {
                version,
                dialer,
                listener,
            } => {
                assert!(!in_session && version == datagram::VERSION);
                if listener != [0; 16] {
                    let confirm = datagram::Body::Confirm { dialer, listener };
                    self.answer(0, &confirm, &self.hello.clone(), outgoing.to);
                }
            }
            datagram::Body::Accept { dialer, listener } => {
                assert!(!in_session);
                if self.sessions.last() != Some(&(dialer, listener)) {
                    self.sessions.push((dialer, listener));
                }
            }
            datagram::Body::Challenge(cookie) => {
                assert!(!in_session);
                if let Some((dialer, listener)) = self.sessions.last() {
                    let key = Key::of_session(&self.secret, Sender::Dialer, dialer, listener);
                    let response = datagram::Body::Response(cookie);
                    self.answer(header.session, &response, &key, outgoing.to);
                }
            }
            datagram::Body::Clock(_) | datagram::Body::Bye => assert!(in_session),
            datagram::Body::Hello { .. }
            | datagram::Body::Confirm { .. }
            | datagram::Body::Response(_)
            | datagram::Body::Packet(_) => panic!("a listener that calls"),
        }
    }

    fn answer(&mut self, session: u32, body: &datagram::Body<'_>, key: &Key, from: SocketAddr) {
        let mut bytes = Vec::new();
        let header = Header {
            session,
            id: self.next_id,
            sent: Time::ZERO,
        };
        self.next_id += 1;
        datagram::encode(header, body, 0, key, &mut bytes);
        self.asked = Some((bytes, from));
    }
}

/// Logs of the tunnel: read, or rejected with one sentence and all rows before the damage. An odd first byte means the
/// file itself, an even one changes of a valid file.
///
/// # Panics
/// When that is not the case.
pub fn tunnel_logs(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let side = if first & 2 == 0 {
        LogKind::Sent
    } else {
        LogKind::Arrived
    };
    let mut whole = Vec::new();
    let mut file = rest.to_vec();
    if first % 2 == 0 {
        let mut columns = Columns::new(side);
        for id in 0..30_u64 {
            let at = Time::from_ns(1_000_000 * id);
            let row = row(id, at, at, 60 + id as u32, Content::Packet);
            whole.push(row);
            columns.push(row);
            if id % 10 == 9 {
                columns.drain_into(&mut file);
            }
        }
        file.drain(..rest.len());
        for change in rest.chunks_exact(3) {
            let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % file.len();
            file[at] ^= change[2];
        }
    }
    let mut rows = Vec::new();
    let result = log::decode(side, &file, &mut rows);
    if let Err(error) = &result {
        check_sentence(&error.to_string());
    }
    if first % 2 == 0 {
        // A 64-bit checksum detects all random changes.
        assert!(whole.starts_with(&rows), "{result:?}");
    }
}
