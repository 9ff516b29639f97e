/* A store of the kind that is tested, and short forms of the calls. */
#include "world.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/cluster.h"
#include "support/skips.h"

static const char *kind;       /* the argument: "memory:", "sqlite:" for a new file, "postgres:", or
                            "pooled:" for such a store behind a proxy */
static struct cluster cluster; /* the server in which those of the last kinds are */
static bool pooled;            /* they are reached through its proxy */

#define PROXY_SERVERS 3

/* By any thread. */
static void on_news(void *arg, const struct baton_store_news *news, size_t count)
{
	static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
	struct world *w = arg;
	pthread_mutex_lock(&mu);
	w->rings += (unsigned)count;
	w->news = news[count - 1];
	pthread_mutex_unlock(&mu);
}

static enum baton_err open_store(struct world *w, struct baton_store **ret)
{
	char where[sizeof w->where + 40];
	snprintf(where, sizeof where, "%s%s", w->where,
	         pooled && strncmp(w->where, "postgres:", 9) == 0 ? CLUSTER_THROUGH
	                 " baton_pooled=1"
	                                                          : "");
	const struct baton_store_options options = {
		.where = baton_str_z(where),
		.owner = BATON_STR("tester"),
		.alloc = &w->fault.alloc,
		.clock = &w->clock.clock,
		.hook = {on_news, w},
	};
	return baton_store_open(&options, ret);
}

/* A file in a directory of its own; a kind with a path is taken as it is. */
static void choose_where(struct world *w, const char *where)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(w->where, sizeof w->where, "%s", where);
	if (strcmp(where, "postgres:") == 0 || strcmp(where, "pooled:") == 0)
		cluster_database(&cluster, w->where, sizeof w->where);
	if (strcmp(where, "sqlite:") != 0)
		return;
	snprintf(w->directory, sizeof w->directory, "%s/baton-conformance-XXXXXX",
	         tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->directory));
	snprintf(w->where, sizeof w->where, "sqlite:%s/store", w->directory);
}

static void remove_directory(const char *path)
{
	DIR *d = path[0] ? opendir(path) : NULL;
	for (struct dirent *entry; d && (entry = readdir(d));)
		unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	if (path[0])
		rmdir(path);
}

const char *world_kind(void)
{
	return kind;
}

void world_open(struct world *w, const char *where)
{
	memset(w, 0, sizeof *w);
	fake_clock_init(&w->clock, (struct baton_mono){1000000000});
	fault_init(&w->fault);
	choose_where(w, where);
	enum baton_err e = open_store(w, &w->store);
	if (e != BATON_OK)
		fail_msg("%s: %s", w->where, baton_err_detail());
	assert_int_equal(baton_owner_opaque(BATON_STR("other"), &w->other), BATON_OK);
	w->dead = *baton_store_owner(w->store);
	assert_int_equal(baton_id_random(&w->dead.incarnation), BATON_OK);
	w->dead.start++; /* another process had its pid */
}

struct baton_store *world_twin(struct world *w)
{
	if (strcmp(w->where, "memory:") == 0)
		return w->store;
	if (!w->twin)
		assert_int_equal(open_store(w, &w->twin), BATON_OK);
	return w->twin;
}

void world_close(struct world *w)
{
	baton_store_close(w->twin);
	for (size_t i = 0; i < w->claim_count; i++)
		baton_work_claims_free(w->claims[i]);
	for (size_t i = 0; i < w->page_count; i++)
		baton_work_page_free(w->pages[i]);
	baton_store_close(w->store);
	fault_done(&w->fault);
	fake_clock_done(&w->clock);
	remove_directory(w->directory);
	if (cluster.directory[0])
		cluster_drop(&cluster, w->where);
}

bool world_is_served(void)
{
	return cluster.directory[0] != '\0';
}

void world_copy_runner(struct world *w, int copies)
{
	char sql[600];
	snprintf(sql, sizeof sql,
	         "INSERT INTO baton.runner(number, name, slot, endpoint, labels, owner, weight, "
	         "ttl, since, beat, host, queues, life, guardian, wish, state) "
	         "SELECT number + i, name || ' ' || i, slot + i, endpoint, labels, owner, "
	         "weight, ttl, since, beat, host, queues, life, guardian, wish, state "
	         "FROM baton.runner, generate_series(1, %d) i; "
	         "UPDATE baton.state SET runner = runner + %d",
	         copies, copies);
	cluster_run(w->where, sql);
}

void world_end(void)
{
	cluster_stop(&cluster);
}

bool world_begin(const char *where)
{
	pooled = strcmp(where, "pooled:") == 0;
	if ((!pooled && strcmp(where, "postgres:") != 0) || cluster.directory[0])
		return true;
	if (!cluster_start(&cluster, false)) {
		printf("1..0 # SKIP no PostgreSQL server can be started here\n");
		return false;
	}
	if (!pooled || cluster_proxy(&cluster, PROXY_SERVERS))
		return true;
	printf("1..0 # SKIP there is no pgbouncer\n");
	cluster_stop(&cluster);
	return false;
}

int world_setup(void **state)
{
	struct world *w = malloc(sizeof *w);
	world_open(w, kind);
	*state = w;
	return 0;
}

int world_teardown(void **state)
{
	struct world *w = *state;
	assert_sound(w);
	world_close(w);
	free(w);
	return 0;
}

/* Whether the kind exists; if not, says so. */
static bool can_open(void)
{
	struct baton_store *store = NULL;
	struct world w;
	memset(&w, 0, sizeof w);
	fake_clock_init(&w.clock, (struct baton_mono){1000000000});
	fault_init(&w.fault);
	choose_where(&w, kind);
	enum baton_err e = open_store(&w, &store);
	bool missing = e == BATON_INVALID && strstr(baton_err_detail(), "not there yet");
	baton_store_close(store);
	fake_clock_done(&w.clock);
	remove_directory(w.directory);
	if (cluster.directory[0])
		cluster_drop(&cluster, w.where);
	if (missing)
		printf("1..0 # SKIP %s stores are not there yet\n", kind);
	return !missing;
}

int world_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
               size_t count)
{
	skips_repair();
	if (argc != 2) {
		fprintf(stderr, "usage: %s memory:|sqlite:|postgres:|pooled:\n", argv[0]);
		return 64;
	}
	kind = argv[1];
	if (!world_begin(kind))
		return 0;
	int failed = can_open() ? _cmocka_run_group_tests(name, tests, count, NULL, NULL) : 0;
	world_end();
	return failed;
}

void advance(struct world *w, int64_t ms)
{
	fake_clock_advance(&w->clock, baton_duration_ms(ms));
}

void step_clock(struct world *w, int64_t ms)
{
	struct baton_store_time now = baton_store_now(w->store);
	fake_clock_set_wall(&w->clock, (struct baton_store_time){now.ms + ms});
}

static const struct baton_str a_payload = {"payload", 7};

struct baton_batch batch_of(const char *queue, const char *lane, const struct baton_str *payload)
{
	return (struct baton_batch){
		.queue = baton_str_z(queue),
		.lane = baton_str_z(lane),
		.payloads = payload ? payload : &a_payload,
		.count = 1,
	};
}

enum baton_err try_put(struct world *w, const struct baton_batch *b, struct baton_put *ret)
{
	return baton_work_put(w->store, b, 1, ret);
}

struct baton_batch_id put_batch(struct world *w, const struct baton_batch *b)
{
	struct baton_put answer;
	assert_int_equal(try_put(w, b, &answer), BATON_OK);
	return answer.id;
}

struct baton_batch_id put(struct world *w, const char *queue, const char *lane)
{
	struct baton_batch b = batch_of(queue, lane, NULL);
	return put_batch(w, &b);
}

struct baton_batch_id put_join(struct world *w, const char *queue, const char *lane,
                               const char *group)
{
	struct baton_batch b = batch_of(queue, lane, NULL);
	b.slot = BATON_JOIN;
	b.group = baton_str_z(group);
	return put_batch(w, &b);
}

struct baton_batch_id put_command(struct world *w, const char *queue, const char *lane)
{
	struct baton_batch b = batch_of(queue, lane, NULL);
	b.cls = BATON_COMMAND;
	return put_batch(w, &b);
}

struct baton_batch_id put_later(struct world *w, const char *queue, const char *lane, int64_t ms)
{
	struct baton_batch b = batch_of(queue, lane, NULL);
	b.delay = baton_duration_ms(ms);
	return put_batch(w, &b);
}

void keep_claims(struct world *w, struct baton_work_claims *claims)
{
	if (!claims)
		return;
	assert_true(w->claim_count < CLAIMS_KEPT);
	w->claims[w->claim_count++] = claims;
}

const struct baton_work_claims *claim_many(struct world *w, const struct baton_work_ask *ask)
{
	struct baton_work_claims *claims = NULL;
	assert_int_equal(baton_work_claim(w->store, ask, &claims), BATON_OK);
	keep_claims(w, claims);
	return claims;
}

static struct baton_work_ask one(const char *queue)
{
	return (struct baton_work_ask){
		.queue = baton_str_z(queue),
		.ttl = baton_duration_ms(1000),
		.claims = 1,
		.max = 1,
	};
}

const struct baton_work_claim *claim(struct world *w, const char *queue, uint32_t max)
{
	struct baton_work_ask ask = one(queue);
	ask.max = max;
	const struct baton_work_claims *claims = claim_many(w, &ask);
	return claims ? &claims->claims[0] : NULL;
}

const struct baton_work_claim *claim_as(struct world *w, const char *queue,
                                        const struct baton_owner *owner)
{
	struct baton_work_ask ask = one(queue);
	ask.owner = owner;
	const struct baton_work_claims *claims = claim_many(w, &ask);
	return claims ? &claims->claims[0] : NULL;
}

enum baton_err try_claim(struct world *w, const char *queue)
{
	struct baton_work_ask ask = one(queue);
	struct baton_work_claims *claims = NULL;
	enum baton_err e = baton_work_claim(w->store, &ask, &claims);
	keep_claims(w, claims);
	return e;
}

struct baton_lease hold_lane(struct world *w, const char *queue, const char *lane,
                             const struct baton_owner *owner)
{
	char subject[BATON_LEASE_SUBJECT_MAX + 1];
	struct baton_lease_answer answer;
	assert_int_equal(baton_lane_subject(baton_str_z(queue), baton_str_z(lane), subject),
	                 BATON_OK);
	const struct baton_lease_ask ask = {
		.subject = baton_str_z(subject),
		.owner = owner,
		.ttl = baton_duration_ms(10000),
	};
	assert_int_equal(baton_lease_claim(w->store, &ask, 1, &answer), BATON_OK);
	assert_int_equal(answer.err, BATON_OK);
	return answer.lease;
}

struct baton_lane_ask lane_ask(const char *queue, const char *lane, const struct baton_lease *lease)
{
	return (struct baton_lane_ask){
		.queue = baton_str_z(queue),
		.lane = baton_str_z(lane),
		.lease = lease,
		.ttl = baton_duration_ms(1000),
		.at = BATON_IDLE,
		.max = 10,
	};
}

enum baton_err try_lane(struct world *w, const struct baton_lane_ask *ask,
                        const struct baton_work_claim **ret)
{
	struct baton_work_claims *claims = NULL;
	enum baton_err e = baton_lane_claim(w->store, ask, &claims);
	keep_claims(w, claims);
	if (ret)
		*ret = claims ? &claims->claims[0] : NULL;
	return e;
}

const struct baton_work_claim *claim_lane(struct world *w, const struct baton_lane_ask *ask)
{
	const struct baton_work_claim *c;
	assert_int_equal(try_lane(w, ask, &c), BATON_OK);
	return c;
}

struct baton_work_ended end_with(struct world *w, const struct baton_work_end *e)
{
	struct baton_work_ended answer;
	assert_int_equal(baton_work_end(w->store, e, 1, &answer), BATON_OK);
	return answer;
}

struct baton_work_ended end(struct world *w, const struct baton_work_claim *c,
                            enum baton_work_how how)
{
	const struct baton_work_end e = {.proof = c->proof, .how = how};
	return end_with(w, &e);
}

enum baton_batch_state complete(struct world *w, const struct baton_work_claim *c)
{
	struct baton_work_ended answer = end(w, c, BATON_COMPLETE);
	assert_int_equal(answer.err, BATON_OK);
	return answer.state;
}

struct baton_work_renewal renew(struct world *w, const struct baton_work_claim *c, int64_t ttl_ms)
{
	struct baton_work_renewal answer;
	assert_int_equal(baton_work_renew(w->store, &c->proof, 1, baton_duration_ms(ttl_ms),
	                                  &answer),
	                 BATON_OK);
	return answer;
}

enum baton_cancelled cancel(struct world *w, const struct baton_batch_id *id)
{
	enum baton_cancelled answer;
	assert_int_equal(baton_work_cancel(w->store, id, 1, &answer), BATON_OK);
	return answer;
}

enum baton_err revive(struct world *w, const struct baton_batch_id *id)
{
	enum baton_err answer;
	assert_int_equal(baton_work_revive(w->store, id, 1, &answer), BATON_OK);
	return answer;
}

static void keep_page(struct world *w, struct baton_work_page *page)
{
	assert_true(w->page_count < PAGES_KEPT);
	w->pages[w->page_count++] = page;
}

const struct baton_work_info *look(struct world *w, const struct baton_batch_id *id)
{
	struct baton_work_page *page = NULL;
	enum baton_err e = baton_work_get(w->store, id, &page);
	if (e == BATON_NOT_FOUND)
		return NULL;
	assert_int_equal(e, BATON_OK);
	keep_page(w, page);
	assert_int_equal(page->count, 1);
	return page->infos;
}

enum baton_batch_state state_of(struct world *w, const struct baton_batch_id *id)
{
	struct baton_work_page *page = NULL;
	enum baton_err e = baton_work_get(w->store, id, &page);
	if (e == BATON_NOT_FOUND)
		return BATON_BATCH_GONE;
	assert_int_equal(e, BATON_OK);
	enum baton_batch_state state = page->infos[0].state;
	baton_work_page_free(page);
	return state;
}

const struct baton_work_page *list(struct world *w, const struct baton_work_filter *filter)
{
	struct baton_work_page *page = NULL;
	assert_int_equal(baton_work_list(w->store, filter, &page), BATON_OK);
	keep_page(w, page);
	return page;
}

struct baton_queue_info queue_info(struct world *w, const char *queue)
{
	struct baton_queue_info info;
	assert_int_equal(baton_queue_get(w->store, baton_str_z(queue), &info), BATON_OK);
	return info;
}

struct baton_queue_counts counts(struct world *w, const char *queue)
{
	return queue_info(w, queue).counts;
}

struct baton_queue_policy policy(struct world *w, const char *queue)
{
	struct baton_queue_info info;
	enum baton_err e = baton_queue_get(w->store, baton_str_z(queue), &info);
	return e == BATON_OK ? info.policy : baton_queue_policy_default();
}

void set_policy(struct world *w, const char *queue, const struct baton_queue_policy *p)
{
	assert_int_equal(baton_queue_set(w->store, baton_str_z(queue), p), BATON_OK);
}

void set_attempts(struct world *w, const char *queue, uint32_t attempts)
{
	struct baton_queue_policy p = policy(w, queue);
	p.retry = p.retry_lane =
		(struct baton_retry){.attempts = attempts, .backoff = BATON_BACKOFF_NONE};
	set_policy(w, queue, &p);
}

static void show_fault(void *arg, const char *sentence)
{
	(void)arg;
	print_error("%s\n", sentence);
}

void assert_sound(struct world *w)
{
	uint64_t faults;
	assert_int_equal(baton_store_check(w->store, show_fault, NULL, &faults), BATON_OK);
	assert_int_equal(faults, 0);
}
