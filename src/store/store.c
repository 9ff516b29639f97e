/* Opening a store, and what is the same for all of them. */
#include "store/store.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/quote.h"

#define MS INT64_C(1000000)
#define PATIENCE_S 5
#define POLL_MIN_NS (STORE_POLL_MIN_MS * MS)
#define POLL_MAX_NS (STORE_POLL_MAX_MS * MS)
#define RESCAN_NS (5 * MS) /* who put while somebody lay down may not have seen it */
#define RESCAN_MORE 10     /* times as long, each time after that */

static bool has_prefix(struct baton_str s, struct baton_str prefix)
{
	return s.len >= prefix.len && memcmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

static enum baton_err owner_make(struct baton_str label, struct baton_owner *ret)
{
	char text[BATON_NAME_MAX + 1];
	if (label.len > 0)
		return baton_owner_self(label, ret);
	int len = snprintf(text, sizeof text, "%.200s %d", program_invocation_short_name, getpid());
	return baton_owner_self((struct baton_str){text, (size_t)len}, ret);
}

static enum baton_err store_init(struct baton_store *s, const struct baton_store_options *o)
{
	*s = (struct baton_store){
		.alloc = o->alloc ? o->alloc : baton_alloc_libc(),
		.clock = o->clock ? o->clock : baton_clock_awake(),
		.hook = o->hook,
		.sync = o->sync ? o->sync : BATON_STORE_SAFE,
		.patience = o->patience.ns > 0 ? o->patience : baton_duration_s(PATIENCE_S),
		.reach = BATON_REACH_HOST,
		.pid = getpid(),
		.bell = 1,
	};
	enum baton_err e = baton_id_random(&s->name);
	return e == BATON_OK ? owner_make(o->owner, &s->owner) : e;
}

/* Only the part of a name that cannot have a password. */
static enum baton_err unknown_kind(struct baton_str where)
{
	char shown[QUOTE_TEXT];
	const char *colon = where.len > 0 ? memchr(where.ptr, ':', where.len) : NULL;
	size_t len = colon ? (size_t)(colon - where.ptr) + 1 : where.len;
	return fail(BATON_INVALID,
	            "the store is called %s: \"postgresql://...\", \"postgres:KEY=VALUE ...\", "
	            "\"memory:\" and \"sqlite:PATH\" are known",
	            quote((struct baton_str){where.ptr, len}, shown));
}

/* What follows the kind, within its limits. */
static enum baton_err check_rest(const char *what, struct baton_str rest, size_t min)
{
	if (rest.len >= min && rest.len <= BATON_STORE_PATH_MAX &&
	    (rest.len == 0 || !memchr(rest.ptr, '\0', rest.len)))
		return BATON_OK;
	return fail(BATON_INVALID,
	            "the %s of the store has %zu bytes: %zu to %d without a NUL are allowed", what,
	            rest.len, min, BATON_STORE_PATH_MAX);
}

/* What libpq is given, if the store is one of its: a URI, or what follows the kind. */
static bool is_postgres(struct baton_str where, struct baton_str *ret_info)
{
	static const struct baton_str kind = {"postgres:", 9};
	bool uri = has_prefix(where, BATON_STR("postgres://")) ||
	           has_prefix(where, BATON_STR("postgresql://"));
	*ret_info = where;
	if (uri || !has_prefix(where, kind))
		return uri;
	*ret_info = (struct baton_str){where.ptr + kind.len, where.len - kind.len};
	return true;
}

static enum baton_err open_postgres(struct baton_store *store, struct baton_str info, bool existing,
                                    struct baton_store **ret_store)
{
	enum baton_err e = check_rest("connection string", info, 0);
	store->reach = BATON_REACH_HOSTS;
	return e == BATON_OK ? postgres_open(store, info, existing, ret_store) : e;
}

enum baton_err baton_store_open(const struct baton_store_options *o, struct baton_store **ret_store)
{
	static const struct baton_str file = {"sqlite:", 7};
	struct baton_store store;
	struct baton_str info;
	bool postgres = is_postgres(o->where, &info), memory;
	memory = baton_str_equal(o->where, BATON_STR("memory:"));
	if (!postgres && !memory && !has_prefix(o->where, file))
		return unknown_kind(o->where);
	enum baton_err e = store_init(&store, o);
	if (e == BATON_OK && postgres)
		return open_postgres(&store, info, o->existing, ret_store);
	if (e != BATON_OK)
		return e;
	snprintf(store.where, sizeof store.where, "%.*s",
	         (int)(o->where.len < INT_MAX ? o->where.len : INT_MAX), o->where.ptr);
	if (memory)
		return memory_open(&store, ret_store);
	e = check_rest("path", (struct baton_str){o->where.ptr + file.len, o->where.len - file.len},
	               1);
	if (e != BATON_OK)
		return e;
	return sqlite_open(&store, store.where + file.len, o->existing, ret_store);
}

void baton_store_close(struct baton_store *store)
{
	if (store)
		store->ops->close(store);
}

void store_done(struct baton_store *store)
{
	beats_close(&store->beats);
	pthread_mutex_destroy(&store->beats_mu);
}

const struct baton_owner *baton_store_owner(const struct baton_store *store)
{
	return &store->owner;
}

struct baton_store_time baton_store_now(const struct baton_store *store)
{
	return store->clock->wall(store->clock);
}

const struct baton_id *baton_store_id(const struct baton_store *store)
{
	return &store->name;
}

const char *baton_store_where(const struct baton_store *store)
{
	return store->where;
}

uint64_t store_lane_hash(struct baton_str lane)
{
	static const struct baton_id no_seed;
	return lane.len > 0 ? hash_bytes(&no_seed, lane.ptr, lane.len) : 0;
}

enum baton_err store_enter(const struct baton_store *store)
{
	if (store->pid == getpid())
		return BATON_OK;
	return fail(BATON_GONE, "this is a forked child, and the store was opened by its parent");
}

void baton_store_poke(struct baton_store *store)
{
	atomic_fetch_add(&store->bell, 1);
	syscall(SYS_futex, &store->bell, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void store_ring(struct baton_store *store, const struct baton_store_news *news, size_t count)
{
	if (count == 0)
		return;
	baton_store_poke(store);
	if (store->hook.call)
		store->hook.call(store->hook.arg, news, count);
}

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* How long to sleep at most, and whether something is due by now. */
static enum baton_err pause_until(struct baton_store *s, const struct baton_store_wait *w,
                                  int64_t poll_ns, struct baton_mono *ret_until, bool *ret_due)
{
	struct baton_mono now = s->clock->now(s->clock);
	struct baton_store_time due, wall = baton_store_now(s), after = {INT64_MIN};
	/* After the clock was set back all is told again. */
	if (w->told && w->told->ms <= wall.ms)
		after = *w->told;
	enum baton_err e = s->ops->next_due(s, w->queue, after, &due);
	if (e != BATON_OK && e != BATON_NOT_FOUND)
		return e;
	struct baton_duration left = BATON_DURATION_FOREVER;
	if (e == BATON_OK)
		left = baton_store_time_sub(due, wall);
	*ret_due = left.ns <= 0;
	if (*ret_due && w->told)
		*w->told = wall;
	left.ns = min64(left.ns, poll_ns);
	ret_until->ns = min64(baton_mono_add(now, left).ns, w->until.ns);
	return BATON_OK;
}

static enum baton_err look(struct baton_store *s, uint32_t bell, uint64_t *ret)
{
	uint64_t version;
	enum baton_err e = s->ops->version(s, &version);
	if (e == BATON_OK)
		*ret = (uint64_t)bell << 32 | (uint32_t)version;
	return e;
}

/* When somebody sleeps, how often he looks by himself. */
struct slumber {
	bool rung; /* others wake him */
	int64_t poll_ns;
};

/* Who wakes all the time is not worth a ring: he asks for it only once he has slept for a moment.
 * False: what others did before they knew of him has to be looked for first. */
static bool lie_down(struct baton_store *s, struct slumber *z)
{
	bool was = z->rung, first = z->poll_ns == 0;
	z->rung = !first && s->ops->doze && s->ops->doze(s);
	if (z->rung && !was) {
		z->poll_ns = RESCAN_NS / RESCAN_MORE;
		return false;
	}
	if (first)
		z->poll_ns = POLL_MIN_NS;
	else
		z->poll_ns = min64(z->poll_ns * (z->rung ? RESCAN_MORE : 2), POLL_MAX_NS);
	return true;
}

enum baton_err baton_store_wait(struct baton_store *s, const struct baton_store_wait *w,
                                uint64_t *seen)
{
	bool due = false;
	struct slumber z = {.rung = false};
	enum baton_err e = store_enter(s);
	while (e == BATON_OK) {
		uint32_t bell = atomic_load(&s->bell);
		struct baton_mono until;
		uint64_t now_seen;
		e = look(s, bell, &now_seen);
		if (e != BATON_OK)
			return e;
		if (w->cancel && __atomic_load_n(w->cancel, __ATOMIC_ACQUIRE) != 0)
			return BATON_CANCELLED;
		if (due || now_seen != *seen) {
			*seen = now_seen;
			return BATON_OK;
		}
		if (w->until.ns <= s->clock->now(s->clock).ns)
			return BATON_TIMEOUT;
		if (!lie_down(s, &z))
			continue;
		e = pause_until(s, w, z.poll_ns, &until, &due);
		if (e == BATON_OK && !due)
			s->clock->wait(s->clock, (const uint32_t *)&s->bell, bell, until);
	}
	return e;
}

enum baton_err baton_store_backup(struct baton_store *store, const char *path,
                                  const struct baton_store_progress *progress)
{
	size_t len = path ? strlen(path) : 0;
	enum baton_err e = store_enter(store);
	if (e != BATON_OK)
		return e;
	if (len == 0 || len > BATON_STORE_PATH_MAX)
		return fail(BATON_INVALID,
		            "the path of the copy has %zu bytes: 1 to %d are allowed", len,
		            BATON_STORE_PATH_MAX);
	return store->ops->backup(store, path, progress);
}

enum baton_err baton_store_check(struct baton_store *store,
                                 void (*report)(void *arg, const char *sentence), void *arg,
                                 uint64_t *ret_faults)
{
	enum baton_err e = store_enter(store);
	return e == BATON_OK ? store->ops->check(store, report, arg, ret_faults) : e;
}

enum baton_err baton_store_tidy(struct baton_store *store, size_t max, size_t *ret_count)
{
	size_t count = 0;
	enum baton_err e = store_enter(store);
	if (e == BATON_OK)
		e = store->ops->tidy(store, max, &count);
	if (e == BATON_OK && ret_count)
		*ret_count = count;
	return e;
}
