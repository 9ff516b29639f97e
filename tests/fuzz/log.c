/* Whatever the fields hold, a record is one line of valid UTF-8, and of JSON where that was
 * wanted. */
#include "base/record.h"

#include <string.h>

#include "fuzz/fuzz.h"
#include "support/json.h"

#define FIELDS_MAX 8
#define REPEATS_MAX 20
#define INPUT_MAX 512

static void check_record(const struct record *record)
{
	char bytes[BATON_LOG_RECORD_MAX];
	size_t len = record_write(record, bytes);
	CHECK(len > 0 && len <= sizeof bytes);
	CHECK(memchr(bytes, '\n', len) == bytes + len - 1);
	struct baton_str line = {bytes, len - 1};
	CHECK(baton_str_is_utf8(line));
	CHECK(record->format != BATON_LOG_JSON || json_is_object(line));
}

/* The first byte says whether the rest is repeated, to get beyond the length of a record; the rest
 * is cut into fields at its bytes 0xfe, which are no UTF-8 anyway. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[REPEATS_MAX * INPUT_MAX];
	struct baton_field fields[FIELDS_MAX];
	size_t count = 0;
	size_t len = 0;
	if (size == 0 || size > INPUT_MAX)
		return 0;
	unsigned repeats = data[0] < 0xf0 ? 1 : REPEATS_MAX;
	for (unsigned i = 0; i < repeats; i++) {
		memcpy(text + len, data + 1, size - 1);
		len += size - 1;
	}
	for (size_t from = 0; count < FIELDS_MAX && from <= len; count++) {
		const char *end = memchr(text + from, 0xfe, len - from);
		size_t n = end != NULL && count + 1 < FIELDS_MAX ? (size_t)(end - text) - from
		                                                 : len - from;
		fields[count] = baton_field_str("f", (struct baton_str){text + from, n});
		from += n + 1;
	}
	struct record record = {
		.format = BATON_LOG_LOGFMT,
		.level = BATON_LOG_INFO,
		.message = "m",
		.fields = fields,
		.count = count,
		.dropped = data[0],
	};
	check_record(&record);
	record.format = BATON_LOG_JSON;
	check_record(&record);
	return 0;
}
