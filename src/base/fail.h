/* How a failing call leaves its sentence for baton_err_detail(). */
#ifndef BASE_FAIL_H
#define BASE_FAIL_H

#include <stddef.h>

#include <baton/err.h>

/* Sets this thread's detail to the formatted sentence and returns `e`, so that a function can end
 * with `return fail(BATON_INVALID, "...")`. A sentence that does not fit is cut at a character
 * boundary. Keeps errno. A macro, so that compilers see that it is `e` that is returned. */
#define fail(e, ...)                        \
	({                                  \
		fail_detail(__VA_ARGS__);   \
		enum baton_err fail_ = (e); \
		fail_;                      \
	})

/* As fail(BATON_SYSTEM), with ": " and the text of `errnum` appended. */
#define fail_errno(errnum, ...)                           \
	({                                                \
		fail_errno_detail((errnum), __VA_ARGS__); \
		enum baton_err fail_ = BATON_SYSTEM;      \
		fail_;                                    \
	})

/* As fail(BATON_NO_MEMORY), with how much was wanted for what. */
#define fail_memory(bytes, what) \
	fail(BATON_NO_MEMORY, "no memory: %zu bytes for %s", (size_t)(bytes), (what))

/* What these are made of. */
__attribute__((format(printf, 1, 2))) void fail_detail(const char *format, ...);
__attribute__((format(printf, 2, 3))) void fail_errno_detail(int errnum, const char *format, ...);

#endif
