/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the congestion control programs for the Linux kernel share.
 *
 * A program is one file NAME.bpf.c: its private state, the callbacks, and one SCHEME(...) line. The
 * kernel sends and repairs, spreads window reductions over the round (Proportional Rate Reduction) and
 * paces; the program says how the window grows (`cong_avoid`), what is left of it after a loss
 * (`ssthresh`) and what it was when the loss turns out to be none (`undo_cwnd`).
 *
 * Structures of the kernel are declared here with the members that are used and nothing else;
 * `preserve_access_index` lets the loader find where they are in the running kernel.
 *
 * Fixed point: a value "in Q16" is 65536 times the value, "in Q32" 2^32 times. There is no floating point
 * in the kernel; constants written with a point are folded by the compiler.
 *
 * With NARROWS_HOST the same file is an ordinary C program's module: tests play events to it and compare
 * its windows with those of the scheme of the same name in core/cc.
 */
#ifndef NARROWS_TCP_H
#define NARROWS_TCP_H

#ifdef NARROWS_HOST
#include "narrows_host.h"
#else
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#endif

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#ifndef NARROWS_HOST
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

struct sock_common {
	unsigned char skc_state;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate; /* bytes/s */
	u32 sk_pacing_status;	      /* 0 none, 1 by TCP's own timer, 2 by the fq queue */
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 srtt_us; /* eight times the smoothed RTT in us */
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u32 snd_nxt;
	u32 snd_una;
	u32 rcv_nxt;
	u64 tcp_mstamp; /* us */
	u64 tcp_wstamp_ns; /* when the next packet leaves, if packets are paced */
	u8 ecn_flags;
	u8 is_cwnd_limited : 1;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us; /* negative: none */
	u32 in_flight;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	s32 delivered; /* negative: no sample */
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	_Bool is_app_limited;
	_Bool is_ack_delayed;
};

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
	u32 flags;
};

#ifndef NARROWS_HOST
#pragma clang attribute pop
#endif

/* Values of icsk_ca_state: nothing is wrong, packets out of order, reduced after marks, losses being
 * repaired, a timeout being repaired. */
enum { OPEN = 0, DISORDER = 1, REDUCED = 2, RECOVERY = 3, TIMEOUT = 4 };

/* Any user may select the scheme, also in a network namespace of their own. */
#define NON_RESTRICTED 1
/* Packets carry ECT(0) when the connection agreed on ECN. */
#define NEEDS_ECN 2

#define PACING_NONE 0
#define PACING_NEEDED 1

/* ssthresh before the first congestion. */
#define INFINITE_SSTHRESH 0x7fffffffu

/* Smallest window after a loss, in packets (RFC 5681, equation 4). */
#define FLOOR 2u

#define Q16_ONE (1ull << 16)
#define Q32_ONE (1ull << 32)
/* A constant in Q16, rounded. */
#define Q16(value) ((u64)((value) * 65536.0 + 0.5))

/* A parameter that the loader may set before it loads the program. Numbers and ratios are in Q16, packets,
 * bytes and counts are whole numbers, times are in us, rates in bytes/s, flags are 0 or 1, a choice is its
 * index. */
#ifdef NARROWS_HOST
#define PARAM(name, value) u64 param_##name = (value)
#else
#define PARAM(name, value) const volatile u64 param_##name = (value)
#endif

/* The scheme's registration. The kernel's part needs a license that it takes for compatible with its own. */
#define SCHEME(id, more_flags, ...)                                                                \
	char license_name[] SEC("license") = "Dual MIT/GPL";                                            \
	SEC(".struct_ops.link")                                                                    \
	struct tcp_congestion_ops scheme = {__VA_ARGS__, .flags = NON_RESTRICTED | (more_flags), .name = "nw_" #id}

/* The same for schemes with `cong_control`, which had two arguments less before Linux 6.10: the loader
 * takes the one whose prototype the running kernel has. */
#define SCHEME_BEFORE_6_10(id, more_flags, ...)                                                    \
	SEC(".struct_ops.link")                                                                    \
	struct tcp_congestion_ops scheme_before_6_10 = {__VA_ARGS__,                               \
							.flags = NON_RESTRICTED | (more_flags),    \
							.name = "nw_" #id}

#define INLINE static __always_inline

/* The loop that follows is written out: the verifier wants constant offsets into the private state. */
#ifdef NARROWS_HOST
#define UNROLL
#else
#define UNROLL _Pragma("clang loop unroll(full)")
#endif

INLINE struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* The scheme's private state: 104 bytes, zero at first. */
INLINE void *private_state(struct sock *sk)
{
	return (void *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

#define STATE_FITS(type) _Static_assert(sizeof(type) <= 104, "the kernel keeps 104 bytes for a scheme")

INLINE u8 phase(const struct sock *sk)
{
#ifdef NARROWS_HOST
	return ((const struct inet_connection_sock *)sk)->icsk_ca_state;
#else
	return BPF_CORE_READ_BITFIELD((const struct inet_connection_sock *)sk, icsk_ca_state);
#endif
}

INLINE u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

INLINE u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

INLINE u64 clamp_u64(u64 value, u64 low, u64 high)
{
	return value < low ? low : value > high ? high : value;
}

/* Whether sequence number or counter `a` is beyond `b` (both wrap around). */
INLINE _Bool after(u32 a, u32 b)
{
	return (s32)(b - a) < 0;
}

/* value * num / den without overflow for value * num < 2^64; 0 if den is. */
INLINE u64 scale(u64 value, u64 num, u64 den)
{
	return den ? value * num / den : 0;
}

INLINE _Bool in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Whether the window was what limited the sender. */
INLINE _Bool at_limit(const struct tcp_sock *tp)
{
#ifdef NARROWS_HOST
	return tp->is_cwnd_limited;
#else
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
#endif
}

/* Whether the window may grow: one that is not used up is no evidence for more. In slow start a window half of
 * which was used may grow, or bursts of an application would hold it down. */
INLINE _Bool window_limited(const struct tcp_sock *tp)
{
	if (at_limit(tp))
		return 1;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Asks for pacing, at 2 windows per round trip in early slow start and 1.2 otherwise: by TCP's own timer,
 * unless the fq queue paces already. */
INLINE void pace(struct sock *sk)
{
	if (sk->sk_pacing_status == PACING_NONE)
		sk->sk_pacing_status = PACING_NEEDED;
}

/* Packets in flight before those that were just found lost are taken out. */
INLINE u32 in_flight_before_loss(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out + tp->retrans_out;
}

/* Packets in flight. */
INLINE u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

INLINE void set_window(struct tcp_sock *tp, u64 packets)
{
	tp->snd_cwnd = clamp_u64(packets, 1, max_u64(tp->snd_cwnd_clamp, 1));
}

/* Grows by the packets acknowledged, not beyond ssthresh; returns what is left over of `acked` for congestion
 * avoidance. */
INLINE u32 slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 window = tp->snd_cwnd;
	u64 growth = tp->snd_ssthresh > window ? min_u64(acked, tp->snd_ssthresh - window) : 0;

	set_window(tp, window + growth);
	return acked - (u32)growth;
}

/* Grows by one packet for each `per_packet` packets acknowledged (Reno: a window's worth). The remainder is
 * kept in snd_cwnd_cnt, which the kernel clears when it reduces the window. */
INLINE void additive_increase(struct tcp_sock *tp, u32 per_packet, u32 acked)
{
	u32 credit = tp->snd_cwnd_cnt;
	u32 window = tp->snd_cwnd;

	if (!per_packet)
		per_packet = 1;
	if (credit >= per_packet) {
		/* The window shrank since the credit was earned: one packet is due at once. */
		credit = 0;
		window += 1;
	}
	credit += acked;
	if (credit >= per_packet) {
		window += credit / per_packet;
		credit %= per_packet;
	}
	tp->snd_cwnd_cnt = credit;
	set_window(tp, window);
}

/* Slow start as far as it goes; what is left over of `acked` for congestion avoidance: nothing before, and
 * nothing while the window is not used up. */
INLINE u32 after_slow_start(struct tcp_sock *tp, u32 acked)
{
	if (!window_limited(tp))
		return 0;
	if (in_slow_start(tp))
		acked = slow_start(tp, acked);
	return in_slow_start(tp) ? 0 : acked;
}

/* Slow start, then one packet more for each window acknowledged. */
INLINE void grow_like_reno(struct tcp_sock *tp, u32 acked)
{
	acked = after_slow_start(tp, acked);
	if (acked)
		additive_increase(tp, tp->snd_cwnd, acked);
}

/* Grows by `q32`/2^32 packets; the remainder is kept in `fraction` (Q32). */
INLINE void grow_q32(struct tcp_sock *tp, u32 *fraction, u64 q32)
{
	u64 sum = (u64)*fraction + (u32)q32;

	set_window(tp, (u64)tp->snd_cwnd + (q32 >> 32) + (sum >> 32));
	*fraction = (u32)sum;
}

/* Slow start by `growth` packets (Q16), otherwise as slow_start; `gain` is the growth for each packet
 * acknowledged (Q16), by which what is left over is counted. */
INLINE u32 slow_start_growth(struct tcp_sock *tp, u32 *fraction, u64 growth, u64 gain)
{
	u32 window = tp->snd_cwnd;
	u64 room = tp->snd_ssthresh > window ? (u64)(tp->snd_ssthresh - window) << 16 : 0;

	if (growth < room) {
		grow_q32(tp, fraction, growth << 16);
		return 0;
	}
	set_window(tp, (u64)window + (room >> 16));
	*fraction = 0;
	return gain ? (growth - room) / gain : 0;
}

INLINE u32 slow_start_q16(struct tcp_sock *tp, u32 *fraction, u32 acked, u64 gain)
{
	return slow_start_growth(tp, fraction, acked * gain, gain);
}

/* The window in packets, Q16, with its fraction in Q32. */
INLINE u64 window_q16(const struct tcp_sock *tp, u32 fraction)
{
	return ((u64)tp->snd_cwnd << 16) | (fraction >> 16);
}

/* Sets the window to `q16`/65536 packets (at least one). */
INLINE void set_window_q16(struct tcp_sock *tp, u32 *fraction, u64 q16)
{
	*fraction = q16 < Q16_ONE ? 0 : (u32)(q16 << 16);
	set_window(tp, q16 >> 16);
}

/* Grows by `q16`/65536 packets per window of packets acknowledged, of which `acked` are here: the rule of
 * additive increase for growth that is no whole number. */
INLINE void grow_per_window(struct tcp_sock *tp, u32 *fraction, u64 q16, u32 acked)
{
	grow_q32(tp, fraction, scale(q16 * acked, 1 << 24, window_q16(tp, *fraction) >> 8));
}

/* Ends slow start here. */
INLINE void exit_slow_start(struct tcp_sock *tp)
{
	tp->snd_ssthresh = tp->snd_cwnd;
}

/* ssthresh after a reduction to `q16`/65536 packets: a whole number, rounded down. */
INLINE u32 threshold_q16(u64 q16)
{
	return clamp_u64(q16 >> 16, FLOOR, INFINITE_SSTHRESH - 1);
}

/* The same, with what is lost by rounding kept as the fraction of the window (Q32), so that it does not add
 * up over many reductions. */
INLINE u32 threshold_and_fraction(u64 q16, u32 *fraction)
{
	*fraction = q16 < (u64)FLOOR << 16 ? 0 : (u32)(q16 << 16);
	return threshold_q16(q16);
}

/* The window when a loss turns out to be none. */
INLINE u32 undone_window(const struct tcp_sock *tp)
{
	return max_u64(tp->snd_cwnd, tp->prior_cwnd);
}

/* `undo_cwnd` of a scheme whose state has its rules as `now`, and as `prior` what they were before the last
 * reduction. */
#define UNDO_RULES                                                                                 \
	SEC("struct_ops")                                                                          \
	u32 BPF_PROG(undo_cwnd, struct sock *sk)                                                   \
	{                                                                                          \
		struct state *ca = private_state(sk);                                              \
                                                                                                   \
		ca->now = ca->prior;                                                               \
		return undone_window(tcp_sk(sk));                                                  \
	}

/* `undo_cwnd` of a scheme without rules to take back. */
#define UNDO_WINDOW                                                                                \
	SEC("struct_ops")                                                                          \
	u32 BPF_PROG(undo_cwnd, struct sock *sk)                                                   \
	{                                                                                          \
		return undone_window(tcp_sk(sk));                                                  \
	}

/*
 * `ssthresh` of a scheme that has `reduced(sk)` left after a loss, and what mends it.
 *
 * Some kernels now and then do not run the programs that they call for some milliseconds, and take for the answer
 * what happens to lie on the stack: the address of some code of the kernel, whose lower half is larger than any
 * threshold (seen with Linux 6.18; for another cause Linux 6.1 had mended the same, commit 64696c40d03c). The
 * reduction is lost then, and with a threshold beyond every window the repair sends all it can. The
 * acknowledgement that comes next makes up for the call, and counts it: what was sent meanwhile is sent. Whoever
 * loads a program can read the count when the run is over.
 */
#define REDUCTION(reduced)                                                                         \
	u32 missed SEC(".bss.missed");                                                             \
                                                                                                   \
	SEC("struct_ops")                                                                          \
	u32 BPF_PROG(ssthresh, struct sock *sk)                                                    \
	{                                                                                          \
		return reduced(sk);                                                                \
	}                                                                                          \
                                                                                                   \
	SEC("struct_ops")                                                                          \
	void BPF_PROG(in_ack_event, struct sock *sk, u32 flags)                                    \
	{                                                                                          \
		struct tcp_sock *tp = tcp_sk(sk);                                                  \
		u32 window = tp->snd_cwnd;                                                         \
                                                                                                   \
		if (tp->snd_ssthresh <= INFINITE_SSTHRESH && window <= INFINITE_SSTHRESH)          \
			return;                                                                    \
		__sync_fetch_and_add(&missed, 1);                                                  \
		set_window(tp, tp->prior_cwnd);                                                    \
		if (tp->snd_ssthresh > INFINITE_SSTHRESH)                                          \
			tp->snd_ssthresh = reduced(sk);                                            \
		/* The same happens to `undo_cwnd`; what was undone is the window before. */       \
		if (window <= INFINITE_SSTHRESH)                                                   \
			set_window(tp, window);                                                    \
	}

/* Its members in SCHEME. */
#define REDUCED_BY_SSTHRESH .ssthresh = (void *)ssthresh, .in_ack_event = (void *)in_ack_event

#endif
