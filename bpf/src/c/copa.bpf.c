// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Copa: a target rate of one packet per delta times the queueing delay, approached in steps that grow while the
 * direction stays the same.
 *
 * Provenance: V. Arun and H. Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet",
 * NSDI 2018, with the constants of the authors' reference implementation (github.com/venkatarun95/genericCC,
 * class MarkovianCC): velocity doubles every round trip in the same direction (`velocity_after: 3` is the
 * paper), modes are told apart over four smoothed round trips (paper: five), and the window is cut by 0.3 when
 * more than 30 % are lost. In competitive mode 1/delta grows by one per round trip and halves at a loss.
 *
 * Deviations: minima over a time are those of its last two halves, so that a value is forgotten after between
 * half of it and all of it; acknowledgements of several packets make one step of as many; a timeout begins slow
 * start anew with the kernel's window of one packet, and the reference's start after two silent seconds is left
 * out. Losses are what the kernel takes for losses. There is no native scheme to compare with yet.
 *
 * The program drives the window itself (no Proportional Rate Reduction) and paces at two windows per standing
 * RTT, the smallest RTT of the last half of a round trip. RTTs are in us, the window has steps of 2^-32 packets,
 * velocity and 1/delta of 2^-16.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | delta | 0.5 | Arun and Balakrishnan 2018 | 65536 times the value |
 * | mode | auto | Arun and Balakrishnan 2018 | 0 auto, 1 constant |
 * | velocity_after | 1 round trip | reference implementation; the paper has 3 | count |
 */
#include "include/narrows_tcp.h"

PARAM(delta, Q16(0.5));
PARAM(mode, 0);
PARAM(velocity_after, 1);

/* Nothing is concluded from the first acknowledgements. */
#define WARM_UP 19
#define SMALLEST 2
/* Memory of the smallest RTT: us, and round trips. */
#define MEMORY 10000000
#define MEMORY_ROUNDS 20
/* Round trips in which the queue must have run nearly empty, or others do not let it: nearly is a tenth. */
#define DETECTION 4
#define NEARLY 10
/* Losses are looked at after this many round trips and packets; beyond 30 % 0.7 of the window are left. */
#define LOSS_ROUNDS 2
#define LOSS_PACKETS 20
#define LOSS_SHARE Q16(0.3)
#define LOSS_KEPT Q16(0.7)
/* Pacing rate in windows per standing RTT. */
#define PACE 2

/* An extreme of the last two halves of a time. */
struct extreme {
	u32 current;
	u32 last;
	u32 since; /* us, wraps around */
};

struct state {
	struct extreme min;	 /* RTT in us: of ten seconds, */
	struct extreme standing; /* of half a round trip, */
	struct extreme min4;	 /* of four round trips, */
	u32 max4, last_max4;	 /* and the largest of those */
	u32 fraction;		 /* of the window, Q32 */
	u32 velocity;		 /* packets, Q16 */
	u32 inverse;		 /* 1/delta, Q16 */
	u32 turned;		 /* when the direction was judged last, us */
	u32 adjusted;		 /* when 1/delta was */
	u32 looked;		 /* when losses were */
	u32 lost, delivered;	 /* counters of the connection then */
	s16 ups;		 /* steps up less steps down since `turned`, bounded */
	u8 same;		 /* round trips in the same direction */
	u8 up : 1;
	u8 slow_start : 1;
	u8 warm : 6; /* acknowledgements heard, up to WARM_UP */
	u32 srtt;
};
STATE_FITS(struct state);

INLINE u64 inverse_of_default(void)
{
	return scale(Q16_ONE, Q16_ONE, max_u64(param_delta, 1));
}

INLINE void begin(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);

	__builtin_memset(ca, 0, sizeof(*ca));
	ca->velocity = Q16_ONE;
	ca->inverse = inverse_of_default();
	ca->turned = ca->adjusted = ca->looked = tp->tcp_mstamp;
	ca->lost = tp->lost;
	ca->delivered = tp->delivered;
	ca->up = 1;
	ca->slow_start = 1;
}

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	begin(sk);
	pace(sk);
}

/* Whether the halves moved along, which happens `span` / 2 us after the last time. */
INLINE _Bool smallest(struct extreme *min, u32 now, u32 rtt, u32 span)
{
	_Bool moved = !min->since || now - min->since > span / 2;

	if (moved) {
		min->last = min->current;
		min->current = rtt;
		min->since = now | 1;
	} else if (rtt < min->current) {
		min->current = rtt;
	}
	return moved;
}

INLINE u32 least(const struct extreme *min)
{
	return min->last && min->last < min->current ? min->last : min->current;
}

INLINE void measure(struct state *ca, u32 now, u32 rtt)
{
	ca->srtt = ca->srtt ? ca->srtt - ca->srtt / 16 + rtt / 16 : rtt;
	smallest(&ca->min, now, rtt, max_u64(MEMORY, (u64)MEMORY_ROUNDS * rtt));
	smallest(&ca->standing, now, rtt, ca->srtt / 2);
	if (smallest(&ca->min4, now, rtt, DETECTION * ca->srtt)) {
		ca->last_max4 = ca->max4;
		ca->max4 = rtt;
	} else if (rtt > ca->max4) {
		ca->max4 = rtt;
	}
}

/* Sets 1/delta by mode: the default as long as the queue runs nearly empty from time to time. */
INLINE void judge_mode(struct state *ca, u32 now, u32 rtt, _Bool lost)
{
	u32 floor = least(&ca->min), highest = max_u64(ca->max4, ca->last_max4);
	u64 inverse = inverse_of_default();

	if (param_mode || (u64)(least(&ca->min4) - floor) * NEARLY < highest - floor || highest <= floor) {
		ca->inverse = inverse;
		return;
	}
	if (now - ca->adjusted < rtt)
		return;
	ca->adjusted = now;
	ca->inverse = lost ? ca->inverse / 2 : min_u64((u64)ca->inverse + Q16_ONE, Q16(4096.0));
	ca->inverse = max_u64(ca->inverse, inverse);
}

/* Once per round trip: velocity doubles while the window keeps going the same way. */
INLINE void judge_direction(struct state *ca, u32 now, u32 rtt)
{
	if (now - ca->turned <= rtt)
		return;
	if (ca->up ? ca->ups > 0 : ca->ups < 0) {
		ca->same = ca->same < 255 ? ca->same + 1 : 255;
		if (ca->same >= param_velocity_after)
			ca->velocity = min_u64((u64)ca->velocity * 2, Q16(16384.0)) & ~(u32)(Q16_ONE - 1);
	} else {
		ca->velocity = Q16_ONE;
		ca->same = 0;
		ca->up = !ca->up;
	}
	ca->turned = now;
	ca->ups = 0;
}

/* Moves the window by velocity / (delta window) for each packet acknowledged. */
INLINE void move(struct tcp_sock *tp, struct state *ca, u32 acked, _Bool up)
{
	u64 window = window_q16(tp, ca->fraction), whole, step;

	if ((u64)ca->velocity * ca->inverse >> 16 > window) /* v > w delta */
		ca->velocity /= 2;
	ca->velocity = max_u64(ca->velocity, Q16_ONE);
	step = ((u64)ca->velocity * ca->inverse) >> 16;
	if (up) {
		grow_per_window(tp, &ca->fraction, step, acked);
		ca->ups += ca->ups < 10000;
		return;
	}
	whole = ((u64)tp->snd_cwnd << 32) | ca->fraction;
	step = scale(step * acked, 1 << 24, window >> 8);
	whole = whole > step ? whole - step : 0;
	whole = max_u64(whole, SMALLEST * Q32_ONE);
	ca->fraction = (u32)whole;
	set_window(tp, whole >> 32);
	ca->ups -= ca->ups > -10000;
}

INLINE void brake(struct tcp_sock *tp, struct state *ca, u32 now, u32 rtt)
{
	u32 lost = tp->lost - ca->lost, all = lost + tp->delivered - ca->delivered;

	if (now - ca->looked <= LOSS_ROUNDS * rtt || all <= LOSS_PACKETS)
		return;
	if ((u64)lost << 16 > all * LOSS_SHARE) {
		u64 kept = (window_q16(tp, ca->fraction) * LOSS_KEPT) >> 16;
		set_window_q16(tp, &ca->fraction, max_u64(kept, SMALLEST * Q16_ONE));
	}
	ca->looked = now;
	ca->lost = tp->lost;
	ca->delivered = tp->delivered;
}

INLINE void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u32 now = tp->tcp_mstamp, acked = rs->acked_sacked, rtt, standing, delay;

	if (rs->rtt_us <= 0 || !acked)
		return;
	rtt = rs->rtt_us;
	measure(ca, now, rtt);
	standing = least(&ca->standing);
	judge_mode(ca, now, rtt, rs->losses > 0);
	if (ca->warm < WARM_UP) {
		ca->warm++;
	} else {
		/* The target is standing / (delay delta) packets. */
		u64 window = window_q16(tp, ca->fraction);
		delay = standing > least(&ca->min) ? standing - least(&ca->min) : 0;
		_Bool below = window * delay < (u64)standing * ca->inverse;
		if (ca->slow_start) {
			if (window_limited(tp))
				set_window(tp, (u64)tp->snd_cwnd + acked);
			ca->slow_start = window_q16(tp, ca->fraction) * delay < (u64)standing * ca->inverse;
		} else {
			judge_direction(ca, now, rtt);
			if (!below || window_limited(tp))
				move(tp, ca, acked, below);
		}
	}
	brake(tp, ca, now, rtt);
	sk->sk_pacing_rate = scale(PACE * (u64)tp->snd_cwnd * tp->mss_cache, 1000000, standing);
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

/* The window is not reduced by losses; what the kernel asks for is for information only. */
SEC("struct_ops")
u32 BPF_PROG(ssthresh, struct sock *sk)
{
	return max_u64(tcp_sk(sk)->snd_cwnd, FLOOR);
}

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	if (state == TIMEOUT)
		begin(sk);
}

SEC("struct_ops")
u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	return undone_window(tcp_sk(sk));
}

SCHEME(copa, 0, .init = (void *)init, .ssthresh = (void *)ssthresh, .cong_control = (void *)cong_control,
       .set_state = (void *)set_state, .undo_cwnd = (void *)undo_cwnd);
#ifndef NARROWS_HOST
SCHEME_BEFORE_6_10(copa, 0, .init = (void *)init, .ssthresh = (void *)ssthresh,
		   .cong_control = (void *)cong_control_before_6_10, .set_state = (void *)set_state,
		   .undo_cwnd = (void *)undo_cwnd);
#endif
