/* The runners of a store at one moment, and the shards that they have. */
#include "runners.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "holds.h"
#include "json.h"
#include "table.h"
#include "text.h"

#define PAGE 64

static const char *const wishes[] = {
	[BATON_WISH_WORK] = "work",
	[BATON_WISH_DRAIN] = "drain",
	[BATON_WISH_DETACH] = "detach",
	[BATON_WISH_LEAVE] = "leave",
};

/* Room for `more` elements behind those that are there. */
static bool grow(void **items, size_t count, size_t *cap, size_t more, size_t size)
{
	if (count + more <= *cap)
		return true;
	size_t wanted = *cap * 2 > count + more ? *cap * 2 : count + more;
	void *larger = reallocarray(*items, wanted, size);
	if (!larger)
		return false;
	*items = larger;
	*cap = wanted;
	return true;
}

static enum baton_err infos_read(struct runners *r, struct baton_store *store)
{
	size_t found = PAGE;
	while (found == PAGE) {
		uint64_t after = r->count > 0 ? r->infos[r->count - 1].number : 0;
		if (!grow((void **)&r->infos, r->count, &r->cap, PAGE, sizeof *r->infos))
			return BATON_NO_MEMORY;
		enum baton_err e =
			baton_runner_list(store, after, r->infos + r->count, PAGE, &found);
		if (e != BATON_OK)
			return e;
		r->count += found;
	}
	return BATON_OK;
}

static int by_number(const void *key, const void *item)
{
	uint64_t number = *(const uint64_t *)key;
	uint64_t other = ((const struct baton_runner_info *)item)->number;
	return (number > other) - (number < other);
}

/* What each runner has of the queue: `counts` are as many zeros as there are runners. One that has
 * come since they were read is left out. */
static enum baton_err shares_add(struct runners *r, const struct baton_queue_info *queue,
                                 const struct baton_shard_answer *answers, uint32_t *counts)
{
	for (uint32_t i = 0; i < queue->policy.shards; i++) {
		const struct baton_runner_info *info =
			bsearch(&answers[i].runner, r->infos, r->count, sizeof *r->infos,
		                by_number);
		if (info)
			counts[info - r->infos]++;
	}
	if (!grow((void **)&r->shares, r->share_count, &r->share_cap, r->count, sizeof *r->shares))
		return BATON_NO_MEMORY;
	for (size_t i = 0; i < r->count; i++) {
		if (counts[i] == 0)
			continue;
		struct runner_share *share = &r->shares[r->share_count++];
		*share = (struct runner_share){.runner = i, .count = counts[i]};
		memcpy(share->queue, queue->name, sizeof share->queue);
	}
	return BATON_OK;
}

static enum baton_err queue_read(struct runners *r, struct baton_store *store,
                                 const struct baton_queue_info *queue)
{
	struct baton_shard_answer *answers = calloc(queue->policy.shards, sizeof *answers);
	uint32_t *counts = calloc(r->count, sizeof *counts);
	enum baton_err e = BATON_NO_MEMORY;
	if (answers && counts)
		e = baton_shard_list(store, baton_str_z(queue->name), 0, answers,
		                     queue->policy.shards);
	if (e == BATON_OK)
		e = shares_add(r, queue, answers, counts);
	free(answers);
	free(counts);
	return e;
}

static enum baton_err shares_read(struct runners *r, struct baton_store *store,
                                  struct baton_queue_info *queues)
{
	char after[BATON_NAME_MAX + 1] = "";
	size_t count;
	do {
		enum baton_err e =
			baton_queue_list(store, baton_str_z(after), queues, PAGE, &count);
		for (size_t i = 0; i < count && e == BATON_OK; i++) {
			if (queues[i].policy.mode == BATON_QUEUE_RUNNER)
				e = queue_read(r, store, &queues[i]);
		}
		if (e != BATON_OK)
			return e;
		if (count > 0)
			memcpy(after, queues[count - 1].name, sizeof after);
	} while (count == PAGE);
	return BATON_OK;
}

/* What a runner told last is not true any more when it is dead. */
static void tell_dead(struct runners *r, const struct baton_store *store)
{
	for (size_t i = 0; i < r->count; i++) {
		struct baton_runner_info *info = &r->infos[i];
		if (baton_owner_is_dead(baton_store_owner(store), &info->owner, BATON_REACH_HOSTS))
			snprintf(info->state, sizeof info->state, "dead");
	}
}

enum baton_err runners_read(struct runners *r, struct baton_store *store)
{
	enum baton_err e = infos_read(r, store);
	if (e == BATON_OK)
		tell_dead(r, store);
	if (e != BATON_OK || r->count == 0)
		return e;
	struct baton_queue_info *queues = calloc(PAGE, sizeof *queues);
	if (!queues)
		return BATON_NO_MEMORY;
	e = shares_read(r, store, queues);
	free(queues);
	return e;
}

void runners_done(struct runners *r)
{
	free(r->infos);
	free(r->shares);
	*r = (struct runners){.infos = NULL};
}

/* The cells of one row, and the room for their texts. */
struct row {
	char name[TEXT_SHOWN(BATON_NAME_MAX)];
	char host[TEXT_SHOWN(BATON_NAME_MAX)];
	char state[TEXT_SHOWN(BATON_NAME_MAX)];
	char numbers[2][24];
	char *shards; /* [room] */
	size_t room;
	const char *cells[TABLE_COLUMNS_MAX];
};

static const struct table_column columns[] = {
	{"RUNNER", false}, {"NUMBER", true}, {"HOST", false},   {"WEIGHT", true},
	{"STATE", false},  {"WISH", false},  {"SHARDS", false},
};

/* As "mail 12, video 3". */
static const char *print_shares(const struct runners *r, size_t runner, char *text, size_t room)
{
	size_t used = 0;
	for (size_t i = 0; i < r->share_count; i++) {
		char queue[TEXT_SHOWN(BATON_NAME_MAX)];
		const struct runner_share *s = &r->shares[i];
		if (s->runner == runner)
			used += (size_t)snprintf(text + used, room - used, "%s%s %" PRIu32,
			                         used > 0 ? ", " : "",
			                         text_show(baton_str_z(s->queue), "", queue),
			                         s->count);
	}
	return used > 0 ? text : "-";
}

static const char *shown(const char *name, char *text)
{
	return name[0] ? text_show(baton_str_z(name), "", text) : "-";
}

static void row_fill(struct row *row, const struct runners *r, size_t i)
{
	const struct baton_runner_info *info = &r->infos[i];
	snprintf(row->numbers[0], sizeof row->numbers[0], "%" PRIu64, info->number);
	snprintf(row->numbers[1], sizeof row->numbers[1], "%" PRIu32, info->weight);
	const char *cells[] = {
		shown(info->name, row->name),
		row->numbers[0],
		shown(info->host, row->host),
		row->numbers[1],
		shown(info->state, row->state),
		wishes[info->wish],
		print_shares(r, i, row->shards, row->room),
	};
	memcpy(row->cells, cells, sizeof cells);
}

enum baton_err runners_print(const struct runners *r, struct out *out)
{
	struct table table;
	struct row row = {.room = (r->share_count + 1) * (TEXT_SHOWN(BATON_NAME_MAX) + 16)};
	if (r->count == 0)
		return BATON_OK;
	row.shards = malloc(row.room);
	if (!row.shards)
		return BATON_NO_MEMORY;
	table_init(&table, out, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < r->count; i++) {
		row_fill(&row, r, i);
		table_measure(&table, row.cells);
	}
	table_titles(&table);
	for (size_t i = 0; i < r->count && out->errnum == 0; i++) {
		row_fill(&row, r, i);
		table_row(&table, row.cells);
	}
	free(row.shards);
	return BATON_OK;
}

static void queues_json(struct json *j, const char *queues)
{
	json_open_list(j, "queues");
	while (*queues) {
		size_t len = strcspn(queues, "/");
		json_bytes(j, NULL, (struct baton_str){queues, len});
		queues += len;
		queues += *queues == '/';
	}
	json_close_list(j);
}

static void shares_json(struct json *j, const struct runners *r, size_t runner)
{
	json_open_list(j, "shards");
	for (size_t i = 0; i < r->share_count; i++) {
		if (r->shares[i].runner != runner)
			continue;
		json_open(j, NULL);
		json_text(j, "queue", r->shares[i].queue);
		json_number(j, "count", r->shares[i].count);
		json_close(j);
	}
	json_close_list(j);
}

void runners_json(const struct runners *r, const struct figures *figures, struct out *out)
{
	for (size_t i = 0; i < r->count && out->errnum == 0; i++) {
		const struct baton_runner_info *info = &r->infos[i];
		struct json j = {.line = {.out = out}};
		json_open(&j, NULL);
		json_text(&j, "runner", info->name);
		json_number(&j, "number", info->number);
		json_text(&j, "host", info->host);
		pid_json(&j, info->owner.pid);
		json_number(&j, "guardian", (uint64_t)info->guardian);
		json_text(&j, "endpoint", info->endpoint);
		json_text(&j, "labels", info->labels);
		json_number(&j, "weight", info->weight);
		json_span(&j, "ttl_ms", info->ttl);
		json_time(&j, "since", info->since);
		json_text(&j, "state", info->state);
		json_text(&j, "wish", wishes[info->wish]);
		json_text(&j, "life", info->life);
		queues_json(&j, info->queues);
		shares_json(&j, r, i);
		figures_json(figures, i, &j);
		json_close(&j);
		json_end(&j);
	}
}
