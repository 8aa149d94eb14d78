// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * LEDBAT: a background transport that keeps the queue at a target delay and yields to everyone else.
 *
 * Provenance: RFC 6817 (December 2012). Deviations: THE DELAY IS THE ROUND-TRIP TIME, since a program sees no
 * one-way delays: queues on the way back count too (the native scheme with `delay: round-trip`). Ten minutes
 * of base delays and four samples of the current one are kept, no other numbers of them. The timeout is the
 * kernel's, the window rests while losses are repaired, and marks count as losses. The kernel sends batches of
 * packets: a window that is too small for the next batch counts as used.
 *
 * The window moves by gain times the distance from the target, at most one packet per round trip. There is no
 * slow start. A flow that comes later takes the queue of the first one for the path's own delay and adds a
 * target of its own on top. Delays are in us, growth has steps of 2^-32 packets.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | target | 100 ms | RFC 6817, section 3.3: at most 100 ms | us |
 * | gain | 1 | RFC 6817, section 2.5: at most 1 | 65536 times the value |
 * | allowed_increase | 1 | RFC 6817, section 2.5 | 65536 times the value |
 * | init_cwnd | 2 packets | RFC 6817, section 2.5 | packets |
 * | min_cwnd | 2 packets | RFC 6817, section 2.5 | packets |
 */
#include "include/narrows_tcp.h"

PARAM(target, 100000);
PARAM(gain, Q16(1.0));
PARAM(allowed_increase, Q16(1.0));
PARAM(init_cwnd, 2);
PARAM(min_cwnd, 2);

/* Minutes whose smallest delay is the path's own, and samples of which the smallest is the current one. */
#define MINUTES 10
#define MINUTE 60000000ull
#define SAMPLES 4

/* Newest last; moved along instead of being indexed, since the verifier wants constant offsets. */
struct state {
	u32 slots[MINUTES];   /* smallest RTT of each minute, us; 0: no sample */
	u32 sample[SAMPLES];  /* us; 0: none */
	u32 sampled[SAMPLES]; /* when, us, wraps around */
	u32 newest_slot;      /* minutes of the clock */
	u32 fraction;	      /* of the window, Q32 */
};
STATE_FITS(struct state);

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	ca->newest_slot = tp->tcp_mstamp / MINUTE;
	set_window(tp, param_init_cwnd);
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u32 slot = tp->tcp_mstamp / MINUTE, rtt = sample->rtt_us;
	u32 passed = slot - ca->newest_slot;

	if (sample->rtt_us < 0)
		return;
	rtt = rtt ? rtt : 1;
	for (u32 step = 0; step < MINUTES; step++) {
		if (step >= passed)
			break;
		UNROLL for (u32 i = 0; i < MINUTES - 1; i++)
			ca->slots[i] = ca->slots[i + 1];
		ca->slots[MINUTES - 1] = 0;
	}
	ca->newest_slot = slot;
	if (!ca->slots[MINUTES - 1] || rtt < ca->slots[MINUTES - 1])
		ca->slots[MINUTES - 1] = rtt;
	UNROLL for (u32 i = 0; i < SAMPLES - 1; i++) {
		ca->sample[i] = ca->sample[i + 1];
		ca->sampled[i] = ca->sampled[i + 1];
	}
	ca->sample[SAMPLES - 1] = rtt;
	ca->sampled[SAMPLES - 1] = tp->tcp_mstamp;
}

/* The queueing delay in us: smallest of the last samples, as far as they are not older than a round trip, above
 * the smallest of ten minutes. */
INLINE u32 queueing(const struct tcp_sock *tp, const struct state *ca)
{
	u32 now = tp->tcp_mstamp, rtt = tp->srtt_us >> 3, base = 0;
	u32 current = ca->sample[SAMPLES - 1];

	UNROLL for (u32 i = 0; i < SAMPLES; i++) {
		if (ca->sample[i] && now - ca->sampled[i] <= rtt && ca->sample[i] < current)
			current = ca->sample[i];
	}
	UNROLL for (u32 i = 0; i < MINUTES; i++) {
		if (ca->slots[i] && (!base || ca->slots[i] < base))
			base = ca->slots[i];
	}
	return current > base ? current - base : 0;
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u64 target = max_u64(param_target, 1), window, used, most;
	u32 delay;

	if (!ca->sample[SAMPLES - 1])
		return;
	delay = queueing(tp, ca);
	window = window_q16(tp, ca->fraction);
	if (delay <= target) {
		grow_per_window(tp, &ca->fraction, scale(param_gain, target - delay, target), acked);
	} else {
		u64 off = scale(param_gain, delay - target, target) * acked;
		u64 less = scale(min_u64(off, 1ull << 38), 1 << 24, window >> 8);
		u64 whole = ((u64)tp->snd_cwnd << 32) | ca->fraction;
		whole = whole > less ? whole - less : 0;
		ca->fraction = (u32)whole;
		set_window(tp, whole >> 32);
	}
	/* An application that sends little does not let the window grow beyond what it uses. */
	used = (u64)(in_flight(tp) + acked) << 16;
	/* A window too small for another batch of packets is used up although less than it is in flight. */
	if (window_limited(tp))
		used = max_u64(used, window & ~(Q16_ONE - 1));
	most = used + param_allowed_increase;
	window = window_q16(tp, ca->fraction);
	if (window > most)
		set_window_q16(tp, &ca->fraction, window = most);
	if (window < param_min_cwnd << 16)
		set_window_q16(tp, &ca->fraction, param_min_cwnd << 16);
}

INLINE u32 reduced(struct sock *sk)
{
	struct state *ca = private_state(sk);
	u64 window = window_q16(tcp_sk(sk), ca->fraction);
	u64 reduced = min_u64(window, max_u64(window / 2, param_min_cwnd << 16));

	ca->fraction = (u32)(reduced << 16);
	return max_u64(reduced >> 16, 1);
}
REDUCTION(reduced)

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	struct state *ca = private_state(sk);

	if (state == TIMEOUT)
		ca->fraction = 0;
}

UNDO_WINDOW

SCHEME(ledbat, 0, .init = (void *)init, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .set_state = (void *)set_state, .pkts_acked = (void *)pkts_acked, .undo_cwnd = (void *)undo_cwnd);
