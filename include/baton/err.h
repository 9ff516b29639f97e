/* What a call answered: one enum from one table, and a sentence with the particulars. */
#ifndef BATON_ERR_H
#define BATON_ERR_H

#include <baton/api.h>

BATON_BEGIN

/* name, number, meaning. The numbers are part of the ABI and are never reused. */
#define BATON_ERR_TABLE(X)                                \
	X(OK, 0, "success")                               \
	X(YIELD, 1, "someone else comes first")           \
	X(NOT_HELD, 2, "not held by the one who asks")    \
	X(TIMEOUT, 3, "timed out")                        \
	X(CANCELLED, 4, "cancelled")                      \
	X(INVALID, 5, "invalid argument")                 \
	X(FULL, 6, "a limit has been reached")            \
	X(NO_MEMORY, 7, "out of memory")                  \
	X(SYSTEM, 8, "a system call failed")              \
	X(BUSY, 9, "somebody else is in the way")         \
	X(GONE, 10, "what was joined is gone")            \
	X(STALE, 11, "a newer one was here")              \
	X(CONFLICT, 12, "it is there with other content") \
	X(NOT_FOUND, 13, "there is no such thing")        \
	X(STORAGE, 14, "the store failed")

enum baton_err {
#define BATON_ERR_ENTRY(name, number, text) BATON_##name = number,
	BATON_ERR_TABLE(BATON_ERR_ENTRY)
#undef BATON_ERR_ENTRY
};

/* The meaning of `e`: static text, never NULL, also for a number outside the table. Any thread. */
BATON_API const char *baton_strerror(enum baton_err e);

/* The name of `e` as it stands in the source, such as "BATON_YIELD". Static text. Any thread. */
BATON_API const char *baton_err_name(enum baton_err e);

/* One sentence about the last call on this thread that failed: what was wrong, with which value and
 * which limit. "" when no call has failed yet. BATON_OK and the plain answers BATON_YIELD,
 * BATON_NOT_HELD, BATON_TIMEOUT, BATON_CANCELLED, BATON_STALE and BATON_NOT_FOUND are not failures
 * and leave it alone unless the function says otherwise.
 *
 * The text belongs to the thread and holds until its next failing call. It never has a secret. */
BATON_API const char *baton_err_detail(void);

BATON_END

#endif
