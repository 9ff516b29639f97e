/* Which store a command is about, and what to say when it cannot be had. */
#ifndef CLI_STORE_H
#define CLI_STORE_H

#include <stdbool.h>

#include <baton.h>

#include "bell.h"
#include "options.h"
#include "out.h"

/* The options of every command that is about a store, for its table of options. */
#define STORE_WHERE OPTION_LONG
#define STORE_JSON (OPTION_LONG + 1)
#define STORE_OPTIONS                                                                             \
	{"store", required_argument, NULL, STORE_WHERE}, {"json", no_argument, NULL, STORE_JSON}, \
		{"verbose", no_argument, NULL, 'v'},                                              \
	{                                                                                         \
		"help", no_argument, NULL, 'h'                                                    \
	}
#define STORE_NEXT (STORE_JSON + 1) /* the first value for an option of the command's own */

struct store {
	const char *given; /* --store; NULL: $BATON_STORE, or that of this user */
	bool verbose;
	bool json; /* write for programs */
	char where[BATON_STORE_PATH_MAX + 16];
	struct baton_store *handle; /* NULL: not open */
	struct bell bell;
};

/* Takes an option if it is one of STORE_OPTIONS other than help. */
bool store_option(struct store *s, int option, const char *value);

/* The whole command line of a command that has no other options. As reading_do(). */
bool store_reading(struct store *s, struct operands *operands, struct out *out, int argc,
                   char **argv, int *ret_status);

/* Whether a command makes the store if it is not there. */
enum store_need {
	STORE_EXISTING = 1,
	STORE_MADE
};

/* Finds the store, and says which one it is if that is wanted: s->where. Returns EX_OK, or another
 * status after one line on standard error. */
int store_find(struct store *s, enum store_need need);

/* Finds the store, says which one it is if that is wanted, and opens it; what becomes ready in it
 * through this process is told to the processes that wait for it. Returns EX_OK, and
 * store_close() ends it; or another status after one line on standard error. */
int store_open(struct store *s, enum store_need need);

/* Whether it is in a file of this host. */
bool store_is_file(const struct store *s);

/* Makes the folder in which this user's own store lies, and finds it. Returns EX_OK, or another
 * status after one line on standard error. */
int store_folder(char *folder, size_t size);

/* The path in s->where, once that is found. */
const char *store_path(const struct store *s);

/* Fine for one that was never opened. */
void store_close(struct store *s);

/* Says on standard error why something with the store failed, and returns the status for it. */
int store_fail(const struct store *s, enum baton_err e);

#endif
