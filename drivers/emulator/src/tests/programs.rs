//! Flows of programs, which have private hosts.

use super::*;

#[test]
fn a_host_that_flows_share_knows_them_by_the_other_host() {
    let program = json!({
        "name": "x", "variant": "y", "manifest": "", "data": "connector", "shared": true,
        "listener": {"command": ["x"], "ready": {"tcp": null}}, "connector": {"command": ["x"]},
        "end": {"when": "signal", "signal": 15, "grace_ns": 0},
        "limits": {"ready_ns": 0, "file_bytes": 0, "output_bytes": 0},
    });
    let mut core = star(|cell| {
        let mut third = cell["flows"][1].clone();
        third["flow"] = 3.into();
        cell["flows"].as_array_mut().unwrap().push(third);
        for flow in [1, 2] {
            cell["flows"][flow]["program"] = program.clone();
        }
    });
    // Both flows lead to the fifth host, from the fourth and from the sixth.
    let packet = |from, to| readdress(sample(500, 17, 9, 7, 0), from, to);
    core.arrive(3, at(0), &packet(3, 4));
    core.arrive(5, at(1), &packet(5, 4));
    core.arrive(4, at(2), &packet(4, 5));
    core.arrive(4, at(3), &packet(4, 3));
    core.arrive(4, at(4), &packet(4, 1));
    core.advance(at(70_000));
    let traffic = core.admission.traffic();
    let sent = |flow| {
        (
            traffic[&flow].sender.packets,
            traffic[&flow].receiver.packets,
        )
    };
    assert_eq!([sent(2), sent(3)], [(1, 1), (1, 1)]);
    assert_eq!((traffic[&2].stray, traffic[&3].stray), (1, 0));
    assert_eq!(release(&mut core, 4, at(70_000)).len(), 2);
    assert_eq!(release(&mut core, 5, at(70_000)).len(), 1);
}

#[test]
fn hosts_of_a_program_are_attached_where_its_flow_runs() {
    let program = json!({
        "name": "x", "variant": "y", "manifest": "", "data": "connector",
        "listener": {"command": ["x"], "ready": {"tcp": null}}, "connector": {"command": ["x"]},
        "end": {"when": "signal", "signal": 15, "grace_ns": 0},
        "limits": {"ready_ns": 0, "file_bytes": 0, "output_bytes": 0},
    });
    let mut core = star(|cell| {
        cell["flows"][1]["program"] = program;
        cell["flows"][1]["stop_ns"] = (50 * MS).into();
    });
    // Flow 2 leads from the third host to the first; its private hosts are the fourth and the
    // fifth.
    let (sender, receiver) = (3, 4);
    let packet = |from, to, protocol, size| readdress(sample(size, protocol, 9, 7, 0), from, to);
    core.arrive(sender, at(0), &packet(sender, receiver, 17, 1028));
    core.arrive(receiver, at(1), &packet(receiver, sender, 6, 40));
    core.arrive(sender, at(2), &packet(sender, 0, 17, 100));
    core.arrive(0, at(3), &packet(0, sender, 17, 100));
    core.arrive(0, at(4), &frame_of(2, 0, 1, 100));
    core.arrive(sender, at(60_000), &packet(sender, receiver, 17, 100));
    core.advance(at(70_000));
    assert_eq!(release(&mut core, receiver, at(70_000)), [1042]);
    assert_eq!(release(&mut core, sender, at(70_000)), [54]);
    assert_eq!(release(&mut core, 1, at(70_000)), [114]);
    assert_eq!(core.pending(0), None);
    let refused = core.admission.refused;
    assert_eq!((refused.no_route, refused.after_stop), (1, 1));
    let traffic = &core.admission.traffic()[&2];
    assert_eq!(
        (traffic.sender.packets, traffic.sender.payload_bytes),
        (1, 1000)
    );
    assert_eq!(
        (traffic.receiver.packets, traffic.receiver.payload_bytes),
        (1, 0)
    );
    assert_eq!(
        (traffic.sender.first_ns, traffic.receiver.first_ns),
        (Some(0), None)
    );
    assert_eq!(traffic.stray, 1);
    let ports: Vec<_> = traffic
        .conversations
        .iter()
        .map(|one| (one.protocol, one.sender_port))
        .collect();
    assert_eq!(ports, [(17, 9), (6, 7)]);
    use narrows_record::Direction::{Backward, Forward};
    let said: Vec<_> = rows(&mut core)
        .iter()
        .map(|row| (row.flow, row.direction))
        .collect();
    // The port of another flow does not identify it if a program has private hosts.
    assert_eq!(said, [(2, Forward), (2, Backward), (0, Forward)]);
}
