/* A span that is read is written so that it is read as the same span. */
#include <baton/time.h>

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct baton_duration d = {-1};
	struct baton_duration again = {-1};
	char text[BATON_DURATION_TEXT];
	if (baton_duration_parse((struct baton_str){(const char *)data, size}, &d) != BATON_OK) {
		CHECK(d.ns == -1);
		CHECK(baton_err_detail()[0] != '\0');
		CHECK(baton_str_is_utf8(baton_str_z(baton_err_detail())));
		return 0;
	}
	CHECK(d.ns >= 0);
	baton_duration_print(d, text);
	CHECK(baton_duration_parse(baton_str_z(text), &again) == BATON_OK);
	CHECK(again.ns == d.ns);
	return 0;
}
