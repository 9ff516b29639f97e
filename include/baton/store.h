/* Where leases and queued work are kept: in memory, in an SQLite file that the processes of a host
 * share, or in a PostgreSQL database for those of many hosts.
 *
 * Every call that changes something is one transaction: when it returns BATON_OK everything in it
 * is there for good, else nothing is, but for one case: if the disk fails in the middle of a sync
 * nobody can know, the call answers BATON_STORAGE, and all of its work may be found later. Calls of
 * several threads are merged into one commit. */
#ifndef BATON_STORE_H
#define BATON_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/api.h>
#include <baton/clock.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/owner.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

struct baton_store;

/* What an acknowledged change survives. */
enum baton_store_sync {
	BATON_STORE_SAFE = 1, /* a power failure; the default                                   */
	BATON_STORE_RELAXED   /* the end of the process; a power failure may undo the last
	                         moment, but never the change of a fence                        */
};

/* Something became ready: worth a look for whoever waits for work of that queue. */
struct baton_store_news {
	uint64_t queue; /* baton_queue_hash(), the same in every process of a store */
	uint64_t lane;  /* the hash of the lane; 0 without one                     */
	uint32_t shard;
};

/* Called after a commit that made something ready, by the thread that committed, with no lock held.
 * It must not block or call the store. */
struct baton_store_hook {
	void (*call)(void *arg, const struct baton_store_news *news, size_t count);
	void *arg;
};

#define BATON_STORE_PATH_MAX 4000

struct baton_store_options {
	/* "memory:", "sqlite:PATH", or a PostgreSQL database as libpq names it:
	 * "postgresql://USER@HOST/DATABASE" or "postgres:KEY=VALUE ...", with baton_pooled=1
	 * among what it says if a proxy gives every transaction another connection. */
	struct baton_str where;
	struct baton_str
		owner; /* what others are told about this process; "": its program and pid */
	enum baton_store_sync sync;      /* 0: BATON_STORE_SAFE                                */
	struct baton_duration patience;  /* for another process's write lock; 0: 5 s           */
	bool existing;                   /* refuse to make a new store                         */
	const struct baton_alloc *alloc; /* NULL: the C library's                              */
	const struct baton_clock *clock; /* NULL: baton_clock_awake(); its wall() is the store's
	                                     clock, but in PostgreSQL the server's is then      */
	struct baton_store_hook hook;    /* zeros: none                                        */
};

/* Opens the store, which is made if it is not there.
 *
 * BATON_OK:        *ret_store is the caller's, ended by baton_store_close().
 * BATON_INVALID:   a bad name or option; or the file is no store, or of a newer version.
 * BATON_NOT_FOUND: options->existing, and there is none; the detail says where.
 * BATON_STORAGE:   it cannot be read or written; the detail says why.
 * BATON_BUSY:      another process had the write lock for longer than `patience`.
 * BATON_NO_MEMORY, BATON_SYSTEM.
 * *ret_store is untouched unless BATON_OK. What options point to is borrowed until the end. Any
 * thread.
 *
 * In a forked child all calls on the parent's handle say BATON_GONE. Nor may it open the same file
 * itself, unless no handle of it was open at the fork or it has executed another program since:
 * SQLite has its locks in mind, would take the parent's for the child's, and what is committed
 * then can be lost. */
BATON_API enum baton_err baton_store_open(const struct baton_store_options *options,
                                          struct baton_store **ret_store);

/* Ends the handle. Nothing may be in progress on it. What it holds stays held until it expires or
 * this process is dead. In a forked child it only frees memory. NULL is fine. */
BATON_API void baton_store_close(struct baton_store *store);

/* Who this handle is: a new incarnation for each one. Lives as long as the handle. */
BATON_API const struct baton_owner *baton_store_owner(const struct baton_store *store);

/* What the store's clock shows. */
BATON_API struct baton_store_time baton_store_now(const struct baton_store *store);

/* Where the store is, fit to be shown: no secret is in it. Lives as long as the handle. */
BATON_API const char *baton_store_where(const struct baton_store *store);

/* The store's own id: random, given when it was made; whoever opens it under another address finds
 * the same. Lives as long as the handle. */
BATON_API const struct baton_id *baton_store_id(const struct baton_store *store);

/* What is waited for. */
struct baton_store_wait {
	struct baton_str queue;  /* "": of any queue                                           */
	struct baton_mono until; /* on the store's clock                                       */
	const uint32_t *cancel;  /* NULL, or a word that ends the wait once it is not 0;
	                             whoever sets it calls baton_store_poke()                   */
	struct baton_store_time *told; /* NULL, or until when all that is due has been told, at
	                                  first 0: who does not see to what is due at once, since
	                                  he cannot take more, is told of it once and not again
	                                  and again                                            */
};

/* Returns when there may be work that can be claimed: it never misses what was committed before the
 * caller's last look, if `*seen` is what the call before returned (0 for the first, which returns
 * at once). Other processes are noticed through baton_store_poke(), or by looking now and then,
 * 10 ms to 1 s apart.
 *
 * BATON_OK: it is worth a look; *seen has changed. BATON_TIMEOUT. BATON_CANCELLED. BATON_STORAGE.
 * Any thread. */
BATON_API enum baton_err baton_store_wait(struct baton_store *store,
                                          const struct baton_store_wait *wait, uint64_t *seen);

/* Makes every wait on this handle look again. Any thread; also from a signal handler. */
BATON_API void baton_store_poke(struct baton_store *store);

/* Writes a complete copy of the store, as it was at one moment, to a new file, while others go on.
 * `progress` (may be NULL) is told how many of how many pages are done; false ends it.
 * Whoever opens the copy first ends every lease and claim in it, and its fences begin above all
 * that the original has handed out, also since: those who hold something of the original can renew,
 * release or end nothing in the copy, and work that was claimed is claimed again, which counts an
 * attempt. That takes a clock that is not behind the original's by more than 2^20 leases of one
 * subject.
 *
 * BATON_INVALID: there is such a file already. BATON_STORAGE, BATON_CANCELLED: nothing is left of
 * it. */
struct baton_store_progress {
	bool (*call)(void *arg, uint64_t done, uint64_t all);
	void *arg;
};
BATON_API enum baton_err baton_store_backup(struct baton_store *store, const char *path,
                                            const struct baton_store_progress *progress);

/* Looks whether everything fits together. `report` is called with a sentence for each fault.
 *
 * BATON_OK: *ret_faults says how many there are. BATON_STORAGE: it could not be read. */
BATON_API enum baton_err baton_store_check(struct baton_store *store,
                                           void (*report)(void *arg, const char *sentence),
                                           void *arg, uint64_t *ret_faults);

/* The statements that make version `to` of the tables of a store in PostgreSQL out of the one
 * before it, counted from 1. 0: those that make its functions, views and rights, or replace those
 * of any earlier version, after the last of the others. BATON_STORE_STAMP: the one that says which
 * version they are, as the last. NULL: there is no such version. baton_store_open() does all of it
 * itself; they are for those who want to see them before, or run them by hand. Static text. Any
 * thread. */
#define BATON_STORE_STAMP (-1)
BATON_API const char *baton_store_tables(int to);

/* Forgets what is no longer needed: old source keys, answers, results and starts of keys. At most
 * `max` of them. Keys whose window is over may start again, and who waits is told.
 * Calls that change something do a little of it themselves.
 *
 * BATON_OK: *ret_count (may be NULL) were forgotten. */
BATON_API enum baton_err baton_store_tidy(struct baton_store *store, size_t max, size_t *ret_count);

BATON_END

#endif
