// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Illinois: additive increase and multiplicative decrease with factors that depend on the queueing delay.
 *
 * Provenance: S. Liu, T. Basar and R. Srikant, "TCP-Illinois: A loss- and delay-based congestion control
 * algorithm for high-speed networks", VALUETOOLS 2006; constants as in Linux net/ipv4/tcp_illinois.c. Once
 * per round trip, from the mean queueing delay da and the largest one seen dm: the increase alpha falls from
 * 10 packets per round trip (da below 1 % of dm) along a hyperbola to 0.3 (da = dm); the decrease beta rises
 * from an eighth (da up to 10 % of dm) to a half (from 80 % on). Below 15 packets both are Reno's, and after
 * a timeout until the next round is measured.
 *
 * Deviations: samples taken while losses are repaired do not count towards a round's mean; a round trip above
 * the lowest delay begins the count of five good ones anew (Linux goes on counting). Rounds end by sequence
 * numbers. Delays have steps of 1/256 us, alpha and beta of 2^-16 (Linux: 2^-7 and 2^-6).
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | alpha_max | 10 packets | Linux tcp_illinois | 65536 times the value |
 * | alpha_min | 0.3 packets | Linux tcp_illinois | 65536 times the value |
 * | beta_min | 0.125 | Linux tcp_illinois | 65536 times the value |
 * | beta_max | 0.5 | Linux tcp_illinois | 65536 times the value |
 * | window_threshold | 15 packets | Linux tcp_illinois | packets |
 * | theta | 5 round trips | Linux tcp_illinois | count |
 */
#include "include/narrows_rtt.h"

PARAM(alpha_max, Q16(10.0));
PARAM(alpha_min, Q16(0.3));
PARAM(beta_min, Q16(0.125));
PARAM(beta_max, Q16(0.5));
PARAM(window_threshold, 15);
PARAM(theta, 5);

struct rules {
	struct rtt_rounds rtt;
	u32 alpha; /* growth per round trip, packets, Q16 */
	u32 beta;  /* share taken away by a loss, Q16 */
	u32 above; /* the delay has been above the lowest step */
	u32 good;  /* rounds below it since */
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
	ca->now.alpha = param_alpha_max;
	ca->now.beta = param_beta_max;
	ca->now.above = 0;
	ca->now.good = 0;
	ca->prior = ca->now;
	ca->fraction = 0;
	ca->round_end = tcp_sk(sk)->snd_nxt;
}

INLINE void like_reno(struct rules *now)
{
	now->alpha = Q16(1.0);
	now->beta = Q16(0.5);
}

/* Sets growth and decrease from the mean and the largest queueing delay in 1/256 us. */
INLINE void update(struct rules *now, u64 delay, u64 largest)
{
	u64 first = largest / 100, second = largest / 10, third = largest * 8 / 10;
	u64 alpha_max = param_alpha_max, alpha_min = max_u64(param_alpha_min, 1);
	u64 beta_min = param_beta_min, beta_max = param_beta_max;

	if (delay > first) {
		u64 slope = scale(alpha_max - alpha_min, Q16_ONE, alpha_min);
		u64 rest = largest - first;
		now->above = 1;
		now->good = 0;
		now->alpha = scale(rest, alpha_max, rest + (((delay - first) * slope) >> 16));
	} else if (!now->above) {
		now->alpha = alpha_max;
	} else if (++now->good >= param_theta) {
		now->good = 0;
		now->above = 0;
		now->alpha = alpha_max;
	}
	if (delay <= second)
		now->beta = beta_min;
	else if (delay >= third)
		now->beta = beta_max;
	else
		now->beta = beta_min + scale(beta_max - beta_min, delay - second, third - second);
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	struct rules *now = &ca->now;
	struct rtt_round round = {};

	if (!rtt_on_ack(&now->rtt, sk, sample, round_starts(tp, &ca->round_end), &round))
		return;
	if (tp->snd_cwnd < param_window_threshold) {
		like_reno(now);
	} else if (round.samples) {
		u64 base = (u64)now->rtt.base << 8, mean = (round.sum << 8) / round.samples;
		update(now, mean > base ? mean - base : 0, ((u64)now->rtt.largest << 8) - base);
	}
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	acked = after_slow_start(tp, acked);
	if (acked)
		grow_per_window(tp, &ca->fraction, ca->now.alpha, acked);
}

INLINE u32 reduced(struct sock *sk)
{
	struct state *ca = private_state(sk);
	u64 window = window_q16(tcp_sk(sk), ca->fraction);

	ca->prior = ca->now;
	return threshold_and_fraction((window * (Q16_ONE - ca->now.beta)) >> 16, &ca->fraction);
}
REDUCTION(reduced)

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	struct state *ca = private_state(sk);

	if (state != TIMEOUT)
		return;
	like_reno(&ca->now);
	ca->now.above = 0;
	ca->now.good = 0;
}

UNDO_RULES

SCHEME(illinois, 0, .init = (void *)init, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .set_state = (void *)set_state, .pkts_acked = (void *)pkts_acked, .undo_cwnd = (void *)undo_cwnd);
