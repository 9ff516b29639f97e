/* What a file says about a service. */
#include "handoff/definition.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "wire/hello.h"

#define START_S 10
#define STOP_S 60
#define SPAN_MAX_S 86400

/* What the reading of a file is about. */
struct reading {
	const struct definition_source *source;
	struct arena *arena;
	struct definition *d;
	uint64_t seen; /* a bit for each key */
	bool bad;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct baton_str trim(struct baton_str s)
{
	while (s.len > 0 && is_blank(s.ptr[0])) {
		s.ptr++;
		s.len--;
	}
	while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

/* Takes one word off the front of *rest into `word`, which has room for all of it: quotation marks
 * keep blanks together, and a backslash takes what follows as it is, but not in single ones.
 * False: a quotation mark is open. */
static bool word_take(struct baton_str *rest, char *word)
{
	char mark = '\0';
	size_t i = 0;
	for (; i < rest->len && (mark != '\0' || !is_blank(rest->ptr[i])); i++) {
		char c = rest->ptr[i];
		if (mark == '\0' && (c == '"' || c == '\''))
			mark = c;
		else if (c == mark)
			mark = '\0';
		else if (c == '\\' && mark != '\'' && i + 1 < rest->len)
			*word++ = rest->ptr[++i];
		else
			*word++ = c;
	}
	*word = '\0';
	*rest = trim((struct baton_str){rest->ptr + i, rest->len - i});
	return mark == '\0';
}

static enum baton_err command_take(struct reading *r, struct baton_str value)
{
	char **words = arena_take(r->arena, DEFINITION_WORDS_MAX + 1, sizeof *words);
	size_t n = 0;
	if (!words)
		return fail_memory(DEFINITION_WORDS_MAX * sizeof *words, "a command");
	for (struct baton_str rest = value; rest.len > 0; n++) {
		if (n == DEFINITION_WORDS_MAX)
			return fail(BATON_INVALID, "a command of more than %d words",
			            DEFINITION_WORDS_MAX);
		words[n] = arena_take(r->arena, rest.len + 1, 1);
		if (!words[n])
			return fail_memory(rest.len, "a command");
		if (!word_take(&rest, words[n]))
			return fail(BATON_INVALID, "a quotation mark is not closed");
	}
	if (n == 0 || words[0][0] == '\0')
		return fail(BATON_INVALID, "there is no command");
	if (strchr(words[0], '/') && words[0][0] != '/')
		return fail(BATON_INVALID,
		            "'%.80s' is neither an absolute path nor a name to be found in PATH",
		            words[0]);
	r->d->command = words;
	return BATON_OK;
}

static enum baton_err takes_take(struct reading *r, struct baton_str value)
{
	static const char *const names[] = {"handoff", "stdio", "fd3"};
	char text[QUOTE_TEXT];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!baton_str_equal(value, baton_str_z(names[i])))
			continue;
		r->d->takes = (enum definition_takes)(TAKES_HANDOFF + i);
		return BATON_OK;
	}
	return fail(BATON_INVALID, "%s is not one of handoff, stdio and fd3", quote(value, text));
}

static enum baton_err version_take(struct reading *r, struct baton_str value)
{
	if (value.len > DEFINITION_VERSION_MAX)
		return fail(BATON_INVALID, "a version of %zu bytes; %d are allowed", value.len,
		            DEFINITION_VERSION_MAX);
	memcpy(r->d->version, value.ptr, value.len);
	return BATON_OK;
}

static enum baton_err user_take(struct reading *r, const char *name)
{
	uint64_t number;
	uint32_t uid;
	struct definition *d = r->d;
	if (number_parse(baton_str_z(name), UINT32_MAX - 1, &number))
		uid = (uint32_t)number;
	else if (!r->source->user(name, &uid))
		return fail(BATON_INVALID, "there is no user '%.80s'", name);
	if (d->allow_count == DEFINITION_USERS_MAX)
		return fail(BATON_INVALID, "more than %d users", DEFINITION_USERS_MAX);
	d->allow[d->allow_count++] = uid;
	return BATON_OK;
}

static enum baton_err allow_take(struct reading *r, struct baton_str value)
{
	char name[DEFINITION_LINE_MAX + 1];
	enum baton_err e = BATON_OK;
	while (value.len > 0 && e == BATON_OK)
		e = word_take(&value, name) ? user_take(r, name)
		                            : fail(BATON_INVALID, "a quotation mark is not closed");
	return e;
}

static enum baton_err folder_take(struct reading *r, struct baton_str value)
{
	struct baton_str copy;
	char text[QUOTE_TEXT];
	if (value.ptr[0] != '/')
		return fail(BATON_INVALID, "%s is no absolute path", quote(value, text));
	if (!arena_copy(r->arena, value, &copy))
		return fail_memory(value.len, "a folder");
	r->d->folder = copy.ptr;
	return BATON_OK;
}

static enum baton_err environment_take(struct reading *r, struct baton_str value)
{
	struct definition *d = r->d;
	struct baton_str copy;
	char text[QUOTE_TEXT];
	if (value.ptr[0] == '=' || !memchr(value.ptr, '=', value.len))
		return fail(BATON_INVALID, "%s is not of the form NAME=VALUE", quote(value, text));
	if (d->environment_count == DEFINITION_VARIABLES_MAX)
		return fail(BATON_INVALID, "more than %d variables", DEFINITION_VARIABLES_MAX);
	if (!arena_copy(r->arena, value, &copy))
		return fail_memory(value.len, "a variable");
	d->environment[d->environment_count++] = (char *)copy.ptr;
	return BATON_OK;
}

static enum baton_err privileges_take(struct reading *r, struct baton_str value)
{
	char text[QUOTE_TEXT];
	r->d->no_new_privileges = baton_str_equal(value, BATON_STR("yes"));
	if (r->d->no_new_privileges || baton_str_equal(value, BATON_STR("no")))
		return BATON_OK;
	return fail(BATON_INVALID, "%s is neither yes nor no", quote(value, text));
}

static enum baton_err number_take(struct baton_str value, uint64_t min, uint64_t max, uint64_t *ret)
{
	char text[QUOTE_TEXT];
	if (number_parse(value, max, ret) && *ret >= min)
		return BATON_OK;
	return fail(BATON_INVALID, "%s is no number from %llu to %llu", quote(value, text),
	            (unsigned long long)min, (unsigned long long)max);
}

static enum baton_err files_take(struct reading *r, struct baton_str value)
{
	return number_take(value, 8, 1u << 30, &r->d->open_files);
}

static enum baton_err memory_take(struct reading *r, struct baton_str value)
{
	uint64_t mib;
	enum baton_err e = number_take(value, 1, 1u << 30, &mib);
	if (e == BATON_OK)
		r->d->memory = mib << 20;
	return e;
}

static enum baton_err max_take(struct reading *r, struct baton_str value)
{
	uint64_t number;
	enum baton_err e = number_take(value, 1, DEFINITION_COMMANDS_MAX, &number);
	if (e == BATON_OK)
		r->d->max = (uint32_t)number;
	return e;
}

static enum baton_err span_take(struct baton_str value, bool forever, struct baton_duration *ret)
{
	struct baton_duration span;
	enum baton_err e = baton_duration_parse(value, &span);
	char text[QUOTE_TEXT];
	if (e != BATON_OK)
		return e;
	if (span.ns < 1000000 ||
	    (span.ns > baton_duration_s(SPAN_MAX_S).ns && !(forever && span.ns == INT64_MAX)))
		return fail(BATON_INVALID, "%s is not from 1ms to 1d%s", quote(value, text),
		            forever ? " or infinity" : "");
	*ret = span;
	return BATON_OK;
}

static enum baton_err rate_take(struct reading *r, struct baton_str value)
{
	const char *slash = memchr(value.ptr, '/', value.len);
	struct baton_duration window;
	char text[QUOTE_TEXT];
	uint64_t count;
	if (!slash)
		return fail(BATON_INVALID, "%s is not of the form NUMBER/DURATION, such as 100/1s",
		            quote(value, text));
	size_t len = (size_t)(slash - value.ptr);
	enum baton_err e = number_take(trim((struct baton_str){value.ptr, len}), 1,
	                               BATON_BROKER_RATE_MAX, &count);
	if (e == BATON_OK)
		e = span_take(trim((struct baton_str){slash + 1, value.len - len - 1}), false,
		              &window);
	if (e == BATON_OK)
		r->d->rate = (struct baton_broker_rate){(uint32_t)count, window};
	return e;
}

static enum baton_err start_take(struct reading *r, struct baton_str value)
{
	return span_take(value, false, &r->d->start);
}

static enum baton_err stop_take(struct reading *r, struct baton_str value)
{
	return span_take(value, false, &r->d->stop);
}

static enum baton_err idle_take(struct reading *r, struct baton_str value)
{
	return span_take(value, true, &r->d->idle);
}

static enum baton_err probe_take(struct reading *r, struct baton_str value)
{
	return span_take(value, true, &r->d->probe);
}

static const struct key {
	const char *name;
	enum baton_err (*take)(struct reading *r, struct baton_str value);
	bool again; /* it may be there several times */
} keys[] = {
	{"command", command_take, false},
	{"takes", takes_take, false},
	{"version", version_take, false},
	{"allow", allow_take, true},
	{"folder", folder_take, false},
	{"environment", environment_take, true},
	{"no-new-privileges", privileges_take, false},
	{"open-files", files_take, false},
	{"memory-mib", memory_take, false},
	{"max", max_take, false},
	{"start-timeout", start_take, false},
	{"stop-timeout", stop_take, false},
	{"idle", idle_take, false},
	{"probe", probe_take, false},
	{"rate", rate_take, false},
};

/* A line that is neither empty nor a comment. */
static enum baton_err entry_take(struct reading *r, struct baton_str line)
{
	const char *equals = memchr(line.ptr, '=', line.len);
	char text[QUOTE_TEXT];
	if (!equals)
		return fail(BATON_INVALID, "%s is not of the form KEY = VALUE", quote(line, text));
	struct baton_str name = trim((struct baton_str){line.ptr, (size_t)(equals - line.ptr)});
	struct baton_str value =
		trim((struct baton_str){equals + 1, line.len - (size_t)(equals + 1 - line.ptr)});
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (!baton_str_equal(name, baton_str_z(keys[i].name)))
			continue;
		if (!keys[i].again && (r->seen & (1u << i)))
			return fail(BATON_INVALID, "'%s' is there twice", keys[i].name);
		r->seen |= 1u << i;
		if (value.len == 0)
			return fail(BATON_INVALID, "'%s' has no value", keys[i].name);
		return keys[i].take(r, value);
	}
	return fail(BATON_INVALID, "%s is no key of a service", quote(name, text));
}

static enum baton_err line_take(struct reading *r, struct baton_str line)
{
	if (line.len > DEFINITION_LINE_MAX)
		return fail(BATON_INVALID, "a line of %zu bytes; %d are allowed", line.len,
		            DEFINITION_LINE_MAX);
	if (memchr(line.ptr, '\0', line.len) || !utf8_is_valid(line.ptr, line.len))
		return fail(BATON_INVALID, "the line is no text");
	line = trim(line);
	if (line.len == 0 || line.ptr[0] == '#')
		return BATON_OK;
	return entry_take(r, line);
}

/* Says what is wrong, with where it is; what was said before is in the detail. */
static void complain_at(struct reading *r, unsigned line)
{
	char sentence[512];
	snprintf(sentence, sizeof sentence, "%.200s:%u: %.280s", r->source->file, line,
	         baton_err_detail());
	r->bad = true;
	r->source->wrong(r->source->arg, sentence);
}

static unsigned lines_take(struct reading *r)
{
	struct baton_str rest = r->source->text;
	unsigned number = 0;
	while (rest.len > 0) {
		const char *end = memchr(rest.ptr, '\n', rest.len);
		size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
		number++;
		if (line_take(r, (struct baton_str){rest.ptr, len}) != BATON_OK)
			complain_at(r, number);
		len += end ? 1 : 0;
		rest = (struct baton_str){rest.ptr + len, rest.len - len};
	}
	return number;
}

enum baton_err definition_read(const struct definition_source *source, struct arena *arena,
                               struct definition *ret)
{
	struct definition d = {
		.takes = TAKES_HANDOFF,
		.max = DEFINITION_COMMANDS,
		.start = baton_duration_s(START_S),
		.stop = baton_duration_s(STOP_S),
		.idle = BATON_DURATION_FOREVER,
		.probe = BATON_DURATION_FOREVER,
	};
	struct reading r = {.source = source, .arena = arena, .d = &d};
	char text[QUOTE_TEXT];
	if (!wire_is_service(source->name)) {
		fail_detail("%s is no name of a service, which is 1 to %d of [a-z0-9-]",
		            quote(source->name, text), WIRE_SERVICE_MAX);
		complain_at(&r, 1);
		return BATON_INVALID;
	}
	memcpy(d.name, source->name.ptr, source->name.len);
	unsigned lines = lines_take(&r);
	if (!d.command && !(r.seen & 1)) {
		fail_detail("there is no line with 'command'");
		complain_at(&r, lines);
	}
	if (r.bad)
		return BATON_INVALID;
	*ret = d;
	return BATON_OK;
}

bool definition_allows(const struct definition *d, uint32_t uid)
{
	for (size_t i = 0; i < d->allow_count; i++)
		if (d->allow[i] == uid)
			return true;
	return false;
}
