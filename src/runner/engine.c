/* A runner: the core's decisions, carried out. One loop; the threads beside it put entries into its
 * inbox and wake it. */
#include <baton/runner.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/mem.h"
#include "runner/clerk.h"
#include "runner/ear.h"
#include "runner/ends.h"
#include "runner/handlers.h"
#include "runner/inbox.h"
#include "runner/metrics.h"
#include "runner/neighbours.h"
#include "runner/porter.h"
#include "runner/pulse.h"
#include "runner/seats.h"
#include "runner/settings.h"
#include "runner/visits.h"
#include "runner/waiter.h"
#include "store/store.h"

#define BEATS_PER_REPORT 5
#define STREAK_FAR 6 /* failures that detach: a short restart of a database stops no handler */

#define OVERDUE_MS 5000 /* how long a command may live on that was killed */

/* What the log says about a queue. */
enum queue_told {
	QUEUE_SERVED = 1,
	QUEUE_MISSING,
	QUEUE_OTHER
};

struct baton_engine {
	struct settings settings; /* [const] */
	const struct baton_alloc *alloc;
	const struct baton_clock *clock;
	enum queue_told told[BATON_RUNNER_SERVES_MAX]; /* [loop] */
	struct baton_detach detach;
	struct core *core; /* [loop] */
	struct inbox inbox;
	struct clerk clerk;
	struct pulse pulse;
	struct ear ear;
	struct porter porter;
	struct visits visits;         /* [loop] */
	struct handlers handlers;     /* [loop] */
	struct neighbours neighbours; /* [loop] */
	struct seats seats;           /* [loop] */
	struct waiter waiter;         /* [loop] */
	bool stepping;                /* [loop] a step is under way */
	bool working;                 /* [loop] there is more to do than to dismiss workers */
	struct baton_mono stop_at;    /* [loop] when all commands are asked to end */
	struct baton_mono leave_by;   /* [loop] commands that live then do not end at all */
	struct baton_mono dismissed;  /* [loop] until when workers may end; 0: they were not told */
	bool mourned;                 /* [loop] it is known that the guardian has died */
	enum baton_err failure;       /* [loop] it cannot go on */
	enum baton_err result;        /* [loop] what has come of it */
	uint32_t generation;          /* [loop] of the detachment that was told last */
	struct baton_mono hard_stop;  /* [loop] as it was set */
	pthread_mutex_t mu;           /* also held while somebody detaches or attaches it by hand */
	struct baton_runner_status status;   /* [mu] */
	struct baton_runner_metrics metrics; /* [mu] [loop] alone writes */
	struct buf report;                   /* [loop], and [clerk] while it tells */
};

static const struct baton_runner_options *options_of(const struct baton_engine *e)
{
	return &e->settings.o;
}

static struct baton_mono now_of(const struct baton_engine *e)
{
	return e->clock->now(e->clock);
}

/* What the other parts call. */

static enum core_fate fate(void *arg, const struct baton_runner_info *info)
{
	const struct baton_engine *e = arg;
	return neighbours_fate(options_of(e)->store, info);
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
	BATON_LOG(options_of(e)->log, BATON_LOG_INFO, "a handler says",
	          baton_field_str("claim", baton_str_z(claim ? claim->proof.id : "")),
	          baton_field_str("line", line));
}

static void on_cut(void *arg, uint64_t run)
{
	struct baton_engine *e = arg;
	const struct baton_work_claim *claim = core_claim(e->core, run);
	BATON_LOG(options_of(e)->log, BATON_LOG_WARN,
	          "a handler wrote more to standard output than a result may have: the rest is not "
	          "kept",
	          baton_field_str("claim", baton_str_z(claim ? claim->proof.id : "")),
	          baton_field_uint("kept", BATON_RESULT_MAX));
}

static void on_left(void *arg, uint64_t visit)
{
	struct baton_engine *e = arg;
	visits_ended(&e->visits, visit);
}

static void on_more(void *arg, uint64_t run, uint32_t max)
{
	struct baton_engine *e = arg;
	core_more(e->core, run, max);
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
	const struct baton_runner_options *o = options_of(e);
	const struct baton_detach_options detach = {
		.streak = o->store->reach == BATON_REACH_HOSTS ? STREAK_FAR
	                                                       : BATON_DETACH_STREAK_DEFAULT,
	};
	const struct core_options core = {
		.alloc = e->alloc,
		.detach = &e->detach,
		.serves = e->settings.serves,
		.serve_count = o->serve_count,
		.slots = o->slots,
		.limit = o->claims,
		.weight = o->ask.weight,
		.ttl = o->ask.ttl,
		.margin = o->margin,
		.beat = o->beat,
		.drain = o->drain,
		.report = {o->beat.ns * BEATS_PER_REPORT},
		.replace = o->ask.replace,
		.beats_prove = o->store->reach == BATON_REACH_HOSTS,
	};
	baton_detach_init(&e->detach, &detach);
	enum baton_err err = inbox_init(&e->inbox);
	if (err == BATON_OK)
		err = neighbours_init(&e->neighbours);
	return err == BATON_OK ? core_new(&core, &e->core) : err;
}

static enum baton_err open_handlers(struct baton_engine *e)
{
	const struct handlers_options options = {
		.alloc = e->alloc,
		.settings = &e->settings,
		.inbox = &e->inbox,
		.clock = e->clock,
		.stopped = on_stopped,
		.said = on_said,
		.cut = on_cut,
		.more = on_more,
		.ended = on_ended,
		.left = on_left,
		.arg = e,
	};
	return handlers_init(&e->handlers, &options);
}

static enum baton_err open_seats(struct baton_engine *e)
{
	const struct seats_options options = {
		.alloc = e->alloc,
		.settings = &e->settings,
		.detach = &e->detach,
		.inbox = &e->inbox,
	};
	return seats_init(&e->seats, &options);
}

/* Connections come in, and the registration says where clients reconnect. */
static enum baton_err open_door(struct baton_engine *e)
{
	struct baton_runner_options *o = &e->settings.o;
	const struct porter_options porter = {
		.alloc = e->alloc,
		.log = o->log,
		.folder = o->connections.folder,
		.owner = o->ask.name,
		.inbox = &e->inbox,
	};
	const struct visits_options visits = {
		.alloc = e->alloc,
		.log = o->log,
		.serves = o->serves,
		.serve_count = o->serve_count,
		.asked = &o->connections,
		.core = e->core,
		.commands = &e->handlers.commands,
		.streams = o->handler.stream ? &e->handlers.streams : NULL,
		.alarm = &e->handlers.alarm,
		.inbox = &e->inbox,
	};
	if (!o->connections.wanted)
		return BATON_OK;
	enum baton_err err = visits_init(&e->visits, &visits);
	if (err == BATON_OK)
		err = porter_init(&e->porter, &porter);
	if (err == BATON_OK && o->ask.endpoint.len == 0)
		o->ask.endpoint = porter_endpoint(&e->porter);
	return err;
}

static enum baton_err open_threads(struct baton_engine *e)
{
	const struct baton_runner_options *o = options_of(e);
	struct carrier_options carrier = {
		.alloc = e->alloc,
		.clock = e->clock,
		.store = o->store,
		.ask = o->ask,
		.serves = e->settings.serves,
		.serve_count = o->serve_count,
		.fate = fate,
		.began = on_began,
		.retire = on_retire,
		.arg = e,
	};
	/* The core sees to it that whoever has the name leaves first, with his handlers. */
	carrier.ask.replace = false;
	enum baton_err err = pulse_init(&e->pulse, &e->inbox, e->clock, o->beat, o->ask.ttl);
	if (err == BATON_OK)
		err = clerk_init(&e->clerk, &e->inbox, &carrier);
	if (err == BATON_OK)
		err = ear_init(&e->ear, &e->inbox, o->store, o->store->clock);
	return err;
}

/* The registration names the guardian. */
static void name_guardian(struct baton_engine *e)
{
	struct baton_runner_ask *ask = &e->clerk.carrier.o.ask;
	ask->guardian = handlers_guardian(&e->handlers);
	ask->life = handlers_life(&e->handlers);
}

static enum baton_err open_waiter(struct baton_engine *e)
{
	enum baton_err err = waiter_init(&e->waiter, e->clock == baton_clock_awake());
	if (err == BATON_OK)
		err = waiter_add(&e->waiter, e->inbox.fd);
	if (err == BATON_OK)
		err = waiter_add(&e->waiter, e->neighbours.epoll);
	if (err == BATON_OK)
		err = waiter_add(&e->waiter, e->seats.waiter.fd);
	return err == BATON_OK ? waiter_add(&e->waiter, handlers_fd(&e->handlers)) : err;
}

static enum baton_err open_all(struct baton_engine *e)
{
	enum baton_err err = open_parts(e);
	if (err == BATON_OK)
		err = open_handlers(e);
	if (err == BATON_OK)
		err = open_seats(e);
	if (err == BATON_OK)
		err = open_door(e);
	if (err == BATON_OK)
		err = open_threads(e);
	if (err == BATON_OK)
		err = open_waiter(e);
	if (err == BATON_OK)
		name_guardian(e);
	return err;
}

enum baton_err baton_engine_open(const struct baton_runner_options *options,
                                 struct baton_engine **ret_engine)
{
	const struct baton_alloc *alloc = options->store->alloc;
	struct baton_engine *e = mem_new(alloc, 1, sizeof *e);
	if (!e)
		return fail_memory(sizeof *e, "a runner");
	e->alloc = alloc;
	e->clock = options->store->reach == BATON_REACH_HOSTS ? baton_clock_boot()
	                                                      : baton_clock_awake();
	e->inbox.fd = -1;
	e->porter.wake = -1;
	e->neighbours.epoll = -1;
	e->seats.waiter.fd = e->seats.waiter.timer = -1;
	e->waiter.fd = e->waiter.timer = -1;
	e->working = true;
	e->hard_stop = e->stop_at = e->leave_by = BATON_MONO_NEVER;
	e->generation = 1;
	pthread_mutex_init(&e->mu, NULL);
	buf_init(&e->report, alloc, BATON_RUNNER_REPORT_MAX);
	enum baton_err err = settings_make(&e->settings, options);
	if (err == BATON_OK)
		err = open_all(e);
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
	porter_done(&e->porter);
	seats_done(&e->seats);
	clerk_done(&e->clerk);
	pulse_done(&e->pulse);
	handlers_done(&e->handlers);
	visits_done(&e->visits);
	core_free(e->core);
	waiter_done(&e->waiter);
	neighbours_done(&e->neighbours);
	inbox_done(&e->inbox);
	pthread_mutex_destroy(&e->mu);
	buf_done(&e->report);
	mem_free(e->alloc, e, 1, sizeof *e);
}

/* The loop. */

static void give_orders(struct baton_engine *e)
{
	struct core_order order;
	while (core_order(e->core, now_of(e), &order)) {
		switch (order.kind) {
		case CORE_START:
			handlers_start(&e->handlers, order.run, order.claim);
			break;
		case CORE_STOP:
			handlers_stop(&e->handlers, order.run, now_of(e));
			break;
		case CORE_MORE_GIVEN:
			if (!handlers_more(&e->handlers, order.run, order.claim) && order.claim)
				core_more_lost(e->core, order.run);
			break;
		}
	}
	handlers_act(&e->handlers, now_of(e));
}

/* Says once that a queue is not served, and why. */
static void tell_queues(struct baton_engine *e, const struct core_survey *survey)
{
	for (size_t i = 0; i < options_of(e)->serve_count; i++) {
		const struct core_queue_seen *seen = &survey->queues[i];
		enum queue_told is = !seen->there    ? QUEUE_MISSING
		                     : !seen->served ? QUEUE_OTHER
		                                     : QUEUE_SERVED;
		if (is == e->told[i])
			continue;
		e->told[i] = is;
		if (is == QUEUE_OTHER)
			BATON_LOG(options_of(e)->log, BATON_LOG_WARN,
			          "a queue is not served: its work is handed out in another way",
			          baton_field_str("queue", e->settings.queues[i]));
		else
			BATON_LOG(options_of(e)->log, BATON_LOG_DEBUG,
			          is == QUEUE_MISSING ? "a queue is not there yet"
			                              : "a queue is served",
			          baton_field_str("queue", e->settings.queues[i]));
	}
}

static void take_answer(struct baton_engine *e)
{
	bool survey = e->clerk.request.kind == CORE_SURVEY && e->clerk.answer.err == BATON_OK;
	if (survey)
		tell_queues(e, e->clerk.answer.survey);
	if (survey)
		neighbours_set(&e->neighbours, &options_of(e)->store->owner,
		               e->clerk.answer.survey->runners,
		               e->clerk.answer.survey->runner_count);
	core_answered(e->core, now_of(e), &e->clerk.answer);
}

static struct baton_mono earlier(struct baton_mono a, struct baton_mono b)
{
	return a.ns < b.ns ? a : b;
}

static void stop(struct baton_engine *e, struct baton_duration grace, struct baton_mono now)
{
	e->stop_at = earlier(e->stop_at, baton_mono_add(now, grace));
	core_stop(e->core, grace, now);
}

static void read_inbox(struct baton_engine *e)
{
	struct inbox_mail mail;
	struct inbox_end *next;
	struct inbox_more *next_more;
	inbox_take(&e->inbox, &mail);
	struct baton_mono now = now_of(e);
	if (mail.beat.number > 0)
		core_beaten(e->core, mail.beat.number, mail.beat.err, mail.beat.why, mail.beat.sent,
		            now);
	for (struct inbox_more *more = mail.mores; more; more = next_more) {
		next_more = more->next;
		if (!core_more(e->core, more->run, more->max))
			handlers_more(&e->handlers, more->run, NULL);
	}
	for (struct inbox_end *end = mail.ends; end; end = next) {
		next = end->next;
		core_ended(e->core, end->run, &end->end, now);
	}
	if (mail.answered)
		take_answer(e);
	if (mail.news) {
		core_news(e->core);
		seats_news(&e->seats);
	}
	if (mail.want == BATON_WISH_DETACH)
		core_detach(e->core, now);
	else if (mail.want == BATON_WISH_WORK)
		core_attach(e->core, now);
	if (mail.stop)
		stop(e, mail.grace, now);
}

/* Moves the moment at which what runs is killed, whatever this process does. */
static void set_hard_stop(struct baton_engine *e)
{
	struct baton_mono at = core_hard_stop(e->core);
	if (at.ns != e->hard_stop.ns)
		handlers_deadline(&e->handlers, at);
	e->hard_stop = at;
}

static void tell_detachment(struct baton_engine *e)
{
	struct baton_detach_info info;
	baton_detach_look(&e->detach, &info);
	if (info.generation == e->generation)
		return;
	e->generation = info.generation;
	if (options_of(e)->changed)
		options_of(e)->changed(options_of(e)->arg, &info);
	const char *why = core_failure(e->core);
	if (info.state == BATON_DETACHED)
		BATON_LOG(options_of(e)->log, BATON_LOG_WARN, "detached",
		          baton_field_str("reason", baton_str_z(info.text)),
		          baton_field_str("why", baton_str_z(why[0] ? why : "-")));
	else
		BATON_LOG(options_of(e)->log, BATON_LOG_INFO, "attached again",
		          baton_field_uint("generation", info.generation));
}

static void set_status(struct baton_engine *e)
{
	struct core_counts counts = core_counts(e->core);
	pthread_mutex_lock(&e->mu);
	core_metrics(e->core, now_of(e), &e->metrics);
	e->metrics.worker_starts = handlers_starts(&e->handlers);
	e->metrics.worker_restarts = handlers_restarts(&e->handlers);
	e->status = (struct baton_runner_status){
		.number = core_number(e->core),
		.running = counts.running,
		.slots = options_of(e)->slots,
		.shards = counts.owned,
		.connections = counts.visits,
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
	if (core_is_spent(e->core) || (options_of(e)->until_empty && core_is_idle(e->core)))
		core_stop(e->core, long_time, now_of(e));
}

/* A guardian that died takes the handlers with it; what it has left is killed. As long as anything
 * of it lives, whatever the store says is no sign of health. There is a new one before the runner
 * registers again, which it does after a detachment. */
static void replace_guardian(struct baton_engine *e)
{
	struct core_counts counts = core_counts(e->core);
	if (!handlers_are_lost(&e->handlers))
		return;
	bool gone = handlers_are_gone(&e->handlers);
	baton_detach_make(&e->detach, BATON_DETACH_GUARDIAN, NULL, now_of(e));
	if (!e->mourned && !gone)
		BATON_LOG(
			options_of(e)->log, BATON_LOG_WARN,
			"the guardian has died: what its handlers have left is killed, and nothing "
			"is started before that has ended",
			baton_field_uint("handlers", counts.running));
	e->mourned = true;
	if (!gone || counts.running > 0 || counts.visits > 0 || core_is_asking(e->core))
		return;
	waiter_leave_out(&e->waiter, handlers_fd(&e->handlers));
	e->failure = handlers_renew(&e->handlers);
	if (e->failure == BATON_OK)
		e->failure = waiter_add(&e->waiter, handlers_fd(&e->handlers));
	name_guardian(e);
	e->hard_stop = BATON_MONO_NEVER;
	e->mourned = false;
}

static void act_on_seats(struct baton_engine *e)
{
	enum core_lead is = core_leads(e->core, now_of(e));
	seats_act(&e->seats, is == CORE_LEADING   ? SEAT_LEAD
	                     : is == CORE_STAYING ? SEAT_STAY
	                                          : SEAT_LEAVE);
}

/* Without memory for it nothing is reported. */
static void add_report(struct baton_engine *e, struct core_request *request)
{
	buf_reset(&e->report);
	metrics_print(&e->metrics, &e->report);
	handlers_progress(&e->handlers, &e->report);
	if (e->report.err == BATON_OK)
		request->report = buf_str(&e->report);
}

static void act(struct baton_engine *e)
{
	struct core_request request;
	core_time(e->core, now_of(e));
	replace_guardian(e);
	visits_act(&e->visits, now_of(e));
	give_orders(e);
	set_hard_stop(e);
	act_on_seats(e);
	end_if_done(e);
	if (handlers_progressed(&e->handlers))
		core_progressed(e->core);
	bool asked = core_ask(e->core, now_of(e), &request);
	set_status(e);
	if (asked && request.kind == CORE_TELL)
		add_report(e, &request);
	if (asked)
		clerk_ask(&e->clerk, &request);
	tell_detachment(e);
}

static void hear(struct baton_engine *e)
{
	struct baton_connection *connection;
	read_inbox(e);
	visits_hear(&e->visits);
	while ((connection = porter_next(&e->porter)))
		visits_take(&e->visits, connection, now_of(e));
	if (neighbours_died(&e->neighbours)) {
		core_look_around(e->core);
		seats_look(&e->seats);
	}
	handlers_hear(&e->handlers, now_of(e));
}

/* What is held is given back first, unless there is nobody to give it to. */
static bool is_done(struct baton_engine *e)
{
	return core_is_done(e->core, &e->result) &&
	       seats_are_over(&e->seats, e->result == BATON_TIMEOUT || e->result == BATON_STORAGE ||
	                                         baton_detach_state(&e->detach) == BATON_DETACHED);
}

/* Whether there are commands that it would have to wait for. */
static bool has_commands(struct baton_engine *e)
{
	struct core_counts counts = core_counts(e->core);
	return (e->handlers.commands.wards && (counts.running > 0 || counts.visits > 0)) ||
	       seats_have_command(&e->seats);
}

/* The longest time that a command has from SIGTERM to SIGKILL. */
static struct baton_duration longest_grace(struct baton_engine *e)
{
	const struct baton_runner_options *o = options_of(e);
	struct baton_duration longest = commands_grace(&o->handler);
	for (size_t i = 0; i < o->singleton_count; i++) {
		struct baton_duration grace = duty_grace(&o->singletons[i]);
		longest = grace.ns > longest.ns ? grace : longest;
	}
	return longest;
}

/* A process that has other privileges, or that the kernel does not let go, cannot be killed: who
 * was asked to end does not wait for it. It keeps the life file, and with that others away. The
 * time for that begins when all have been asked to end, which a runner that was stopped itself does
 * late. */
static void leave_what_lives(struct baton_engine *e)
{
	struct baton_mono now = now_of(e);
	if (e->leave_by.ns == BATON_MONO_NEVER.ns && !baton_mono_live(e->stop_at, now))
		e->leave_by = baton_mono_add(baton_mono_add(now, longest_grace(e)),
		                             baton_duration_ms(OVERDUE_MS));
	if (e->failure != BATON_OK || !has_commands(e) || baton_mono_live(e->leave_by, now))
		return;
	e->failure = fail(BATON_BUSY,
	                  "a process of a handler lives on though it was killed: what the runner "
	                  "had is given to others when that has ended, or its time is over");
}

/* False: it has no more to do, for whatever reason. */
static bool work(struct baton_engine *e)
{
	hear(e);
	act(e);
	leave_what_lives(e);
	struct baton_mono next = earlier(core_next(e->core), handlers_due(&e->handlers));
	bool stopped = e->leave_by.ns != BATON_MONO_NEVER.ns;
	struct baton_mono leave = stopped ? e->leave_by : e->stop_at;
	waiter_set(&e->waiter, has_commands(e) ? earlier(next, leave) : next);
	return e->failure == BATON_OK && !is_done(e);
}

/* Lets persistent workers end by themselves, unless it takes too long or somebody is in a hurry:
 * then they are killed. False: there are none any more, or they have had their time. */
static bool dismiss(struct baton_engine *e)
{
	struct inbox_mail mail;
	if (e->dismissed.ns == 0) {
		e->dismissed = baton_mono_add(now_of(e), commands_grace(&options_of(e)->handler));
		handlers_leave(&e->handlers);
	}
	inbox_take(&e->inbox, &mail);
	handlers_hear(&e->handlers, now_of(e));
	waiter_set(&e->waiter, e->dismissed);
	return handlers_left(&e->handlers) > 0 && !mail.stop &&
	       baton_mono_live(e->dismissed, now_of(e));
}

int baton_engine_fd(const struct baton_engine *e)
{
	return e->waiter.fd;
}

bool baton_engine_step(struct baton_engine *e, enum baton_err *ret_err)
{
	CHECK(!e->stepping);
	e->stepping = true;
	e->working = e->working && work(e);
	bool more = e->working || (e->failure == BATON_OK && dismiss(e));
	e->stepping = false;
	if (more)
		return true;
	*ret_err = e->failure;
	if (e->failure == BATON_OK && e->result != BATON_OK)
		*ret_err = fail(e->result, "%s", core_why(e->core));
	return false;
}

enum baton_err baton_engine_run(struct baton_engine *e)
{
	enum baton_err err;
	while (baton_engine_step(e, &err))
		waiter_wait(&e->waiter);
	return err;
}

void baton_engine_stop(struct baton_engine *e, struct baton_duration grace)
{
	inbox_stop(&e->inbox, grace);
}

/* Holds at once, for whoever asks before he goes on; the core is told in the same order, so that it
 * passes on what was wanted last. */
void baton_engine_detach(struct baton_engine *e)
{
	pthread_mutex_lock(&e->mu);
	baton_detach_make(&e->detach, BATON_DETACH_MANUAL, NULL, now_of(e));
	inbox_want(&e->inbox, BATON_WISH_DETACH);
	pthread_mutex_unlock(&e->mu);
}

void baton_engine_attach(struct baton_engine *e)
{
	pthread_mutex_lock(&e->mu);
	baton_detach_attach(&e->detach, now_of(e));
	inbox_want(&e->inbox, BATON_WISH_WORK);
	pthread_mutex_unlock(&e->mu);
}

void baton_engine_metrics(struct baton_engine *e, struct baton_runner_metrics *ret)
{
	pthread_mutex_lock(&e->mu);
	*ret = e->metrics;
	pthread_mutex_unlock(&e->mu);
}

void baton_engine_look(struct baton_engine *e, struct baton_runner_status *ret)
{
	pthread_mutex_lock(&e->mu);
	*ret = e->status;
	pthread_mutex_unlock(&e->mu);
	baton_detach_look(&e->detach, &ret->detach);
}
