// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Hybla: on long paths the window grows as fast as on a short one.
 *
 * Provenance: C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", 2004, and
 * Linux net/ipv4/tcp_hybla.c for the bounds (growth per packet at most 2^16, window at most 65 535 packets,
 * slow start clipped at the threshold). Deviations: packets acknowledged are counted (Linux counts
 * acknowledgements), rho has steps of 2^-16 (Linux: eighths) and follows the smallest RTT, and the connection
 * begins with the kernel's initial window; `linux_init` begins with rho packets as Linux does. Paced at the
 * kernel's rates, 2 windows per round trip below half the threshold and 1.2 above, if `pacing` is set.
 *
 * With rho = RTT/25 ms (at least 1), each packet acknowledged adds 2^rho - 1 packets in slow start and
 * rho^2/w in congestion avoidance. Losses are Reno's.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | rtt0 | 25 ms | Caini, Firrincieli 2004; Linux net/ipv4/tcp_hybla.c | us |
 * | beta | 0.5 | as Reno | 65536 times the value |
 * | pacing | false | Linux net/ipv4/tcp_hybla.c; the paper recommends it | 0 or 1 |
 * | linux_init | false | Linux net/ipv4/tcp_hybla.c has it on | 0 or 1 |
 */
#include "include/narrows_tcp.h"

PARAM(rtt0, 25000);
PARAM(beta, Q16(0.5));
PARAM(pacing, 0);
PARAM(linux_init, 0);

/* Largest exponent of growth in slow start, Q16. */
#define MAX_EXPONENT (16 * Q16_ONE)
/* Largest window in packets (Linux: snd_cwnd_clamp). */
#define MAX_WINDOW 65535
/* ln 2 and one, Q30. */
#define LN2 744261118ull
#define Q30_ONE (1ull << 30)

struct state {
	u64 rho;      /* Q16 */
	u64 gain;     /* packets of growth for each packet acknowledged in slow start, Q16 */
	u32 fraction; /* of the window, Q32 */
	u32 min_rtt;  /* us; 0: not known */
	u32 begun;
};
STATE_FITS(struct state);

/* 2^(x/65536), Q16: the power of the fraction as a series whose 12th term is below 2^-30. */
INLINE u64 power_of_two(u64 x)
{
	u64 y = ((x & (Q16_ONE - 1)) * LN2) >> 16, term = Q30_ONE, sum = Q30_ONE;

	for (u32 n = 1; n <= 12; n++) {
		term = ((term * y) >> 30) / n;
		sum += term;
	}
	/* The exponent is at most 16. */
	return (sum << ((x >> 16) & 31)) >> 14;
}

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	struct state *ca = private_state(sk);

	ca->rho = Q16_ONE;
	ca->gain = Q16_ONE;
	if (param_linux_init)
		tcp_sk(sk)->snd_cwnd = 1;
	if (param_pacing)
		pace(sk);
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	s32 rtt = sample->rtt_us;

	if (rtt < 0 || (ca->min_rtt && rtt >= (s32)ca->min_rtt))
		return;
	ca->min_rtt = rtt ? rtt : 1;
	ca->rho = max_u64(scale(ca->min_rtt, Q16_ONE, param_rtt0), Q16_ONE);
	ca->gain = power_of_two(min_u64(ca->rho, MAX_EXPONENT)) - Q16_ONE;
	if (param_linux_init && !ca->begun)
		set_window(tp, min_u64(ca->rho >> 16, MAX_WINDOW));
	ca->begun = 1;
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u64 window = tp->snd_cwnd;

	if (!window_limited(tp))
		return;
	if (in_slow_start(tp)) {
		u64 room = window < MAX_WINDOW ? (MAX_WINDOW - window) << 16 : 0;
		acked = slow_start_growth(tp, &ca->fraction, min_u64(acked * ca->gain, room), ca->gain);
	}
	if (!acked || in_slow_start(tp))
		return;
	window = window_q16(tp, ca->fraction);
	if (window >= (u64)MAX_WINDOW << 16)
		return;
	/* Never faster than slow start. */
	u64 square = (ca->rho >> 4) * (ca->rho >> 4) >> 8;
	grow_per_window(tp, &ca->fraction, min_u64(square, (window >> 8) * (ca->gain >> 8)), acked);
	if (tp->snd_cwnd > MAX_WINDOW)
		set_window(tp, MAX_WINDOW);
}

INLINE u32 reduced(struct sock *sk)
{
	struct state *ca = private_state(sk);

	return threshold_and_fraction(in_flight_before_loss(tcp_sk(sk)) * param_beta, &ca->fraction);
}
REDUCTION(reduced)

UNDO_WINDOW

SCHEME(hybla, 0, .init = (void *)init, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .pkts_acked = (void *)pkts_acked, .undo_cwnd = (void *)undo_cwnd);
