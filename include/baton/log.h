/* A log of records with fields, a line each, for people (logfmt) or for machines (JSON). */
#ifndef BATON_LOG_H
#define BATON_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/api.h>
#include <baton/clock.h>
#include <baton/err.h>
#include <baton/id.h>
#include <baton/str.h>
#include <baton/time.h>

BATON_BEGIN

enum baton_log_level {
	BATON_LOG_DEBUG = 1,
	BATON_LOG_INFO,
	BATON_LOG_WARN,
	BATON_LOG_ERROR
};

enum baton_log_format {
	BATON_LOG_LOGFMT = 1,
	BATON_LOG_JSON
};

/* Where records go. A plain value: it holds no memory and no lock, and may be copied. Every record
 * is one write(2) of at most BATON_LOG_RECORD_MAX bytes, which pipes and files opened for appending
 * take whole, so that lines of several threads and processes never mix.
 *
 * A record that does not fit loses the ends of its longest values and says so in the field
 * "truncated". If it would not fit with all of them empty, fields are left out from its end, and
 * those before them keep 256 bytes of their values. The message always keeps 1024 bytes.
 *
 * A record that cannot be written is dropped and counted, and the next that can be written says how
 * many went missing in the field "dropped". What a write takes only in part, as that of a disk that
 * becomes full, is followed by one more write of the rest. If that fails too the record counts as
 * dropped, but its beginning stays where it is, without an end of line, and the next record follows
 * on the same line: a reader has to expect one line that is none where "dropped" is told.
 *
 * Control characters and bytes that are not UTF-8 are escaped as \xNN (logfmt), or as \u00NN and
 * U+FFFD (JSON). Logging never blocks on a full non-blocking pipe, raises no SIGPIPE and never
 * fails its caller. */
struct baton_log {
	const struct baton_clock *clock; /* for the time stamp; NULL: the system's               */
	int fd;                          /* borrowed                                             */
	enum baton_log_level level;      /* records below it are not written                     */
	enum baton_log_format format;
	uint64_t *dropped; /* the caller's counter of dropped records; NULL: not counted          */
};

#define BATON_LOG_RECORD_MAX 4096

enum baton_field_kind {
	BATON_FIELD_STR = 1,
	BATON_FIELD_INT,
	BATON_FIELD_UINT,
	BATON_FIELD_BOOL,
	BATON_FIELD_DURATION,
	BATON_FIELD_ID,
	BATON_FIELD_SECRET
};

/* One named value of a record. `name` is of [a-z0-9_]; whatever else it holds is shown as '_'. The
 * names of the record's own fields, which are ts, level, msg, truncated and dropped, get a '_' in
 * front, so that none stands there twice. */
struct baton_field {
	const char *name;
	enum baton_field_kind kind;
	union {
		struct baton_str str;
		int64_t i;
		uint64_t u;
		bool b;
		struct baton_duration duration;
		const struct baton_id *id;
	} value;
};

/* Constructors for the fields of BATON_LOG(). A secret is shown as "[secret]", whatever it is: the
 * function takes it so that callers can name what they had, and does not keep it. */
static inline struct baton_field baton_field_str(const char *name, struct baton_str v)
{
	struct baton_field f = {name, BATON_FIELD_STR, {.str = v}};
	return f;
}

static inline struct baton_field baton_field_int(const char *name, int64_t v)
{
	struct baton_field f = {name, BATON_FIELD_INT, {.i = v}};
	return f;
}

static inline struct baton_field baton_field_uint(const char *name, uint64_t v)
{
	struct baton_field f = {name, BATON_FIELD_UINT, {.u = v}};
	return f;
}

static inline struct baton_field baton_field_bool(const char *name, bool v)
{
	struct baton_field f = {name, BATON_FIELD_BOOL, {.b = v}};
	return f;
}

static inline struct baton_field baton_field_duration(const char *name, struct baton_duration v)
{
	struct baton_field f = {name, BATON_FIELD_DURATION, {.duration = v}};
	return f;
}

static inline struct baton_field baton_field_id(const char *name, const struct baton_id *v)
{
	struct baton_field f = {name, BATON_FIELD_ID, {.id = v}};
	return f;
}

static inline struct baton_field baton_field_secret(const char *name, struct baton_str v)
{
	struct baton_field f = {name, BATON_FIELD_SECRET, {.u = 0}};
	(void)v;
	return f;
}

/* Writes one record. `message` is a fixed sentence; what varies goes into the fields, so that
 * nothing is printed by accident. A NULL log writes nothing.
 * Any thread; keeps errno and the error detail. */
BATON_API void baton_log_write(const struct baton_log *log, enum baton_log_level level,
                               const char *message, const struct baton_field *fields, size_t count);

/* A statement; with at least one field:
 *
 *	BATON_LOG(log, BATON_LOG_INFO, "lease lost", baton_field_str("subject", s));
 */
#define BATON_LOG(log, level, message, ...)                                      \
	do {                                                                     \
		const struct baton_field baton_fields_[] = {__VA_ARGS__};        \
		baton_log_write(log, level, message, baton_fields_,              \
		                sizeof(baton_fields_) / sizeof(*baton_fields_)); \
	} while (0)

BATON_END

#endif
