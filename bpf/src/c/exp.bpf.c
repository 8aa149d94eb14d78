// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * exp: Reno with a steeper slow start and a smaller reduction, from a class exercise.
 *
 * Provenance: the GENI exercise "TCP congestion control" (GENI wiki, SampleAssignments/TcpAssignment,
 * step 9): the window triples per round trip in slow start, and three quarters of it are kept after a loss.
 * Deviations: none from that text. What it leaves open is chosen as in the native scheme: growth stops at
 * the threshold and what is left of an acknowledgement counts for congestion avoidance, the reduced window
 * is a whole number of packets and at least two, a timeout restarts from one packet with the same
 * threshold.
 *
 * Growth is exact: in whole packets with their remainder in slow start in steps of 2^-32 packets.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | growth | 3 | GENI exercise, step 9 | 65536 times the value |
 * | beta | 0.75 | GENI exercise, step 9 | 65536 times the value |
 */
#include "include/narrows_tcp.h"

PARAM(growth, Q16(3.0));
PARAM(beta, Q16(0.75));

struct state {
	u32 fraction; /* of the window, Q32; slow start only */
};
STATE_FITS(struct state);

INLINE u32 reduced(struct sock *sk)
{
	struct state *ca = private_state(sk);

	ca->fraction = 0;
	return threshold_q16(tcp_sk(sk)->snd_cwnd * param_beta);
}
REDUCTION(reduced)

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u64 growth = param_growth;

	if (!window_limited(tp))
		return;
	if (in_slow_start(tp))
		acked = slow_start_q16(tp, &ca->fraction, acked, growth > Q16_ONE ? growth - Q16_ONE : 0);
	if (acked && !in_slow_start(tp))
		additive_increase(tp, tp->snd_cwnd, acked);
}

UNDO_WINDOW

SCHEME(exp, 0, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid, .undo_cwnd = (void *)undo_cwnd);
