/* A store in a file, in a folder of its own. */
#include "world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "support/soak.h"

static const char *const beside[] = {"", "-wal", "-shm", "-turn", "-journal"};

int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	/* In memory if there is room: what is synced a thousand times need not get to a disk. */
	bool small = soak_scale(1, 0) && access("/dev/shm", W_OK) == 0;
	snprintf(w->folder, sizeof w->folder, "%s/baton-store-XXXXXX", small ? "/dev/shm" : "/tmp");
	if (!mkdtemp(w->folder)) {
		free(w);
		return -1;
	}
	world_file(w, "store", w->path);
	fake_clock_init(&w->clock, (struct baton_mono){1000000000});
	*state = w;
	return 0;
}

int world_teardown(void **state)
{
	struct world *w = *state;
	baton_store_close(w->store);
	fake_clock_done(&w->clock);
	DIR *d = opendir(w->folder);
	for (struct dirent *entry; d && (entry = readdir(d));)
		unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	int failed = rmdir(w->folder);
	free(w);
	return failed;
}

void world_file(const struct world *w, const char *name, char path[WORLD_PATH])
{
	snprintf(path, WORLD_PATH, "%s/%s", w->folder, name);
}

enum baton_err world_try_open(struct world *w, const char *path, struct baton_store **ret)
{
	char where[WORLD_PATH + 8];
	snprintf(where, sizeof where, "sqlite:%s", path);
	const struct baton_store_options options = {
		.where = baton_str_z(where),
		.owner = BATON_STR("tester"),
		.sync = w->sync,
		.patience = w->patience,
		.clock = &w->clock.clock,
	};
	return baton_store_open(&options, ret);
}

void world_open(struct world *w)
{
	assert_null(w->store);
	assert_ok(world_try_open(w, w->path, &w->store));
}

void world_close(struct world *w)
{
	baton_store_close(w->store);
	w->store = NULL;
}

void world_remove(const char *path)
{
	char name[WORLD_PATH + 16];
	for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
		snprintf(name, sizeof name, "%s%s", path, beside[i]);
		unlink(name);
	}
}

void world_copy(const char *from, const char *to)
{
	char bytes[1 << 16];
	ssize_t n;
	world_remove(to);
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof bytes)) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	assert_int_equal(n, 0);
	close(in);
	close(out);
}

void world_sql(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

char *world_read(const char *path, size_t *ret_size)
{
	struct stat st = {.st_size = 0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	char *bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	*ret_size = (size_t)st.st_size;
	return bytes;
}

void world_write(const char *path, size_t offset, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, (off_t)offset), len);
	close(fd);
}

void world_advance(struct world *w, int64_t ms)
{
	fake_clock_advance(&w->clock, baton_duration_ms(ms));
}

enum baton_err put_some(struct baton_store *store, const char *queue, const char *lane,
                        size_t count)
{
	static const struct baton_str payload = {"a payload of some bytes", 23};
	struct baton_batch batches[SOME_MAX];
	struct baton_put puts[SOME_MAX];
	for (size_t i = 0; i < count; i++)
		batches[i] = (struct baton_batch){.queue = baton_str_z(queue),
		                                  .lane = baton_str_z(lane),
		                                  .slot = BATON_JOIN,
		                                  .payloads = &payload,
		                                  .count = 1};
	return baton_work_put(store, batches, count, puts);
}

enum baton_err claim_some(struct baton_store *store, const char *queue, uint32_t max,
                          struct baton_work_claims **ret)
{
	const struct baton_work_ask ask = {
		.queue = baton_str_z(queue),
		.ttl = baton_duration_ms(1000),
		.claims = 1,
		.max = max,
	};
	return baton_work_claim(store, &ask, ret);
}

enum baton_err claim_each(struct baton_store *store, const char *queue, uint32_t claims,
                          struct baton_work_claims **ret)
{
	const struct baton_work_ask ask = {
		.queue = baton_str_z(queue),
		.ttl = baton_duration_ms(1000),
		.claims = claims,
		.max = 1,
	};
	return baton_work_claim(store, &ask, ret);
}

enum baton_err complete_each(struct baton_store *store, const struct baton_work_claims *claims,
                             size_t count)
{
	struct baton_work_end ends[SOME_MAX] = {{.how = BATON_COMPLETE}};
	struct baton_work_ended answers[SOME_MAX];
	for (size_t i = 0; i < count; i++)
		ends[i] = (struct baton_work_end){.proof = claims->claims[i].proof,
		                                  .how = BATON_COMPLETE};
	enum baton_err e = baton_work_end(store, ends, count, answers);
	for (size_t i = 0; i < count && e == BATON_OK; i++)
		e = answers[i].err;
	return e;
}

static enum baton_err end_with(struct baton_store *store, const struct baton_work_end *end)
{
	struct baton_work_ended answer;
	enum baton_err e = baton_work_end(store, end, 1, &answer);
	return e == BATON_OK ? answer.err : e;
}

enum baton_err complete(struct baton_store *store, const struct baton_work_claim *claim,
                        const char *next)
{
	static const struct baton_str payload = {"emitted", 7};
	const struct baton_batch emit = {.queue = baton_str_z(next),
	                                 .payloads = &payload,
	                                 .count = 1};
	const struct baton_work_end end = {
		.proof = claim->proof,
		.how = BATON_COMPLETE,
		.emits = &emit,
		.emit_count = next ? 1 : 0,
	};
	return end_with(store, &end);
}

enum baton_err end_as(struct baton_store *store, const struct baton_work_claim *claim,
                      enum baton_work_how how)
{
	const struct baton_work_end end = {.proof = claim->proof, .how = how};
	return end_with(store, &end);
}

enum baton_err lease(struct baton_store *store, const char *subject, struct baton_lease *ret)
{
	const struct baton_lease_ask ask = {.subject = baton_str_z(subject),
	                                    .ttl = baton_duration_ms(1000)};
	struct baton_lease_answer answer;
	enum baton_err e = baton_lease_claim(store, &ask, 1, &answer);
	if (e == BATON_OK && answer.err == BATON_OK)
		*ret = answer.lease;
	return e == BATON_OK ? answer.err : e;
}

uint64_t next_fence(struct baton_store *store, const char *subject)
{
	struct baton_str name = baton_str_z(subject);
	struct baton_lease_answer answer;
	struct baton_lease l = {.fence = {0}};
	assert_ok(baton_lease_force(store, &name, 1, &answer));
	assert_ok(lease(store, subject, &l));
	return l.fence.v;
}

uint64_t next_claim_fence(struct baton_store *store, const char *queue)
{
	struct baton_work_claims *claims = NULL;
	assert_ok(put_some(store, queue, "", 1));
	assert_ok(claim_some(store, queue, 1, &claims));
	assert_non_null(claims);
	uint64_t fence = claims->claims[0].fence.v;
	baton_work_claims_free(claims);
	return fence;
}

struct baton_queue_counts counts(struct baton_store *store, const char *queue)
{
	struct baton_queue_info info = {.counts = {.ready = 0}};
	enum baton_err e = baton_queue_get(store, baton_str_z(queue), &info);
	if (e != BATON_NOT_FOUND)
		assert_ok(e);
	return info.counts;
}

void assert_ok(enum baton_err e)
{
	if (e != BATON_OK)
		fail_msg("%s: %s", baton_err_name(e), baton_err_detail());
}

static void show_fault(void *arg, const char *sentence)
{
	(void)arg;
	print_error("%s\n", sentence);
}

void assert_sound(struct baton_store *store)
{
	uint64_t faults;
	assert_ok(baton_store_check(store, show_fault, NULL, &faults));
	assert_int_equal(faults, 0);
}

void assert_detail(const char *words)
{
	if (!strstr(baton_err_detail(), words))
		fail_msg("\"%s\" is not in: %s", words, baton_err_detail());
}
