// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Scalable TCP: a hundredth of a packet more per packet acknowledged, an eighth less after a loss.
 *
 * Provenance: T. Kelly, "Scalable TCP: improving performance in highspeed wide area networks", CCR 2003,
 * with the form for small windows of Linux net/ipv4/tcp_scalable.c: below 100 packets the window grows by
 * one packet per round trip, and an eighth is removed at every size. The paper instead keeps Reno's rules up
 * to a legacy window of 16 packets, which `legacy_window: 16` selects. Deviations: the number of packets
 * acknowledged for one of growth, 1/gain, and the reduced window are rounded to whole packets.
 *
 * The time from a loss back to the old window is 13.4 round trips whatever the window. Two flows that lose
 * at the same moments keep the ratio of their windows for ever.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | gain | 0.01 | Kelly 2003 | 65536 times the value |
 * | beta | 0.875 | Kelly 2003 | 65536 times the value |
 * | legacy_window | 0 | Linux net/ipv4/tcp_scalable.c; Kelly 2003 has 16 | packets |
 */
#include "include/narrows_tcp.h"

PARAM(gain, Q16(0.01));
PARAM(beta, Q16(0.875));
PARAM(legacy_window, 0);

INLINE u32 reduced(struct sock *sk)
{
	u32 window = tcp_sk(sk)->snd_cwnd;

	return threshold_q16(window * (window <= param_legacy_window ? Q16(0.5) : param_beta));
}
REDUCTION(reduced)

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 gain = max_u64(param_gain, 1), legacy = param_legacy_window;
	u64 per_packet = (Q16_ONE + gain / 2) / gain;

	if (!window_limited(tp))
		return;
	if (in_slow_start(tp))
		acked = slow_start(tp, acked);
	if (!acked || in_slow_start(tp))
		return;
	if (legacy ? tp->snd_cwnd <= legacy : tp->snd_cwnd < per_packet)
		per_packet = tp->snd_cwnd;
	additive_increase(tp, per_packet, acked);
}

UNDO_WINDOW

SCHEME(scalable, 0, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid, .undo_cwnd = (void *)undo_cwnd);
