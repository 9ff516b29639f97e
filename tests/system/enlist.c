/* Is a runner for a test: enlist STORE NAME STATE [QUEUE FIRST COUNT]..., with those shards, until
 * its input ends. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <baton.h>

#define QUEUES_MAX 16

static int complain(void)
{
	fprintf(stderr, "%s\n", baton_err_detail());
	return 1;
}

static enum baton_err take(struct baton_runner *runner, struct baton_str queue, uint32_t first,
                           uint32_t count)
{
	enum baton_err e = BATON_OK;
	for (uint32_t i = 0; i < count && e == BATON_OK; i++) {
		const struct baton_shard shard = {.queue = queue, .number = first + i};
		struct baton_shard_answer answer;
		e = baton_shard_take(runner, &shard, 1, &answer);
	}
	return e;
}

static int serve(struct baton_store *store, int argc, char **argv)
{
	struct baton_str queues[QUEUES_MAX];
	struct baton_runner_ask ask = {.name = baton_str_z(argv[2]),
	                               .weight = 3,
	                               .endpoint = BATON_STR("there:1"),
	                               .labels = BATON_STR("zone=a"),
	                               .ttl = baton_duration_s(30),
	                               .queues = queues,
	                               .guardian = 4711,
	                               .life = BATON_STR("/nowhere/life")};
	struct baton_runner *runner = NULL;
	for (int i = 4; i + 2 < argc && ask.queue_count < QUEUES_MAX; i += 3)
		queues[ask.queue_count++] = baton_str_z(argv[i]);
	enum baton_err e = baton_runner_register(store, &ask, &runner, NULL);
	for (int i = 4; i + 2 < argc && e == BATON_OK; i += 3)
		e = take(runner, baton_str_z(argv[i]), (uint32_t)strtoul(argv[i + 1], NULL, 10),
		         (uint32_t)strtoul(argv[i + 2], NULL, 10));
	if (e == BATON_OK)
		e = baton_runner_tell(runner, baton_str_z(argv[3]));
	if (e != BATON_OK)
		return complain();
	printf("%" PRIu64 "\n", baton_runner_number(runner));
	fflush(stdout);
	while (getchar() != EOF)
		;
	baton_runner_leave(runner);
	return 0;
}

int main(int argc, char **argv)
{
	const struct baton_store_options options = {
		.where = baton_str_z(argc > 1 ? argv[1] : ""),
	};
	struct baton_store *store;
	if (argc < 4 || baton_store_open(&options, &store) != BATON_OK)
		return complain();
	int status = serve(store, argc, argv);
	baton_store_close(store);
	return status;
}
