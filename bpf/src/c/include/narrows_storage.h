/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Private state of a scheme for which the kernel's 104 bytes are too few: it is kept with the socket and goes
 * with it. Without memory for it `stored_state` is null, and the window stays what it was.
 */
#ifndef NARROWS_STORAGE_H
#define NARROWS_STORAGE_H

#include "narrows_tcp.h"

#ifdef NARROWS_HOST

INLINE void *stored_state(struct sock *sk, _Bool create)
{
	(void)create;
	return host_storage(sk, sizeof(struct state));
}

#else

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct state);
} states SEC(".maps");

INLINE void *stored_state(struct sock *sk, _Bool create)
{
	return bpf_sk_storage_get(&states, sk, 0, create ? BPF_SK_STORAGE_GET_F_CREATE : 0);
}

#endif

#endif
