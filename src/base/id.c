/* Names for things that must never be confused with one another. */
#include <baton/id.h>

#include <errno.h>
#include <sodium.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/ids.h"
#include "base/quote.h"

#define ONCE 16 /* ids are 256 bytes, the most that getentropy() gives */

enum baton_err ids_random(struct baton_id *ids, size_t count)
{
	/* Not randombytes_buf(): sodium_init() takes a lock, which a child may inherit locked, and
	 * without a random source it aborts. */
	for (size_t i = 0; i < count; i += ONCE) {
		size_t some = count - i < ONCE ? count - i : ONCE;
		if (getentropy(ids + i, some * sizeof ids[0]) != 0)
			return fail_errno(errno, "the system gives no random bytes");
	}
	return BATON_OK;
}

enum baton_err baton_id_random(struct baton_id *ret)
{
	struct baton_id id;
	enum baton_err e = ids_random(&id, 1);
	if (e == BATON_OK)
		*ret = id;
	return e;
}

char *baton_id_print(const struct baton_id *id, char text[BATON_ID_TEXT])
{
	return sodium_bin2hex(text, BATON_ID_TEXT, id->bytes, sizeof id->bytes);
}

enum baton_err baton_id_parse(struct baton_str text, struct baton_id *ret)
{
	struct baton_id id;
	char shown[QUOTE_TEXT];
	if (text.len != BATON_ID_TEXT - 1)
		return fail(BATON_INVALID, "%s is no id: it has %zu bytes instead of %d",
		            quote(text, shown), text.len, BATON_ID_TEXT - 1);
	if (sodium_hex2bin(id.bytes, sizeof id.bytes, text.ptr, text.len, NULL, NULL, NULL) != 0)
		return fail(BATON_INVALID, "%s is no id: only hexadecimal digits are allowed",
		            quote(text, shown));
	*ret = id;
	return BATON_OK;
}
