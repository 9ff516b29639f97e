/* A runner: the core's decisions, carried out. One loop; the threads beside it put entries into its
 * inbox and wake it. */
#include <baton/runner.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/mem.h"
#include "contest/home.h"
#include "runner/calls.h"
#include "runner/clerk.h"
#include "runner/commands.h"
#include "runner/ear.h"
#include "runner/ends.h"
#include "runner/inbox.h"
#include "runner/neighbours.h"
#include "runner/pulse.h"
#include "runner/streams.h"
#include "store/store.h"

#define SLOTS_PER_PROCESSOR 4
#define NS_PER_MS 1000000

/* What the log says about a queue. */
enum queue_told {
	QUEUE_SERVED = 1,
	QUEUE_MISSING,
	QUEUE_OTHER
};

struct baton_engine {
	struct baton_runner_options o; /* [const] */
	const struct baton_alloc *alloc;
	const struct baton_clock *clock;
	struct core_serve serves[CORE_QUEUES_MAX]; /* [const] */
	struct baton_str queues[CORE_QUEUES_MAX];  /* [const] their names */
	enum queue_told told[CORE_QUEUES_MAX];     /* [loop] */
	struct baton_detach detach;
	struct core *core; /* [loop] */
	struct inbox inbox;
	struct clerk clerk;
	struct pulse pulse;
	struct ear ear;
	struct calls calls;                     /* without a command */
	struct commands commands;               /* with one; it has the guardian of `streams` too */
	struct streams streams;                 /* with one that is persistent */
	uint32_t processes;                     /* [const] of those */
	struct neighbours neighbours;           /* [loop] */
	char beside[BATON_STORE_PATH_MAX + 16]; /* [const] a file, for handlers that are commands */
	bool mourned;                           /* [loop] it is known that the guardian has died */
	enum baton_err failure;                 /* [loop] it cannot go on */
	uint32_t generation;                    /* [loop] of the detachment that was told last */
	struct baton_mono hard_stop;            /* [loop] as it was set */
	pthread_mutex_t mu;
	struct baton_runner_status status; /* [mu] */
};

static bool has_command(const struct baton_engine *e)
{
	return e->o.handler.command != NULL;
}

static bool has_stream(const struct baton_engine *e)
{
	return e->o.handler.stream;
}

/* Whether the guardian has died. */
static bool is_lost(const struct baton_engine *e)
{
	return e->commands.lost || e->streams.lost;
}

static struct baton_mono now_of(const struct baton_engine *e)
{
	return e->clock->now(e->clock);
}

/* Options. */

static enum baton_err check_serves(const struct baton_runner_options *o)
{
	if (o->serve_count == 0 || o->serve_count > BATON_RUNNER_SERVES_MAX)
		return fail(BATON_INVALID, "%zu queues: 1 to %d are allowed", o->serve_count,
		            BATON_RUNNER_SERVES_MAX);
	for (size_t i = 0; i < o->serve_count; i++) {
		const struct baton_serve *s = &o->serves[i];
		if (s->weight > BATON_RUNNER_WEIGHT_MAX)
			return fail(BATON_INVALID,
			            "the weight of a queue is %" PRIu32 ": at most %d", s->weight,
			            BATON_RUNNER_WEIGHT_MAX);
		if (s->join > BATON_JOIN_MAX)
			return fail(BATON_INVALID,
			            "%" PRIu32 " jobs in one claim: at most %d are allowed",
			            s->join, BATON_JOIN_MAX);
		for (size_t k = 0; k < i; k++) {
			if (baton_str_equal(o->serves[k].queue, s->queue))
				return fail(BATON_INVALID, "queue '%.*s' is named twice",
				            (int)s->queue.len, s->queue.ptr);
		}
	}
	return BATON_OK;
}

static enum baton_err check_times(const struct baton_runner_options *o)
{
	char ttl[BATON_DURATION_TEXT], beat[BATON_DURATION_TEXT], margin[BATON_DURATION_TEXT];
	if (o->beat.ns > 0 && o->margin.ns > 0 && o->beat.ns <= INT64_MAX / 4 &&
	    o->ask.ttl.ns / 3 >= o->beat.ns && o->ask.ttl.ns - 3 * o->beat.ns >= o->margin.ns)
		return BATON_OK;
	return fail(
		BATON_INVALID,
		"ttl is %s: it has to be at least three beats of %s and a margin of %s, so make "
		"it longer, or those shorter",
		baton_duration_print(o->ask.ttl, ttl), baton_duration_print(o->beat, beat),
		baton_duration_print(o->margin, margin));
}

static enum baton_err check_handler(const struct baton_runner_options *o)
{
	const struct baton_handler *h = &o->handler;
	if (h->command ? h->call != NULL || !h->command[0] : !h->call)
		return fail(BATON_INVALID, "a handler is either a command or a function");
	if (!h->command && h->overtime != BATON_OVERTIME_ABORT &&
	    h->overtime != BATON_OVERTIME_FENCED)
		return fail(BATON_INVALID, "a function as handler needs its overtime to be said");
	if (h->stream && (!h->command || h->json))
		return fail(BATON_INVALID, "a persistent worker is a command, without lines on its "
		                           "standard input");
	if (h->in_flight > 0 && !h->stream)
		return fail(BATON_INVALID, "only a persistent worker has several claims in flight");
	if (h->command && !h->stream && o->slots > WARDS_MAX)
		return fail(BATON_INVALID, "%" PRIu32 " commands at once: at most %d are allowed",
		            o->slots, WARDS_MAX);
	if (o->slots > BATON_RUNNER_SLOTS_MAX)
		return fail(BATON_INVALID, "%" PRIu32 " slots: at most %d are allowed", o->slots,
		            BATON_RUNNER_SLOTS_MAX);
	return BATON_OK;
}

static enum baton_err check_processes(const struct baton_engine *e)
{
	uint32_t in_flight = e->o.handler.in_flight;
	if (!has_stream(e))
		return BATON_OK;
	if (e->processes > WARDS_MAX)
		return fail(BATON_INVALID, "%" PRIu32 " persistent workers: at most %d are allowed",
		            e->processes, WARDS_MAX);
	if (in_flight > BATON_RUNNER_SLOTS_MAX / e->processes)
		return fail(BATON_INVALID,
		            "%" PRIu32 " workers with %" PRIu32
		            " claims each: at most %d claims are allowed",
		            e->processes, in_flight, BATON_RUNNER_SLOTS_MAX);
	return BATON_OK;
}

static void fill_in(struct baton_engine *e)
{
	struct baton_runner_options *o = &e->o;
	bool far = o->store->reach == BATON_REACH_HOSTS;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	if (o->slots == 0)
		o->slots = SLOTS_PER_PROCESSOR * (uint32_t)(processors > 0 ? processors : 1);
	if (o->handler.stream && o->handler.in_flight == 0)
		o->handler.in_flight = 1;
	e->processes = o->slots;
	if (o->beat.ns == 0)
		o->beat = baton_duration_ms(BATON_RUNNER_BEAT_MS);
	if (o->ask.ttl.ns == 0)
		o->ask.ttl = baton_duration_ms(far ? BATON_RUNNER_TTL_FAR_MS : BATON_RUNNER_TTL_MS);
	if (o->margin.ns == 0)
		o->margin = baton_duration_ms(far ? BATON_RUNNER_MARGIN_FAR_MS
		                                  : BATON_RUNNER_MARGIN_MS);
	if (o->drain.ns == 0)
		o->drain = baton_duration_ms(BATON_RUNNER_DRAIN_MS);
	for (size_t i = 0; i < o->serve_count; i++) {
		const struct baton_serve *s = &o->serves[i];
		e->serves[i] = (struct core_serve){s->queue, s->weight > 0 ? s->weight : 1,
		                                   s->join > 0 ? s->join : 1};
		e->queues[i] = s->queue;
	}
	o->ask.queues = e->queues;
	o->ask.queue_count = o->serve_count;
}

/* What the other parts call. */

/* Whether both are of one process, under whatever registration. */
static bool is_own(const struct baton_owner *a, const struct baton_owner *b)
{
	return a->pid != 0 && a->pid == b->pid && a->start == b->start && a->pid_ns == b->pid_ns &&
	       baton_id_equal(&a->boot, &b->boot);
}

static enum core_fate fate(void *arg, const struct baton_runner_info *info)
{
	const struct baton_engine *e = arg;
	const struct baton_store *store = e->o.store;
	if (is_own(&store->owner, &info->owner))
		return CORE_OWN;
	if (!baton_owner_is_dead(&store->owner, &info->owner, store->reach))
		return CORE_LIVES;
	if (info->life[0] == '\0' || wards_lives(info->life) == BATON_OK)
		return CORE_DEAD;
	return CORE_DYING;
}

static void on_began(void *arg, struct baton_runner *runner)
{
	struct baton_engine *e = arg;
	pulse_begin(&e->pulse, runner);
}

static void on_retire(void *arg, struct baton_runner *runner)
{
	struct baton_engine *e = arg;
	pulse_retire(&e->pulse, runner);
}

static bool on_stopped(void *arg, uint64_t run)
{
	struct baton_engine *e = arg;
	return core_is_stopping(e->core, run);
}

static void on_said(void *arg, uint64_t run, struct baton_str line)
{
	struct baton_engine *e = arg;
	const struct baton_work_claim *claim = core_claim(e->core, run);
	BATON_LOG(e->o.log, BATON_LOG_INFO, "a handler says",
	          baton_field_str("claim", baton_str_z(claim ? claim->proof.id : "")),
	          baton_field_str("line", line));
}

static void on_ended(void *arg, uint64_t run, const struct baton_work_end *end)
{
	struct baton_engine *e = arg;
	struct core_end copy;
	end_copy(e->alloc, end, &copy);
	core_ended(e->core, run, &copy, now_of(e));
}

/* Opening and closing. */

static enum baton_err open_parts(struct baton_engine *e)
{
	const struct baton_detach_options detach = {
		.streak = e->o.store->reach == BATON_REACH_HOSTS ? 6 : 3,
	};
	const struct core_options core = {
		.alloc = e->alloc,
		.detach = &e->detach,
		.serves = e->serves,
		.serve_count = e->o.serve_count,
		.slots = e->o.slots,
		.limit = e->o.claims,
		.weight = e->o.ask.weight,
		.ttl = e->o.ask.ttl,
		.margin = e->o.margin,
		.beat = e->o.beat,
		.drain = e->o.drain,
		.replace = e->o.ask.replace,
		.beats_prove = e->o.store->reach == BATON_REACH_HOSTS,
	};
	baton_detach_init(&e->detach, &detach);
	enum baton_err err = inbox_init(&e->inbox);
	if (err == BATON_OK)
		err = neighbours_init(&e->neighbours);
	return err == BATON_OK ? core_new(&core, &e->core) : err;
}

/* The file beside which the locks of handlers lie: that of the store, or one of this user's. */
static enum baton_err find_beside(struct baton_engine *e)
{
	static const char suffix[] = "-beats";
	const char *beats = e->o.store->beats_path;
	size_t length = strlen(beats);
	struct home home;
	if (length > sizeof suffix) {
		snprintf(e->beside, sizeof e->beside, "%.*s", (int)(length + 1 - sizeof suffix),
		         beats);
		return BATON_OK;
	}
	enum baton_err err = home_find(NULL, NULL, &home);
	if (err != BATON_OK)
		return err;
	snprintf(e->beside, sizeof e->beside, "%s-runners", home.path);
	int fd = open(e->beside, O_CREAT | O_RDONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(errno, "'%.200s' cannot be made", e->beside);
	close(fd);
	return BATON_OK;
}

static enum baton_err open_streams(struct baton_engine *e)
{
	const struct streams_options options = {
		.alloc = e->alloc,
		.handler = &e->o.handler,
		.wards = e->commands.wards,
		.processes = e->processes,
		.in_flight = e->o.handler.in_flight,
		.log = e->o.log,
		.stopped = on_stopped,
		.ended = on_ended,
		.arg = e,
	};
	return streams_init(&e->streams, &options);
}

static enum baton_err open_handler(struct baton_engine *e)
{
	if (!has_command(e))
		return calls_init(&e->calls, &e->inbox, e->alloc, &e->o.handler, e->o.slots);
	const struct commands_options options = {
		.alloc = e->alloc,
		.handler = &e->o.handler,
		.beside = e->beside,
		.awake = e->clock == baton_clock_awake(),
		.stopped = on_stopped,
		.said = on_said,
		.arg = e,
	};
	enum baton_err err = find_beside(e);
	if (err == BATON_OK)
		err = commands_init(&e->commands, &options);
	if (err == BATON_OK) {
		e->o.ask.guardian = wards_pid(e->commands.wards);
		e->o.ask.life = baton_str_z(e->commands.life);
	}
	return err == BATON_OK && has_stream(e) ? open_streams(e) : err;
}

static enum baton_err open_threads(struct baton_engine *e)
{
	struct carrier_options carrier = {
		.alloc = e->alloc,
		.clock = e->clock,
		.store = e->o.store,
		.ask = e->o.ask,
		.serves = e->serves,
		.serve_count = e->o.serve_count,
		.fate = fate,
		.began = on_began,
		.retire = on_retire,
		.arg = e,
	};
	/* The core sees to it that whoever has the name leaves first, with his handlers. */
	carrier.ask.replace = false;
	enum baton_err err = pulse_init(&e->pulse, &e->inbox, e->clock, e->o.beat);
	if (err == BATON_OK)
		err = clerk_init(&e->clerk, &e->inbox, &carrier);
	if (err == BATON_OK)
		err = ear_init(&e->ear, &e->inbox, e->o.store, e->o.store->clock);
	return err;
}

enum baton_err baton_engine_open(const struct baton_runner_options *options,
                                 struct baton_engine **ret_engine)
{
	const struct baton_alloc *alloc = options->store->alloc;
	enum baton_err err = check_serves(options);
	if (err == BATON_OK)
		err = check_handler(options);
	if (err != BATON_OK)
		return err;
	struct baton_engine *e = mem_new(alloc, 1, sizeof *e);
	if (!e)
		return fail_memory(sizeof *e, "a runner");
	e->o = *options;
	e->alloc = alloc;
	e->clock = options->store->reach == BATON_REACH_HOSTS ? baton_clock_boot()
	                                                      : baton_clock_awake();
	e->inbox.fd = -1;
	e->neighbours.epoll = -1;
	e->hard_stop = BATON_MONO_NEVER;
	e->generation = 1;
	pthread_mutex_init(&e->mu, NULL);
	fill_in(e);
	err = check_times(&e->o);
	if (err == BATON_OK)
		err = check_processes(e);
	if (err == BATON_OK && has_stream(e))
		e->o.slots = e->processes * e->o.handler.in_flight;
	if (err == BATON_OK)
		err = open_parts(e);
	if (err == BATON_OK)
		err = open_handler(e);
	if (err == BATON_OK)
		err = open_threads(e);
	if (err != BATON_OK) {
		baton_engine_close(e);
		return err;
	}
	*ret_engine = e;
	return BATON_OK;
}

void baton_engine_close(struct baton_engine *e)
{
	if (!e)
		return;
	ear_done(&e->ear);
	clerk_done(&e->clerk);
	pulse_done(&e->pulse);
	calls_done(&e->calls);
	streams_done(&e->streams);
	commands_done(&e->commands);
	core_free(e->core);
	neighbours_done(&e->neighbours);
	inbox_done(&e->inbox);
	pthread_mutex_destroy(&e->mu);
	mem_free(e->alloc, e, 1, sizeof *e);
}

/* The loop. */

static void start(struct baton_engine *e, const struct core_order *order)
{
	if (has_stream(e)) {
		streams_start(&e->streams, order->run, order->claim);
		return;
	}
	enum baton_err err = has_command(e) ? commands_start(&e->commands, order->run, order->claim)
	                                    : calls_start(&e->calls, order->run, order->claim);
	if (err == BATON_OK)
		return;
	const struct baton_work_end end = {
		.how = err == BATON_GONE ? BATON_ABANDON : BATON_FAIL,
		.error = baton_str_z(baton_err_detail()),
	};
	on_ended(e, order->run, &end);
}

static void stop(struct baton_engine *e, uint64_t run)
{
	if (has_stream(e))
		streams_stop(&e->streams, run, now_of(e));
	else if (has_command(e))
		wards_stop(e->commands.wards, run, false);
	else
		calls_stop(&e->calls, run);
}

static void give_orders(struct baton_engine *e)
{
	struct core_order order;
	while (core_order(e->core, now_of(e), &order)) {
		if (order.kind == CORE_START)
			start(e, &order);
		else
			stop(e, order.run);
	}
	if (has_stream(e))
		streams_act(&e->streams, now_of(e));
}

static void read_commands(struct baton_engine *e)
{
	struct commands_news news;
	while (commands_next(&e->commands, &news))
		on_ended(e, news.run, &news.end);
}

/* Says once that a queue is not served, and why. */
static void tell_queues(struct baton_engine *e, const struct core_survey *survey)
{
	for (size_t i = 0; i < e->o.serve_count; i++) {
		const struct core_queue_seen *seen = &survey->queues[i];
		enum queue_told is = !seen->there    ? QUEUE_MISSING
		                     : !seen->served ? QUEUE_OTHER
		                                     : QUEUE_SERVED;
		if (is == e->told[i])
			continue;
		e->told[i] = is;
		if (is == QUEUE_OTHER)
			BATON_LOG(e->o.log, BATON_LOG_WARN,
			          "a queue is not served: its work is handed out in another way",
			          baton_field_str("queue", e->queues[i]));
		else
			BATON_LOG(e->o.log, BATON_LOG_DEBUG,
			          is == QUEUE_MISSING ? "a queue is not there yet"
			                              : "a queue is served",
			          baton_field_str("queue", e->queues[i]));
	}
}

static void take_answer(struct baton_engine *e)
{
	bool survey = e->clerk.request.kind == CORE_SURVEY && e->clerk.answer.err == BATON_OK;
	if (survey)
		tell_queues(e, e->clerk.answer.survey);
	if (survey)
		neighbours_set(&e->neighbours, &e->o.store->owner, e->clerk.answer.survey->runners,
		               e->clerk.answer.survey->runner_count);
	core_answered(e->core, now_of(e), &e->clerk.answer);
}

static void read_inbox(struct baton_engine *e)
{
	struct inbox_mail mail;
	struct inbox_end *next;
	inbox_take(&e->inbox, &mail);
	struct baton_mono now = now_of(e);
	if (mail.beat.number > 0)
		core_beaten(e->core, mail.beat.number, mail.beat.err, mail.beat.why, mail.beat.sent,
		            now);
	for (struct inbox_end *end = mail.ends; end; end = next) {
		next = end->next;
		core_ended(e->core, end->run, &end->end, now);
	}
	if (mail.answered)
		take_answer(e);
	if (mail.news)
		core_news(e->core);
	if (mail.look)
		core_look_around(e->core);
	if (mail.stop)
		core_stop(e->core, mail.grace, now);
}

/* Moves the moment at which what runs is killed, whatever this process does. */
static void set_hard_stop(struct baton_engine *e)
{
	struct baton_mono at = core_hard_stop(e->core);
	if (has_command(e)) {
		if (at.ns != e->hard_stop.ns)
			wards_deadline(e->commands.wards, at);
	} else if (e->o.handler.overtime == BATON_OVERTIME_ABORT && at.ns <= now_of(e).ns &&
	           core_counts(e->core).running > 0) {
		BATON_LOG(e->o.log, BATON_LOG_ERROR,
		          "a handler runs beyond the time of its shard: the process is aborted",
		          baton_field_uint("running", core_counts(e->core).running));
		abort();
	}
	e->hard_stop = at;
}

static void tell_detachment(struct baton_engine *e)
{
	struct baton_detach_info info;
	baton_detach_look(&e->detach, &info);
	if (info.generation == e->generation)
		return;
	e->generation = info.generation;
	if (e->o.changed)
		e->o.changed(e->o.arg, &info);
	if (info.state == BATON_DETACHED)
		BATON_LOG(e->o.log, BATON_LOG_WARN, "detached",
		          baton_field_str("reason", baton_str_z(info.text)),
		          baton_field_str("why", baton_str_z(core_failure(e->core))));
	else
		BATON_LOG(e->o.log, BATON_LOG_INFO, "attached again",
		          baton_field_uint("generation", info.generation));
}

static void set_status(struct baton_engine *e)
{
	struct core_counts counts = core_counts(e->core);
	pthread_mutex_lock(&e->mu);
	e->status = (struct baton_runner_status){
		.number = core_number(e->core),
		.running = counts.running,
		.slots = e->o.slots,
		.shards = counts.owned,
		.started = counts.started,
		.completed = counts.completed,
		.failed = counts.failed,
		.returned = counts.returned,
		.refused = counts.refused,
		.ticks = counts.ticks,
		.takeovers = counts.takeovers,
		.detached = counts.detached,
	};
	pthread_mutex_unlock(&e->mu);
}

/* What it was to do, and no more. */
static void end_if_done(struct baton_engine *e)
{
	const struct baton_duration long_time = BATON_DURATION_FOREVER;
	if (core_is_spent(e->core) || (e->o.until_empty && core_is_idle(e->core)))
		core_stop(e->core, long_time, now_of(e));
}

/* A guardian that died has taken the handlers with it. There is a new one before the runner
 * registers again, which it does after a detachment. */
static void replace_guardian(struct baton_engine *e)
{
	if (!is_lost(e))
		return;
	if (!e->mourned)
		baton_detach_make(&e->detach, BATON_DETACH_STORAGE, "the guardian was killed",
		                  now_of(e));
	e->mourned = true;
	if (core_counts(e->core).running > 0 || core_is_asking(e->core))
		return;
	streams_done(&e->streams);
	commands_done(&e->commands);
	e->failure = open_handler(e);
	e->clerk.carrier.o.ask.guardian = e->o.ask.guardian;
	e->clerk.carrier.o.ask.life = e->o.ask.life;
	e->hard_stop = BATON_MONO_NEVER;
	e->mourned = false;
}

static void act(struct baton_engine *e)
{
	struct core_request request;
	core_time(e->core, now_of(e));
	replace_guardian(e);
	give_orders(e);
	set_hard_stop(e);
	end_if_done(e);
	if (core_ask(e->core, now_of(e), &request))
		clerk_ask(&e->clerk, &request);
	tell_detachment(e);
	set_status(e);
}

/* For poll(). */
static int ms_of(int64_t ns)
{
	if (ns <= 0)
		return 0;
	return ns / NS_PER_MS >= INT32_MAX ? -1 : (int)(ns / NS_PER_MS) + 1;
}

static int wait_ms(const struct baton_engine *e)
{
	struct baton_mono next = core_next(e->core);
	if (has_stream(e) && streams_due(&e->streams).ns < next.ns)
		next = streams_due(&e->streams);
	int64_t left = baton_mono_sub(next, now_of(e)).ns;
	if (!has_command(e) && e->hard_stop.ns != INT64_MAX) {
		int64_t stop = baton_mono_sub(e->hard_stop, now_of(e)).ns;
		left = stop < left ? stop : left;
	}
	return ms_of(left);
}

/* What tells that a handler has something to say; -1: nothing does. */
static int handler_fd(const struct baton_engine *e)
{
	if (has_stream(e))
		return streams_fd(&e->streams);
	return has_command(e) ? wards_fd(e->commands.wards) : -1;
}

static void wait_for_more(struct baton_engine *e)
{
	struct pollfd fds[3] = {
		{.fd = e->inbox.fd, .events = POLLIN},
		{.fd = e->neighbours.epoll, .events = POLLIN},
		{.fd = handler_fd(e), .events = POLLIN},
	};
	poll(fds, 3, wait_ms(e));
	read_inbox(e);
	if (fds[1].revents != 0 && neighbours_died(&e->neighbours))
		core_look_around(e->core);
	if (has_stream(e))
		streams_hear(&e->streams, now_of(e));
	else if (has_command(e))
		read_commands(e);
}

/* Lets persistent workers end by themselves, unless it takes too long or somebody is in a hurry:
 * then they are killed. */
static void dismiss(struct baton_engine *e)
{
	struct baton_mono until = baton_mono_add(now_of(e), commands_grace(&e->o.handler));
	struct inbox_mail mail = {.stop = false};
	streams_leave(&e->streams);
	while (e->streams.live > 0 && !mail.stop && baton_mono_live(until, now_of(e))) {
		struct pollfd fds[2] = {
			{.fd = e->inbox.fd, .events = POLLIN},
			{.fd = streams_fd(&e->streams), .events = POLLIN},
		};
		poll(fds, 2, ms_of(baton_mono_sub(until, now_of(e)).ns));
		inbox_take(&e->inbox, &mail);
		streams_hear(&e->streams, now_of(e));
	}
}

enum baton_err baton_engine_run(struct baton_engine *e)
{
	enum baton_err err;
	act(e);
	while (!core_is_done(e->core, &err) && e->failure == BATON_OK) {
		wait_for_more(e);
		act(e);
	}
	if (e->failure != BATON_OK)
		return e->failure;
	if (has_stream(e))
		dismiss(e);
	if (err != BATON_OK)
		return fail(err, "%s", core_why(e->core));
	return BATON_OK;
}

void baton_engine_stop(struct baton_engine *e, struct baton_duration grace)
{
	inbox_stop(&e->inbox, grace);
}

void baton_engine_detach(struct baton_engine *e)
{
	baton_detach_make(&e->detach, BATON_DETACH_MANUAL, NULL, now_of(e));
	inbox_look(&e->inbox);
}

void baton_engine_attach(struct baton_engine *e)
{
	baton_detach_attach(&e->detach, now_of(e));
	inbox_look(&e->inbox);
}

void baton_engine_look(struct baton_engine *e, struct baton_runner_status *ret)
{
	pthread_mutex_lock(&e->mu);
	*ret = e->status;
	pthread_mutex_unlock(&e->mu);
	baton_detach_look(&e->detach, &ret->detach);
}
