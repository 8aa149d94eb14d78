//! The scheme keeps the contract of [`narrows_cc::CongestionControl`], and behaves like Reno, which it is.

use narrows_cc::testing::{self, Script, setup};
use narrows_cc::{LossCause, schemes};
use narrows_units::Params;
use own_scheme::{aimd::SCHEME, simulate};

#[test]
fn it_conforms() {
    for seed in 0..20 {
        testing::check(&SCHEME, seed, 2000);
    }
}

#[test]
fn a_loss_halves_the_data_in_flight_and_a_timeout_starts_again() {
    let params = Params::resolve(SCHEME.params, []).unwrap();
    let mut script = Script::new((SCHEME.build)(&params, setup()).unwrap());
    script.ack_round();
    assert_eq!(script.cwnd_packets(), 20.0);
    script.lose(LossCause::Reordering, 20);
    script.lose_again(LossCause::Reordering, 18);
    assert_eq!(script.cwnd_packets(), 10.0);
    script.lose(LossCause::Timeout, 10);
    assert_eq!(script.cwnd_packets(), 1.0);
}

#[test]
fn alone_it_fills_the_path_as_reno_does() {
    let reno = schemes::find("reno").unwrap();
    let (own, theirs) = (simulate(&[&SCHEME], 1)[0], simulate(&[reno], 1)[0]);
    assert!((own / theirs - 1.0).abs() < 0.01, "{own} and {theirs} Mbit/s");
}

#[test]
fn two_flows_share_evenly() {
    // AIMD converges to equal shares (Chiu and Jain, 1989); the deviation is that of the last sawtooth.
    let shares = simulate(&[&SCHEME, &SCHEME], 1);
    let ratio = shares[0] / shares[1];
    assert!((0.8..1.25).contains(&ratio), "{shares:?} Mbit/s");
}
