/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a congestion control program takes from libbpf and the kernel, for tests that run it as an ordinary
 * program. Included by narrows_tcp.h with NARROWS_HOST.
 */
#ifndef NARROWS_HOST_H
#define NARROWS_HOST_H

#include <linux/types.h>

#define SEC(name)
#define BPF_PROG(name, ...) name(__VA_ARGS__)
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

struct sock;

/* The clock, the random numbers and the storage of the test. */
__u64 bpf_ktime_get_ns(void);
__u32 bpf_get_prandom_u32(void);
void *host_storage(struct sock *sk, __u32 size);
/* Counts acknowledgements sent by the program, with what they acknowledge. */
long bpf_tcp_send_ack(void *tp, __u32 rcv_nxt);

#define bpf_loop(count, call, context, flags)                                                      \
	for (__u32 index = 0; index < (count); index++)                                            \
	call(index, context)

#endif
