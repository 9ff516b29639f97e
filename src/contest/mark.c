/* The highest fence of a fleet, kept in a file. */
#include "contest/mark.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "contest/keep.h"

#define DIGITS 20
#define LINE_BYTES (DIGITS + 1)

/* How often the file may be replaced between opening and locking it. */
#define ATTEMPTS 100

/* One line, so short that a single write never leaves a part of it. */
static void line_print(uint64_t number, char line[LINE_BYTES + 1])
{
	snprintf(line, LINE_BYTES + 1, "%0*" PRIu64 "\n", DIGITS, number);
}

static bool line_parse(const char line[LINE_BYTES], uint64_t *ret)
{
	uint64_t number = 0;
	for (int i = 0; i < DIGITS; i++) {
		if (line[i] < '0' || line[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(line[i] - '0');
		if (number > MARK_MAX)
			return false;
	}
	*ret = number;
	return line[DIGITS] == '\n';
}

static enum baton_err mark_fill(int fd, void *arg)
{
	char line[LINE_BYTES + 1];
	const struct keep file = {.fd = fd, .folder = -1, .path = "a new mark of fences"};
	line_print(*(const uint64_t *)arg, line);
	return keep_write(&file, line, LINE_BYTES, 0);
}

static enum baton_err mark_read(const struct keep *k, uint64_t *ret)
{
	char line[LINE_BYTES];
	if (k->size != LINE_BYTES)
		return keep_refuse(k->path, "is no mark of fences: it does not have 21 bytes");
	enum baton_err e = keep_read(k, line, sizeof line, 0);
	if (e != BATON_OK)
		return e;
	if (!line_parse(line, ret))
		return keep_refuse(k->path, "is no mark of fences: it does not have 20 digits, up "
		                            "to 00000281474976710655, and a line feed");
	return BATON_OK;
}

/* Raises what is in the file, under its lock. It is written also if it is high enough, because
 * nobody knows whether it is on the disk: whoever raised it may have died, or failed, before. */
static enum baton_err raise_locked(const struct keep *k, uint64_t at_least, uint64_t *ret_before)
{
	uint64_t before = 0;
	char line[LINE_BYTES + 1];
	enum baton_err e = mark_read(k, &before);
	if (e != BATON_OK)
		return e;
	*ret_before = before;
	if (at_least == 0)
		return BATON_OK;
	line_print(before > at_least ? before : at_least, line);
	return keep_write(k, line, LINE_BYTES, 0);
}

/* One attempt. BATON_GONE: the file was replaced before it was locked. */
static enum baton_err raise_once(const struct keep_spec *spec, uint64_t at_least,
                                 struct baton_duration *patience, uint64_t *ret_before)
{
	uint64_t before = 0;
	AUTO(keep_close) struct keep k = KEEP_NONE;
	enum baton_err e = keep_open(spec, &k);
	if (e == BATON_OK && k.fd >= 0)
		e = keep_lock(&k, patience);
	if (e == BATON_OK && k.fd >= 0) {
		e = keep_is_current(&k) ? raise_locked(&k, at_least, &before) : BATON_GONE;
		/* The disk may be slow, so nobody has to wait for it behind the lock. */
		keep_unlock(&k);
	}
	if (e == BATON_OK && at_least > 0)
		e = keep_sync(&k);
	if (e == BATON_OK)
		*ret_before = k.made ? 0 : before;
	return e;
}

enum baton_err mark_raise(const char *path, mode_t mode, uint64_t at_least, uint64_t *ret_before)
{
	struct baton_duration patience = KEEP_PATIENCE;
	const struct keep_spec spec = {
		.path = path,
		.what = "mark of fences",
		.mode = mode,
		.group = mode == 0660,
		.make = at_least > 0,
		.fill = mark_fill,
		.arg = &at_least,
	};
	if (at_least > MARK_MAX)
		return fail(BATON_INVALID, "%" PRIu64 " is above %" PRIu64 ", the highest fence",
		            at_least, MARK_MAX);
	for (int i = 0; i < ATTEMPTS; i++) {
		enum baton_err e = raise_once(&spec, at_least, &patience, ret_before);
		if (e != BATON_GONE)
			return e;
	}
	return fail(BATON_SYSTEM, "'%.200s' was replaced %d times while it was being locked", path,
	            ATTEMPTS);
}
