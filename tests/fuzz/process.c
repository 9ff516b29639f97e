/* What is read from /proc is what stands there, and nothing is written where nothing was read. */
#include "base/process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fuzz/fuzz.h"

static bool has(struct baton_str text, const char *part)
{
	return text.len > 0 && memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

static void check_start(struct baton_str stat)
{
	const uint64_t untouched = UINT64_C(0x0123456789abcdef);
	uint64_t start = untouched;
	char shown[32];
	errno = 0;
	if (!process_parse_start(stat, &start)) {
		CHECK(errno == EBADMSG);
		CHECK(start == untouched);
		return;
	}
	snprintf(shown, sizeof shown, " %" PRIu64, start);
	CHECK(has(stat, shown));
	CHECK(has(stat, ")"));
}

static void check_pid(struct baton_str fdinfo)
{
	int32_t pid = -99;
	char shown[32];
	errno = 0;
	if (!process_parse_pid(fdinfo, &pid)) {
		CHECK(errno == EBADMSG);
		CHECK(pid == -99);
		return;
	}
	CHECK(pid > 0);
	snprintf(shown, sizeof shown, "Pid:\t%" PRId32, pid);
	CHECK(has(fdinfo, shown));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct baton_str text = {(const char *)data, size};
	check_start(text);
	check_pid(text);
	if (process_parse_unshifted(text)) {
		CHECK(has(text, "boottime "));
		CHECK(has(text, " 0"));
	}
	return 0;
}
