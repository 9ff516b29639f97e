/* The name that a client asks for is the same whether its bytes come at once or one by one. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "handoff/peek.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char whole[PEEK_NAME_MAX + 1] = "";
	char part[PEEK_NAME_MAX + 1] = "";
	struct baton_str bytes = {(const char *)data, size};
	enum peek_verdict last = peek_name(bytes, whole);
	for (size_t len = 0; len < size; len++) {
		enum peek_verdict now = peek_name((struct baton_str){bytes.ptr, len}, part);
		if (now == PEEK_MORE)
			continue;
		CHECK(now == last);
		CHECK(now != PEEK_NAME || strcmp(part, whole) == 0);
	}
	if (last == PEEK_NAME)
		CHECK(strlen(whole) >= 1 && strlen(whole) <= PEEK_NAME_MAX);
	return 0;
}
