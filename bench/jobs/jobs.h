/* Queues that do the same work: a job of 150 bytes is put, claimed and completed. */
#ifndef BENCH_JOBS_JOBS_H
#define BENCH_JOBS_JOBS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/store.h>

#define JOB_BYTES 150

/* What a number of callers are to do. */
struct lives {
	unsigned threads;
	unsigned each;  /* jobs in a call */
	uint64_t count; /* of each thread */
};

/* One kind of queue. All of them acknowledge only what survives a power failure. */
struct queue_kind {
	/* NULL: it cannot be had on this machine, after a line on standard error. */
	void *(*open)(void);

	/* Does the thread's part of the lives, and says how many it did. */
	uint64_t (*lives)(void *queue, unsigned thread, const struct lives *lives);
	void (*close)(void *queue);
	bool bulk; /* many jobs in a call or a commit are its own way */
};

extern const struct queue_kind jobs_baton;
extern const struct queue_kind jobs_baton_apart; /* a call for each of the three */
extern const struct queue_kind jobs_bare_hundred;
extern const struct queue_kind jobs_bare_shared;
extern const struct queue_kind jobs_bare_single;
extern const struct queue_kind jobs_beanstalkd;
extern const struct queue_kind jobs_plainjob;

/* A new folder on a disk, and its end. */
void jobs_folder(char path[PATH_MAX]);
void jobs_folder_remove(const char *path);

/* Opens a store of that folder. */
struct baton_store *jobs_store(const char *folder, enum baton_store_sync sync,
                               const struct baton_store_hook *hook);

#define JOBS_EACH_MAX 100
#define JOBS_CALL_MAX 1000 /* of jobs_live() */

/* Puts so many jobs in one call; or does that and claims and completes them, in a call each. */
void jobs_put(struct baton_store *store, unsigned each);
void jobs_live(struct baton_store *store, unsigned each);

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
