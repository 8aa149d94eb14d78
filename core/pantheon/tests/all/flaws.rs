//! Flaws of logs are reported with their position, and files that are not logs are reported as
//! such.
use narrows_pantheon::{
    LogError, Offsets, RawLogSide, Reading, Statistics, merge, read_merged, read_tunnel,
};

const BASE_MS: u64 = 1_500_000_000_000;

#[test]
fn flaws_are_told_with_their_line() {
    let head = "# init timestamp: 1500000000000.000\n1.000 + 1500 1\n";
    let cases = [
        (
            "1.5 - 1500 0.5",
            3,
            "the log ends in the middle of this line",
        ),
        ("1.5 - 1500 0.5 1 \n", 3, "is not an event"),
        ("1.5 - 1500 0.5 1\n\n", 4, "\"\" is not an event"),
        (
            "1.5 * 1500 1\n",
            3,
            "\"1.5 * 1500 1\" is not an event; events are TIME + BYTES FLOW",
        ),
        ("1.5 + 0 1\n", 3, "is not an event"),
        ("1.5 + 1500 0\n", 3, "is not an event"),
        ("1.5 + 1500 65536\n", 3, "is not an event"),
        ("1.5 + 4294967296 1\n", 3, "is not an event"),
        ("1.5 # 1500 1\n", 3, "is not an event"),
        ("1,5 + 1500 1\n", 3, "is not an event"),
        ("99999999999.0 + 1500 1\n", 3, "is not an event"),
        ("1.5 + 1500\n", 3, "does not name its flow, unlike"),
        (
            "1.5 - 1500 0.5 2\n",
            3,
            "a packet of 1500 bytes of flow 2 arrives 0.500 ms after",
        ),
        (
            "1.5 - 1400 0.5 1\n",
            3,
            "a packet of 1400 bytes of flow 1 arrives",
        ),
        (
            "1.5 - 1500 0.496 1\n",
            3,
            "no line says that such a packet was sent",
        ),
    ];
    for (text, line, says) in cases {
        let text = format!("{head}{text}");
        let error = read_merged("x.log", text.as_bytes(), false).unwrap_err();
        let shown = error.to_string();
        assert_eq!(error.line, line, "{text:?}: {shown}");
        assert!(shown.starts_with(&format!("x.log:{line}: ")), "{shown}");
        assert!(shown.contains(says), "{text:?}: {shown}");
        let lenient = read_merged("x.log", text.as_bytes(), true).unwrap();
        assert_eq!(lenient.link.sent.len(), 1, "{text:?}");
        assert!(lenient.stopped.is_some() || lenient.strangers == 1);
    }
    let heads = [
        ("", "the log is empty"),
        (
            "1.000 + 1500 1\n",
            "a merged log begins with \"# init timestamp: \"",
        ),
        ("# init timestamp: -1.000\n", "a merged log begins with"),
        (
            "# init timestamp: 1500000000000.000",
            "the log ends in the middle of this line",
        ),
    ];
    for (text, says) in heads {
        for lenient in [false, true] {
            let error = read_merged("x.log", text.as_bytes(), lenient).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

#[test]
fn flaws_of_raw_logs_are_told_with_their_line() {
    let read = |text: &str| read_tunnel("e", text.as_bytes(), RawLogSide::Egress, false);
    let problem = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(
        problem("# 'x' ingress: 1500000000000.000\n"),
        "e:1: this is the log of packets received (ingress), not of packets sent"
    );
    assert!(problem("# 'x' egress: soon\n").starts_with("e:1: a log of the tunnel begins with"));
    let head = "# 'x' egress: 1500000000000.000\n";
    assert!(
        problem(&format!("{head}1.0 - 0 - 1500\n1.0 - x - 1500\n")).starts_with("e:3: \"1.0 - x")
    );
    assert!(
        problem(&format!("{head}1.0 - 0 - 1500\n1.0 - 1 - 15")).starts_with("e:3: the log ends")
    );

    let log = |side: RawLogSide, word: &str, rows: &str| {
        let text = format!("# 'x' {word}: 1500000000000.000\n{rows}");
        read_tunnel(word, text.as_bytes(), side, false).unwrap()
    };
    let merged = |sent: &str, arrived: &str, lenient: bool| -> Result<Reading, LogError> {
        let egress = log(RawLogSide::Egress, "egress", sent);
        let ingress = log(RawLogSide::Ingress, "ingress", arrived);
        merge(&egress, &ingress, Offsets::default(), 1, lenient)
    };
    let sent = "1.0 - 0 - 1500\n2.0 - 1 - 1500\n";
    let arrived = "3.0 - 1 - 1500\n4.0 - 7 - 1500\n5.0 - 0 - 1500\n";
    let error = merged(sent, arrived, false).unwrap_err().to_string();
    assert_eq!(
        error,
        "ingress:3: packet 7 arrives, but egress does not have it"
    );
    let lenient = merged(sent, arrived, true).unwrap();
    assert_eq!(lenient.link.arrived.len(), 1);
    assert_eq!(lenient.stopped.unwrap().line, 3);
    let error = merged(sent, "3.0 - 1 - 1400\n", false).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("packet 1 arrives with 1400 bytes, but was sent with 1500")
    );
    // Numbers may have gaps, but each is sent once.
    assert!(merged("1.0 - 0 - 60\n2.0 - 4 - 60\n", "3.0 - 4 - 60\n", false).is_ok());
    let error = merged("1.0 - 0 - 60\n2.0 - 0 - 60\n", "", false)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "egress:3: packet 0 is sent again; it was sent in line 2"
    );
    let sent = "1.0 - 0 - 60\n2.0 - 3 - 60\n4.0 - 0 - 60\n5.0 - 4 - 60\n";
    let arrived = "3.0 - 3 - 60\n6.0 - 4 - 60\n7.0 - 0 - 60\n";
    let lenient = merged(sent, arrived, true).unwrap();
    assert_eq!(
        (lenient.link.sent.len(), lenient.link.arrived.len()),
        (2, 1)
    );
    let stopped = lenient.stopped.unwrap().to_string();
    assert!(stopped.starts_with("egress:4: packet 0"), "{stopped}");

    let late = format!("# 'x' ingress: {}.000\n", BASE_MS + 30 * 86_400_000);
    let late = read_tunnel("late", late.as_bytes(), RawLogSide::Ingress, false).unwrap();
    let early = log(RawLogSide::Egress, "egress", sent);
    let error = merge(&early, &late, Offsets::default(), 1, true)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("begins 30 days apart from egress"),
        "{error}"
    );
}

#[test]
fn what_is_no_log_is_told_as_such() {
    let told = |text: &[u8]| {
        let merged = read_merged("x", text, true).unwrap_err().to_string();
        let raw = read_tunnel("x", text, RawLogSide::Egress, true).unwrap_err();
        (merged, raw.to_string())
    };
    let cut = "x:1: the log ends in the middle of this line".to_owned();
    assert_eq!(told(b"# init timestamp: 1500000000123.456").0, cut);
    assert_eq!(told(b"# init time").0, cut);
    assert_eq!(told(b"# 'mm-tunnelclient' egress: 15000").1, cut);
    for (magic, by) in [
        (&b"\x1f\x8b\x08\x00"[..], "gzip"),
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"\x28\xb5\x2f\xfd\x04", "zstd"),
    ] {
        let packed = format!("x:1: the log is compressed ({by}); unpack it first");
        assert_eq!(told(magic), (packed.clone(), packed));
    }
}

#[test]
fn lines_out_of_the_order_of_time_are_told_and_counted_by_time() {
    let text = "# init timestamp: 1500000000000.000\n0.000 # 1500\n0.000 + 1500 1\n1.000 + 1500 1\n\
                30.000 - 1500 30.000 1\n20.000 - 1500 19.000 1\n20.000 # 1500\n10.000 # 1500\n";
    let reading = read_merged("x", text.as_bytes(), false).unwrap();
    let told = reading.disorder.unwrap().to_string();
    assert_eq!(
        told,
        "x:6: this line is 10.000 ms earlier than one above it"
    );
    let found = Statistics::compute(&reading.link).unwrap();
    // 3000 bytes within 10 ms, and opportunities for 4500 within 20 ms.
    assert!((found.total.throughput_mbps - 2.4).abs() < 1e-12);
    assert!((found.flows[&1].throughput_mbps - 2.4).abs() < 1e-12);
    assert!((found.capacity_mbps.unwrap() - 1.8).abs() < 1e-12);
    assert!((found.duration_ms - 10.0).abs() < 1e-12);
    // Times that are rounded after they were sorted may be a little apart.
    let near = "# init timestamp: 1500000000000.000\n1.000 + 1500 1\n0.998 + 1500 2\n";
    let near = read_merged("x", near.as_bytes(), false).unwrap();
    assert_eq!(near.disorder, None);

    let raw = "# 'x' egress: 1500000000000.000\n5.0 - 0 - 60\n4.0 - 1 - 60\n";
    let egress = read_tunnel("e", raw.as_bytes(), RawLogSide::Egress, false).unwrap();
    let raw = "# 'x' ingress: 1500000000000.000\n9.0 - 0 - 60\n9.5 - 1 - 60\n";
    let ingress = read_tunnel("i", raw.as_bytes(), RawLogSide::Ingress, false).unwrap();
    let merged = merge(&egress, &ingress, Offsets::default(), 1, false).unwrap();
    assert_eq!(
        merged.disorder.unwrap().to_string(),
        "e:3: this line is 1.000 ms earlier than one above it"
    );
}
