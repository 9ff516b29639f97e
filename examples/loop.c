/* A runner on a program's own loop: no threads of the program's, one poll(2), and handlers that end
 * their runs when they are ready. Here they are at once; a program with sockets keeps the run, and
 * ends it when the answer has come. */
#include <poll.h>
#include <stdio.h>

#include <baton.h>

static void send_mail(void *arg, struct baton_run *run)
{
	const struct baton_work_claim *claim = baton_run_claim(run);
	const struct baton_str *text = &claim->batches[0].payloads[0];
	struct baton_work_end end = {.how = BATON_COMPLETE};
	(void)arg;
	printf("to %.*s: %.*s\n", (int)claim->lane.len, claim->lane.ptr, (int)text->len, text->ptr);
	baton_run_end(run, &end);
}

static enum baton_err put(struct baton_store *store, const char *lane, const char *text)
{
	struct baton_str payload = baton_str_z(text);
	struct baton_batch job = {.queue = BATON_STR("mail"),
	                          .lane = baton_str_z(lane),
	                          .payloads = &payload,
	                          .count = 1};
	struct baton_put answer;
	return baton_work_put(store, &job, 1, &answer);
}

/* Where other descriptors would be waited for too. */
static enum baton_err loop(struct baton_engine *engine)
{
	struct pollfd fds[] = {{.fd = baton_engine_fd(engine), .events = POLLIN}};
	enum baton_err e;
	while (baton_engine_step(engine, &e))
		poll(fds, 1, -1);
	return e;
}

int main(void)
{
	struct baton_store_options where = {.where = BATON_STR("memory:")};
	struct baton_serve mail = {.queue = BATON_STR("mail")};
	struct baton_runner_options options = {
		.ask = {.name = BATON_STR("mailer"), .weight = 1},
		.serves = &mail,
		.serve_count = 1,
		.handler = {.call = send_mail, .overtime = BATON_OVERTIME_ABORT, .on_loop = true},
		.until_empty = true,
	};
	struct baton_engine *engine = NULL;
	enum baton_err e = baton_store_open(&where, &options.store);
	if (e == BATON_OK)
		e = put(options.store, "ada", "hello");
	if (e == BATON_OK)
		e = put(options.store, "ada", "hello again");
	if (e == BATON_OK)
		e = baton_engine_open(&options, &engine);
	if (e == BATON_OK)
		e = loop(engine);
	if (e != BATON_OK)
		fprintf(stderr, "%s\n", baton_err_detail());
	baton_engine_close(engine);
	baton_store_close(options.store);
	return e == BATON_OK ? 0 : 1;
}
