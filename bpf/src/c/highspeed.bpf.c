// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * HighSpeed TCP: growth and reduction are functions of the window.
 *
 * Provenance: RFC 3649 (December 2003), with limited slow start (RFC 3742) on request. Deviations: the
 * functions a(w) and b(w) are interpolated between points 10 % apart (error below 0.1 %) and end at 94 717
 * packets, the last row of the RFC's table.
 *
 * Up to 38 packets it is Reno. Above, growth per round trip rises to 72 packets and the share removed falls
 * to a tenth. `lookup: table` (1) uses the RFC's table of 73 rows as Linux (net/ipv4/tcp_highspeed.c) reads
 * it: the row of the smallest window that is not below the current one. Packets acknowledged are counted,
 * never acknowledgements, and a loss that ends slow start is judged at the window where it happens (Linux
 * halves there). Growth has steps of 2^-32 packets, a(w) and b(w) of 2^-16.
 *
 * | parameter | default | source | encoding |
 * |---|---|---|---|
 * | lookup | functions | RFC 3649, section 5; the table is its appendix B | 0 functions, 1 table |
 * | max_ssthresh | 0 | RFC 3742 (off unless given; it suggests 100) | packets |
 */
#include "include/narrows_tcp.h"
#include "include/highspeed_rows.h"

PARAM(lookup, 0);
PARAM(max_ssthresh, 0);

struct state {
	u32 fraction; /* of the window, Q32 */
};
STATE_FITS(struct state);

/* Index of the first row whose window is not below `window`, or of the last: a search in seven steps. */
INLINE u32 find(const struct row *rows, u32 used, u32 window)
{
	u32 below = 0;

	for (u32 step = ROWS / 2; step; step /= 2) {
		u32 last = below + step - 1;
		if (last + 1 < used && rows[last & (ROWS - 1)].window < window)
			below += step;
	}
	return below;
}

/* Growth and reduction at `window` in 1/256 packets. */
INLINE struct row at(u32 window)
{
	u32 index;

	if (param_lookup)
		return TABLE[find(TABLE, TABLE_USED, window) & (ROWS - 1)];
	index = find(FUNCTIONS, FUNCTIONS_USED, window);
	struct row above = FUNCTIONS[index & (ROWS - 1)];
	if (index == 0 || window >= above.window)
		return above;
	struct row below = FUNCTIONS[(index - 1) & (ROWS - 1)];
	u64 way = window - below.window, whole = above.window - below.window;
	below.increase += way * (above.increase - below.increase) / max_u64(whole, 1);
	below.decrease -= way * (below.decrease - above.decrease) / max_u64(whole, 1);
	return below;
}

INLINE struct row row_of(const struct tcp_sock *tp, const struct state *ca)
{
	return at(min_u64(window_q16(tp, ca->fraction) >> 8, ~0u));
}

INLINE u32 reduced(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u64 kept = Q16_ONE - row_of(tp, ca).decrease;

	return threshold_and_fraction((window_q16(tp, ca->fraction) * kept) >> 16, &ca->fraction);
}
REDUCTION(reduced)

SEC("struct_ops")
void BPF_PROG(cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *ca = private_state(sk);
	u64 limit = param_max_ssthresh;

	if (!window_limited(tp))
		return;
	if (in_slow_start(tp)) {
		u64 k = limit && tp->snd_cwnd > limit ? 2 * tp->snd_cwnd / limit : 1;
		acked = slow_start_q16(tp, &ca->fraction, acked, Q16_ONE / max_u64(k, 1));
	}
	if (acked && !in_slow_start(tp))
		grow_per_window(tp, &ca->fraction, row_of(tp, ca).increase, acked);
}

UNDO_WINDOW

SCHEME(highspeed, 0, REDUCED_BY_SSTHRESH, .cong_avoid = (void *)cong_avoid, .undo_cwnd = (void *)undo_cwnd);
