// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Veno: Reno that distinguishes random losses from congestion by Vegas' estimate of the backlog.
 *
 * Provenance: C. P. Fu and S. C. Liew, "TCP Veno: TCP Enhancement for Transmission over Wireless Access
 * Networks", IEEE JSAC 21(2), 2003. N = W (RTT - baseRTT) / RTT packets wait in queues. With N below the
 * threshold the window grows like Reno's, otherwise by one packet every other round trip. A loss with N below
 * the threshold is taken for random: four fifths of the window are kept, otherwise half.
 *
 * Deviations: RTT is the smallest of at least three samples of the last complete round trip, so that N is
 * what it was before the loss. Until N was measured for the first time, after a congestion mark and after a
 * timeout the reduction is Reno's. The kernel asks for the threshold before it says why; after a mark or a
 * timeout it is therefore set again when the reason is known. Rounds end by sequence numbers.
 *
 * RTTs are in us, the backlog in steps of 2^-16 packets.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | threshold | 3 packets | Fu and Liew 2003; Linux tcp_veno | 65536 times the value |
 * | random_kept | 0.8 | Fu and Liew 2003; Linux tcp_veno | 65536 times the value |
 */
#include "include/narrows_rtt.h"

PARAM(threshold, Q16(3.0));
PARAM(random_kept, Q16(0.8));

struct rules {
	struct rtt_rounds rtt;
	u64 backlog; /* packets waiting as last estimated, Q16 */
	u32 measured;
};

struct state {
	struct rules now;
	struct rules prior;
	u32 fraction; /* of the window, Q32 */
	u32 round_end;
};
STATE_FITS(struct state);

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	struct state *ca = private_state(sk);

	rtt_init(&ca->now.rtt);
	ca->now.backlog = 0;
	ca->now.measured = 0;
	ca->prior = ca->now;
	ca->fraction = 0;
	ca->round_end = tcp_sk(sk)->snd_nxt;
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	struct rtt_round round = {};

	if (!rtt_on_ack(&ca->now.rtt, sk, sample, round_starts(tp, &ca->round_end), &round) || !round.min)
		return;
	ca->now.backlog = backlog_q16(&ca->now.rtt, window_q16(tp, ca->fraction), round.min);
	ca->now.measured = 1;
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	_Bool crowded = ca->now.measured && ca->now.backlog >= param_threshold;

	acked = after_slow_start(tp, acked);
	if (acked)
		additive_increase(tp, crowded ? 2 * tp->snd_cwnd : tp->snd_cwnd, acked);
}

INLINE u32 reduced(struct sock *sk)
{
	struct state *ca = private_state(sk);
	u64 window = window_q16(tcp_sk(sk), ca->fraction);
	_Bool quiet = ca->now.measured && ca->now.backlog < param_threshold;

	ca->prior = ca->now;
	return threshold_and_fraction((window * (quiet ? param_random_kept : Q16(0.5))) >> 16, &ca->fraction);
}
REDUCTION(reduced)

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	/* Only losses that later packets revealed can be random. */
	if ((state == REDUCED || state == TIMEOUT) && phase(sk) <= DISORDER)
		tp->snd_ssthresh = threshold_and_fraction(((u64)tp->prior_cwnd << 16) / 2, &ca->fraction);
}

UNDO_RULES

SCHEME(veno, 0, .init = (void *)init, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .set_state = (void *)set_state, .pkts_acked = (void *)pkts_acked, .undo_cwnd = (void *)undo_cwnd);
