/* How a failing call leaves its sentence for baton_err_detail(). */
#ifndef BASE_FAIL_H
#define BASE_FAIL_H

#include <stddef.h>

#include <baton/err.h>

/* Sets this thread's detail to the formatted sentence and returns `e`, so that a function can end
 * with `return fail(BATON_INVALID, "...")`. A sentence that does not fit is cut at a character
 * boundary. */
__attribute__((format(printf, 2, 3))) enum baton_err fail(enum baton_err e, const char *format,
                                                          ...);

/* As fail(BATON_SYSTEM), with ": " and the text of `errnum` appended. */
__attribute__((format(printf, 2, 3))) enum baton_err fail_errno(int errnum, const char *format,
                                                                ...);

/* As fail(BATON_NO_MEMORY), with how much was wanted for what. */
enum baton_err fail_memory(size_t bytes, const char *what);

#endif
