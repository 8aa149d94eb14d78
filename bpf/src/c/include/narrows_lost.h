/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What had been lost when a packet was sent. The kernel remembers for each packet what had been delivered then
 * (`prior_delivered` of a rate sample), but not what had been lost, nor what was in flight.
 *
 * Both follow from the counters of the connection: losses are found by acknowledgements, so the count of losses
 * is a function of the count of deliveries that has few steps in a round trip. And of what was in flight with a
 * packet, the part before it has been delivered or found lost when the packet itself is delivered, unless
 * packets overtake each other.
 */
#ifndef NARROWS_LOST_H
#define NARROWS_LOST_H

#include "narrows_tcp.h"

/* Steps in memory, a power of two. In a round trip at most this many are kept apart. */
#define STEPS 64u

/* From `delivered` packets on, `lost` packets had been lost. */
struct step {
	u32 delivered;
	u32 lost;
};

struct lost_steps {
	struct step steps[STEPS];
	u32 newest;
};

INLINE void lost_init(struct lost_steps *all, const struct tcp_sock *tp)
{
	for (u32 i = 0; i < STEPS; i++) {
		all->steps[i].delivered = tp->delivered;
		all->steps[i].lost = tp->lost;
	}
	all->newest = 0;
}

/* Losses were found; `round` packets are delivered in a round trip. Steps closer than a 64th of that become one,
 * at the earlier place. */
INLINE void lost_note(struct lost_steps *all, const struct tcp_sock *tp, u32 round)
{
	struct step *step = &all->steps[all->newest & (STEPS - 1)];

	if (tp->delivered - step->delivered > round / STEPS) {
		all->newest++;
		step = &all->steps[all->newest & (STEPS - 1)];
		step->delivered = tp->delivered;
	}
	step->lost = tp->lost;
}

/* What had been lost when a packet was sent before which `prior_delivered` had been delivered. */
INLINE u32 lost_before(const struct lost_steps *all, u32 prior_delivered)
{
	const struct step *step = &all->steps[all->newest & (STEPS - 1)];

	for (u32 i = 1; i < STEPS && after(step->delivered, prior_delivered); i++)
		step = &all->steps[(all->newest - i) & (STEPS - 1)];
	return step->lost;
}

#endif
