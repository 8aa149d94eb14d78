/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Part of bbr3.bpf.c, which defines the state and the constants: what the model says about rate and window.
 */
#ifndef BBR3_MODEL_H
#define BBR3_MODEL_H

INLINE u64 gained(u64 value, u64 gain)
{
	return (value * gain) >> 16;
}

INLINE u64 max_bandwidth(const struct state *ca)
{
	return max_u64(ca->bandwidths[0], ca->bandwidths[1]);
}

INLINE u64 bandwidth(const struct state *ca)
{
	return min_u64(max_bandwidth(ca), ca->bounds.bandwidth);
}

/* What `bandwidth` delivers in `us`, in packets, Q16. */
INLINE u64 delivers(u64 bandwidth, u64 us)
{
	return (min_u64(bandwidth, MAX_BANDWIDTH) * min_u64(us, 1ull << 27)) >> 16;
}

INLINE u64 window(const struct tcp_sock *tp, const struct state *ca)
{
	return window_q16(tp, ca->fraction);
}

INLINE _Bool probes(const struct state *ca)
{
	return ca->mode == STARTUP || ca->mode == REFILL || ca->mode == UP;
}

INLINE u64 pacing_gain(const struct state *ca)
{
	switch (ca->mode) {
	case STARTUP:
		return param_startup_gain;
	case DRAIN:
		return DRAIN_GAIN;
	case DOWN:
		return DOWN_GAIN;
	case UP:
		return UP_GAIN;
	default:
		return Q16_ONE;
	}
}

INLINE void set_pacing(struct sock *sk, struct state *ca, u64 gain)
{
	/* Bytes per us, with and without 24 bits behind the point. */
	u64 rate = (bandwidth(ca) * tcp_sk(sk)->mss_cache) >> 8;

	rate = max_u64(((gained(rate, gain) >> 4) * MARGIN) >> 20, 1);
	/* Until the pipe is full the samples are too low to slow down for. */
	if (ca->full_reached || rate > sk->sk_pacing_rate)
		sk->sk_pacing_rate = rate;
}

/* An initial window per RTT, with the gain of STARTUP. */
INLINE void first_pacing(struct sock *sk, u64 us)
{
	struct tcp_sock *tp = tcp_sk(sk);

	sk->sk_pacing_rate = gained(scale((u64)tp->snd_cwnd * tp->mss_cache, MARGIN, max_u64(us, 1)), param_startup_gain);
}

/* Packets of a burst, Q16. */
INLINE u64 quantum(const struct sock *sk, const struct state *ca)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	u64 bytes = sk->sk_pacing_rate >> 10, halvings = ca->min_rtt >> 9;

	if (ca->min_rtt && halvings < 32)
		bytes += SHORT_PATH >> halvings;
	bytes = min_u64(bytes, LONGEST_SEGMENT);
	return max_u64(scale(bytes, 1, tp->mss_cache), 2) << 16;
}

/* `gain` bandwidth-delay products, the initial window before any RTT. */
INLINE u64 product(const struct state *ca, u64 bandwidth, u64 gain)
{
	if (!ca->min_rtt)
		return (u64)ca->initial << 16;
	return gained(delivers(bandwidth, ca->min_rtt), gain);
}

/* At least what bursts at sender, path and receiver need. */
INLINE u64 with_budget(const struct sock *sk, const struct state *ca, u64 packets)
{
	packets = max_u64(max_u64(packets, 3 * quantum(sk, ca)), SMALLEST);
	return ca->mode == UP ? packets + 2 * Q16_ONE : packets;
}

INLINE u64 target(const struct sock *sk, const struct state *ca, u64 bandwidth)
{
	return with_budget(sk, ca, product(ca, bandwidth, Q16_ONE));
}

INLINE u64 probe_rtt_cwnd(const struct state *ca)
{
	return max_u64(product(ca, bandwidth(ca), PROBE_RTT_GAIN), SMALLEST);
}

/* The bandwidth-delay product, unless congestion has cut the window below it. */
INLINE u64 target_in_flight(const struct sock *sk, const struct state *ca)
{
	return min_u64(target(sk, ca, bandwidth(ca)), window((const struct tcp_sock *)sk, ca));
}

/* What may be in flight so that others find some room. */
INLINE u64 with_headroom(const struct state *ca)
{
	u64 long_term = ca->bounds.long_term, room;

	if (long_term == UNSET)
		return UNSET;
	room = max_u64(gained(long_term, param_headroom), Q16_ONE);
	return max_u64(long_term > room ? long_term - room : 0, SMALLEST);
}

/* What of `packets` will be in flight when the next one leaves (Q16). */
INLINE u64 at_departure(const struct sock *sk, const struct state *ca, u32 packets)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	u64 now = tp->tcp_mstamp, next = tp->tcp_wstamp_ns / 1000, all = (u64)packets << 16, gone;

	if (pacing_gain(ca) > Q16_ONE)
		all += quantum(sk, ca);
	gone = next > now ? delivers(bandwidth(ca), next - now) : 0;
	return all > gone ? all - gone : 0;
}

#endif
