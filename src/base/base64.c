/* Bytes as text, and back: base64 of RFC 4648, with its padding. */
#include "base/base64.h"

#include <sodium.h>

#define PIECE 3072 /* bytes, a multiple of three: only the last piece has a padding */

bool base64_decode(struct baton_str text, char *bytes, size_t *ret_len)
{
	*ret_len = 0;
	if (text.len == 0)
		return true;
	return sodium_base642bin((unsigned char *)bytes, BASE64_ROOM(text.len), text.ptr, text.len,
	                         NULL, ret_len, NULL, sodium_base64_VARIANT_ORIGINAL) == 0;
}

enum baton_err base64_append(struct buf *buf, struct baton_str bytes)
{
	char text[PIECE / 3 * 4 + 1];
	for (size_t i = 0; i < bytes.len && buf->err == BATON_OK; i += PIECE) {
		size_t len = bytes.len - i < PIECE ? bytes.len - i : PIECE;
		sodium_bin2base64(text, sizeof text, (const unsigned char *)bytes.ptr + i, len,
		                  sodium_base64_VARIANT_ORIGINAL);
		buf_append(buf, text, (len + 2) / 3 * 4);
	}
	return buf->err;
}
