// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * H-TCP: growth rises with the time since the last loss; the reduction exactly empties the queue.
 *
 * Provenance: D. Leith, R. Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004, and
 * draft-leith-tcp-htcp, with what they leave open as in Linux net/ipv4/tcp_htcp.c: scaling with the RTT,
 * smoothing of the throughput, decay of the largest RTT. Deviations: growth is recomputed at every
 * acknowledgement and is at most that of slow start; the share kept is at most 0.8 (Linux: 102/128).
 *
 * Times are in us, factors have steps of 2^-16, the throughput of 1/256 packets per second. `whole_factor`
 * rounds the growth factor down as Linux does.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | rtt_scaling | true | Linux net/ipv4/tcp_htcp.c | 0 or 1 |
 * | bandwidth_switch | true | Linux net/ipv4/tcp_htcp.c | 0 or 1 |
 * | max_rtt_step | 20 ms | Linux net/ipv4/tcp_htcp.c | us |
 * | whole_factor | false | Linux net/ipv4/tcp_htcp.c has it on | 0 or 1 |
 */
#include "include/narrows_tcp.h"

PARAM(rtt_scaling, 1);
PARAM(bandwidth_switch, 1);
PARAM(max_rtt_step, 20000);
PARAM(whole_factor, 0);

/* Time after a loss before growth rises, us. */
#define LOW_SPEED 1000000
/* RTT to which growth is scaled, us, and how far. */
#define REFERENCE_RTT 100000
#define SCALE_LOW Q16(0.1)
#define SCALE_HIGH Q16(2.0)
/* Smallest and largest share kept. */
#define BETA_LOW Q16(0.5)
#define BETA_HIGH Q16(0.8)
/* Paths with a smaller RTT (us) are halved: the ratio of RTTs says little there. */
#define SMALL_RTT 10000
/* The longest time after a loss that is told from longer ones, us. */
#define LONGEST 3600000000ull

struct rules {
	u64 epoch;     /* when the last congestion event began, or was over if that is known, us */
	u32 since;     /* when the running measurement of the throughput began, us, wraps around */
	u32 delivered; /* the connection's counter then */
	u32 smoothed;  /* packets per second, Q8: smoothed, largest of the epoch, of the one before */
	u32 largest;
	u32 before;
	u32 min_rtt; /* us; 0: not known */
	u32 max_rtt;
	u32 beta : 31; /* share kept at the last reduction, Q16 */
	u32 adaptive : 1;
};

struct state {
	struct rules now;
	struct rules prior;
	u32 fraction; /* of the window, Q32 */
	u32 alpha;    /* growth per round trip as last computed, Q16 */
};
STATE_FITS(struct state);

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	ca->now.epoch = tp->tcp_mstamp;
	ca->now.since = tp->tcp_mstamp;
	ca->now.delivered = tp->delivered;
	ca->now.beta = BETA_LOW;
	ca->alpha = Q16_ONE;
	ca->prior = ca->now;
}

/* Growth per round trip `delta` us after the last congestion event, Q16. */
INLINE u64 growth(const struct rules *now, u64 delta)
{
	u64 factor = Q16_ONE;

	if (delta > LOW_SPEED) {
		u64 over = scale(min_u64(delta, LONGEST) - LOW_SPEED, Q16_ONE, 1000000);
		factor += 10 * over + ((over * over) >> 18);
	}
	if (param_whole_factor)
		factor &= ~(Q16_ONE - 1);
	if (param_rtt_scaling && now->min_rtt) {
		u64 ratio = scale(now->min_rtt, Q16_ONE, REFERENCE_RTT);
		factor = (factor * clamp_u64(ratio, SCALE_LOW, SCALE_HIGH)) >> 16;
		if (param_whole_factor)
			factor &= ~(Q16_ONE - 1);
	}
	return (2 * (Q16_ONE - now->beta) * max_u64(factor, Q16_ONE)) >> 16;
}

INLINE void measure_rtt(struct rules *now, s32 sample, _Bool open)
{
	u32 rtt = sample > 0 ? sample : 1;

	if (sample < 0)
		return;
	if (!now->min_rtt || rtt < now->min_rtt)
		now->min_rtt = rtt;
	if (!open)
		return;
	now->max_rtt = max_u64(now->max_rtt, now->min_rtt);
	if (rtt > now->max_rtt && rtt <= now->max_rtt + param_max_rtt_step)
		now->max_rtt = rtt;
}

INLINE void measure_throughput(const struct tcp_sock *tp, struct state *ca, _Bool open)
{
	struct rules *now = &ca->now;
	u32 elapsed = (u32)tp->tcp_mstamp - now->since, packets = tp->delivered - now->delivered;
	u32 rate;

	if (open) {
		if (!now->min_rtt || !elapsed || elapsed < now->min_rtt)
			return;
		if (((u64)packets << 16) + max_u64(ca->alpha, Q16_ONE) < window_q16(tp, ca->fraction))
			return;
		rate = scale((u64)packets << 8, 1000000, elapsed);
		/* The first rounds of an epoch still carry the reduction. */
		if (tp->tcp_mstamp - now->epoch < 4 * (u64)now->min_rtt) {
			now->smoothed = rate;
			now->largest = rate;
		} else {
			now->smoothed = (3 * (u64)now->smoothed + rate) / 4;
			now->largest = max_u64(now->largest, now->smoothed);
		}
	}
	now->since = tp->tcp_mstamp;
	now->delivered = tp->delivered;
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct state *ca = private_state(sk);
	_Bool open = phase(sk) <= DISORDER;

	measure_rtt(&ca->now, sample->rtt_us, open);
	if (param_bandwidth_switch)
		measure_throughput(tcp_sk(sk), ca, open);
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	acked = after_slow_start(tp, acked);
	if (acked) {
		ca->alpha = min_u64(growth(&ca->now, tp->tcp_mstamp - ca->now.epoch), ~0u);
		/* Never faster than slow start: after a long silence alpha may exceed the window. */
		grow_per_window(tp, &ca->fraction, min_u64(ca->alpha, window_q16(tp, ca->fraction)), acked);
	}
}

/* The share to keep now, Q16. */
INLINE u32 backoff(struct rules *now)
{
	if (param_bandwidth_switch) {
		u64 rate = now->largest, before = now->before;
		u64 change = rate > before ? rate - before : before - rate;
		now->before = rate;
		if (5 * change > before) {
			now->adaptive = 0;
			return BETA_LOW;
		}
	}
	if (!now->adaptive || now->min_rtt <= SMALL_RTT) {
		now->adaptive = 1;
		return BETA_LOW;
	}
	return clamp_u64(scale(now->min_rtt, Q16_ONE, max_u64(now->max_rtt, now->min_rtt)), BETA_LOW, BETA_HIGH);
}

INLINE u32 reduced(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	struct rules *now = &ca->now;

	ca->prior = ca->now;
	now->beta = backoff(now);
	if (now->max_rtt > now->min_rtt)
		now->max_rtt = now->min_rtt + (u64)(now->max_rtt - now->min_rtt) * 19 / 20;
	now->epoch = tp->tcp_mstamp;
	return threshold_and_fraction((window_q16(tp, ca->fraction) * now->beta) >> 16, &ca->fraction);
}
REDUCTION(reduced)

SEC("struct_ops")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct state *ca = private_state(sk);

	if (event == CA_EVENT_COMPLETE_CWR)
		ca->now.epoch = tcp_sk(sk)->tcp_mstamp;
}

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	struct state *ca = private_state(sk);

	if (state == OPEN && phase(sk) == TIMEOUT)
		ca->now.epoch = tcp_sk(sk)->tcp_mstamp;
}

UNDO_RULES

SCHEME(htcp, 0, .init = (void *)init, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .set_state = (void *)set_state, .cwnd_event = (void *)cwnd_event, .pkts_acked = (void *)pkts_acked,
       .undo_cwnd = (void *)undo_cwnd);
