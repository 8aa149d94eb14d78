// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * TCP-LP: a transfer in the background that leaves as soon as the delay tells that somebody else is there.
 *
 * Provenance: A. Kuzmanovic and E. W. Knightly, "TCP-LP: A Distributed Algorithm for Low Priority Data
 * Transfer", INFOCOM 2003; constants as in Linux net/ipv4/tcp_lp.c. The delay of the newest packet is smoothed
 * by an eighth. When it exceeds the smallest one by more than 15 % of the range seen, the window is halved and
 * a time of inference of three round trips begins, without growth. A second excess within that time leaves one
 * packet. Otherwise Reno.
 *
 * Deviations: THE DELAY IS THE ROUND-TRIP TIME, since a program sees no one-way delays; queues on the way
 * back count too, and what a packet tells that was alone under way, whose acknowledgement may wait for
 * another one (RFC 1122, section 4.2.3.2), is left out: it would hold the window at one packet. After a
 * reduction nothing is concluded from packets sent before it, and the smoothing begins anew with the first
 * one sent after it; the first slow start is Reno's; the range is that of the whole connection; after a
 * reaction growth is additive. Delays have steps of 1/256 us.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | threshold | 0.15 | Kuzmanovic and Knightly 2003; Linux tcp_lp | 65536 times the value |
 * | inference | 3 round trips | Linux tcp_lp | 65536 times the value |
 */
#include "include/narrows_tcp.h"

PARAM(threshold, Q16(0.15));
PARAM(inference, Q16(3.0));

struct rules {
	u64 smoothed;	/* 1/256 us; 0: no sample yet */
	u64 reduced_at; /* last reduction, until a packet sent after it has been heard of, us; 0: none */
	u64 until;	/* when the time of inference ends, us */
	u32 min;	/* us */
	u32 max;
};

struct state {
	struct rules now;
	struct rules prior;
	u32 fraction; /* of the window, Q32 */
};
STATE_FITS(struct state);

/* Takes the delay of the newest packet; whether it tells of the window in force. */
INLINE _Bool measure(struct rules *now, u64 mstamp, u32 rtt)
{
	if (!now->smoothed) {
		now->smoothed = (u64)rtt << 8;
		now->min = now->max = rtt;
	}
	now->min = min_u64(now->min, rtt);
	now->max = max_u64(now->max, rtt);
	now->smoothed = now->smoothed - now->smoothed / 8 + ((u64)rtt << 8) / 8;
	if (!now->reduced_at)
		return 1;
	if (mstamp - rtt < now->reduced_at)
		return 0;
	/* The memory is of a larger window. */
	now->smoothed = (u64)rtt << 8;
	now->reduced_at = 0;
	return 1;
}

INLINE void react(struct tcp_sock *tp, struct state *ca)
{
	u64 now = tp->tcp_mstamp;

	if (now < ca->now.until)
		set_window_q16(tp, &ca->fraction, Q16_ONE);
	else
		set_window_q16(tp, &ca->fraction, max_u64(window_q16(tp, ca->fraction) / 2, Q16_ONE));
	exit_slow_start(tp);
	ca->now.reduced_at = now;
	ca->now.until = now + (((tp->srtt_us >> 3) * param_inference) >> 16);
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	struct rules *now = &ca->now;
	u64 early;

	/* The receiver waits for a second packet before it acknowledges one that is alone. */
	if (sample->pkts_acked < 2 && !tp->packets_out)
		return;
	if (sample->rtt_us < 0 || !measure(now, tp->tcp_mstamp, sample->rtt_us ? sample->rtt_us : 1))
		return;
	if (tp->snd_ssthresh >= INFINITE_SSTHRESH || phase(sk) == REDUCED || phase(sk) == RECOVERY)
		return;
	early = ((u64)now->min << 8) + (((u64)(now->max - now->min) * param_threshold) >> 8);
	if (now->smoothed > early)
		react(tp, ca);
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	if (tp->tcp_mstamp >= ca->now.until)
		grow_like_reno(tp, acked);
}

INLINE u32 reduced(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	ca->prior = ca->now;
	ca->now.reduced_at = tp->tcp_mstamp;
	return threshold_and_fraction(window_q16(tp, ca->fraction) / 2, &ca->fraction);
}
REDUCTION(reduced)

UNDO_RULES

SCHEME(lp, 0, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .pkts_acked = (void *)pkts_acked, .undo_cwnd = (void *)undo_cwnd);
