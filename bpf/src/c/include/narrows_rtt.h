/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What delay-based schemes know of their path: the smallest and the largest RTT ever seen, and the samples of
 * each round trip. The kernel's samples come from timestamps taken when packets leave, and none come from
 * packets that were sent twice.
 */
#ifndef NARROWS_RTT_H
#define NARROWS_RTT_H

#include "narrows_tcp.h"

/* Fewest samples from which a round's smallest RTT is taken (Linux net/ipv4/tcp_vegas.c): of one or two, all
 * may have waited for a delayed acknowledgement. */
#define MIN_SAMPLES 3

/* All in us; 0 is no sample yet. */
struct rtt_rounds {
	u64 sum;
	u32 base;
	u32 largest;
	u32 min;
	u32 samples : 31;
	u32 whole : 1; /* the current round was measured from its beginning */
};

/* The samples of a round trip that ended. */
struct rtt_round {
	u64 sum;
	u32 min; /* 0: fewer than three samples */
	u32 samples;
};

INLINE void rtt_init(struct rtt_rounds *rtt)
{
	rtt->sum = rtt->base = rtt->largest = rtt->min = rtt->samples = 0;
	rtt->whole = 1;
}

/* Whether a round trip begins with the acknowledgement that just arrived: it is the first one for data sent
 * after the last round began. `end` is the scheme's mark in the sequence numbers. */
INLINE _Bool round_starts(const struct tcp_sock *tp, u32 *end)
{
	if (!after(tp->snd_una, *end))
		return 0;
	*end = tp->snd_nxt;
	return 1;
}

/* The smallest RTT of the round that is running, 0 with fewer than three samples. */
INLINE u32 rtt_so_far(const struct rtt_rounds *rtt)
{
	return rtt->samples >= MIN_SAMPLES ? rtt->min : 0;
}

/* Takes a sample; returns 1 and fills `ended` at the end of a round trip that was measured from its
 * beginning. The acknowledgement that ends a round belongs to it. While losses or marks are being dealt with,
 * and until a whole round has passed after that, only the extremes of the connection are kept. */
INLINE _Bool rtt_on_ack(struct rtt_rounds *rtt, struct sock *sk, const struct ack_sample *sample, _Bool starts,
			struct rtt_round *ended)
{
	s32 us = sample->rtt_us;
	_Bool whole;

	if (us >= 0) {
		u32 value = us ? us : 1;
		if (!rtt->base || value < rtt->base)
			rtt->base = value;
		if (value > rtt->largest)
			rtt->largest = value;
	}
	if (phase(sk) > DISORDER) {
		rtt->sum = rtt->min = rtt->samples = 0;
		rtt->whole = 0;
		return 0;
	}
	if (us >= 0) {
		u32 value = us ? us : 1;
		if (!rtt->samples || value < rtt->min)
			rtt->min = value;
		rtt->sum += value;
		rtt->samples++;
	}
	if (!starts)
		return 0;
	whole = rtt->whole;
	ended->sum = rtt->sum;
	ended->samples = rtt->samples;
	ended->min = rtt_so_far(rtt);
	rtt->sum = rtt->min = rtt->samples = 0;
	rtt->whole = 1;
	return whole;
}

/* How many of `window` packets (Q16) wait in queues when the RTT is `us`, as Vegas estimates it (Q16). */
INLINE u64 backlog_q16(const struct rtt_rounds *rtt, u64 window, u32 us)
{
	return us > rtt->base ? scale(window, us - rtt->base, us) : 0;
}

#endif
