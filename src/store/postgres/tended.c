/* How far the queues are known to be tended. */
#include "store/postgres/tended.h"

int64_t tended_since(const struct tended all[TENDED_QUEUES], uint64_t queue, int64_t now_ms)
{
	const struct tended *t = &all[queue % TENDED_QUEUES];
	if (t->queue != queue || now_ms < t->seen_ms || now_ms - t->all_ms >= TENDED_ALL_MS)
		return 0;
	return t->since_ms;
}

void tended_note(struct tended all[TENDED_QUEUES], uint64_t queue, int64_t since_ms, int64_t now_ms,
                 bool clear)
{
	struct tended *t = &all[queue % TENDED_QUEUES];
	if (t->queue != queue || now_ms < t->seen_ms)
		*t = (struct tended){.queue = queue};
	if (clear && since_ms == 0)
		t->all_ms = now_ms;
	if (clear && since_ms <= t->since_ms)
		t->since_ms = t->seen_ms;
	t->seen_ms = now_ms;
}
