/* Writes JSON: one object per line, in UTF-8 whatever the names are made of. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <baton.h>

#include "line.h"

/* Begins as {.line = {.out = ...}}. */
struct json {
	struct line line;
	bool follows; /* something stands before what comes next, so a comma is due */
};

/* An object. The outermost one has no key (NULL), as those in a list. */
void json_open(struct json *j, const char *key);
void json_close(struct json *j);

void json_open_list(struct json *j, const char *key);
void json_close_list(struct json *j);

/* The bytes as a string. Where they are no UTF-8, each byte that is not becomes U+FFFD, and the
 * field `key`_hex follows with all of the bytes in hexadecimal, but for one of a list. */
void json_bytes(struct json *j, const char *key, struct baton_str bytes);

/* The bytes as a string of base64. */
void json_base64(struct json *j, const char *key, struct baton_str bytes);

void json_text(struct json *j, const char *key, const char *text);
void json_number(struct json *j, const char *key, uint64_t number);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

/* RFC 3339, or null for BATON_STORE_TIME_NEVER. */
void json_time(struct json *j, const char *key, struct baton_store_time t);

/* Whole milliseconds, rounded down and none below 0; or null for BATON_DURATION_FOREVER. */
void json_span(struct json *j, const char *key, struct baton_duration d);

/* Ends the line, once the outermost object is closed. */
void json_end(struct json *j);

#endif
