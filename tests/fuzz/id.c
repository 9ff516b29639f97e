/* An id that is read is written as it was, in small letters. */
#include <baton/id.h>

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct baton_id id;
	char text[BATON_ID_TEXT];
	if (baton_id_parse((struct baton_str){(const char *)data, size}, &id) != BATON_OK) {
		CHECK(baton_str_is_utf8(baton_str_z(baton_err_detail())));
		return 0;
	}
	baton_id_print(&id, text);
	CHECK(size == strlen(text));
	for (size_t i = 0; i < size; i++) {
		uint8_t small = data[i] >= 'A' && data[i] <= 'F' ? data[i] + ('a' - 'A') : data[i];
		CHECK((uint8_t)text[i] == small);
	}
	return 0;
}
