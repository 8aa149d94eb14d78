//! The effect of the published constants, with schemes built as by a scenario without parameters.

use narrows_cc::testing::{Script, setup};
use narrows_cc::{LossCause, schemes};
use narrows_units::Params;

/// A scheme with its defaults.
fn plain(name: &str) -> Script {
    let scheme = schemes::find(name).unwrap();
    let params = Params::resolve(scheme.params, []).unwrap();
    Script::new((scheme.build)(&params, setup()).unwrap())
}

/// The windows, in packets, before and after the first loss, with the whole window in flight.
fn around_a_loss(script: &mut Script) -> (f64, f64) {
    for _ in 0..4 {
        script.ack_round();
    }
    let before = script.cwnd_packets();
    script.lose(LossCause::Reordering, before as u64);
    (before, script.cwnd_packets())
}

#[test]
fn a_loss_leaves_the_published_share_of_the_window() {
    for (name, share, source) in [
        ("reno", 0.5, "RFC 5681, equation 4"),
        ("newreno", 0.5, "RFC 6582, section 3.2"),
        ("cubic", 0.7, "RFC 9438, section 4.6"),
        ("cubic-linux", 717.0 / 1024.0, "Linux net/ipv4/tcp_cubic.c"),
        ("cubic2008", 0.8, "Ha, Rhee and Xu 2008, section 3"),
        ("bic", 819.0 / 1024.0, "Linux net/ipv4/tcp_bic.c"),
        ("scalable", 0.875, "Kelly 2003: an eighth less"),
        ("hybla", 0.5, "Caini and Firrincieli 2004: as Reno"),
        ("dctcp", 0.5, "RFC 8257, section 3.5"),
    ] {
        let (before, after) = around_a_loss(&mut plain(name));
        // Whole packets, where the kernel counts in them.
        assert!(
            (after - before * share).abs() <= 1.0,
            "{name}, {source}: {before} to {after}"
        );
        // Far enough apart that one packet decides: 0.7 and 0.75 of 100 packets are five apart.
        assert!(before >= 100.0, "{name}: {before}");
    }
}

#[test]
fn no_loss_leaves_less_than_two_packets() {
    // RFC 5681, equation 4.
    for name in ["reno", "newreno", "cubic", "cubic-linux", "bic", "hybla"] {
        let mut script = plain(name);
        for _ in 0..6 {
            let in_flight = (script.cwnd_packets() as u64).max(2);
            script.lose(LossCause::Reordering, in_flight);
        }
        assert_eq!(script.cwnd_packets(), 2.0, "{name}");
    }
}

#[test]
fn cubic_is_back_at_its_plateau_after_the_published_time() {
    // RFC 9438, section 4.2: K is the cube root of W_max (1 - beta) / C, with C = 0.4 (section 5).
    let mut script = plain("cubic");
    let (before, _) = around_a_loss(&mut script);
    script.ack_round();
    let fields = script.fields();
    let k = fields
        .values
        .iter()
        .find(|(name, _)| *name == "k_s")
        .unwrap()
        .1;
    let wanted = (before * 0.3 / 0.4).cbrt();
    // The window at the first acknowledgement, from which K is counted, is that after the loss to a tenth of a packet.
    assert!((k / wanted - 1.0).abs() < 0.01, "{k} s, {wanted} s");
}
