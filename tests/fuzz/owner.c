/* An owner that is read is written as exactly the same text. */
#include <baton/owner.h>

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct baton_str input = {(const char *)data, size};
	struct baton_owner owner;
	char text[BATON_OWNER_TEXT];
	if (baton_owner_parse(input, &owner) != BATON_OK) {
		CHECK(baton_str_is_utf8(baton_str_z(baton_err_detail())));
		return 0;
	}
	CHECK(owner.pid >= 0);
	CHECK(baton_str_equal(baton_str_z(baton_owner_print(&owner, text)), input));
	return 0;
}
