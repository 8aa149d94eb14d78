// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * CUBIC of 2008, as in its paper and in experiments of that period.
 *
 * Provenance: S. Ha, I. Rhee, L. Xu, "CUBIC: a new TCP-friendly high-speed TCP variant", ACM SIGOPS Operating
 * Systems Review, July 2008, and draft-rhee-tcpm-cubic-02; earlier rules of Linux 2.6.19 to 2.6.24 ("CUBIC
 * 2.0") by parameters. Deviations: none from the native scheme but the rounding: windows have steps of 2^-16
 * packets (growth of 2^-32), time on the curve of 2^-14 s (61 us).
 *
 * 0.8 of the window are kept, Reno's estimate is the closed form W beta + 3 (1-beta)/(1+beta) t/RTT, the
 * look-ahead is the smallest RTT, growth is at most half a packet per packet acknowledged, and there is no
 * HyStart: the first slow start ends with a loss unless `initial_ssthresh` ends it.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | c | 0.4 | Ha, Rhee, Xu 2008 | 65536 times the value |
 * | beta | 0.8 | Ha, Rhee, Xu 2008: 0.2 removed | 65536 times the value |
 * | fast_convergence | true | Ha, Rhee, Xu 2008 | 0 or 1 |
 * | tcp_friendliness | true | Ha, Rhee, Xu 2008 | 0 or 1 |
 * | initial_ssthresh | 0 | none in the paper; Linux 2.6.19: 100 | packets |
 * | max_increment | 0 | none in the paper; Linux 2.6.19: 16 per 100 ms | packets |
 * | initial_growth | 0.05 | Linux since 2.6.25: a twentieth; Linux 2.6.19: 0.02 | 65536 times the value |
 */
#include "include/narrows_tcp.h"

PARAM(c, Q16(0.4));
PARAM(beta, Q16(0.8));
PARAM(fast_convergence, 1);
PARAM(tcp_friendliness, 1);
PARAM(initial_ssthresh, 0);
PARAM(max_increment, 0);
PARAM(initial_growth, Q16(0.05));

/* Growth at or beyond the target: a packet per this many windows. */
#define SLOWEST 100
/* Longest time from the plateau, in 2^-14 s, for which the curve is computed: five minutes. */
#define FARTHEST (300ull << 14)
/* Largest argument of the cube root (Q16) whose root in Q14 can be computed in 64 bits. */
#define LARGEST_CUBE ((1ull << 37) - 1)

struct rules {
	u64 w_max;  /* window before the last reduction (after fast convergence), Q16; 0: none is remembered */
	u64 origin; /* plateau of the curve, Q16 */
	u64 epoch;  /* start of the epoch, moved along by idle time, us; 0: none */
	u64 reno;   /* the window at the start of the epoch, from which Reno's estimate runs, Q16 */
	u32 k;	    /* time to the plateau from the start of the epoch, 2^-14 s */
	u32 min_rtt; /* us; 0: not known */
};

struct state {
	struct rules now;
	struct rules prior;
	u64 last_ack; /* us */
	u32 fraction; /* of the window, Q32 */
};
STATE_FITS(struct state);

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	if (param_initial_ssthresh)
		tcp_sk(sk)->snd_ssthresh = clamp_u64(param_initial_ssthresh, FLOOR, INFINITE_SSTHRESH);
}

/* The cube root of x below 2^63, rounded: Newton's method from a power of two that is at most twice the root too
 * large. Each step squares the error, so that seven leave less than one. (Finding the bits one by one is more
 * than the verifier can follow.) */
INLINE u32 cube_root(u64 x)
{
	u64 rest = x, root;
	u32 bits = 0;

	if (!x)
		return 0;
	for (u32 half = 32; half; half /= 2) {
		if (rest >> half) {
			rest >>= half;
			bits += half;
		}
	}
	root = 1ull << ((bits + 3) / 3 & 31);
	for (u32 step = 0; step < 7; step++)
		root = (2 * root + x / max_u64(root * root, 1) + 1) / 3;
	return root;
}

INLINE void begin_epoch(struct rules *now, u64 mstamp, u64 window)
{
	now->epoch = mstamp;
	now->reno = window;
	if (window < now->w_max) {
		u64 cube = min_u64(scale(now->w_max - window, Q16_ONE, param_c), LARGEST_CUBE);
		/* Q16 to Q42, of which the root is Q14 */
		now->k = cube_root(cube << 26);
		now->origin = now->w_max;
	} else {
		now->k = 0;
		now->origin = window;
	}
}

/* 2^-14 s, from us. */
INLINE u64 q14(u64 us)
{
	return (min_u64(us, 1ull << 40) << 14) / 1000000;
}

/* How far the curve is above `window` at `t` us after the start of the epoch, Q16; 0 if it is not. */
INLINE u64 above(const struct rules *now, u64 t, u64 window)
{
	u64 time = q14(t);
	_Bool before = time < now->k;
	u64 d = min_u64(before ? now->k - time : time - now->k, FARTHEST);
	u64 cube = (((d * d) >> 12) * d) >> 14; /* s^3, Q16 */
	u64 distance = (min_u64(cube, 1ull << 40) * min_u64(param_c, 100 * Q16_ONE)) >> 16;

	if (before)
		return now->origin > window + distance ? now->origin - window - distance : 0;
	return now->origin + distance > window ? now->origin + distance - window : 0;
}

/* Packets of growth per window acknowledged, Q16. */
INLINE u64 growth(const struct tcp_sock *tp, const struct rules *now, u64 window)
{
	u64 t = tp->tcp_mstamp - now->epoch, rtt = tp->srtt_us >> 3;
	u64 growth = above(now, t + (now->min_rtt ? now->min_rtt : rtt), window);

	if (!growth)
		growth = Q16_ONE / SLOWEST;
	if (param_max_increment)
		growth = min_u64(growth, scale(param_max_increment * 10 * rtt, Q16_ONE, 1000000));
	if (!now->w_max)
		growth = max_u64(growth, (window * param_initial_growth) >> 16);
	if (param_tcp_friendliness && rtt) {
		u64 slope = scale(3 * (Q16_ONE - param_beta), Q16_ONE, Q16_ONE + param_beta);
		u64 friendly = now->reno + scale(slope, min_u64(t, 1ull << 40), rtt);
		if (friendly > window)
			growth = max_u64(growth, friendly - window);
	}
	/* At most half a packet of growth for each packet acknowledged. */
	return min_u64(growth, window / 2);
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct state *ca = private_state(sk);
	s32 rtt = sample->rtt_us;

	ca->last_ack = tcp_sk(sk)->tcp_mstamp;
	if (rtt >= 0 && (!ca->now.min_rtt || rtt < (s32)ca->now.min_rtt))
		ca->now.min_rtt = rtt ? rtt : 1;
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	acked = after_slow_start(tp, acked);
	if (acked) {
		u64 window = window_q16(tp, ca->fraction);
		if (!ca->now.epoch)
			begin_epoch(&ca->now, tp->tcp_mstamp, window);
		grow_per_window(tp, &ca->fraction, growth(tp, &ca->now, window), acked);
	}
}

INLINE u32 reduced(struct sock *sk)
{
	struct state *ca = private_state(sk);
	u64 window = window_q16(tcp_sk(sk), ca->fraction);

	ca->prior = ca->now;
	ca->now.epoch = 0;
	if (param_fast_convergence && window < ca->now.w_max)
		ca->now.w_max = (window * (Q16_ONE + param_beta)) >> 17;
	else
		ca->now.w_max = window;
	return threshold_and_fraction((window * param_beta) >> 16, &ca->fraction);
}
REDUCTION(reduced)

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	struct state *ca = private_state(sk);

	/* A timeout forgets everything, the smallest RTT too. */
	if (state == TIMEOUT) {
		ca->now.w_max = 0;
		ca->now.min_rtt = 0;
	}
}

SEC("struct_ops")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	/* Time in which nothing was in flight does not count. */
	if (event == CA_EVENT_TX_START && ca->now.epoch && ca->last_ack)
		ca->now.epoch = min_u64(ca->now.epoch + (tp->tcp_mstamp - ca->last_ack), tp->tcp_mstamp);
}

UNDO_RULES

SCHEME(cubic2008, 0, .init = (void *)init, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .set_state = (void *)set_state, .cwnd_event = (void *)cwnd_event, .pkts_acked = (void *)pkts_acked,
       .undo_cwnd = (void *)undo_cwnd);
