//! Hand-made networks that reveal the inputs they receive from a scheme, and a peer that drives such a scheme.

use super::{MSS, setup};
use crate::parts::neural_policy::ACTIONS;
use crate::testing::ModelWriter;
use crate::{
    AckEvent, AckedPacket, CongestionControl, Fields, LossCause, LossEvent, Scheme, SendEvent,
};
use narrows_units::{Bytes, FileRef, Params, Span, Time, Value};

/// Gates that are wide open: the logistic function of 20 is 1 for single precision.
const GATE: f32 = 20.0;

/// Units without memory, each of which is tanh(tanh(factor times one slot, and a bias)): slot, factor and bias of each.
fn network(kind: &str, slots: usize, units: &[(usize, f32, f32)]) -> ModelWriter {
    let count = units.len();
    let rows = slots + count;
    let mut kernel = vec![0.0; rows * 4 * count];
    let mut bias = vec![GATE; 4 * count];
    for (unit, &(slot, factor, shift)) in units.iter().enumerate() {
        kernel[slot * 4 * count + count + unit] = factor;
        bias[count + unit] = shift;
        bias[2 * count + unit] = -GATE;
    }
    ModelWriter::new(kind)
        .singles("bias0", &[4 * count], &bias)
        .singles("kernel0", &[rows, 4 * count], &kernel)
}

/// A network that depends on a single one of `slots` inputs: it doubles the window if that exceeds `threshold`, and
/// adds ten packets otherwise.
pub(crate) fn above(kind: &str, slots: usize, slot: usize, threshold: f64) -> Vec<u8> {
    let factor = 10.0 / threshold.abs();
    let unit = (slot, factor as f32, (-factor * threshold) as f32);
    network(kind, slots, &[unit])
        .singles("output_bias", &[ACTIONS], &[-9.0, -9.0, -9.0, 0.0, 0.0])
        .singles("output_weights", &[1, ACTIONS], &[0.0, 0.0, 0.0, -1.0, 1.0])
        .finish()
}

/// A network that depends only on the last action, the last five of `slots`, and answers it with `next`; `without` is
/// its answer without a last action.
pub(crate) fn after(kind: &str, slots: usize, next: [usize; ACTIONS], without: usize) -> Vec<u8> {
    let first = slots - ACTIONS;
    let units: Vec<_> = (0..ACTIONS).map(|last| (first + last, 1.0, 0.0)).collect();
    let mut bias = [0.0; ACTIONS];
    bias[without] = 0.1;
    let mut weights = [0.0; ACTIONS * ACTIONS];
    for (last, action) in next.into_iter().enumerate() {
        weights[last * ACTIONS + action] = 1.0;
    }
    network(kind, slots, &units)
        .singles("output_bias", &[ACTIONS], &bias)
        .singles("output_weights", &[ACTIONS, ACTIONS], &weights)
        .finish()
}

pub(crate) fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// A scheme with a network, and the peer that sends its packets of [`MSS`] bytes and acknowledges them. Times in ms.
pub(crate) struct Peer {
    pub(crate) scheme: Box<dyn CongestionControl>,
    /// When each packet was sent.
    sent: Vec<u64>,
}

impl Peer {
    pub(crate) fn new(scheme: &Scheme, network: Vec<u8>) -> Peer {
        let file = FileRef {
            name: "a.safetensors".into(),
            sha256: "a".into(),
        };
        let mut birth = setup();
        birth.files.insert("a", network);
        let given = [("model".to_owned(), Value::File(file))];
        let params = Params::resolve(scheme.params, given).expect("the parameters resolve");
        Peer {
            scheme: (scheme.build)(&params, birth).expect("the network is one"),
            sent: Vec::new(),
        }
    }

    /// Sends the next packet.
    pub(crate) fn send(&mut self, now: u64) {
        let number = self.sent.len() as u64;
        self.sent.push(now);
        let event = SendEvent::new(at(now), number, Bytes::new(MSS));
        self.scheme.on_send(&event);
    }

    /// Acknowledges a packet; returns the last action and the window in packets.
    pub(crate) fn ack(&mut self, number: u64, now: u64) -> (&'static str, f64) {
        let packets = [AckedPacket {
            number,
            bytes: MSS as u32,
            sent: at(self.sent[number as usize]),
            arrived: None,
        }];
        let mut event = AckEvent::new(at(now));
        event.packets = &packets;
        self.scheme.on_ack(&event);
        let mut fields = Fields::default();
        self.scheme.trace(&mut fields);
        let window = fields
            .values
            .iter()
            .find(|(name, _)| *name == "window_packets");
        (fields.mode, window.expect("a window").1)
    }

    /// Reports a number of packets as lost.
    pub(crate) fn lose(&mut self, packets: u64, now: u64) {
        let bytes = Bytes::new(packets * MSS);
        let mut event = LossEvent::new(at(now), LossCause::Reordering, bytes);
        event.packets = packets;
        self.scheme.on_loss(&event);
    }

    /// Six packets, of which packets 2 to 4 are lost. The first is acknowledged at 30 ms, which begins the first step;
    /// 6 ms later nothing is decided yet, and 35 ms later something is. The window has 20 packets from then on, since
    /// both answers of [`above`] make them of 10. A seventh packet is all of the second step. Returns the decisions.
    pub(crate) fn two_decisions(scheme: &Scheme, network: Vec<u8>) -> [&'static str; 2] {
        let mut peer = Peer::new(scheme, network);
        for ms in 0..3 {
            peer.send(ms);
        }
        assert_eq!(peer.ack(0, 30).1, 10.0);
        for ms in 31..34 {
            peer.send(ms);
        }
        assert_eq!(peer.ack(1, 36).1, 10.0);
        peer.lose(3, 65);
        let (first, window) = peer.ack(5, 65);
        assert_eq!(window, 20.0);
        peer.send(66);
        [first, peer.ack(6, 98).0]
    }
}

/// Asserts that an input of the network had the given values at the two decisions of [`Peer::two_decisions`], each to
/// within a thousandth.
pub(crate) fn assert_slot(scheme: &Scheme, slots: usize, slot: usize, wanted: [f64; 2]) {
    let heard = |threshold| Peer::two_decisions(scheme, above(scheme.name, slots, slot, threshold));
    for (decision, wanted) in wanted.into_iter().enumerate() {
        let near = if wanted == 0.0 { 1e-6 } else { wanted * 1e-3 };
        let text = format!("slot {slot} at decision {decision} is not {wanted}");
        assert_eq!(heard(wanted - near)[decision], "double", "{text}, but less");
        assert_eq!(heard(wanted + near)[decision], "more", "{text}, but more");
    }
}

/// Asserts that the network receives its last action, 4 before the first decision, by driving it through all five: the
/// windows after them, decided every 30 ms.
pub(crate) fn assert_actions(scheme: &Scheme, slots: usize, windows: [f64; 10]) {
    // 4 is answered with 3, that with 0, that with 2, that with 1, and that with 4. A network that answers correctly
    // without this input would fail with the other default answer.
    for without in [0, 1] {
        let network = after(scheme.name, slots, [2, 4, 1, 0, 3], without);
        let mut peer = Peer::new(scheme, network);
        peer.send(0);
        peer.ack(0, 30);
        let modes = ["more", "halve", "hold", "less", "double"];
        for (step, wanted) in windows.into_iter().enumerate() {
            let now = 30 * (step as u64 + 1);
            peer.send(now);
            let found = peer.ack(step as u64 + 1, now + 30);
            assert_eq!(found, (modes[step % modes.len()], wanted), "step {step}");
        }
    }
}

/// Asserts that decisions are more than 10 ms apart, and the window after a doubling at each of 20 decisions.
pub(crate) fn assert_steps(scheme: &Scheme, slots: usize, most: f64) {
    let mut peer = Peer::new(scheme, after(scheme.name, slots, [4; ACTIONS], 4));
    for ms in 0..300 {
        peer.send(ms);
    }
    let mut window = 10.0;
    for number in 0..231 {
        // A step that begins at 30 ms, or with a decision, ends 11 ms later.
        if number > 0 && number % 11 == 0 {
            window = f64::min(2.0 * window, most);
        }
        assert_eq!(peer.ack(number, number + 30).1, window, "packet {number}");
    }
    assert_eq!(window, most);
}
