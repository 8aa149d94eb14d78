// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * FAST: an equation for the window whose only equilibrium has alpha packets of the flow in the queue.
 *
 * Provenance: C. Jin, D. X. Wei and S. H. Low, "FAST TCP: Motivation, Architecture, Algorithms, Performance",
 * INFOCOM 2004; D. X. Wei et al., IEEE/ACM ToN 14(6), 2006. Every other round trip
 * w <- min(2w, (1 - gamma) w + gamma (baseRTT/avgRTT w + alpha)); in the round trips in between the window
 * stands still, so that what is measured belongs to one window. avgRTT is an average over about a third of a
 * window.
 *
 * Deviations: the papers leave open how slow start and losses are dealt with; here slow start (Reno's, paced)
 * ends when more than alpha packets wait, and a loss halves the window. The kernel paces, at 2 windows per
 * smoothed round trip in early slow start and 1.2 afterwards: with a rate of its own a program would have to do
 * the kernel's recovery as well. Rounds end by sequence numbers. An alpha of 0 is one by rate, as the authors' was:
 * 8 packets up to 10 Mbit/s, 20 up to 100, 200 above.
 *
 * Every flow keeps alpha packets queued, so that N flows need a buffer of N alpha packets. RTTs have steps of
 * 2^-16 us, their ratio of 2^-24, the window of 2^-16 packets.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | alpha | 20 packets | Wei et al. 2006: 20 for 10 to 100 Mbit/s | packets |
 * | gamma | 0.5 | Jin, Wei and Low 2004 | 65536 times the value |
 */
#include "include/narrows_rtt.h"

PARAM(alpha, 20);
PARAM(gamma, Q16(0.5));

struct rules {
	struct rtt_rounds rtt;
	u64 average; /* RTT, us, Q16; 0: no sample yet */
	u32 due;     /* whether the window is set at the end of the round that is running, or of the next one */
};

struct state {
	struct rules now;
	struct rules prior;
	u32 fraction; /* of the window, Q32 */
	u32 round_end;
};
STATE_FITS(struct state);

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	struct state *ca = private_state(sk);

	rtt_init(&ca->now.rtt);
	ca->prior = ca->now;
	ca->round_end = tcp_sk(sk)->snd_nxt;
	pace(sk);
}

/* The average moves by 3/w of what is new, at most by a quarter. */
INLINE void average_in(struct rules *now, u32 us, u64 window)
{
	u64 rtt = (u64)us << 16, part = max_u64(window, Q16(12.0)) >> 8;

	if (!now->average)
		now->average = rtt;
	else if (rtt > now->average)
		now->average += scale(rtt - now->average, 3 << 8, part);
	else
		now->average -= scale(now->average - rtt, 3 << 8, part);
}

/* `window` (Q16) without what waits: times base RTT over average RTT. */
INLINE u64 unqueued(const struct rules *now, u64 window)
{
	u64 ratio = 1 << 24;

	if (now->average)
		ratio = min_u64(((u64)now->rtt.base << 36) / max_u64(now->average >> 4, 1), ratio);
	return (window * ratio) >> 24;
}

/* Packets to keep queued (Q16) with this window of packets of `mss` bytes; bits per us are Mbit/s. */
INLINE u64 alpha(const struct rules *now, u64 window, u32 mss)
{
	u64 bits = window * mss * 8;

	if (param_alpha)
		return param_alpha << 16;
	if (!now->average || bits <= 10 * now->average)
		return 8 << 16;
	return bits <= 100 * now->average ? 20 << 16 : 200 << 16;
}

INLINE u64 next(const struct rules *now, u64 window, u64 packets)
{
	u64 wanted = unqueued(now, window) + packets;
	u64 gamma = min_u64(param_gamma, Q16_ONE);

	return min_u64(2 * window, (((Q16_ONE - gamma) * window) >> 16) + ((gamma * wanted) >> 16));
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	struct rules *now = &ca->now;
	struct rtt_round round = {};
	u64 window = window_q16(tp, ca->fraction), wanted, packets;
	_Bool ended;

	if (sample->rtt_us >= 0)
		average_in(now, sample->rtt_us ? sample->rtt_us : 1, window);
	ended = rtt_on_ack(&now->rtt, sk, sample, round_starts(tp, &ca->round_end), &round);
	if (phase(sk) == REDUCED || phase(sk) == RECOVERY)
		return;
	packets = alpha(now, window, tp->mss_cache);
	if (in_slow_start(tp)) {
		if (window - unqueued(now, window) > packets) {
			exit_slow_start(tp);
			now->due = 1;
		}
		return;
	}
	if (!ended)
		return;
	now->due = !now->due;
	if (now->due)
		return;
	wanted = max_u64(next(now, window, packets), Q16(2.0));
	if (wanted < window || window_limited(tp)) {
		set_window_q16(tp, &ca->fraction, wanted);
		exit_slow_start(tp);
	}
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (window_limited(tp) && in_slow_start(tp))
		slow_start(tp, acked);
}

INLINE u32 reduced(struct sock *sk)
{
	struct state *ca = private_state(sk);

	ca->prior = ca->now;
	return threshold_and_fraction(window_q16(tcp_sk(sk), ca->fraction) / 2, &ca->fraction);
}
REDUCTION(reduced)

UNDO_RULES

SCHEME(fast, 0, .init = (void *)init, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .pkts_acked = (void *)pkts_acked, .undo_cwnd = (void *)undo_cwnd);
