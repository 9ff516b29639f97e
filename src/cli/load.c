/* Putting the lines of a file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "input.h"
#include "job.h"
#include "jobline.h"
#include "load.h"
#include "progress.h"
#include "status.h"

#define LINES 1000                 /* in one transaction, */
#define BYTES (UINT64_C(16) << 20) /* unless they have more than this */

/* The largest payload as base64, and what else a line may have. */
#define LINE_BYTES (((size_t)BATON_QUEUE_PAYLOAD_LIMIT / 3 + 1) * 4 + (1u << 20))

/* What is said about one. */
#define LINE_ERROR (JOBLINE_ERROR + INPUT_ERROR)

/* What has been read and is not stored yet. */
struct cargo {
	const struct load *load;
	struct baton_store *to; /* where they are put                                        */
	bool rehearsal;         /* that is a store in memory, to see whether all can be put */
	struct input in;
	struct progress progress;
	struct jobline *jobs;
	struct baton_batch *batches;
	struct baton_put *puts;
	size_t count, max;
	uint64_t bytes;
	uint64_t stored, existing; /* jobs so far */
	uint64_t last;             /* the line of the last of them */
};

static bool cargo_init(struct cargo *c, const struct load *load)
{
	size_t max = load->atomic ? BATON_PUT_MAX : LINES;
	*c = (struct cargo){
		.load = load,
		.progress = progress_begin("lines"),
		.jobs = calloc(max, sizeof *c->jobs),
		.batches = calloc(max, sizeof *c->batches),
		.puts = calloc(max, sizeof *c->puts),
		.max = max,
	};
	return c->jobs && c->batches && c->puts;
}

static void cargo_empty(struct cargo *c)
{
	for (size_t i = 0; i < c->count; i++)
		jobline_done(&c->jobs[i]);
	c->count = 0;
	c->bytes = 0;
}

static void cargo_done(struct cargo *c)
{
	cargo_empty(c);
	free(c->jobs);
	free(c->batches);
	free(c->puts);
	input_close(&c->in);
}

static void tell_stored(struct cargo *c, size_t first, size_t count)
{
	struct json json = {.line = {.out = c->load->out}};
	for (size_t i = first; i < first + count; i++) {
		c->stored++;
		c->last = c->jobs[i].line;
		c->existing += c->puts[i].existing;
		if (!c->load->json)
			continue;
		json_open(&json, NULL);
		json_number(&json, "line", c->jobs[i].line);
		json_text(&json, "id", c->puts[i].id.text);
		json_text(&json, "state", job_state_name(c->puts[i].state));
		json_bool(&json, "existing", c->puts[i].existing);
		json_close(&json);
		json_end(&json);
	}
}

/* The sentence about a line, and what holds for those before it. */
static void complain_stop(const struct cargo *c, const char *why)
{
	progress_clear(&c->progress);
	if (c->stored == 0) /* as in a rehearsal */
		complain("%s; nothing is stored", why);
	else if (c->stored == 1)
		complain("%s; the job before it is stored", why);
	else
		complain("%s; the %" PRIu64 " jobs before it are stored", why, c->stored);
}

static void complain_line(const struct cargo *c, uint64_t line, const char *why)
{
	char text[LINE_ERROR];
	snprintf(text, sizeof text, "line %" PRIu64 " of %s: %s", line, c->in.name, why);
	complain_stop(c, text);
}

/* For failures that are about no line: what has been stored all the same. */
static void complain_rest(const struct cargo *c)
{
	progress_clear(&c->progress);
	if (c->stored > 0)
		complain("%s is stored up to line %" PRIu64 " (jobs: %" PRIu64 ")", c->in.name,
		         c->last, c->stored);
}

/* The line that the failure of a whole put is about, if it says so; else the first one. */
static uint64_t line_of_failure(const struct cargo *c, const char **why)
{
	static const char before[] = "batch ";
	char *rest = NULL;
	uint64_t number = 0;
	if (strncmp(*why, before, strlen(before)) == 0)
		number = strtoull(*why + strlen(before), &rest, 10);
	if (number < 1 || number > c->count || strncmp(rest, ": ", 2) != 0)
		return c->jobs[0].line;
	*why = rest + 2;
	return c->jobs[number - 1].line;
}

/* An answer is about the jobs; anything else about the store. */
static int put_failed(const struct cargo *c, size_t first, enum baton_err e)
{
	const char *why = baton_err_detail();
	if (e != BATON_INVALID && e != BATON_CONFLICT && e != BATON_FULL) {
		progress_clear(&c->progress);
		int status = store_fail(c->load->store, e);
		complain_rest(c);
		return status;
	}
	uint64_t line = c->load->atomic ? line_of_failure(c, &why) : c->jobs[first].line;
	complain_line(c, line, why);
	return status_of(e);
}

/* Stores a run of jobs in one transaction. If one of them cannot be stored, those before it are, by
 * halves, and that one is reported. */
static int store_run(struct cargo *c, size_t first, size_t count)
{
	enum baton_err e = baton_work_put(c->to, c->batches + first, count, c->puts + first);
	bool answer = e == BATON_INVALID || e == BATON_CONFLICT || e == BATON_FULL;
	if (e == BATON_OK) {
		if (!c->rehearsal)
			tell_stored(c, first, count);
		return EX_OK;
	}
	if (!answer || count == 1 || c->load->atomic)
		return put_failed(c, first, e);
	int status = store_run(c, first, count / 2);
	return status == EX_OK ? store_run(c, first + count / 2, count - count / 2) : status;
}

/* A store in memory for the next jobs of a rehearsal, with the queue as it is, without a bound of
 * how many wait: that is about all jobs, and it has those few. */
static int stage_set(struct cargo *c)
{
	const struct baton_store_options options = {.where = BATON_STR("memory:")};
	struct baton_str queue = c->load->template.queue;
	struct baton_queue_info info;
	baton_store_close(c->to);
	c->to = NULL;
	enum baton_err e = baton_store_open(&options, &c->to);
	enum baton_err known =
		e == BATON_OK ? baton_queue_get(c->load->store->handle, queue, &info) : e;
	if (known == BATON_OK) {
		info.policy.waiting_max = info.policy.key_waiting_max = 0;
		e = baton_queue_set(c->to, queue, &info.policy);
	} else if (known != BATON_NOT_FOUND && known != BATON_INVALID) {
		e = known; /* a bad name is told with the first line */
	}
	return e == BATON_OK ? EX_OK : store_fail(c->load->store, e);
}

static int cargo_store(struct cargo *c)
{
	for (size_t i = 0; i < c->count; i++) {
		c->batches[i] = c->jobs[i].batch;
		c->batches[i].payloads = &c->jobs[i].payload;
		if (c->jobs[i].has_keys)
			c->batches[i].keys = c->jobs[i].keys;
		c->batches[i].count = 1;
	}
	int status = c->rehearsal ? stage_set(c) : EX_OK;
	if (status == EX_OK && c->count > 0)
		status = store_run(c, 0, c->count);
	cargo_empty(c);
	if (status == EX_OK)
		progress_step(&c->progress, c->in.line, c->in.read, c->in.size);
	return status;
}

static bool is_blank(struct baton_str line)
{
	for (size_t i = 0; i < line.len; i++) {
		if (!strchr(" \t\r", line.ptr[i]) || line.ptr[i] == '\0')
			return false;
	}
	return true;
}

/* Adds the job of a line, and stores all when there are enough of them. */
static int cargo_add(struct cargo *c, struct baton_str line)
{
	char error[JOBLINE_ERROR];
	int status = EX_OK;
	if (c->load->atomic && c->count == c->max) {
		progress_clear(&c->progress);
		complain("%s has more than %d jobs, and --atomic can store no more in one "
		         "transaction; nothing is stored; --check-first has no such bound",
		         c->in.name, BATON_PUT_MAX);
		return EX_DATAERR;
	}
	if (!jobline_parse(line, &c->load->template, &c->jobs[c->count], error)) {
		uint64_t number = c->in.line;
		if (!c->load->atomic)
			status = cargo_store(c);
		if (status == EX_OK)
			complain_line(c, number, error);
		return status == EX_OK ? EX_DATAERR : status;
	}
	c->jobs[c->count++].line = c->in.line;
	c->bytes += line.len;
	if (!c->load->atomic && (c->count == c->max || c->bytes >= BYTES))
		status = cargo_store(c);
	return status;
}

/* A line that cannot be read is no reason to forget those before it. */
static int stop_reading(struct cargo *c, int why, const char *error)
{
	int status = c->load->atomic ? EX_OK : cargo_store(c);
	if (status != EX_OK)
		return status;
	complain_stop(c, error);
	return why;
}

static int read_lines(struct cargo *c)
{
	int status = EX_OK;
	while (status == EX_OK && c->load->out->errnum == 0) {
		struct baton_str line;
		char error[INPUT_ERROR];
		status = input_line(&c->in, LINE_BYTES, &line, error);
		if (status != EX_OK)
			return stop_reading(c, status, error);
		if (!line.ptr)
			return cargo_store(c);
		if (!is_blank(line))
			status = cargo_add(c, line);
	}
	return status;
}

/* Reads all lines twice: at first to see whether they can be put. */
static int read_twice(struct cargo *c)
{
	struct baton_store *store = c->to;
	c->to = NULL;
	c->rehearsal = true;
	c->progress = progress_begin("lines checked");
	int status = input_keep(&c->in);
	if (status == EX_OK)
		status = read_lines(c);
	progress_clear(&c->progress);
	baton_store_close(c->to);
	c->to = store;
	c->rehearsal = false;
	c->progress = progress_begin("lines");
	if (status == EX_OK)
		status = input_again(&c->in);
	return status == EX_OK ? read_lines(c) : status;
}

static void tell_all(const struct cargo *c)
{
	if (c->load->json)
		return;
	uint64_t put = c->stored - c->existing;
	out_print(c->load->out, "%" PRIu64 " %s put", put, put == 1 ? "job" : "jobs");
	if (c->existing > 0)
		out_print(c->load->out, ", %" PRIu64 " %s there already", c->existing,
		          c->existing == 1 ? "was" : "were");
	out_print(c->load->out, "\n");
}

int load_file(const struct load *load, const char *path)
{
	struct cargo c;
	int status = EX_OSERR;
	if (cargo_init(&c, load))
		status = input_open(&c.in, path);
	else
		complain("no memory for the lines of a file");
	if (status == EX_OK)
		status = store_open(load->store, STORE_MADE);
	c.to = load->store->handle;
	if (status == EX_OK)
		status = load->check_first ? read_twice(&c) : read_lines(&c);
	progress_clear(&c.progress);
	if (status == EX_OK)
		tell_all(&c);
	if (load->out->errnum != 0)
		complain_rest(&c);
	cargo_done(&c);
	return status;
}
