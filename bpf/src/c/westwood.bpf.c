// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Westwood+: after a loss the window is set to the measured capacity of the path, instead of being halved.
 *
 * Provenance: L. A. Grieco and S. Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and
 * Vegas TCP congestion control", ACM CCR 34(2), 2004; filter as in Linux net/ipv4/tcp_westwood.c. What is
 * delivered in max(RTT, 50 ms) is one sample of the bandwidth; samples pass two filters in a row, each of
 * which takes an eighth of what is new. A loss sets threshold and window to bandwidth times smallest RTT.
 * Growth is Reno's.
 *
 * Deviations: packets delivered are counted by the kernel (selective acknowledgements), so duplicate
 * acknowledgements need no rules of their own. Before the first sample of bandwidth a loss halves the window.
 * Linux halves the window while losses are being repaired and puts the measured value in place afterwards
 * (`repair: half`, 1). The kernel asks for the threshold before it says whether a timeout was the reason.
 *
 * The bandwidth has steps of 2^-16 packets per second, RTTs are in us.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | repair | estimate | Grieco and Mascolo 2004; half: Linux tcp_westwood | 0 estimate, 1 half |
 * | interval | 50 ms | Linux tcp_westwood | us |
 */
#include "include/narrows_tcp.h"

PARAM(repair, 0);
PARAM(interval, 50000);

struct rules {
	u64 began;     /* when the running sample began, us; 0: not yet */
	u64 once;      /* packets per second after one filter and after two, Q16 */
	u64 twice;
	u32 delivered; /* the connection's counter then */
	u32 latest_rtt;
	u32 min_rtt; /* us; 0: not known */
	u32 due;     /* the window is halved; the measured value is due when the repair ends */
};

struct state {
	struct rules now;
	struct rules prior;
	u32 fraction; /* of the window, Q32 */
};
STATE_FITS(struct state);

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	struct rules *now = &ca->now;
	s32 rtt = sample->rtt_us;
	u64 passed, measured;

	if (rtt >= 0) {
		now->latest_rtt = rtt ? rtt : 1;
		if (!now->min_rtt || now->latest_rtt < now->min_rtt)
			now->min_rtt = now->latest_rtt;
	}
	if (!now->began) {
		/* What arrives first was sent before the clock ran. */
		now->began = tp->tcp_mstamp;
		now->delivered = tp->delivered;
		return;
	}
	passed = tp->tcp_mstamp - now->began;
	if (passed <= max_u64(param_interval, now->latest_rtt))
		return;
	measured = scale((u64)(tp->delivered - now->delivered) << 16, 1000000, passed);
	if (!now->once) {
		now->once = now->twice = measured;
	} else {
		now->once = (7 * now->once + measured) / 8;
		now->twice = (7 * now->twice + now->once) / 8;
	}
	now->began = tp->tcp_mstamp;
	now->delivered = tp->delivered;
}

/* What the path carries without queues, in packets; 0: not known. */
INLINE u32 estimate(const struct rules *now)
{
	if (!now->twice || !now->min_rtt)
		return 0;
	return clamp_u64(now->twice * now->min_rtt / 1000000 >> 16, FLOOR, INFINITE_SSTHRESH - 1);
}

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	grow_like_reno(tcp_sk(sk), acked);
}

INLINE u32 reduced(struct sock *sk)
{
	struct state *ca = private_state(sk);
	u64 half = window_q16(tcp_sk(sk), ca->fraction) / 2;
	u32 measured = estimate(&ca->now);

	ca->prior = ca->now;
	ca->now.due = param_repair;
	if (ca->now.due || !measured)
		return threshold_and_fraction(half, &ca->fraction);
	ca->fraction = 0;
	return measured;
}
REDUCTION(reduced)

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u32 measured = estimate(&ca->now);

	if (state != TIMEOUT)
		return;
	if (ca->now.due && measured && phase(sk) <= DISORDER)
		tp->snd_ssthresh = measured;
	ca->now.due = 0;
	ca->now.min_rtt = 0;
}

SEC("struct_ops")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u32 measured = estimate(&ca->now);

	if (event != CA_EVENT_COMPLETE_CWR)
		return;
	if (ca->now.due && measured) {
		tp->snd_cwnd = tp->snd_ssthresh = measured;
		ca->fraction = 0;
	}
	ca->now.due = 0;
}

UNDO_RULES

SCHEME(westwood, 0, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid,
       .set_state = (void *)set_state, .cwnd_event = (void *)cwnd_event, .pkts_acked = (void *)pkts_acked,
       .undo_cwnd = (void *)undo_cwnd);
