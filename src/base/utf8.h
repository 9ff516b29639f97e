/* Characters in bytes that may or may not be UTF-8. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes the character at the beginning of the `len` bytes takes, and which one it is; 0 if
 * there is none: an empty text, no shortest form, a surrogate, above U+10FFFF, or cut off. */
size_t utf8_next(const char *bytes, size_t len, uint32_t *ret_char);

/* Whether all of it is UTF-8. */
bool utf8_is_valid(const char *bytes, size_t len);

/* Whether terminals and log readers may act on it instead of showing it: C0, DEL and C1. */
bool utf8_is_control(uint32_t ch);

/* The largest length of at most `len` that does not end inside a character. What is no UTF-8 in the
 * first place is left as it is. */
size_t utf8_cut(const char *bytes, size_t len);

#endif
