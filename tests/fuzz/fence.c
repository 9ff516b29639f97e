/* Whoever grants the claims of a queue, and however often its mode changes: their fences grow, and
 * end before they have more bits than a number in JSON. */
#include "queue/fence.h"

#include "fuzz/fuzz.h"

#define MODES 2

struct queue {
	struct fence_base bases[MODES]; /* each mode has granters of its own */
	struct fence_reach reach;
	int mode;
	uint64_t last; /* the highest fence so far */
};

static enum baton_queue_mode mode_of(int mode)
{
	return mode == 0 ? BATON_QUEUE_PULL : BATON_QUEUE_LANE;
}

/* False: there are no more. */
static bool claim(struct queue *q, uint64_t last)
{
	uint64_t fence = 0;
	if (!fence_of_claim(&q->bases[q->mode], &q->reach, last, &fence)) {
		CHECK(fence == 0);
		return false;
	}
	CHECK(fence > q->last && fence > last && fence <= FENCE_MAX);
	q->last = fence;
	return true;
}

/* Somebody else grants. False: there are no more. */
static bool grant(struct queue *q, uint64_t floor)
{
	struct fence_base *base = &q->bases[q->mode];
	uint64_t last = fence_granter_last(base), next = 0;
	if (!fence_next(FENCE_GRANTER, last, floor, &next))
		return false;
	CHECK(next > last && next > floor && next < UINT64_C(1) << 33);
	*base = (struct fence_base){.granter = next};
	return true;
}

static void change_mode(struct queue *q)
{
	fence_reach_mode(&q->reach, mode_of(q->mode), mode_of(1 - q->mode));
	q->mode = 1 - q->mode;
}

/* As if that many had been made. */
static void skip_claims(struct queue *q, uint64_t many)
{
	uint64_t room = FENCE_MAX - q->last;
	claim(q, q->last + (many < room ? many : room));
}

/* A byte says what happens, the next one how much of it. */
static bool step(struct queue *q, uint8_t what, uint8_t much)
{
	switch (what % 5) {
	case 0:
		return claim(q, 0);
	case 1:
		return claim(q, q->last - (much < q->last ? much : q->last));
	case 2:
		return grant(q, (uint64_t)much << (what >> 3));
	case 3:
		change_mode(q);
		return true;
	default:
		skip_claims(q, (uint64_t)much << (what >> 3) % 46);
		return true;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct queue q = {.mode = 0};
	for (int i = 0; i < MODES; i++)
		q.bases[i].granter = 1;
	for (size_t i = 0; i + 1 < size && step(&q, data[i], data[i + 1]); i += 2)
		;
	return 0;
}
