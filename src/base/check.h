/* CHECK: for our own bugs, also in release builds. What the world does wrong is an error. */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#define CHECK(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond))

/* Writes one line to standard error and aborts. */
_Noreturn void check_failed(const char *file, int line, const char *cond);

#endif
