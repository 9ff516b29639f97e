/* Bytes from text: base64 of RFC 4648, with its padding. */
#include "base/base64.h"

#include <sodium.h>

bool base64_decode(struct baton_str text, char *bytes, size_t *ret_len)
{
	*ret_len = 0;
	if (text.len == 0)
		return true;
	return sodium_base642bin((unsigned char *)bytes, BASE64_ROOM(text.len), text.ptr, text.len,
	                         NULL, ret_len, NULL, sodium_base64_VARIANT_ORIGINAL) == 0;
}
