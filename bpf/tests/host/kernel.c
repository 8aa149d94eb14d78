/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Runs a congestion control program of bpf/src/c as an ordinary program: plays the part of the kernel that
 * calls it (order of calls as in Linux net/ipv4/tcp_input.c and tcp_output.c). Reads one event per line,
 * answers each with "cwnd ssthresh pacing_rate acks_sent".
 *
 * The reduced window holds at once, as for the native schemes; the kernel would spread it over the round.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "include/narrows_tcp.h"

extern struct tcp_congestion_ops scheme;

static struct tcp_sock tp;
static struct sock *sk = (struct sock *)&tp;
static _Alignas(8) char storage[4096];
static u64 random_state, acks_sent;
/* Random numbers of the test, used up one by one. */
static u32 randoms[4096], randoms_told, randoms_used;
static u32 prior_ssthresh;
/* The kernel does not run `ssthresh` the next time that it should. */
static _Bool missed;

u64 bpf_ktime_get_ns(void)
{
	return tp.tcp_mstamp * 1000;
}

u32 bpf_get_prandom_u32(void)
{
	if (randoms_used < randoms_told)
		return randoms[randoms_used++];
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return random_state >> 32;
}

void *host_storage(struct sock *unused, u32 size)
{
	(void)unused;
	return size <= sizeof(storage) ? storage : NULL;
}

long bpf_tcp_send_ack(void *unused, u32 rcv_nxt)
{
	(void)unused;
	(void)rcv_nxt;
	acks_sent++;
	return 0;
}

static void set_state(u8 state)
{
	if (scheme.set_state)
		scheme.set_state(sk, state);
	tp.inet_conn.icsk_ca_state = state;
}

static void event(enum tcp_ca_event event)
{
	if (scheme.cwnd_event)
		scheme.cwnd_event(sk, event);
}

/* tcp_init_cwnd_reduction, or its part of tcp_enter_loss. */
static void reduce(void)
{
	prior_ssthresh = tp.snd_ssthresh;
	tp.prior_cwnd = tp.snd_cwnd;
	/* What lay on the stack of Linux 6.18: an address of its code. */
	tp.snd_ssthresh = missed ? 0x81104110u : scheme.ssthresh(sk);
	missed = 0;
	tp.snd_cwnd_cnt = 0;
}

static void fail(const char *line)
{
	fprintf(stderr, "what is this: %s", line);
	exit(2);
}

static void init(const char *args)
{
	unsigned long long now, window, mss, ecn;

	if (sscanf(args, "%llu %llu %llu %llu", &now, &window, &mss, &ecn) != 4)
		fail(args);
	tp.tcp_mstamp = now;
	tp.snd_cwnd = window;
	tp.mss_cache = mss;
	tp.snd_ssthresh = INFINITE_SSTHRESH;
	tp.snd_cwnd_clamp = ~0u;
	tp.ecn_flags = ecn;
	if (scheme.init)
		scheme.init(sk);
}

static void ack(const char *args)
{
	unsigned long long now, acked, limited, before, flight, srtt, una, nxt, delivered, ce, lost;
	unsigned long long rate_delivered, rate_interval, rate_prior, app_limited, departure;
	long long rtt;
	struct ack_sample sample;
	struct rate_sample rs;

	if (sscanf(args, "%llu %llu %lld %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu", &now,
		   &acked, &rtt, &limited, &before, &flight, &srtt, &una, &nxt, &delivered, &ce, &lost,
		   &rate_delivered, &rate_interval, &rate_prior, &app_limited, &departure) != 17)
		fail(args);
	memset(&rs, 0, sizeof(rs));
	rs.losses = lost - tp.lost;
	tp.tcp_mstamp = now;
	tp.tcp_wstamp_ns = departure;
	tp.snd_una = una;
	tp.snd_nxt = nxt;
	tp.packets_out = flight;
	tp.sacked_out = tp.lost_out = tp.retrans_out = 0;
	tp.delivered = delivered;
	tp.delivered_ce = ce;
	tp.lost = lost;
	tp.srtt_us = srtt * 8;
	tp.is_cwnd_limited = limited;
	tp.max_packets_out = 0;
	if (scheme.in_ack_event)
		scheme.in_ack_event(sk, 0);
	sample.pkts_acked = acked;
	sample.rtt_us = rtt;
	sample.in_flight = before;
	if (scheme.pkts_acked)
		scheme.pkts_acked(sk, &sample);
	if (scheme.cong_control) {
		rs.delivered = rate_interval ? (s32)rate_delivered : -1;
		rs.interval_us = rate_interval;
		rs.prior_delivered = rate_prior;
		rs.rtt_us = rtt;
		rs.acked_sacked = acked;
		rs.prior_in_flight = before;
		rs.is_app_limited = app_limited;
		scheme.cong_control(sk, una, 4, &rs);
	} else if (phase(sk) != RECOVERY && phase(sk) != REDUCED) {
		scheme.cong_avoid(sk, una, acked);
	}
}

int main(void)
{
	char line[512], name[64];
	unsigned long long value, now, lost, limited;

	while (fgets(line, sizeof(line), stdin)) {
		const char *args = line + 1;

		switch (line[0]) {
		case 'p': /* a parameter is set */
		case 'g': /* a parameter is asked for */
			name[0] = 0;
			value = 0;
			if (sscanf(args, "%63s %llu", name, &value) < 1)
				fail(line);
			u64 *parameter = dlsym(RTLD_DEFAULT, name);
			if (!parameter)
				fail(line);
			if (line[0] == 'p')
				*parameter = value;
			printf("%llu 0 0 0\n", (unsigned long long)*parameter);
			continue;
		case 'r': /* a random number to come */
			if (sscanf(args, "%llu", &value) != 1 || randoms_told == sizeof(randoms) / sizeof(*randoms))
				fail(line);
			randoms[randoms_told++] = value;
			puts("0 0 0 0");
			continue;
		case 'i': /* the connection is there */
			init(args);
			break;
		case 'k': /* an acknowledgement */
			ack(args);
			break;
		case 'm': /* the next reduction is not asked for */
			missed = 1;
			break;
		case 'l': /* losses open an epoch */
		case 'e': /* marks do */
		case 't': /* a timeout does */
			lost = tp.lost;
			limited = 0;
			/* Of a timeout also what has been lost by now, and whether the application limited the sender. */
			if (sscanf(args, "%llu %llu %llu %llu", &now, &value, &lost, &limited) != (line[0] == 't' ? 4 : 2))
				fail(line);
			tp.tcp_mstamp = now;
			tp.packets_out = value;
			tp.lost = lost;
			tp.app_limited = limited;
			reduce();
			if (line[0] == 't') {
				event(CA_EVENT_LOSS);
				tp.snd_cwnd = 1;
				set_state(TIMEOUT);
			} else {
				tp.snd_cwnd = scheme.cong_control ? tp.snd_cwnd : tp.snd_ssthresh;
				set_state(line[0] == 'e' ? REDUCED : RECOVERY);
			}
			break;
		case 'x': /* everything that was in flight then is settled */
			if (sscanf(args, "%llu", &now) != 1)
				fail(line);
			tp.tcp_mstamp = now;
			if (phase(sk) != TIMEOUT && !scheme.cong_control) {
				tp.snd_cwnd = tp.snd_ssthresh;
				event(CA_EVENT_COMPLETE_CWR);
			}
			set_state(OPEN);
			break;
		case 'u': /* the losses were none */
			if (sscanf(args, "%llu", &now) != 1)
				fail(line);
			tp.tcp_mstamp = now;
			tp.snd_cwnd = scheme.undo_cwnd(sk);
			if (prior_ssthresh > tp.snd_ssthresh)
				tp.snd_ssthresh = prior_ssthresh;
			set_state(OPEN);
			break;
		case 's': /* the first packet after nothing was in flight */
			if (sscanf(args, "%llu %llu", &now, &limited) != 2)
				fail(line);
			tp.tcp_mstamp = now;
			tp.app_limited = limited;
			event(CA_EVENT_TX_START);
			break;
		default:
			fail(line);
		}
		printf("%u %u %lu %llu\n", tp.snd_cwnd, tp.snd_ssthresh, sk->sk_pacing_rate,
		       (unsigned long long)acks_sent);
	}
	return 0;
}
