// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * BBR, version 3: sends at the bandwidth that it measures, within bounds learned from losses.
 *
 * Provenance: google/bbr, branch v3, net/ipv4/tcp_bbr.c (2023), in the form of the native scheme.
 *
 * Deviations: those of the native scheme, and what the kernel does not tell a program. Of a packet it keeps
 * what had been delivered when it was sent, not what was in flight and what had been lost: both are worked out
 * from the connection's counters, exactly as long as packets do not overtake each other, up to the losses of
 * the last three packets. No program is asked when a packet is taken for lost: losses are judged by the
 * acknowledgement that finds them, as if they had been sent with the packet that it acknowledges, and those of
 * a timeout as if they had been sent with the last packet that was acknowledged. Marks do not count on any
 * path: that a path marks at a shallow threshold (ECN_LOW) is known to the kernel of google/bbr only. Bursts
 * are sized by the kernel, by the same rule as there.
 *
 * The program drives the window itself (no Proportional Rate Reduction). Its state needs more than the 104 bytes
 * of a scheme and is kept in a storage of the socket. Bandwidths have steps of 2^-32 packets/us, amounts of data of 2^-16
 * packets, times of 1 us.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | startup_gain | 710/256 | google/bbr v3, net/ipv4/tcp_bbr.c: bbr_startup_pacing_gain | 65536 times the value |
 * | loss_threshold | 5/256 | google/bbr v3, net/ipv4/tcp_bbr.c: bbr_loss_thresh | 65536 times the value |
 * | beta | 180/256 | google/bbr v3, net/ipv4/tcp_bbr.c: 1 - bbr_beta | 65536 times the value |
 * | headroom | 38/256 | google/bbr v3, net/ipv4/tcp_bbr.c: bbr_inflight_headroom | 65536 times the value |
 * | probe_rtt_interval | 5 s | google/bbr v3, net/ipv4/tcp_bbr.c: bbr_probe_rtt_win_ms | us |
 * | min_rtt_window | 10 s | google/bbr v3, net/ipv4/tcp_bbr.c: bbr_min_rtt_win_sec | us |
 */
#include "include/narrows_lost.h"

PARAM(startup_gain, Q16(2.7734375));
PARAM(loss_threshold, Q16(0.01953125));
PARAM(beta, Q16(0.703125));
PARAM(headroom, Q16(0.1484375));
PARAM(probe_rtt_interval, 5000000);
PARAM(min_rtt_window, 10000000);

#define DRAIN_GAIN Q16(0.34375)
#define DOWN_GAIN Q16(0.90625)
#define UP_GAIN Q16(1.25)
#define CWND_GAIN Q16(2.0)
#define UP_CWND_GAIN Q16(2.25)
#define PROBE_RTT_GAIN Q16(0.5)
/* The pipe is full after three rounds in which the bandwidth grows by less than this. */
#define GROWTH Q16(1.25)
#define FULL_ROUNDS 3
/* In us. */
#define PROBE_RTT_TIME 200000
#define BASE_WAIT 2000000
#define RANDOM_WAIT 1000000
#define EXTRA_TIME 100000
#define FIRST_RTT 1000
#define MAX_ROUNDS 63
#define MAX_DOUBLINGS 30
#define EXTRA_ROUNDS 5
#define STARTUP_LOSSES 6
/* Smallest window in packets. */
#define SMALLEST (4 * Q16_ONE)
/* Longest epoch of aggregation in packets. */
#define EPOCH_PACKETS (1u << 20)
/* The rate in bytes/s is this times 2^-24 bytes/us: one percent below the bandwidth. */
#define MARGIN 990000
/* Bursts: bytes on the shortest paths, halved for each 512 us of the RTT, and most bytes. */
#define SHORT_PATH 65536
#define LONGEST_SEGMENT 65215
/* Of a bandwidth, which keeps products below 2^64: 16 packets/us. */
#define MAX_BANDWIDTH (1ull << 36)
#define UNSET (~0ull)

enum { STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT };
/* What acknowledgements say about a probe: nothing, the pipe is being filled, its packets are on their way, they are
 * being acknowledged, it is over. */
enum { NOTHING, REFILLING, STARTING, ARRIVING, STOPPING };

struct bounds {
	u64 bandwidth;
	u64 short_term;
	u64 long_term;
};

/* A delivery-rate sample, all zero where there is none. */
struct sample {
	u64 bandwidth;
	u64 in_flight; /* when the packet was sent, Q16 */
	u32 delivered;
	u32 lost;
	_Bool taken, app_limited;
};

struct state {
	u64 bandwidths[2]; /* largest of the last cycle and of this one, packets/us, Q32 */
	u64 latest_bandwidth;
	u64 full_bandwidth;
	struct bounds bounds; /* amounts in packets, Q16 */
	struct bounds undo;
	u64 prior_cwnd;
	u64 up_acked, up_per_packet;
	u64 extra[2], epoch; /* aggregation: packets, Q16, and when it began */
	u64 cycle, wait;     /* when the cycle began, and how long until the next probe */
	u64 probe_rtt_end;   /* 0: not known yet */
	u64 min_stamp, recent_stamp;
	u32 min_rtt, recent_rtt; /* 0: none */
	u32 fraction;		 /* of the window, Q32 */
	u32 initial;		 /* window, packets */
	u32 lost;		 /* counter of the connection at the last acknowledgement */
	u32 latest_delivered;
	u32 round_mark, latest_mark; /* values of the delivered counter that end a round */
	u32 epoch_acked;
	u32 rounds; /* since the last probe */
	u32 up_rounds;
	u32 startup_losses;
	u8 mode, feedback, prior, full_rounds;
	u8 extra_slot, extra_rounds;
	_Bool round_start, latest_start, loss, seen_rtt, full_now, full_reached;
	_Bool samples, too_high, precautionary, probe_rtt_round, restarted;
	struct sample last; /* the last one that was valid */
	struct lost_steps steps;
};

#include "include/narrows_storage.h"

#include "include/bbr3_model.h"
#include "include/bbr3_cycle.h"

INLINE void update_bounds(const struct tcp_sock *tp, struct state *ca)
{
	struct bounds *bounds = &ca->bounds;

	if (!ca->latest_start)
		return;
	if (ca->loss && !probes(ca)) {
		if (bounds->bandwidth == UNSET)
			bounds->bandwidth = max_bandwidth(ca);
		if (bounds->short_term == UNSET)
			bounds->short_term = window(tp, ca);
		bounds->bandwidth = max_u64(ca->latest_bandwidth, gained(bounds->bandwidth, param_beta));
		bounds->short_term = max_u64((u64)ca->latest_delivered << 16, gained(bounds->short_term, param_beta));
	}
	ca->loss = 0;
}

INLINE void update_aggregation(const struct tcp_sock *tp, struct state *ca, u32 acked)
{
	u64 expected = delivers(bandwidth(ca), tp->tcp_mstamp - ca->epoch), extra, *slot;

	if ((u64)ca->epoch_acked << 16 <= expected || ca->epoch_acked + acked >= EPOCH_PACKETS) {
		ca->epoch = tp->tcp_mstamp;
		ca->epoch_acked = 0;
		expected = 0;
	}
	ca->epoch_acked += acked;
	extra = (u64)ca->epoch_acked << 16;
	extra = min_u64(extra > expected ? extra - expected : 0, window(tp, ca));
	if (ca->round_start) {
		ca->extra_rounds++;
		if (ca->extra_rounds >= (ca->full_reached ? EXTRA_ROUNDS : 1)) {
			ca->extra_rounds = 0;
			ca->extra_slot = !ca->extra_slot;
			ca->extra[ca->extra_slot & 1] = 0;
		}
	}
	slot = &ca->extra[ca->extra_slot & 1];
	*slot = max_u64(*slot, extra);
}

INLINE void check_startup_losses(const struct sock *sk, struct state *ca, const struct sample *sample, u32 newly_lost)
{
	if (ca->full_reached)
		return;
	ca->startup_losses += newly_lost > 0;
	if (!ca->latest_start)
		return;
	if (phase(sk) == RECOVERY && ca->startup_losses >= STARTUP_LOSSES && sample_too_high(sample)) {
		ca->full_reached = 1;
		ca->bounds.long_term = max_u64(target(sk, ca, max_bandwidth(ca)), (u64)ca->latest_delivered << 16);
	}
	ca->startup_losses = 0;
}

INLINE void check_full_pipe(struct state *ca, const struct sample *sample)
{
	if (ca->full_now || sample->app_limited)
		return;
	if (sample->bandwidth >= gained(ca->full_bandwidth, GROWTH)) {
		restart_full(ca, sample->bandwidth);
	} else if (ca->round_start) {
		ca->full_rounds++;
		ca->full_now = ca->full_rounds >= FULL_ROUNDS;
		ca->full_reached |= ca->full_now;
	}
}

INLINE void update_window(struct sock *sk, struct state *ca, u64 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now = window(tp, ca), bound = UNSET, extra, wanted;

	if (acked) {
		extra = min_u64(max_u64(ca->extra[0], ca->extra[1]), delivers(bandwidth(ca), EXTRA_TIME));
		wanted = ca->mode == UP ? UP_CWND_GAIN : ca->mode == PROBE_RTT ? Q16_ONE : CWND_GAIN;
		wanted = with_budget(sk, ca, product(ca, bandwidth(ca), wanted) + extra);
		if (ca->full_reached)
			now = min_u64(now + (acked << 16), wanted);
		else if (now < wanted || now < (u64)ca->initial << 17)
			now += acked << 16;
	}
	if (ca->mode == PROBE_RTT)
		bound = probe_rtt_cwnd(ca);
	if (ca->mode == CRUISE || ca->mode == PROBE_RTT)
		bound = min_u64(bound, with_headroom(ca));
	else if (ca->mode != STARTUP && ca->mode != DRAIN)
		bound = ca->bounds.long_term;
	bound = min_u64(bound, ca->bounds.short_term);
	set_window_q16(tp, &ca->fraction, min_u64(max_u64(now, SMALLEST), max_u64(bound, SMALLEST)));
}

INLINE void take_sample(struct state *ca, const struct tcp_sock *tp, const struct rate_sample *rs, struct sample *sample)
{
	if (rs->delivered < 0 || rs->interval_us <= 0)
		return;
	sample->taken = 1;
	sample->delivered = rs->delivered;
	sample->bandwidth = min_u64(((u64)sample->delivered << 32) / (u64)rs->interval_us, MAX_BANDWIDTH);
	sample->app_limited = rs->is_app_limited;
	sample->lost = ca->lost - lost_before(&ca->steps, rs->prior_delivered);
	sample->in_flight = (u64)(sample->delivered + sample->lost) << 16;
	ca->last = *sample;
}

INLINE void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = stored_state(sk, 0);
	struct sample sample = {};
	u32 newly_lost;
	u8 before;

	if (!ca)
		return;
	take_sample(ca, tp, rs, &sample);
	newly_lost = tp->lost - ca->lost;
	ca->lost = tp->lost;
	if (newly_lost)
		handle_losses(sk, ca, newly_lost, &ca->last);
	ca->round_start = ca->latest_start = 0;
	if (sample.taken) {
		ca->round_start = !after(ca->round_mark, rs->prior_delivered);
		if (ca->round_start) {
			restart_round(tp, ca);
			ca->rounds++;
		}
		ca->latest_bandwidth = max_u64(ca->latest_bandwidth, sample.bandwidth);
		ca->latest_delivered = max_u64(ca->latest_delivered, sample.delivered);
		ca->latest_start = !after(ca->latest_mark, rs->prior_delivered);
		if (ca->latest_start)
			ca->latest_mark = tp->delivered;
	}
	before = ca->prior;
	ca->prior = phase(sk);
	if (before == TIMEOUT && ca->prior != TIMEOUT)
		restore_window(tp, ca);
	if (sample.taken) {
		if (!sample.app_limited || sample.bandwidth >= max_bandwidth(ca))
			ca->bandwidths[1] = max_u64(ca->bandwidths[1], sample.bandwidth);
		update_bounds(tp, ca);
		update_aggregation(tp, ca, rs->acked_sacked);
		check_startup_losses(sk, ca, &sample, newly_lost);
		check_full_pipe(ca, &sample);
	}
	if (ca->mode == STARTUP && ca->full_reached) {
		ca->mode = DRAIN;
		forget_latest(ca);
	}
	if (ca->mode == DRAIN && at_departure(sk, ca, in_flight(tp)) <= target(sk, ca, max_bandwidth(ca)))
		start_down(tp, ca);
	update_cycle(sk, ca, rs, &sample);
	update_rtt(sk, ca, rs);
	if (ca->latest_start) {
		ca->latest_bandwidth = sample.bandwidth;
		ca->latest_delivered = sample.delivered;
	}
	if (!ca->seen_rtt && tp->srtt_us) {
		ca->seen_rtt = 1;
		first_pacing(sk, tp->srtt_us >> 3);
	}
	set_pacing(sk, ca, pacing_gain(ca));
	update_window(sk, ca, rs->acked_sacked);
}

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = stored_state(sk, 1);

	if (!ca)
		return;
	__builtin_memset(ca, 0, sizeof(*ca));
	ca->bounds.bandwidth = ca->bounds.short_term = ca->bounds.long_term = UNSET;
	ca->up_per_packet = UNSET;
	ca->initial = tp->snd_cwnd;
	ca->min_stamp = ca->recent_stamp = ca->cycle = ca->epoch = tp->tcp_mstamp;
	ca->round_mark = ca->latest_mark = tp->delivered;
	ca->lost = tp->lost;
	lost_init(&ca->steps, tp);
	ca->seen_rtt = tp->srtt_us > 0;
	first_pacing(sk, tp->srtt_us ? tp->srtt_us >> 3 : FIRST_RTT);
	pace(sk);
}

SEC("struct_ops")
void BPF_PROG(cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}

#ifndef NARROWS_HOST
SEC("struct_ops")
void BPF_PROG(cong_control_before_6_10, struct sock *sk, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}
#endif

/* A recovery or the repair of a timeout begins; the threshold is not used. */
SEC("struct_ops")
u32 BPF_PROG(ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = stored_state(sk, 0);

	if (ca) {
		save_window(tp, ca);
		ca->undo = ca->bounds;
	}
	return tp->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = stored_state(sk, 0);

	if (!ca)
		return;
	if (event == CA_EVENT_TX_START && tp->app_limited) {
		ca->restarted = 1;
		ca->epoch = tp->tcp_mstamp;
		ca->epoch_acked = 0;
		if (ca->mode >= DOWN && ca->mode <= UP)
			set_pacing(sk, ca, Q16_ONE);
		else if (ca->mode == PROBE_RTT)
			check_probe_rtt_end(tp, ca);
	} else if (event == CA_EVENT_LOSS) {
		/* The window is still the one before the timeout. */
		u32 count = tp->lost - ca->lost;
		ca->lost = tp->lost;
		if (count)
			handle_losses(sk, ca, count, &ca->last);
	}
}

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	struct state *ca = stored_state(sk, 0);

	if (!ca || state != TIMEOUT)
		return;
	restart_full(ca, 0);
	/* The window before the timeout, from which the bound will be reduced. */
	if (!probes(ca) && ca->bounds.short_term == UNSET)
		ca->bounds.short_term = max_u64(window(tcp_sk(sk), ca), ca->prior_cwnd);
	ca->prior = TIMEOUT;
	ca->fraction = 0;
}

/* The losses were none: bounds and window come back. */
SEC("struct_ops")
u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = stored_state(sk, 0);

	if (!ca)
		return tp->snd_cwnd;
	ca->loss = 0;
	restart_full(ca, 0);
	ca->bounds.bandwidth = max_u64(ca->bounds.bandwidth, ca->undo.bandwidth);
	ca->bounds.short_term = max_u64(ca->bounds.short_term, ca->undo.short_term);
	ca->bounds.long_term = max_u64(ca->bounds.long_term, ca->undo.long_term);
	restore_window(tp, ca);
	return tp->snd_cwnd;
}

SCHEME(bbr3, 0, .init = (void *)init, .ssthresh = (void *)ssthresh, .cong_control = (void *)cong_control,
       .cwnd_event = (void *)cwnd_event, .set_state = (void *)set_state, .undo_cwnd = (void *)undo_cwnd);
#ifndef NARROWS_HOST
SCHEME_BEFORE_6_10(bbr3, 0, .init = (void *)init, .ssthresh = (void *)ssthresh,
		   .cong_control = (void *)cong_control_before_6_10, .cwnd_event = (void *)cwnd_event,
		   .set_state = (void *)set_state, .undo_cwnd = (void *)undo_cwnd);
#endif
