/* One line of a log, as bytes. */
#ifndef BASE_RECORD_H
#define BASE_RECORD_H

#include <baton/log.h>

struct record {
	enum baton_log_format format;
	struct baton_store_time time;
	enum baton_log_level level;
	const char *message;
	const struct baton_field *fields;
	size_t count;
	uint64_t dropped; /* records that went missing before this one */
};

/* Writes the record with the line's end and returns its length. It is valid UTF-8, and valid JSON
 * in that format, whatever the fields hold. What does not fit is left out as <baton/log.h> says.
 * Takes no lock and no memory. */
size_t record_write(const struct record *record, char bytes[BATON_LOG_RECORD_MAX]);

#endif
