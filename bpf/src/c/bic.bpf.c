// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * BIC: a binary search for the window of the last loss, then a slow search beyond it.
 *
 * Provenance: L. Xu, K. Harfoush, I. Rhee, "Binary increase congestion control for fast long-distance
 * networks", INFOCOM 2004, with the constants of Linux net/ipv4/tcp_bic.c (the paper has a largest step of
 * 32 packets and keeps 0.875). Deviations: growth is computed with fractions of 2^-32 packets where Linux
 * divides whole numbers; the curve is looked up at every acknowledgement (Linux: at most 32 times per second
 * while the window stands still); the division by the ratio of packets to acknowledgements, which doubles
 * Linux's growth since it counts packets, is left out unless `ack_ratio` is set.
 *
 * Per round trip: a quarter of the way to the last maximum, at most 16 packets and at least 0.2; the mirror
 * image beyond it. Before the first loss and after a timeout growth is at least 5 % per round trip.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | beta | 0.7998046875 | Linux net/ipv4/tcp_bic.c: 819/1024; the paper has 0.875 | 65536 times the value |
 * | max_increment | 16 | Linux net/ipv4/tcp_bic.c; the paper has 32 | packets |
 * | low_window | 14 | Linux net/ipv4/tcp_bic.c | packets |
 * | smooth_part | 20 | Linux net/ipv4/tcp_bic.c | count |
 * | fast_convergence | true | Linux net/ipv4/tcp_bic.c | 0 or 1 |
 * | ack_ratio | false | Linux net/ipv4/tcp_bic.c has it on | 0 or 1 |
 */
#include "include/narrows_tcp.h"

PARAM(beta, Q16(0.7998046875));
PARAM(max_increment, 16);
PARAM(low_window, 14);
PARAM(smooth_part, 20);
PARAM(fast_convergence, 1);
PARAM(ack_ratio, 0);

/* The search goes a quarter of the way per round trip. */
#define PARTS 4
/* Growth before the first loss: a window in this many round trips. */
#define UNKNOWN 20

struct state {
	u32 fraction; /* of the window, Q32 */
	u32 last_max; /* window before the last reduction, packets; 0: unknown */
	u32 prior_last_max;
	u32 ratio; /* packets per acknowledgement, Q16 */
};
STATE_FITS(struct state);

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	struct state *ca = private_state(sk);

	ca->fraction = 0;
	ca->last_max = 0;
	ca->prior_last_max = 0;
	ca->ratio = Q16(2.0);
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct state *ca = private_state(sk);

	if (phase(sk) == OPEN)
		ca->ratio = ca->ratio - ca->ratio / 16 + min_u64(sample->pkts_acked, 1000) * Q16_ONE / 16;
}

/* Growth per round trip at `window` packets, Q16. */
INLINE u64 increment(const struct state *ca, u64 window)
{
	u64 smallest = PARTS * Q16_ONE / max_u64(param_smooth_part, 1), growth;

	if (window <= param_low_window)
		return Q16_ONE;
	if (window < ca->last_max) {
		u64 step = (ca->last_max - window) / PARTS;
		growth = step <= 1 ? smallest : min_u64(step, param_max_increment) << 16;
	} else {
		u64 beyond = window - ca->last_max;
		growth = beyond < PARTS ? smallest
					: min_u64((beyond << 16) / (PARTS - 1), param_max_increment << 16);
	}
	return ca->last_max ? growth : max_u64(growth, (window << 16) / UNKNOWN);
}

INLINE u32 reduced(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u64 window = tp->snd_cwnd;

	ca->prior_last_max = ca->last_max;
	if (param_fast_convergence && window < ca->last_max)
		ca->last_max = (window * (Q16_ONE + param_beta)) >> 17;
	else
		ca->last_max = window;
	ca->fraction = 0;
	return threshold_q16(window * (window <= param_low_window ? Q16(0.5) : param_beta));
}
REDUCTION(reduced)

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	struct state *ca = private_state(sk);

	if (state == TIMEOUT)
		ca->last_max = 0;
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	acked = after_slow_start(tp, acked);
	if (acked) {
		u64 window = max_u64(tp->snd_cwnd, 1), growth = increment(ca, window);
		if (param_ack_ratio)
			growth = (growth * max_u64(ca->ratio, Q16(0.1))) >> 16;
		/* At most a packet for each one acknowledged. */
		growth = min_u64(growth, window << 16);
		grow_q32(tp, &ca->fraction, scale(growth * acked, Q16_ONE, window));
	}
}

SEC("struct_ops")
u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	struct state *ca = private_state(sk);

	ca->last_max = ca->prior_last_max;
	return undone_window(tcp_sk(sk));
}

SCHEME(bic, 0, .init = (void *)init, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .set_state = (void *)set_state, .pkts_acked = (void *)pkts_acked, .undo_cwnd = (void *)undo_cwnd);
