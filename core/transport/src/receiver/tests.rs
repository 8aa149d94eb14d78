use super::*;

struct Rig {
    receiver: Receiver,
    now: Time,
    body: Body,
}

impl Rig {
    fn new() -> Self {
        let config = Config {
            quick_acks: 0,
            ..Config::default()
        };
        Rig {
            receiver: Receiver::new(&config),
            now: Time::ZERO,
            body: Body::default(),
        }
    }

    /// Packet `number` carrying chunk `chunk` of 100 bytes arrives; the acknowledgement, if any.
    fn data(&mut self, number: u64, chunk: u64, ecn: Ecn) -> Option<Ack> {
        self.now += Span::from_ms(1);
        let data = Data {
            number,
            offset: chunk * 100,
            least_unacked: 0,
            length: 100,
            retransmission: false,
            ack_interval: None,
        };
        self.receiver
            .receive(self.now, ecn, &Header::Data(data), &Body::default());
        self.poll()
    }

    fn poll(&mut self) -> Option<Ack> {
        let out = self.receiver.transmit(self.now, &mut self.body)?;
        match out.header {
            Header::Ack(ack) => Some(ack),
            Header::Data(_) | Header::Media(_) => None,
        }
    }
}

#[test]
fn every_second_packet_or_after_the_delay() {
    let mut rig = Rig::new();
    assert_eq!(rig.data(0, 0, Ecn::NotEct), None);
    let ack = rig.data(1, 1, Ecn::NotEct).unwrap();
    assert_eq!(ack.largest, 1);
    assert_eq!(rig.body.ranges, [Range { first: 0, last: 1 }]);
    assert_eq!(
        rig.body.arrivals,
        [Arrival {
            number: 0,
            at: Time::from_ns(1_000_000)
        }]
    );
    assert_eq!(rig.data(2, 2, Ecn::NotEct), None);
    let deadline = rig.receiver.next_wakeup();
    assert_eq!(deadline, rig.now + Span::from_ms(40));
    rig.now = deadline;
    let ack = rig.poll().unwrap();
    assert_eq!((ack.largest, ack.delay), (2, Span::from_ms(40)));
    assert_eq!(rig.receiver.next_wakeup(), Time::FAR);
}

#[test]
fn gaps_are_reported_at_once_until_the_data_is_there() {
    let mut rig = Rig::new();
    rig.receiver.config.quick_acks = 16;
    rig.data(0, 0, Ecn::NotEct);
    rig.data(1, 1, Ecn::NotEct);
    // Number 2 (chunk 2) is lost; its data is resent as number 5.
    assert!(rig.data(3, 3, Ecn::NotEct).is_some());
    assert_eq!(
        rig.body.ranges,
        [Range { first: 3, last: 3 }, Range { first: 0, last: 1 }]
    );
    assert!(rig.data(4, 4, Ecn::NotEct).is_some());
    assert!(rig.data(5, 2, Ecn::NotEct).is_some(), "complete again");
    assert!(rig.data(6, 5, Ecn::NotEct).is_none(), "first of two");
    assert!(rig.data(7, 6, Ecn::NotEct).is_some());
    assert_eq!(rig.receiver.counters().goodput_bytes, 700);
}

#[test]
fn repeated_data_is_not_goodput() {
    let mut rig = Rig::new();
    rig.data(0, 0, Ecn::NotEct);
    rig.data(1, 0, Ecn::NotEct);
    rig.data(1, 0, Ecn::NotEct);
    let counters = rig.receiver.counters();
    assert_eq!(
        (counters.goodput_bytes, counters.duplicate_packets),
        (100, 1)
    );
    assert_eq!(counters.received_packets, 3);
}

#[test]
fn repeated_data_beyond_a_gap_counts_once() {
    let mut rig = Rig::new();
    rig.data(0, 0, Ecn::NotEct);
    // Chunk 1 is lost. Chunks 2 and 3 arrive twice, the second time as new packets.
    for (number, chunk) in [(2, 2), (3, 3), (4, 2), (5, 3)] {
        rig.data(number, chunk, Ecn::NotEct);
    }
    assert_eq!(rig.receiver.counters().goodput_bytes, 300);
    assert_eq!(rig.receiver.rcv_nxt(), 100);
    // A packet whose first half has already arrived.
    let data = Data {
        number: 6,
        offset: 350,
        least_unacked: 0,
        length: 100,
        retransmission: true,
        ack_interval: None,
    };
    rig.receiver
        .receive(rig.now, Ecn::NotEct, &Header::Data(data), &Body::default());
    assert_eq!(rig.receiver.counters().goodput_bytes, 350);
    rig.data(7, 1, Ecn::NotEct);
    assert_eq!(rig.receiver.counters().goodput_bytes, 450);
    assert_eq!(rig.receiver.rcv_nxt(), 450);
    assert_eq!(rig.receiver.counters().duplicate_packets, 0);
}

#[test]
fn what_had_arrived_before_is_acknowledged_at_once_and_so_are_the_next() {
    for sack in [false, true] {
        let mut rig = Rig::new();
        (rig.receiver.config.sack, rig.receiver.config.quick_acks) = (sack, 3);
        rig.data(0, 0, Ecn::NotEct);
        assert!(rig.data(1, 1, Ecn::NotEct).is_some());
        // Number 2 repeats chunk 1; from then on three acknowledgements are sent without delay.
        for (number, acknowledged) in [(2, true), (3, true), (4, true), (5, false), (6, true)] {
            let ack = rig.data(number, number - 1, Ecn::NotEct);
            assert_eq!(ack.is_some(), acknowledged, "{number}");
        }
    }
}

#[test]
fn a_change_of_marking_is_reported_at_once() {
    let mut rig = Rig::new();
    rig.data(0, 0, Ecn::Ect0);
    rig.data(1, 1, Ecn::Ect0);
    assert_eq!(rig.data(2, 2, Ecn::Ce).map(|ack| ack.marked), Some(1));
    assert_eq!(rig.data(3, 3, Ecn::Ce), None);
    assert_eq!(rig.data(4, 4, Ecn::Ect0).map(|ack| ack.marked), Some(2));
}

#[test]
fn the_floor_lets_the_receiver_forget() {
    let mut rig = Rig::new();
    for number in 0..1000 {
        // Every second number is lost for good; the sender still tracks only the last ten.
        let number = number * 2;
        let data = Data {
            number,
            offset: number * 50,
            least_unacked: number.saturating_sub(10),
            length: 100,
            retransmission: false,
            ack_interval: None,
        };
        rig.receiver
            .receive(rig.now, Ecn::NotEct, &Header::Data(data), &Body::default());
        rig.poll();
    }
    assert!(rig.receiver.received_numbers.ranges().len() <= 6);
}
