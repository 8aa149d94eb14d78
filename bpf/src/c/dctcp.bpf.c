// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * DCTCP: the window is reduced by half the fraction of marked packets.
 *
 * Provenance: RFC 8257 (October 2017); the integer arithmetic that may be chosen is that of Linux
 * net/ipv4/tcp_dctcp.c. Deviations: growth counts packets without the limit on slow start, and reductions are
 * spread over the round by Proportional Rate Reduction. The kernel asks for the threshold before it says
 * whether marks or losses are the reason; after a loss it is set again. Which packets were marked is known by
 * acknowledgement (the echo of TCP), so the receiver runs this scheme too: when the marking of what arrives
 * changes it acknowledges at once what came before (RFC 8257, section 3.2). Alpha has steps of 2^-32.
 *
 * Made for queues that mark every packet beyond a threshold. Both ends must allow ECN (net.ipv4.tcp_ecn);
 * without marks this is Reno.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | g | 0.0625 | RFC 8257, section 4.2 | 65536 times the value |
 * | initial_alpha | 1 | RFC 8257, section 3.3 | 65536 times the value |
 * | arithmetic | real | RFC 8257; linux: Linux net/ipv4/tcp_dctcp.c | 0 real, 1 linux |
 */
#include "include/narrows_rtt.h"

PARAM(g, Q16(0.0625));
PARAM(initial_alpha, Q16(1.0));
PARAM(arithmetic, 0);

/* Linux's unit of alpha and its gain. */
#define LINUX_ONE 1024
#define LINUX_SHIFT 4

/* Bits of icsk_ack.pending: an acknowledgement waits for its timer; it is to be sent now. */
#define ACK_TIMER 2
#define ACK_NOW 16
/* Bit of ecn_flags: tell the sender that packets are marked. */
#define ECHO 4

struct rules {
	u64 alpha;     /* Q32, or in 1/1024 with Linux's arithmetic */
	u32 acked;     /* counters of the connection when the round began ... */
	u32 marked;
	u32 last_acked; /* ... and before the acknowledgement that just arrived */
	u32 last_marked;
};

struct state {
	struct rules now;
	struct rules prior;
	u32 fraction; /* of the window, Q32 */
	u32 round_end;
	u32 prior_rcv_nxt; /* as a receiver: what had arrived before the newest packet */
	u32 arriving_marked;
};
STATE_FITS(struct state);

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	ca->now.alpha = param_arithmetic ? (param_initial_alpha * LINUX_ONE) >> 16 : param_initial_alpha << 16;
	ca->now.acked = ca->now.last_acked = tp->delivered;
	ca->now.marked = ca->now.last_marked = tp->delivered_ce;
	ca->prior = ca->now;
	ca->round_end = tp->snd_nxt;
	ca->prior_rcv_nxt = tp->rcv_nxt;
}

/* Takes in a round in which `marked` of `acked` packets were marked. */
INLINE void update(struct rules *now, u64 acked, u64 marked)
{
	u64 alpha = now->alpha;

	if (param_arithmetic) {
		/* What is too small to be shifted goes as a whole. */
		u64 fade = alpha >> LINUX_SHIFT;
		alpha -= fade ? fade : alpha;
		now->alpha = min_u64(alpha + marked * (LINUX_ONE >> LINUX_SHIFT) / acked, LINUX_ONE);
	} else {
		u64 share = min_u64(scale(marked, Q32_ONE, acked), Q32_ONE), g = param_g;
		now->alpha = alpha - ((alpha * g) >> 16) + ((share * g) >> 16);
	}
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	struct rules *now = &ca->now;
	u32 acked = now->last_acked - now->acked;

	/* Once per window of data, also when nothing was marked (RFC 8257, section 3.3). */
	if (round_starts(tp, &ca->round_end) && acked) {
		update(now, acked, now->last_marked - now->marked);
		now->acked = now->last_acked;
		now->marked = now->last_marked;
	}
	now->last_acked = tp->delivered;
	now->last_marked = tp->delivered_ce;
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	grow_like_reno(tcp_sk(sk), acked);
}

INLINE u32 reduced(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u64 window = tp->snd_cwnd;

	ca->prior = ca->now;
	if (param_arithmetic) {
		ca->fraction = 0;
		return max_u64(window - window * ca->now.alpha / (2 * LINUX_ONE), FLOOR);
	}
	window = window_q16(tp, ca->fraction);
	return threshold_and_fraction(window - ((window * (ca->now.alpha >> 16)) >> 17), &ca->fraction);
}
REDUCTION(reduced)

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	/* As Reno, not by alpha (RFC 8257, section 3.5). */
	if ((state == RECOVERY || state == TIMEOUT) && phase(sk) <= DISORDER)
		tp->snd_ssthresh = threshold_and_fraction(((u64)in_flight_before_loss(tp) << 16) / 2, &ca->fraction);
}

/* As a receiver: a packet arrived, with a mark or without. */
SEC("struct_ops")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u32 marked = event == CA_EVENT_ECN_IS_CE;

	if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
		return;
	if (ca->arriving_marked != marked) {
		/* The bit still says what was true of the packets that wait for their acknowledgement. */
		if (icsk->icsk_ack.pending & ACK_TIMER)
			bpf_tcp_send_ack(tp, ca->prior_rcv_nxt);
		icsk->icsk_ack.pending |= ACK_NOW;
	}
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->arriving_marked = marked;
	if (marked)
		tp->ecn_flags |= ECHO;
	else
		tp->ecn_flags &= ~ECHO;
}

UNDO_RULES

SCHEME(dctcp, NEEDS_ECN, .init = (void *)init, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .set_state = (void *)set_state, .cwnd_event = (void *)cwnd_event, .pkts_acked = (void *)pkts_acked,
       .undo_cwnd = (void *)undo_cwnd);
