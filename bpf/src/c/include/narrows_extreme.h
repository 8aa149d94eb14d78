/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The smallest value of a sliding window of time whose length may change from value to value, as in the core's
 * parts/window_min.rs. The newest value always counts, however old it is.
 */
#ifndef NARROWS_EXTREME_H
#define NARROWS_EXTREME_H

#include "narrows_tcp.h"

/* Candidates in memory, a power of two. */
#define CANDIDATES 64u
/* A value that comes within this part of the window after a smaller one is not kept apart from it: it leaves the
 * window that much later, and half of the places are enough. */
#define PARTS 32u

/* A value smaller than all that came after it. Times are in us and wrap around. */
struct candidate {
	s32 value;
	u32 at;
	u32 until; /* when the last value came that it stands for */
};

struct window_min {
	struct candidate all[CANDIDATES];
	u32 first;
	u32 count;
};

INLINE struct candidate *candidate(struct window_min *window, u32 index)
{
	return &window->all[(window->first + index) & (CANDIDATES - 1)];
}

/* The smallest value; 0 before any. */
INLINE s32 window_least(struct window_min *window)
{
	return window->count ? candidate(window, 0)->value : 0;
}

/* Takes in a value and forgets those that are older than `span` us. Neither inline nor static: the verifier then
 * follows its loops once for all callers. */
__attribute__((noinline)) int window_push(struct window_min *window, u32 now, s32 value, u32 span)
{
	struct candidate *last;

	if (!window)
		return 0;
	for (u32 i = 0; i < CANDIDATES && window->count; i++) {
		if (candidate(window, window->count - 1)->value < value)
			break;
		window->count--;
	}
	last = candidate(window, window->count - 1);
	if (window->count && now - last->at < span / PARTS) {
		last->until = now;
	} else {
		if (window->count >= CANDIDATES) {
			window->first++;
			window->count = CANDIDATES - 1;
		}
		last = candidate(window, window->count);
		last->value = value;
		last->at = last->until = now;
		window->count++;
	}
	for (u32 i = 0; i < CANDIDATES && window->count > 1; i++) {
		if (now - candidate(window, 0)->until <= span)
			break;
		window->first++;
		window->count--;
	}
	return 0;
}

#endif
