// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Vegas: keeps a few of its packets in the queue, by comparing its actual rate with the expected rate without
 * queueing.
 *
 * Provenance: L. Brakmo and L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet",
 * IEEE JSAC 13(8), 1995; thresholds as in Linux net/ipv4/tcp_vegas.c. Once per round trip the backlog
 * W (1 - baseRTT/RTT) is compared with alpha and beta: below alpha the window grows by one packet, above beta
 * it shrinks by one. Slow start doubles every other round trip only and ends when the packets sent meanwhile
 * had a backlog of more than gamma.
 *
 * Deviations: the RTT of a round is the smallest of at least three samples (with fewer, the window grows by
 * one packet); slow start ends with the window that the path holds without queueing and one packet more, as
 * in Linux (`drain: false` keeps the window, as the paper does); losses are found and repaired by the kernel
 * and halve the window. The kernel hands over the RTT of an acknowledgement before it tells of losses found
 * by it, and rounds end by sequence numbers, so that the round of a loss lasts until its repair.
 *
 * RTTs are in us, the backlog in steps of 2^-16 packets.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | alpha | 2 packets | Linux tcp_vegas; the paper uses 1 and 2 | 65536 times the value |
 * | beta | 4 packets | Linux tcp_vegas; the paper uses 3 and 4 | 65536 times the value |
 * | gamma | 1 packet | Brakmo and Peterson 1995 | 65536 times the value |
 * | drain | true | Linux tcp_vegas; the paper: false | 0 or 1 |
 */
#include "include/narrows_rtt.h"

PARAM(alpha, Q16(2.0));
PARAM(beta, Q16(4.0));
PARAM(gamma, Q16(1.0));
PARAM(drain, 1);

/* Slow start: every acknowledgement makes the window grow; it stands still, so that a flight of its size is
 * on its way; the first acknowledgements of that flight tell whether it had to wait. */
enum { GROWING, STILL, JUDGING };

struct rules {
	struct rtt_rounds rtt;
	u32 pace;
};

struct state {
	struct rules now;
	struct rules prior; /* before the reduction, to take it back */
	u32 fraction;	    /* of the window, Q32 */
	u32 round_end;
};
STATE_FITS(struct state);

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	struct state *ca = private_state(sk);

	rtt_init(&ca->now.rtt);
	ca->now.pace = JUDGING;
	ca->prior = ca->now;
	ca->fraction = 0;
	ca->round_end = tcp_sk(sk)->snd_nxt;
}

/* Whether the flight of the round that stood still had to wait; told by its first packets, since a flight
 * during which the window grew waits behind its own bursts. */
INLINE void judge_slow_start(struct tcp_sock *tp, struct state *ca)
{
	u32 rtt = rtt_so_far(&ca->now.rtt);
	u64 window = window_q16(tp, ca->fraction), backlog;

	if (!rtt)
		return;
	backlog = backlog_q16(&ca->now.rtt, window, rtt);
	ca->now.pace = GROWING;
	if (backlog <= param_gamma)
		return;
	if (param_drain && backlog > Q16_ONE)
		set_window_q16(tp, &ca->fraction, max_u64(window - backlog + Q16_ONE, Q16(2.0)));
	exit_slow_start(tp);
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	struct rtt_round round = {};
	_Bool ended = rtt_on_ack(&ca->now.rtt, sk, sample, round_starts(tp, &ca->round_end), &round);

	if (phase(sk) == REDUCED || phase(sk) == RECOVERY)
		return;
	if (in_slow_start(tp)) {
		if (ended)
			ca->now.pace = ca->now.pace == JUDGING ? GROWING : ca->now.pace + 1;
		if (ca->now.pace == JUDGING)
			judge_slow_start(tp, ca);
		return;
	}
	if (!ended)
		return;
	u64 window = window_q16(tp, ca->fraction);
	/* Without a smallest RTT nothing can be said about the queue. */
	u64 backlog = round.min ? backlog_q16(&ca->now.rtt, window, round.min) : 0;
	if (!round.min || backlog < param_alpha) {
		if (window_limited(tp))
			set_window(tp, tp->snd_cwnd + 1);
	} else if (backlog > param_beta) {
		set_window_q16(tp, &ca->fraction, max_u64(window, Q16(3.0)) - Q16_ONE);
		exit_slow_start(tp);
	}
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	if (window_limited(tp) && in_slow_start(tp) && ca->now.pace == GROWING)
		slow_start(tp, acked);
}

INLINE u32 reduced(struct sock *sk)
{
	struct state *ca = private_state(sk);

	ca->prior = ca->now;
	ca->now.pace = GROWING;
	return threshold_and_fraction(window_q16(tcp_sk(sk), ca->fraction) / 2, &ca->fraction);
}
REDUCTION(reduced)

UNDO_RULES

SCHEME(vegas, 0, .init = (void *)init, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .pkts_acked = (void *)pkts_acked, .undo_cwnd = (void *)undo_cwnd);
