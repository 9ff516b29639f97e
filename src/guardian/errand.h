/* What a runner, its guardian and the nannies tell each other: packets of plain structs, with
 * descriptors beside them, and a page of memory.
 *
 * The helper may be of another build than the library, so all of it has a version and fixed sizes,
 * and is looked at as if a stranger had sent it. */
#ifndef GUARDIAN_ERRAND_H
#define GUARDIAN_ERRAND_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>

#include "base/buf.h"

/* "BWD", and the version: 3. */
#define ERRAND_MAGIC UINT32_C(0x42574403)

/* The bytes of a path, with its NUL. */
#define ERRAND_PATH 4128

/* The descriptors that the guardian finds when it starts. */
enum {
	ERRAND_SOCKET = 3, /* to the runner; nannies write to it as well */
	ERRAND_LIFE,       /* the locked life file */
	ERRAND_LEASH, /* the end of a pipe that everybody keeps; the runner has the other one */
	ERRAND_PAGE,  /* a memory file with a struct errand_page */
	ERRAND_WAKE,  /* an eventfd: the deadline has become an earlier one */
	ERRAND_TIMER, /* a timerfd that the runner sets to the deadline: the nannies' */
	ERRAND_FDS
};

/* Shared by the runner and the guardian. */
struct errand_page {
	uint32_t magic; /* [const] */
	uint32_t awake; /* [const] 1: the deadline is on CLOCK_MONOTONIC; 0: on BOOTTIME */
	_Atomic int64_t deadline; /* [atomic] in ns; INT64_MAX: none */
	int64_t lock_at;          /* [const] which byte of the file below the runner locks */
	char lock[ERRAND_PATH];   /* [const] "": none */
};

static_assert(sizeof(struct errand_page) == 24 + ERRAND_PATH, "the page is shared between builds");
static_assert(sizeof(_Atomic int64_t) == 8, "the deadline is shared between builds");

/* From the runner to the guardian. */
enum order_kind {
	ERRAND_START = 1, /* with descriptors */
	ERRAND_STOP,
	ERRAND_KILL
};

/* Which descriptors come with ERRAND_START, in this order. */
enum order_fd {
	ORDER_ARGS = 0, /* a memory file with arguments and variables */
	ORDER_OUT,
	ORDER_ERR,
	ORDER_IN,      /* may be missing: -1 */
	ORDER_CHANNEL, /* may be missing: -1 */
	ORDER_FDS
};

/* Bits of errand_order.present. */
#define ORDER_HAS_IN 1u
#define ORDER_HAS_CHANNEL 2u

struct errand_order {
	uint32_t magic;
	uint16_t kind; /* enum order_kind */
	uint16_t present;
	uint64_t serial; /* of the command, for the runner's whole life */
	int64_t timeout_ns;
	int64_t grace_ns;
};

static_assert(sizeof(struct errand_order) == 32, "orders pass between builds");

/* From the guardian or a nanny to the runner. */
enum report_kind {
	ERRAND_READY = 1, /* the guardian is there */
	ERRAND_REFUSED,   /* it is not, and this is the last: `code` is an errno */
	ERRAND_BEGUN,     /* `pid` */
	ERRAND_ENDED      /* `how`, `code`, `timed_out` */
};

struct errand_report {
	uint32_t magic;
	uint32_t kind; /* enum report_kind */
	uint64_t serial;
	int32_t pid;
	int32_t how; /* enum ward_how */
	int32_t code;
	uint32_t timed_out;
};

static_assert(sizeof(struct errand_report) == 32, "reports pass between builds");

/* What sending or receiving came to. */
enum errand_got {
	ERRAND_DONE = 1,
	ERRAND_NOT_NOW,
	ERRAND_HUNG_UP,
	ERRAND_STRANGE /* what was received is nothing that there is, or not all of it */
};

/* Sends an order, with fds[ORDER_FDS] if it is a start, of which -1 is none. Never waits. */
enum errand_got order_pass(int socket, const struct errand_order *order, const int *fds);

/* Receives one, and makes fds[ORDER_FDS] the caller's; -1 is none. Never waits. ERRAND_STRANGE: if
 * *ret is an order it came without all of its descriptors, because of the limit of this process;
 * else ret->kind is 0. */
enum errand_got order_get(int socket, struct errand_order *ret, int *fds);

/* Closes fds[ORDER_FDS] and makes them -1. */
void order_close(int *fds);

/* Sends a report. May wait for the runner unless `at_once`. */
enum errand_got report_pass(int socket, const struct errand_report *report, bool at_once);

/* Receives one. Never waits. */
enum errand_got report_get(int socket, struct errand_report *ret);

/* Writes down arguments and variables (may be NULL). The buffer says whether it worked. */
void args_write(struct buf *to, char *const *argv, char *const *env);

/* Arguments and variables that were read. Begins as {.alloc = ...}. */
struct args {
	const struct baton_alloc *alloc;
	char *bytes;
	size_t size;
	char **texts; /* both lists, each with NULL at its end */
	size_t count;
	char **argv; /* at least one */
	char **env;
};

/* Reads what args_write() wrote from the start of a file.
 * BATON_INVALID: it is something else. BATON_NO_MEMORY, BATON_SYSTEM. */
enum baton_err args_read(struct args *a, int fd);

/* For AUTO(). Fine after a failure, and twice. */
void errand_args_done(struct args *a);

#endif
