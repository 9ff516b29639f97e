/* A view of bytes that belong to someone else. */
#include <baton/str.h>

#include "base/fail.h"
#include "base/utf8.h"

enum baton_err baton_str_make(const char *what, const void *bytes, size_t len, size_t max,
                              struct baton_str *ret)
{
	if (bytes == NULL || len == 0)
		return fail(BATON_INVALID, "the %s is %s: 1 to %zu bytes are allowed", what,
		            len == 0 ? "empty" : "missing", max);
	if (len > max)
		return fail(BATON_INVALID, "the %s has %zu bytes: 1 to %zu are allowed", what, len,
		            max);
	*ret = (struct baton_str){bytes, len};
	return BATON_OK;
}

enum baton_err baton_str_name(const char *what, const void *bytes, size_t len, size_t max,
                              struct baton_str *ret)
{
	struct baton_str s;
	enum baton_err e = baton_str_make(what, bytes, len, max, &s);
	if (e != BATON_OK)
		return e;
	for (size_t at = 0; at < s.len;) {
		uint32_t ch;
		if (s.ptr[at] >= ' ' && s.ptr[at] <= '~') { /* nearly always */
			at++;
			continue;
		}
		size_t n = utf8_next(s.ptr + at, s.len - at, &ch);
		if (n == 0)
			return fail(BATON_INVALID, "the %s is not valid UTF-8 at byte %zu", what,
			            at);
		if (utf8_is_control(ch))
			return fail(BATON_INVALID,
			            "the %s has the control character U+%04X at byte %zu", what,
			            (unsigned)ch, at);
		at += n;
	}
	*ret = s;
	return BATON_OK;
}

bool baton_str_is_utf8(struct baton_str s)
{
	for (size_t at = 0; at < s.len;) {
		uint32_t ch;
		size_t n = utf8_next(s.ptr + at, s.len - at, &ch);
		if (n == 0)
			return false;
		at += n;
	}
	return true;
}
