/* A view of bytes that belong to someone else. */
#ifndef BATON_STR_H
#define BATON_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <baton/api.h>
#include <baton/err.h>

BATON_BEGIN

/* `len` bytes at `ptr`, which may hold NULs and has no terminator. `ptr` may be NULL when len is 0.
 * The view owns nothing: whoever made the bytes keeps them alive. */
struct baton_str {
	const char *ptr;
	size_t len;
};

/* The longest name of anything in Baton. */
#define BATON_NAME_MAX 255

/* A view of a string literal. */
#ifdef __cplusplus
#define BATON_STR(literal) (baton_str{"" literal, sizeof(literal) - 1})
#else
#define BATON_STR(literal) ((struct baton_str){"" literal, sizeof(literal) - 1})
#endif

/* A view of a C string without its terminator; NULL gives the empty view. */
static inline struct baton_str baton_str_z(const char *z)
{
	struct baton_str s = {z, z ? strlen(z) : 0};
	return s;
}

static inline bool baton_str_equal(struct baton_str a, struct baton_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Makes a view of 1 to `max` bytes.
 *
 * BATON_INVALID: empty, NULL or longer; the detail calls it `what` and states both lengths, and
 * *ret is untouched. Any thread. */
BATON_API enum baton_err baton_str_make(const char *what, const void *bytes, size_t len, size_t max,
                                        struct baton_str *ret);

/* As baton_str_make(), for something that people read: also valid UTF-8, and no control characters
 * (C0, DEL and C1). The detail says at which byte. */
BATON_API enum baton_err baton_str_name(const char *what, const void *bytes, size_t len, size_t max,
                                        struct baton_str *ret);

/* Whether the bytes are valid UTF-8: shortest forms only, no surrogates, nothing above U+10FFFF. */
BATON_API bool baton_str_is_utf8(struct baton_str s);

BATON_END

#endif
