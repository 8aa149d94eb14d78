// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * YeAH: Scalable while queues are short, Reno otherwise, and an early reduction that removes the queue from the
 * window.
 *
 * Provenance: A. Baiocchi, A. P. Castellani and F. Vacirca, "YeAH-TCP: Yet Another Highspeed TCP", PFLDnet
 * 2007; constants and order of the rules as in Linux net/ipv4/tcp_yeah.c. Once per round trip the backlog
 * Q = W (RTT - base)/RTT is estimated. Fast mode (Scalable: one packet per hundred acknowledged) while Q is
 * at most alpha and the queueing delay at most base/phi; slow mode (Reno) otherwise, in which Q is taken out
 * of the window whenever it exceeds alpha, but not below what a Reno flow would have. A loss in fast mode
 * takes Q away, at least an eighth and at most half of the window; after rho rounds in slow mode, half.
 *
 * Deviations: the backlog has fractions (steps of 2^-16 packets; Linux: none). Rounds end by sequence
 * numbers. The window grows by whole packets.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | alpha | 80 packets | Linux tcp_yeah | 65536 times the value |
 * | gamma | 1 | Linux tcp_yeah | 65536 times the value |
 * | epsilon | 0.5 | Linux tcp_yeah | 65536 times the value |
 * | delta | 0.125 | Linux tcp_yeah | 65536 times the value |
 * | phi | 8 | Linux tcp_yeah | 65536 times the value |
 * | rho | 16 round trips | Linux tcp_yeah | count |
 * | zeta | 50 round trips | Linux tcp_yeah | count |
 */
#include "include/narrows_rtt.h"

PARAM(alpha, Q16(80.0));
PARAM(gamma, Q16(1.0));
PARAM(epsilon, Q16(0.5));
PARAM(delta, Q16(0.125));
PARAM(phi, Q16(8.0));
PARAM(rho, 16);
PARAM(zeta, 50);

/* Largest number of acknowledged packets that are worth one of growth in fast mode (Scalable TCP). */
#define SCALABLE 100

struct rules {
	struct rtt_rounds rtt;
	u64 backlog;	 /* packets waiting as last estimated, Q16 */
	u64 reno_window; /* of the Reno flow that competes, as far as can be told, Q16 */
	u32 slow_rounds; /* in slow mode in a row; 0 in fast mode */
	u32 fast_rounds;
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
	ca->now.reno_window = FLOOR * Q16_ONE;
	ca->prior = ca->now;
	ca->round_end = tcp_sk(sk)->snd_nxt;
}

INLINE void judge(struct tcp_sock *tp, struct state *ca, u32 rtt)
{
	struct rules *now = &ca->now;
	u64 window = window_q16(tp, ca->fraction), base = now->rtt.base;
	_Bool late = (rtt - base) * param_phi > base << 16;

	now->backlog = backlog_q16(&now->rtt, window, rtt);
	if (now->backlog <= param_alpha && !late) {
		if (++now->fast_rounds > param_zeta) {
			now->reno_window = FLOOR * Q16_ONE;
			now->fast_rounds = 0;
		}
		now->slow_rounds = 0;
		return;
	}
	if (now->backlog > param_alpha && window > now->reno_window) {
		u64 most = (window * param_epsilon) >> 16;
		u64 taken = min_u64(scale(now->backlog, Q16_ONE, param_gamma), most);
		window = max_u64(window - taken, now->reno_window);
		set_window_q16(tp, &ca->fraction, window);
		exit_slow_start(tp);
	}
	if (now->reno_window <= FLOOR * Q16_ONE)
		now->reno_window = max_u64(window / 2, FLOOR * Q16_ONE);
	else
		now->reno_window += Q16_ONE;
	now->slow_rounds++;
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	struct rtt_round round = {};

	if (rtt_on_ack(&ca->now.rtt, sk, sample, round_starts(tp, &ca->round_end), &round) && round.min)
		judge(tp, ca, round.min);
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	acked = after_slow_start(tp, acked);
	if (acked)
		additive_increase(tp, ca->now.slow_rounds ? tp->snd_cwnd : min_u64(tp->snd_cwnd, SCALABLE),
				  acked);
}

INLINE u32 reduced(struct sock *sk)
{
	struct state *ca = private_state(sk);
	struct rules *now = &ca->now;
	u64 window = window_q16(tcp_sk(sk), ca->fraction);
	u64 drop = max_u64(window / 2, FLOOR * Q16_ONE);

	ca->prior = ca->now;
	if (now->slow_rounds < param_rho)
		drop = max_u64(min_u64(now->backlog, drop), (window * param_delta) >> 16);
	now->fast_rounds = 0;
	now->reno_window = max_u64(now->reno_window / 2, FLOOR * Q16_ONE);
	return threshold_and_fraction(window > drop ? window - drop : 0, &ca->fraction);
}
REDUCTION(reduced)

UNDO_RULES

SCHEME(yeah, 0, .init = (void *)init, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .pkts_acked = (void *)pkts_acked, .undo_cwnd = (void *)undo_cwnd);
