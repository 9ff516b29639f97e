/* A store in the memory of one process. */
#include "store/memory/memory.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/memory/check.h"
#include "store/memory/forget.h"
#include "store/memory/lane.h"
#include "store/memory/ops.h"

uint64_t memory_next_number(const struct memory *m)
{
	size_t from = 0, to = m->number_count;
	if (!m->numbers)
		return m->seq + 1;
	while (from < to) {
		size_t mid = from + (to - from) / 2;
		if (m->numbers[mid] <= m->seq)
			from = mid + 1;
		else
			to = mid;
	}
	CHECK(from < m->number_count);
	return m->numbers[from];
}

uint64_t memory_hash(const struct memory *m, const void *bytes, size_t len)
{
	return hash_bytes(&m->seed, bytes, len);
}

int memory_compare(struct baton_str a, struct baton_str b)
{
	size_t least = a.len < b.len ? a.len : b.len;
	int order = least > 0 ? memcmp(a.ptr, b.ptr, least) : 0;
	return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static void memory_close(struct baton_store *store)
{
	struct memory *m = (struct memory *)store;
	struct table *const tables[] = {&m->queues,    &m->lanes,   &m->batches, &m->claims,
	                                &m->sources,   &m->answers, &m->leases,  &m->texts,
	                                &m->schedules, &m->runners, &m->reports, &m->rates};
	for (size_t i = 0; i < sizeof tables / sizeof tables[0] && m->rows == m->store.alloc; i++)
		memory_table_done(tables[i]);
	pthread_mutex_destroy(&m->mu);
	store_done(store);
	mem_free(m->store.alloc, m, 1, sizeof *m);
}

static enum baton_err memory_backup(struct baton_store *store, const char *path,
                                    const struct baton_store_progress *progress)
{
	(void)store;
	(void)path;
	(void)progress;
	return fail(BATON_INVALID, "a store in memory cannot be copied to a file: only \"sqlite:\" "
	                           "stores can");
}

/* There are no other processes. */
static enum baton_err memory_version(struct baton_store *store, uint64_t *ret_version)
{
	(void)store;
	*ret_version = 1;
	return BATON_OK;
}

static const struct store_ops ops = {
	.close = memory_close,
	.lease_claim = memory_lease_claim,
	.lease_renew = memory_lease_renew,
	.lease_release = memory_lease_release,
	.lease_force = memory_lease_force,
	.lease_read = memory_lease_read,
	.lease_list = memory_lease_list,
	.queue_set = memory_queue_set,
	.queue_list = memory_queue_list,
	.queue_get = memory_queue_get,
	.put = memory_put,
	.claim = memory_claim,
	.lane_claim = memory_lane_claim,
	.renew = memory_renew,
	.end = memory_end,
	.next = memory_next,
	.cancel = memory_cancel,
	.revive = memory_revive,
	.get = memory_get,
	.list = memory_list,
	.next_due = memory_next_due,
	.schedule_set = memory_schedule_set,
	.schedule_remove = memory_schedule_remove,
	.schedule_list = memory_schedule_list,
	.schedule_step = memory_schedule_step,
	.runner_add = memory_runner_add,
	.runner_remove = memory_runner_remove,
	.runner_settle = memory_runner_settle,
	.runner_next = memory_runner_next,
	.runner_mark = memory_runner_mark,
	.runner_cancels = memory_runner_cancels,
	.runner_report = memory_runner_report,
	.shard_change = memory_shard_change,
	.shard_list = memory_shard_list,
	.tick = memory_tick,
	.more = memory_more,
	.backup = memory_backup,
	.check = memory_check,
	.tidy = memory_tidy,
	.version = memory_version,
};

#define CHANGES(type) .from = offsetof(type, is), .len = sizeof(((type *)NULL)->is)

void memory_rows_from(struct memory *m, const struct baton_alloc *a)
{
	m->rows = a;
	m->queues = (struct table){.alloc = a, CHANGES(struct queue)};
	m->lanes = (struct table){.alloc = a, CHANGES(struct lane), .left = memory_lane_gone};
	m->batches = (struct table){.alloc = a,
	                            CHANGES(struct batch),
	                            .left = memory_lane_left,
	                            .restored = memory_lane_restored};
	m->claims = (struct table){.alloc = a, CHANGES(struct claim)};
	m->sources = (struct table){.alloc = a, CHANGES(struct source)};
	m->answers = (struct table){.alloc = a};
	m->leases = (struct table){.alloc = a, CHANGES(struct lease)};
	m->texts = (struct table){.alloc = a, CHANGES(struct text)};
	m->schedules = (struct table){.alloc = a, CHANGES(struct schedule)};
	m->runners = (struct table){.alloc = a, CHANGES(struct runner)};
	m->rates = (struct table){.alloc = a, CHANGES(struct rate)};
	m->reports = (struct table){.alloc = a}; /* a new one comes in the place of the last */
}

enum baton_err memory_open(const struct baton_store *store, struct baton_store **ret_store)
{
	struct baton_id seed;
	enum baton_err e = baton_id_random(&seed);
	if (e != BATON_OK)
		return e;
	struct memory *m = mem_new(store->alloc, 1, sizeof *m);
	if (!m)
		return fail_memory(sizeof *m, "a store");
	memcpy(&m->store, store, sizeof m->store);
	m->store.ops = &ops;
	m->seed = seed;
	m->made = baton_store_now(store);
	pthread_mutex_init(&m->mu, NULL);
	pthread_mutex_init(&m->store.beats_mu, NULL);
	memory_rows_from(m, store->alloc);
	*ret_store = &m->store;
	return BATON_OK;
}
