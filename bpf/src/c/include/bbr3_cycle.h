/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Part of bbr3.bpf.c: the states that a flow goes through, and what losses teach.
 */
#ifndef BBR3_CYCLE_H
#define BBR3_CYCLE_H

#include "bbr3_model.h"

INLINE void restart_round(const struct tcp_sock *tp, struct state *ca)
{
	ca->round_mark = tp->delivered;
}

INLINE void forget_latest(struct state *ca)
{
	ca->loss = 0;
	ca->latest_bandwidth = 0;
	ca->latest_delivered = 0;
}

INLINE void forget_short_term(struct state *ca)
{
	ca->bounds.bandwidth = ca->bounds.short_term = UNSET;
}

INLINE void restart_full(struct state *ca, u64 bandwidth)
{
	ca->full_bandwidth = bandwidth;
	ca->full_rounds = 0;
	ca->full_now = 0;
}

INLINE u64 chance(u64 below)
{
	return ((u64)bpf_get_prandom_u32() * below) >> 32;
}

INLINE void start_down(const struct tcp_sock *tp, struct state *ca)
{
	forget_latest(ca);
	ca->up_per_packet = UNSET;
	/* By chance, so that flows do not probe together. */
	ca->rounds = chance(2);
	ca->wait = BASE_WAIT + chance(RANDOM_WAIT);
	ca->cycle = tp->tcp_mstamp;
	ca->feedback = STOPPING;
	restart_round(tp, ca);
	ca->mode = DOWN;
}

INLINE void start_cruise(struct state *ca)
{
	if (ca->bounds.short_term != UNSET)
		ca->bounds.short_term = min_u64(ca->bounds.short_term, ca->bounds.long_term);
	ca->mode = CRUISE;
}

INLINE void start_refill(const struct tcp_sock *tp, struct state *ca)
{
	forget_short_term(ca);
	ca->up_rounds = 0;
	ca->up_acked = 0;
	ca->precautionary = 0;
	ca->feedback = REFILLING;
	restart_round(tp, ca);
	ca->mode = REFILL;
}

/* The long-term bound grows by twice as many packets in each round. */
INLINE void raise_slope(const struct tcp_sock *tp, struct state *ca)
{
	ca->up_per_packet = max_u64(window(tp, ca) >> (ca->up_rounds & 31), Q16_ONE);
	ca->up_rounds = min_u64(ca->up_rounds + 1, MAX_DOUBLINGS);
}

INLINE void start_up(const struct tcp_sock *tp, struct state *ca, const struct sample *sample)
{
	ca->samples = 1;
	ca->feedback = STARTING;
	restart_round(tp, ca);
	restart_full(ca, sample->bandwidth);
	ca->mode = UP;
	raise_slope(tp, ca);
}

/* Remembers the last window that was good. */
INLINE void save_window(const struct tcp_sock *tp, struct state *ca)
{
	_Bool good = ca->prior < RECOVERY && ca->mode != PROBE_RTT;

	ca->prior_cwnd = good ? window(tp, ca) : max_u64(ca->prior_cwnd, window(tp, ca));
}

INLINE void restore_window(struct tcp_sock *tp, struct state *ca)
{
	set_window_q16(tp, &ca->fraction, max_u64(window(tp, ca), ca->prior_cwnd));
}

/* A probe has lost too much with `in_flight` packets (Q16) in flight. */
INLINE void handle_too_high(const struct sock *sk, struct state *ca, u64 in_flight, _Bool app_limited)
{
	ca->too_high = 1;
	ca->samples = 0;
	/* A flow limited by its application has not tried what the path holds. */
	if (!app_limited)
		ca->bounds.long_term = max_u64(in_flight, gained(target_in_flight(sk, ca), param_beta));
	if (ca->mode == UP)
		start_down((const struct tcp_sock *)sk, ca);
}

INLINE void note_loss(const struct tcp_sock *tp, struct state *ca)
{
	if (!ca->loss)
		/* A round from here on shows what the path delivers while it loses. */
		ca->latest_mark = tp->delivered;
	ca->loss = 1;
}

/* `count` losses were found of packets that were sent with the sampled one. */
INLINE void handle_losses(const struct sock *sk, struct state *ca, u32 count, const struct sample *sample)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	u64 in_flight = sample->in_flight, before, part;
	u32 allowed = gained(in_flight, param_loss_threshold) >> 16, lost = sample->lost + count, crossing;

	lost_note(&ca->steps, tp, in_flight >> 16);
	note_loss(tp, ca);
	if (!ca->samples)
		return;
	/* The packet with which the losses became too many. */
	crossing = max_u64(allowed, sample->lost) + 1;
	if (crossing > lost || in_flight < Q16_ONE)
		return;
	/* A part of it would have passed. */
	before = in_flight - Q16_ONE;
	part = gained(before, param_loss_threshold);
	part = part > (u64)(crossing - 1) << 16 ? part - ((u64)(crossing - 1) << 16) : 0;
	part = scale(part, Q16_ONE, Q16_ONE - min_u64(param_loss_threshold, Q16_ONE / 2));
	handle_too_high(sk, ca, before + part, sample->app_limited);
	/* Those behind it are no longer the probe's. */
	if (crossing < lost)
		note_loss(tp, ca);
}

INLINE _Bool sample_too_high(const struct sample *sample)
{
	return ((u64)sample->lost << 16) > gained(sample->in_flight, param_loss_threshold);
}

INLINE void raise_long_term(const struct tcp_sock *tp, struct state *ca, u32 acked)
{
	if (!at_limit(tp) || window(tp, ca) < ca->bounds.long_term)
		return;
	ca->up_acked += (u64)acked << 16;
	if (ca->up_acked >= ca->up_per_packet) {
		u64 packets = scale(ca->up_acked, 1, ca->up_per_packet);
		ca->up_acked -= packets * ca->up_per_packet;
		ca->bounds.long_term += packets << 16;
	}
	if (ca->round_start)
		raise_slope(tp, ca);
}

/* Follows the acknowledgements of a probe and moves the long-term bound; whether a new probe begins. */
INLINE _Bool adapt_long_term(const struct sock *sk, struct state *ca, const struct sample *sample, u32 acked)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;

	if (ca->round_start && ca->feedback == STARTING) {
		ca->feedback = ARRIVING;
	} else if (ca->round_start && ca->feedback == STOPPING) {
		ca->samples = 0;
		ca->feedback = NOTHING;
		if (ca->mode >= DOWN && ca->mode <= UP) {
			if (!sample->app_limited && ca->bandwidths[1]) {
				ca->bandwidths[0] = ca->bandwidths[1];
				ca->bandwidths[1] = 0;
			}
			if (ca->precautionary && !ca->too_high) {
				/* A whole round at the bound was safe: probe in earnest. */
				start_refill(tp, ca);
				return 1;
			}
		}
	}
	if (sample_too_high(sample)) {
		if (ca->samples)
			handle_too_high(sk, ca, sample->in_flight, sample->app_limited);
	} else if (ca->bounds.long_term != UNSET) {
		ca->bounds.long_term = max_u64(ca->bounds.long_term, sample->in_flight);
		if (ca->mode == UP)
			raise_long_term(tp, ca, acked);
	}
	return 0;
}

/* Begins a probe if its time has come, by the clock or by rounds. */
INLINE _Bool probe_if_due(const struct sock *sk, struct state *ca)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	u64 rounds = min_u64(target_in_flight(sk, ca), MAX_ROUNDS * Q16_ONE);

	if (tp->tcp_mstamp - ca->cycle <= ca->wait && (u64)ca->rounds << 16 < rounds)
		return 0;
	start_refill(tp, ca);
	return 1;
}

INLINE _Bool time_to_go_down(const struct tcp_sock *tp, struct state *ca, u64 in_flight, const struct sample *sample)
{
	if (ca->too_high && in_flight >= ca->bounds.long_term) {
		/* The last probe lost too much here: see first whether it is safe now. */
		ca->precautionary = 1;
		return 1;
	}
	if (at_limit(tp) && window(tp, ca) >= ca->bounds.long_term) {
		/* The bound and not the path keeps the bandwidth from growing. */
		restart_full(ca, sample->bandwidth);
		return 0;
	}
	return ca->full_now;
}

INLINE void update_cycle(const struct sock *sk, struct state *ca, const struct rate_sample *rs,
			 const struct sample *sample)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	u64 in_flight;

	if (!ca->full_reached || adapt_long_term(sk, ca, sample, rs->acked_sacked))
		return;
	in_flight = at_departure(sk, ca, rs->prior_in_flight);
	if (ca->mode == DOWN) {
		if (!probe_if_due(sk, ca) && in_flight <= with_headroom(ca) &&
		    in_flight <= target(sk, ca, max_bandwidth(ca)))
			start_cruise(ca);
	} else if (ca->mode == CRUISE) {
		probe_if_due(sk, ca);
	} else if (ca->mode == REFILL) {
		if (ca->round_start)
			start_up(tp, ca, sample);
	} else if (ca->mode == UP && time_to_go_down(tp, ca, in_flight, sample)) {
		/* No high loss yet: that is known one round later. */
		ca->too_high = 0;
		start_down(tp, ca);
	}
}

INLINE void check_probe_rtt_end(struct tcp_sock *tp, struct state *ca)
{
	if (!ca->probe_rtt_end || tp->tcp_mstamp <= ca->probe_rtt_end)
		return;
	ca->recent_stamp = tp->tcp_mstamp;
	restore_window(tp, ca);
	forget_short_term(ca);
	if (ca->full_reached) {
		/* What is in flight is below the path's capacity already. */
		start_down(tp, ca);
		start_cruise(ca);
	} else {
		ca->mode = STARTUP;
	}
}

INLINE void handle_probe_rtt(struct tcp_sock *tp, struct state *ca)
{
	/* What is measured now says nothing about the path's bandwidth. */
	tp->app_limited = max_u64(tp->delivered + in_flight(tp), 1);
	if (ca->probe_rtt_end) {
		ca->probe_rtt_round |= ca->round_start;
		if (ca->probe_rtt_round)
			check_probe_rtt_end(tp, ca);
	} else if ((u64)in_flight(tp) << 16 <= probe_rtt_cwnd(ca)) {
		ca->probe_rtt_end = tp->tcp_mstamp + PROBE_RTT_TIME;
		ca->probe_rtt_round = 0;
		restart_round(tp, ca);
	}
}

INLINE void update_rtt(struct sock *sk, struct state *ca, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now = tp->tcp_mstamp;
	_Bool expired = now > ca->recent_stamp + param_probe_rtt_interval;

	if (rs->rtt_us >= 0) {
		u32 rtt = max_u64(rs->rtt_us, 1);
		if (!ca->recent_rtt || rtt < ca->recent_rtt || (expired && !rs->is_ack_delayed)) {
			ca->recent_rtt = rtt;
			ca->recent_stamp = now;
		}
	}
	if (ca->recent_rtt <= ca->min_rtt || !ca->min_rtt || now > ca->min_stamp + param_min_rtt_window) {
		ca->min_rtt = ca->recent_rtt;
		ca->min_stamp = ca->recent_stamp;
	}
	if (expired && !ca->restarted && ca->mode != PROBE_RTT) {
		save_window(tp, ca);
		ca->mode = PROBE_RTT;
		ca->probe_rtt_end = 0;
		ca->feedback = STOPPING;
		restart_round(tp, ca);
	}
	if (ca->mode == PROBE_RTT)
		handle_probe_rtt(tp, ca);
	if (rs->delivered > 0)
		ca->restarted = 0;
}

#endif
