/* baton handoff: what a broker has done so far. */
#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "broker.h"
#include "command.h"
#include "json.h"
#include "line.h"
#include "reading.h"

static const struct option options[] = {
	BROKER_OPTIONS,
	{"json", no_argument, NULL, OPTION_BROKER_JSON},
	{0},
};

struct request {
	const char *folder;
	bool json;
};

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	if (option == OPTION_BROKER)
		r->folder = value;
	else
		r->json = true;
	return true;
}

/* A name as it is in JSON: with no spaces. Returns `key`. */
static const char *key_of(struct baton_str name, char key[BROKER_TEXT])
{
	broker_text(name, key);
	for (char *c = key; *c != '\0'; c++)
		if (*c == ' ')
			*c = '_';
	return key;
}

static void show_json(struct out *out, const struct baton_broker_status *s)
{
	struct json j = {.line = {.out = out}};
	char key[BROKER_TEXT];
	json_open(&j, NULL);
	json_bytes(&j, "version", s->version);
	json_number(&j, "pid", (uint64_t)s->pid);
	for (size_t i = 0; i < s->counters_count; i++)
		json_number(&j, key_of(s->counters[i].name, key), s->counters[i].value);
	json_open_list(&j, "stored");
	for (size_t i = 0; i < s->stored_count; i++) {
		json_open(&j, NULL);
		json_bytes(&j, "service", s->stored[i].service);
		json_bytes(&j, "name", s->stored[i].name);
		json_span(&j, "left_ms", s->stored[i].left);
		json_close(&j);
	}
	json_close_list(&j);
	json_number(&j, "latency_p50_ns", (uint64_t)s->latency_p50.ns);
	json_number(&j, "latency_p99_ns", (uint64_t)s->latency_p99.ns);
	json_close(&j);
	json_end(&j);
}

static void show_lines(struct out *out, const struct baton_broker_status *s)
{
	char text[BROKER_TEXT];
	for (size_t i = 0; i < s->counters_count; i++)
		out_print(out, "%-24s %12" PRIu64 "\n", broker_text(s->counters[i].name, text),
		          s->counters[i].value);
	out_print(out, "%-24s %12" PRId64 "\n", "latency p50, us", s->latency_p50.ns / 1000);
	out_print(out, "%-24s %12" PRId64 "\n", "latency p99, us", s->latency_p99.ns / 1000);
	for (size_t i = 0; i < s->stored_count; i++) {
		char name[BROKER_TEXT];
		char left[BATON_DURATION_TEXT];
		out_print(out, "stored: %s %s, %s\n", broker_text(s->stored[i].service, text),
		          broker_text(s->stored[i].name, name),
		          baton_duration_print(s->stored[i].left, left));
	}
}

int cmd_handoff(struct out *out, int argc, char **argv)
{
	struct request r = {.folder = NULL};
	struct operands none = {.max = 0};
	const struct reading reading = {options, &none, take, &r};
	struct baton_broker_status *s;
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	status = broker_look(r.folder, &s);
	if (status != EX_OK)
		return status;
	if (r.json)
		show_json(out, s);
	else
		show_lines(out, s);
	baton_broker_status_free(s);
	return EX_OK;
}
