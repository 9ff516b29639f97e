/* Queues that do the same work: a job of 150 bytes is put, claimed and completed. */
#ifndef BENCH_JOBS_JOBS_H
#define BENCH_JOBS_JOBS_H

#include <limits.h>
#include <stdint.h>

#include <baton/store.h>

#define JOB_BYTES 150

/* One kind of queue. All of them acknowledge only what survives a power failure. */
struct queue_kind {
	/* NULL: it cannot be had on this machine, after a line on standard error. */
	void *(*open)(void);

	/* Whole lives of `count` jobs, as the thread's part. */
	uint64_t (*lives)(void *queue, unsigned thread, unsigned threads, uint64_t count);
	void (*close)(void *queue);
};

extern const struct queue_kind jobs_baton;
extern const struct queue_kind jobs_bare_hundred;
extern const struct queue_kind jobs_bare_single;
extern const struct queue_kind jobs_beanstalkd;
extern const struct queue_kind jobs_plainjob;

/* A new folder on a disk, and its end. */
void jobs_folder(char path[PATH_MAX]);
void jobs_folder_remove(const char *path);

/* Opens a store of that folder. */
struct baton_store *jobs_store(const char *folder, enum baton_store_sync sync,
                               const struct baton_store_hook *hook);

/* A job, and the end of its life as far as `thread` has one in hand. */
void jobs_put(struct baton_store *store);
void jobs_live(struct baton_store *store);

/* Latencies: from a put to the claim in a process that waits for it; and of a renewal while another
 * process writes as much as it can. */
void *wait_setup(void);
double wait_sample(void *state);
void wait_teardown(void *state);
void *renew_setup(void);
double renew_sample(void *state);
void renew_teardown(void *state);

/* How many bytes one job writes to the log when `count` of them are in each commit. */
double jobs_log_bytes(unsigned count);

#endif
