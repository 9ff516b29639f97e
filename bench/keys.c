/* The keys that all tables work on. */
#include "keys.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

/* A different number for each number, without a pattern. */
static uint64_t scramble(uint64_t x)
{
	x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	x = (x ^ (x >> 29)) * UINT64_C(0x9e3779b97f4a7c15);
	return x ^ (x >> 32);
}

/* The n-th key; `n` is part of it, below 10 million. */
static struct key key_make(uint32_t n)
{
	struct key k = {0};
	uint32_t noise = (uint32_t)scramble(n);
	int len = 0;
	switch (noise % 4) {
	case 0:
		len = snprintf(k.text, sizeof k.text, "user/%07u", n);
		break;
	case 1:
		len = snprintf(k.text, sizeof k.text, "order/2024-%02u/%07u", noise % 12 + 1, n);
		break;
	case 2:
		len = snprintf(k.text, sizeof k.text, "tenant/%06u/session/%08u", noise % 5000, n);
		break;
	case 3:
		len = snprintf(k.text, sizeof k.text, "device/%08x/stream/%08u/part-%02u", noise, n,
		               noise % 64);
		break;
	}
	k.len = (uint32_t)len;
	return k;
}

static void *array_new(size_t count, size_t size)
{
	void *array = calloc(count, size);
	if (!array)
		errx(1, "no memory for %zu keys", count);
	return array;
}

/* The numbers below `count` in random order. */
static uint32_t *order_new(size_t count, uint64_t seed)
{
	uint32_t *order = array_new(count, sizeof *order);
	for (size_t i = 0; i < count; i++) {
		size_t j = scramble(seed + i) % (i + 1);
		order[i] = order[j];
		order[j] = (uint32_t)i;
	}
	return order;
}

/* Keys number `first` to `first + count - 1` in random order. */
static struct key *run_new(size_t count, size_t first, uint64_t seed)
{
	struct key *run = array_new(count, sizeof *run);
	uint32_t *order = order_new(count, seed);
	for (size_t i = 0; i < count; i++)
		run[i] = key_make((uint32_t)(first + order[i]));
	free(order);
	return run;
}

struct keys *keys_new(size_t count)
{
	struct keys *k = array_new(1, sizeof *k);
	k->count = count;
	k->held = run_new(count, 0, 1u << 30);
	k->absent = run_new(count, count, 2u << 30);
	k->order = order_new(count, UINT64_C(3) << 30);
	return k;
}

void keys_free(struct keys *k)
{
	if (!k)
		return;
	free(k->held);
	free(k->absent);
	free(k->order);
	free(k);
}
