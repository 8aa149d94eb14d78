// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Copa: steers towards a rate of one packet per delta times the queueing delay, so that 1/delta packets of the
 * flow are queued.
 *
 * Provenance: V. Arun and H. Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet",
 * NSDI 2018; its reference implementation (github.com/venkatarun95/genericCC, class MarkovianCC, commit d0153f8).
 *
 * Deviations: those of the native scheme; and TCP is reliable and finds its losses itself. The kernel tells one
 * RTT per acknowledgement, that of the newest packet, which counts for all that it acknowledges. There is no
 * timer of two silent seconds: the first timeout of the kernel after so long begins everything anew, and until
 * something is heard the kernel sends one packet per timeout. Other timeouts leave the window alone. Minima
 * over a time are exact to a 32nd of it.
 *
 * The program drives the window itself (no Proportional Rate Reduction) and sets the pacing rate. Its state needs more
 * than the 104 bytes of a scheme and is kept in a storage of the socket. RTTs are in us, the window has steps
 * of 2^-32 packets, 1/delta of 2^-16.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | mode | auto | paper, section 2.2 | 0 auto, 1 constant |
 * | delta | 0.5 | paper, section 2.1; Pantheon from March 2020: 0.1 | 65536 times the value |
 * | velocity | reference | genericCC d0153f8: markoviancc.cc | 0 reference, 1 paper, 2 agreement |
 * | rtt | standing | paper, section 2.1; genericCC 80b516c smoothed it | 0 standing, 1 smoothed |
 * | pacing_gain | 2 | paper, section 2.1; genericCC 80b516c: 1 | 65536 times the value |
 * | beyond | 0 | genericCC: 1, by its count of packets in flight | packets |
 * | halving | paper | paper, section 2.2; genericCC d0153f8 | 0 paper, 1 reference |
 */
#include "include/narrows_extreme.h"

PARAM(mode, 0);
PARAM(delta, Q16(0.5));
PARAM(velocity, 0);
PARAM(rtt, 0);
PARAM(pacing_gain, Q16(2.0));
PARAM(beyond, 0);
PARAM(halving, 0);

enum { REFERENCE, PAPER, AGREEMENT };

/* Smallest window in packets, Q32. */
#define SMALLEST (2 * Q32_ONE)
/* The smallest RTT is that of this time in us, or of this many of itself if that is longer. */
#define BASE_WINDOW 10000000
#define BASE_RTTS 20
/* Gain of the smoothed RTT: 1/16. */
#define GAIN 16
/* Packets of an acknowledgement whose part in what is forgotten is looked at. */
#define MOST_PACKETS 64
/* Smoothed RTTs within which the queue must have been nearly empty, or others do not let it: nearly is a tenth. */
#define EMPTY_RTTS 4
#define NEARLY 10
/* Round trips in one direction after which the paper's velocity begins to double. */
#define PAPER_ROUNDS 3
/* Silence after which everything begins anew, us. */
#define SILENCE 2000000
/* Before the first adjustment packets are spaced by this part of the first RTT. */
#define FIRST_PACKETS 10
/* Losses are judged after more packets than this and two RTTs; beyond 30 % they leave 0.7 of the window. */
#define BRAKE_PACKETS 20
#define BRAKE_SHARE Q16(0.3)
#define BRAKE_KEEPS Q16(0.7)

struct state {
	struct window_min base, standing, low, high; /* the last of negative values */
	u64 smoothed;	/* RTT, us, Q16; 0: none */
	u64 window;	/* packets, Q32 */
	u64 inverse;	/* 1/delta, Q16 */
	u64 grown;	/* when 1/delta last grew, and when losses last halved it (0: never), us */
	u64 lowered;
	u64 since;	/* when the running round trip began, us; 0: none has */
	u64 braked;	/* when losses were last judged, us */
	u64 heard;	/* when something was last heard, or sent after nothing had been in flight, us */
	u32 last_rtt;	/* us */
	u32 velocity;	/* packets */
	s32 balance;	/* steps up less steps down of this round trip, and all of them */
	u32 steps;
	u32 rounds;	/* round trips in this direction */
	u32 initial;	/* window, packets */
	u32 acked;	/* packets, up to the first adjustment */
	u32 packets;	/* acknowledged and lost since `braked`, and lost */
	u32 braked_lost;
	u32 lost;	/* counter of the connection */
	_Bool up, slow_start, competitive;
};

#include "include/narrows_storage.h"

INLINE u64 default_inverse(void)
{
	return scale(Q16_ONE, Q16_ONE, max_u64(param_delta, 1));
}

INLINE void begin(struct sock *sk, struct state *ca)
{
	ca->base.count = ca->standing.count = ca->low.count = ca->high.count = 0;
	ca->smoothed = 0;
	ca->window = (u64)ca->initial << 32;
	ca->inverse = default_inverse();
	ca->grown = ca->lowered = ca->since = 0;
	ca->velocity = ca->balance = ca->steps = 1;
	ca->rounds = ca->acked = ca->packets = ca->braked_lost = 0;
	ca->braked = ca->heard = tcp_sk(sk)->tcp_mstamp;
	ca->lost = tcp_sk(sk)->lost;
	ca->up = ca->slow_start = 1;
	ca->competitive = 0;
	/* The first window leaves unspaced. */
	sk->sk_pacing_rate = ~0ul;
}

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	struct state *ca = stored_state(sk, 1);

	if (!ca)
		return;
	ca->initial = max_u64(tcp_sk(sk)->snd_cwnd, SMALLEST >> 32);
	begin(sk, ca);
	pace(sk);
}

INLINE u64 smooth(u64 smoothed, u32 rtt)
{
	return smoothed - smoothed / GAIN + ((u64)rtt << 16) / GAIN;
}

INLINE void measure(struct state *ca, u32 now, u32 rtt, u32 packets)
{
	u32 base = ca->base.count ? window_least(&ca->base) : rtt, memory, span;
	u64 least, last;

	if (!ca->smoothed)
		ca->smoothed = (u64)rtt << 16;
	/* What is forgotten with one packet stays so with the next: the smoothed RTT at its least is what counts. */
	least = last = smooth(ca->smoothed, rtt);
	for (u32 i = 1; i < MOST_PACKETS && i < packets; i++)
		last = smooth(last, rtt);
	least = min_u64(least, last);
	span = least >> 16;
	memory = max_u64(BASE_WINDOW, (u64)BASE_RTTS * base);
	window_push(&ca->base, now, rtt, memory);
	window_push(&ca->standing, now, rtt, min_u64(memory, span / 2));
	window_push(&ca->low, now, rtt, EMPTY_RTTS * span);
	window_push(&ca->high, now, -(s32)rtt, EMPTY_RTTS * span);
}

/* The RTT that tells of the queue, us, Q8. */
INLINE u64 standing(struct state *ca)
{
	return param_rtt ? ca->smoothed >> 8 : (u64)window_least(&ca->standing) << 8;
}

/* Whether the window is below the target of standing RTT / (queueing delay x delta) packets. */
INLINE _Bool below_target(struct state *ca)
{
	u64 rtt = min_u64(standing(ca), 1ull << 31), base = (u64)window_least(&ca->base) << 8;

	return rtt <= base || min_u64(ca->window >> 16, 1ull << 32) * (rtt - base) < rtt * ca->inverse;
}

/* 1/delta: the parameter's as long as the queue runs nearly empty from time to time. */
INLINE void judge_mode(struct state *ca, u64 now, u32 rtt)
{
	s64 base = window_least(&ca->base), low = window_least(&ca->low), high = -(s64)window_least(&ca->high);

	if (param_mode)
		return;
	if ((low - base) * NEARLY <= high - base) {
		ca->competitive = 0;
		/* The reference keeps what a loss has left for a round trip. */
		if (!param_halving || !ca->lowered || now > ca->lowered + rtt)
			ca->inverse = default_inverse();
	} else if (!ca->competitive) {
		ca->competitive = 1;
		ca->inverse = default_inverse();
		ca->grown = now;
	} else if (now > ca->grown + rtt) {
		ca->inverse = max_u64(min_u64(ca->inverse + Q16_ONE, 1ull << 32), default_inverse());
		ca->grown = now;
	}
}

INLINE void on_loss(struct state *ca, u64 now, u32 lost)
{
	ca->packets += lost;
	ca->braked_lost += lost;
	if (!ca->competitive || (!param_halving && ca->lowered && now <= ca->lowered + ca->last_rtt))
		return;
	ca->inverse = max_u64(ca->inverse / 2, default_inverse());
	ca->lowered = now;
}

INLINE void judge_direction(struct state *ca)
{
	_Bool faster;

	if (ca->up ? ca->balance <= 0 : ca->balance >= 0) {
		ca->up = !ca->up;
		ca->velocity = 1;
		ca->rounds = 1;
		return;
	}
	ca->rounds += ca->since > 0;
	if (param_velocity == AGREEMENT)
		/* Two thirds one way leave a third as the balance. */
		faster = 3 * (ca->balance > 0 ? ca->balance : -ca->balance) >= (s32)ca->steps;
	else
		faster = param_velocity == REFERENCE || ca->rounds >= PAPER_ROUNDS;
	if (faster)
		ca->velocity = min_u64(2 * (u64)ca->velocity, 1 << 30);
	else if (param_velocity == AGREEMENT)
		ca->velocity = 1;
}

/* Judges the round trip if it is over, with the last sample as its length. A window never more than doubles in one. */
INLINE void turn(struct state *ca, u64 now, u32 rtt)
{
	u64 most = scale(ca->window >> 16, 1, ca->inverse);

	if (!ca->since || now > ca->since + rtt) {
		judge_direction(ca);
		ca->since = now;
		ca->balance = ca->steps = 0;
	}
	if (param_velocity == AGREEMENT)
		ca->velocity = min_u64(ca->velocity, most);
	else if (ca->velocity * ca->inverse > ca->window >> 16)
		ca->velocity /= 2;
	ca->velocity = max_u64(ca->velocity, 1);
}

/* What is the same for all packets of an acknowledgement. */
struct ack {
	struct state *ca;
	u64 now;
	u32 rtt;
	u32 first; /* packet that counts */
	_Bool limited;
};

INLINE void adjust(struct state *ca, const struct ack *ack)
{
	_Bool limited = ack->limited, up;
	u64 step;

	if (ca->slow_start) {
		if (limited)
			ca->window += Q32_ONE;
		ca->slow_start = below_target(ca);
		return;
	}
	turn(ca, ack->now, ack->rtt);
	up = below_target(ca);
	if (up && !limited)
		return;
	step = scale(min_u64(ca->velocity * ca->inverse, 1ull << 39), 1 << 24, ca->window >> 24);
	if (up)
		ca->window += step;
	else
		ca->window -= min_u64(step, ca->window);
	ca->window = max_u64(ca->window, SMALLEST);
	ca->balance += up ? 1 : -1;
	ca->steps++;
}

/* Packet `index` is acknowledged. Called by the kernel, which follows it once, not once for each packet. */
static long on_packet(u32 index, struct ack *ack)
{
	struct state *ca = ack->ca;

	ca->smoothed = smooth(ca->smoothed, ack->rtt);
	if (index >= ack->first)
		adjust(ca, ack);
	return 0;
}

/* Many losses: a buffer so short that delay does not show it. */
INLINE void brake(struct state *ca, u64 now)
{
	if (ca->packets <= BRAKE_PACKETS || now <= ca->braked + 2 * (u64)ca->last_rtt)
		return;
	if ((u64)ca->braked_lost << 16 > ca->packets * BRAKE_SHARE)
		ca->window = max_u64((ca->window >> 16) * BRAKE_KEEPS, SMALLEST);
	ca->braked = now;
	ca->packets = ca->braked_lost = 0;
}

/* So many packets per RTT that tells of the queue, Q8. */
INLINE void space(struct sock *sk, struct state *ca, u64 packets)
{
	u64 bytes = packets * tcp_sk(sk)->mss_cache;

	sk->sk_pacing_rate = max_u64(scale(bytes, 1000000, max_u64(standing(ca) >> 8, 1)) >> 8, 1);
}

/* Pacing by the window is what limits the sender: so many windows per round trip may never get to the limit beyond
 * the window. All but a packet of nine tenths of it are in flight then. */
INLINE _Bool is_full(const struct state *ca, u64 flight)
{
	u64 window = ca->window >> 16;
	u64 paced = (window * min_u64(param_pacing_gain, 16 * Q16_ONE)) >> 16;

	return paced < window + ((param_beyond + 1) << 16) && ((flight + 1) << 16) * 10 >= window * 9;
}

INLINE void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = stored_state(sk, 0);
	u32 rtt, packets = rs->acked_sacked, first, counted;
	u64 now = tp->tcp_mstamp;
	struct ack each;

	if (!ca)
		return;
	if (tp->lost != ca->lost)
		on_loss(ca, now, tp->lost - ca->lost);
	ca->lost = tp->lost;
	if (!packets)
		return;
	ca->heard = now;
	/* Packets that were sent twice have no RTT of their own. */
	rtt = rs->rtt_us >= 0 ? max_u64(rs->rtt_us, 1) : ca->last_rtt;
	if (!rtt)
		return;
	ca->last_rtt = rtt;
	measure(ca, now, rtt, packets);
	judge_mode(ca, now, rtt);
	/* Nothing is concluded from the packets of the first window and most of the second. */
	first = 2 * ca->initial - 1;
	counted = ca->acked + packets > first ? min_u64(ca->acked + packets - first, packets) : 0;
	each = (struct ack){.ca = ca, .now = now, .rtt = rtt, .first = packets - counted,
			    .limited = at_limit(tp) || is_full(ca, rs->prior_in_flight)};
	bpf_loop(packets, on_packet, &each, 0);
	ca->packets += packets;
	brake(ca, now);
	if (counted)
		space(sk, ca, ((ca->window >> 16) * min_u64(param_pacing_gain, 16 * Q16_ONE)) >> 24);
	else if (!ca->acked)
		space(sk, ca, FIRST_PACKETS << 8);
	ca->acked = min_u64(ca->acked + packets, first);
	set_window(tp, (ca->window + (param_beyond << 32) + Q32_ONE - 1) >> 32);
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

/* The window is not reduced by losses; the threshold is not used. */
SEC("struct_ops")
u32 BPF_PROG(ssthresh, struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = stored_state(sk, 0);

	if (ca && event == CA_EVENT_TX_START)
		ca->heard = tp->tcp_mstamp;
}

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = stored_state(sk, 0);

	if (!ca || state != TIMEOUT)
		return;
	if (tp->lost != ca->lost)
		on_loss(ca, tp->tcp_mstamp, tp->lost - ca->lost);
	ca->lost = tp->lost;
	if (tp->tcp_mstamp >= ca->heard + SILENCE)
		begin(sk, ca);
}

SEC("struct_ops")
u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

SCHEME(copa, 0, .init = (void *)init, .ssthresh = (void *)ssthresh, .cong_control = (void *)cong_control,
       .cwnd_event = (void *)cwnd_event, .set_state = (void *)set_state, .undo_cwnd = (void *)undo_cwnd);
#ifndef NARROWS_HOST
SCHEME_BEFORE_6_10(copa, 0, .init = (void *)init, .ssthresh = (void *)ssthresh,
		   .cong_control = (void *)cong_control_before_6_10, .cwnd_event = (void *)cwnd_event,
		   .set_state = (void *)set_state, .undo_cwnd = (void *)undo_cwnd);
#endif
