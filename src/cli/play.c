/* The play of the demo. */
#include "play.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <baton.h>

#include "crew.h"
#include "failover.h"
#include "judge.h"
#include "status.h"
#include "store.h"
#include "view.h"
#include "witness.h"

#define NS_PER_S INT64_C(1000000000)
#define LOOK_MS 100
#define PATIENCE_NS (300 * NS_PER_S) /* for all of it, on a machine that is very busy */
#define PROBE_MS 300
#define RUNNERS_PAGE 16
#define WORDS_ROOM 256

/* When things happen, counted from the one before. */
#define KILL_AFTER_NS (3 * NS_PER_S)
#define FREEZE_AFTER_NS (2 * NS_PER_S)
#define THAW_AFTER_NS (3 * NS_PER_S / 2)
#define CURTAIN_AFTER_NS (NS_PER_S / 2)

#define KILLED 0
#define FROZEN 1

enum act {
	ACT_GATHER = 1, /* the runners register, and share the shards  */
	ACT_WORK,       /* all of them work                             */
	ACT_KILLED,     /* one was killed                               */
	ACT_GO_ON,      /* the others have what it had                  */
	ACT_FROZEN,     /* one is frozen                                */
	ACT_TAKEN,      /* the last one has what it had                 */
	ACT_THAWED,     /* it goes on                                   */
	ACT_END
};

struct play {
	struct out *out;
	struct view view;
	struct crew crew;
	struct store store;
	struct baton_store *probe; /* the same, for who waits but a moment for others */
	enum act act;
	int64_t now_ns, act_ns; /* this look; when the act began */
	uint32_t lane_shard[JUDGE_LANES];
	bool back; /* the frozen one works again */

	/* How things are. */
	struct judge judge;
	struct picture picture;
	struct baton_queue_info queue;
	struct baton_runner_info infos[RUNNERS_PAGE];
	size_t info_count;

	struct failover killed, frozen;
};

static int64_t clock_ns(void)
{
	const struct baton_clock *clock = baton_clock_awake();
	return clock->now(clock).ns;
}

static struct baton_str queue_name(void)
{
	return baton_str_z(CREW_QUEUE);
}

/* Looking. */

/* The runner of that registration; -1: it is none of them. */
static int runner_of(const struct play *p, uint64_t number)
{
	for (size_t i = 0; i < p->info_count; i++) {
		for (int k = 0; k < CREW_RUNNERS && p->infos[i].number == number; k++) {
			if (strcmp(p->infos[i].name, crew_names[k]) == 0)
				return k;
		}
	}
	return -1;
}

static const struct baton_runner_info *info_of(const struct play *p, int runner)
{
	for (size_t i = 0; i < p->info_count; i++) {
		if (strcmp(p->infos[i].name, crew_names[runner]) == 0)
			return &p->infos[i];
	}
	return NULL;
}

static void look_at_runner(struct play *p, int runner)
{
	const struct baton_runner_info *info = info_of(p, runner);
	const char *state = info && info->state[0] != '\0' ? info->state : "not registered";
	if (runner == KILLED && p->act >= ACT_KILLED)
		state = "killed";
	else if (runner == FROZEN && (p->act == ACT_FROZEN || p->act == ACT_TAKEN))
		state = "frozen";
	snprintf(p->picture.states[runner], VIEW_STATE_ROOM, "%.*s", VIEW_STATE_ROOM - 1, state);
}

static enum baton_err look_at_store(struct play *p)
{
	struct baton_store *store = p->store.handle;
	struct baton_shard_answer answers[VIEW_SHARDS_MAX];
	enum baton_err e = baton_runner_list(store, 0, p->infos, RUNNERS_PAGE, &p->info_count);
	if (e == BATON_OK)
		e = baton_queue_get(store, queue_name(), &p->queue);
	size_t shards = p->queue.policy.shards;
	p->picture.shards = shards < VIEW_SHARDS_MAX ? shards : VIEW_SHARDS_MAX;
	if (e == BATON_OK)
		e = baton_shard_list(store, queue_name(), 0, answers, p->picture.shards);
	for (size_t i = 0; e == BATON_OK && i < p->picture.shards; i++)
		p->picture.owners[i] = runner_of(p, answers[i].runner);
	return e;
}

/* Returns EX_OK, or another status after one line on standard error. */
static int look(struct play *p)
{
	p->now_ns = clock_ns();
	enum baton_err e = look_at_store(p);
	if (e != BATON_OK)
		return store_fail(&p->store, e);
	if (!witness_ask(p->crew.socket, &p->judge)) {
		complain("the witness has ended");
		return EX_OSERR;
	}
	for (int i = 0; i < CREW_RUNNERS; i++)
		look_at_runner(p, i);
	p->picture.accepted = p->judge.accepted;
	p->picture.all = JUDGE_ALL;
	view_show(&p->view, p->now_ns, &p->picture);
	return EX_OK;
}

static unsigned shards_of(const struct play *p, int runner)
{
	unsigned count = 0;
	for (size_t i = 0; i < p->picture.shards; i++)
		count += p->picture.owners[i] == runner;
	return count;
}

/* Acting. */

static void begin(struct play *p, enum act act)
{
	p->act = act;
	p->act_ns = p->now_ns;
}

static bool has_passed(const struct play *p, int64_t ns)
{
	return p->now_ns - p->act_ns >= ns;
}

struct load {
	char lanes[JUDGE_LANES][4];
	char jobs[JUDGE_JOBS][4];
	struct baton_str payloads[JUDGE_JOBS];
	struct baton_batch batches[JUDGE_ALL];
	struct baton_put puts[JUDGE_ALL];
};

static void load_fill(struct load *l)
{
	for (size_t i = 0; i < JUDGE_LANES; i++)
		snprintf(l->lanes[i], sizeof l->lanes[i], "%hhu", (unsigned char)i);
	for (size_t i = 0; i < JUDGE_JOBS; i++) {
		snprintf(l->jobs[i], sizeof l->jobs[i], "%hhu", (unsigned char)i);
		l->payloads[i] = baton_str_z(l->jobs[i]);
	}
	for (size_t i = 0; i < JUDGE_ALL; i++)
		l->batches[i] = (struct baton_batch){
			.queue = queue_name(),
			.lane = baton_str_z(l->lanes[i % JUDGE_LANES]),
			.payloads = &l->payloads[i / JUDGE_LANES],
			.count = 1,
		};
}

/* Puts all the jobs, and finds out which shard each lane belongs to. */
static enum baton_err put_jobs(struct play *p)
{
	struct load *l = calloc(1, sizeof *l);
	if (!l)
		return BATON_NO_MEMORY;
	load_fill(l);
	enum baton_err e = baton_work_put(p->store.handle, l->batches, JUDGE_ALL, l->puts);
	for (size_t i = 0; e == BATON_OK && i < JUDGE_LANES; i++) {
		struct baton_where where;
		e = baton_lane_where(p->store.handle, queue_name(), baton_str_z(l->lanes[i]),
		                     &where);
		p->lane_shard[i] = where.shard;
	}
	free(l);
	return e;
}

static int act_gather(struct play *p)
{
	for (int i = 0; i < CREW_RUNNERS; i++) {
		if (shards_of(p, i) == 0)
			return EX_OK;
	}
	enum baton_err e = put_jobs(p);
	if (e != BATON_OK)
		return store_fail(&p->store, e);
	view_tell(&p->view, p->now_ns, "%d jobs are put, in %d lanes", JUDGE_ALL, JUDGE_LANES);
	begin(p, ACT_WORK);
	return EX_OK;
}

/* Something is about to happen to a runner, and so to the lanes that it has. */
static void failover_of(const struct play *p, struct failover *f, int runner)
{
	for (size_t i = 0; i < JUDGE_LANES; i++)
		f->hit[i] = p->picture.owners[p->lane_shard[i]] == runner;
	failover_begin(f, &p->judge, clock_ns());
}

static void tell_failover(struct play *p, const struct failover *f, const char *how)
{
	struct failover_sum sum = failover_sum(f);
	view_tell(&p->view, p->now_ns, "its %zu lanes go on elsewhere after %.2f to %.2f s: %s",
	          sum.lanes, (double)sum.least_ns / (double)NS_PER_S,
	          (double)sum.most_ns / (double)NS_PER_S, how);
}

static void act_work(struct play *p)
{
	if (!has_passed(p, KILL_AFTER_NS) || p->judge.accepted < JUDGE_LANES)
		return;
	pid_t pid = p->crew.runners[KILLED];
	failover_of(p, &p->killed, KILLED);
	crew_kill(&p->crew, KILLED);
	view_tell(&p->view, p->now_ns, "%s (pid %d) is killed: SIGKILL", crew_names[KILLED], pid);
	begin(p, ACT_KILLED);
}

static void act_killed(struct play *p)
{
	if (!failover_look(&p->killed, &p->judge))
		return;
	tell_failover(p, &p->killed, "its death is proved");
	begin(p, ACT_GO_ON);
}

/* Whether the one that is frozen now was not about to write to the store just then: an SQLite file
 * can be written by nobody while it is, and so nobody could take its place. */
static bool others_can_write(struct play *p)
{
	return baton_queue_pause(p->probe, queue_name(), false) == BATON_OK;
}

static void act_go_on(struct play *p)
{
	if (!has_passed(p, FREEZE_AFTER_NS))
		return;
	failover_of(p, &p->frozen, FROZEN);
	crew_freeze(&p->crew, FROZEN);
	if (!others_can_write(p)) {
		crew_thaw(&p->crew, FROZEN);
		return;
	}
	view_tell(&p->view, p->now_ns,
	          "%s (pid %d) is frozen, with its line to the witness: SIGSTOP",
	          crew_names[FROZEN], p->crew.runners[FROZEN]);
	begin(p, ACT_FROZEN);
}

static void act_frozen(struct play *p)
{
	if (!failover_look(&p->frozen, &p->judge))
		return;
	tell_failover(p, &p->frozen, "its ttl is over");
	begin(p, ACT_TAKEN);
}

static void act_taken(struct play *p)
{
	if (!has_passed(p, THAW_AFTER_NS))
		return;
	crew_thaw(&p->crew, FROZEN);
	view_tell(&p->view, p->now_ns, "%s goes on, and does not know yet: SIGCONT",
	          crew_names[FROZEN]);
	begin(p, ACT_THAWED);
}

static void act_thawed(struct play *p)
{
	if (!p->back && shards_of(p, FROZEN) > 0) {
		p->back = true;
		view_tell(&p->view, p->now_ns, "%s is attached again, and has %u shards",
		          crew_names[FROZEN], shards_of(p, FROZEN));
	}
	if (p->back && p->queue.counts.done >= JUDGE_ALL && has_passed(p, CURTAIN_AFTER_NS))
		begin(p, ACT_END);
}

static int act(struct play *p)
{
	switch (p->act) {
	case ACT_GATHER:
		return act_gather(p);
	case ACT_WORK:
		act_work(p);
		break;
	case ACT_KILLED:
		act_killed(p);
		break;
	case ACT_GO_ON:
		act_go_on(p);
		break;
	case ACT_FROZEN:
		act_frozen(p);
		break;
	case ACT_TAKEN:
		act_taken(p);
		break;
	case ACT_THAWED:
		act_thawed(p);
		break;
	case ACT_END:
		break;
	}
	return EX_OK;
}

/* The end. */

static unsigned check(const struct play *p, bool good, const char *text)
{
	out_print(p->out, "  %s%-3s%s  %s\n", out_look(p->out, good ? LOOK_GOOD : LOOK_BAD),
	          good ? "yes" : "NO", out_look(p->out, LOOK_PLAIN), text);
	return good ? 0 : 1;
}

/* Says what the witness has seen, line by line. Returns how much of it is bad. */
static unsigned checks(const struct play *p)
{
	char text[WORDS_ROOM];
	const struct judge *j = &p->judge;
	const struct baton_queue_counts *c = &p->queue.counts;
	out_print(p->out, "\nThe witness, who saw only effects and fences, says:\n");
	snprintf(text, sizeof text, "every effect was accepted exactly once: %" PRIu32 " of %d",
	         j->accepted, JUDGE_ALL);
	unsigned bad = check(p, j->accepted == JUDGE_ALL, text);
	snprintf(text, sizeof text, "every lane was in order: %" PRIu32 " jobs before their turn",
	         j->disordered);
	bad += check(p, j->disordered == 0, text);
	snprintf(text, sizeof text, "no lane had two handlers at a time: %" PRIu32 " did",
	         j->together);
	bad += check(p, j->together == 0, text);
	snprintf(text, sizeof text, "no owner followed a newer one: %" PRIu32 " did", j->backward);
	bad += check(p, j->backward == 0, text);
	snprintf(text, sizeof text, "nothing else was said: %" PRIu32 " lines were", j->strange);
	bad += check(p, j->strange == 0, text);
	snprintf(text, sizeof text, "and the store has %" PRIu64 " jobs done, %" PRIu64 " dead",
	         c->done, c->dead);
	return bad + check(p, c->done == JUDGE_ALL && c->dead == 0, text);
}

static int verdict(struct play *p)
{
	const struct judge *j = &p->judge;
	view_end(&p->view);
	unsigned bad = checks(p);
	out_print(p->out,
	          "  %" PRIu32 " late writes refused by fence, %" PRIu32
	          " repeats of what was done set aside\n\n",
	          j->late, j->repeated);
	out_print(p->out, "%s", out_look(p->out, bad == 0 ? LOOK_GOOD : LOOK_BAD));
	if (bad == 0)
		out_print(p->out, "verdict: good, after a crash and a freeze");
	else
		out_print(p->out, "verdict: BAD, in %u respects", bad);
	out_print(p->out, "%s\n", out_look(p->out, LOOK_PLAIN));
	return bad == 0 ? EX_OK : EXIT_FAILURE;
}

static int perform(struct play *p, const volatile sig_atomic_t *stop)
{
	char words[WORDS_ROOM];
	int status = EX_OK;
	while (*stop == 0 && status == EX_OK && p->act != ACT_END && p->out->errnum == 0) {
		poll(NULL, 0, LOOK_MS);
		if (crew_missed(&p->crew, words, sizeof words)) {
			view_end(&p->view);
			complain("%s", words);
			return EX_OSERR;
		}
		status = look(p);
		if (status == EX_OK)
			status = act(p);
		if (p->now_ns - p->view.began_ns > PATIENCE_NS)
			break;
	}
	view_end(&p->view);
	return *stop != 0 || status != EX_OK || p->out->errnum != 0 ? status : verdict(p);
}

/* Makes the store and the queue, and starts the runners. */
static int prepare(struct play *p, const char *folder)
{
	struct baton_queue_policy policy = baton_queue_policy_default();
	char name[BATON_STORE_PATH_MAX + 16];
	snprintf(name, sizeof name, "sqlite:%s/store.db", folder);
	setenv("BATON_STORE", name, 1);
	snprintf(name, sizeof name, "%s/fleet", folder);
	setenv("BATON_FLEET", name, 1);
	int status = store_open(&p->store, STORE_MADE);
	if (status != EX_OK)
		return status;
	policy.mode = BATON_QUEUE_RUNNER;
	enum baton_err e = baton_queue_set(p->store.handle, queue_name(), &policy);
	if (e != BATON_OK)
		return store_fail(&p->store, e);
	const struct baton_store_options probe = {
		.where = baton_str_z(p->store.where),
		.patience = baton_duration_ms(PROBE_MS),
	};
	e = baton_store_open(&probe, &p->probe);
	if (e != BATON_OK)
		return store_fail(&p->store, e);
	for (size_t i = 0; status == EX_OK && i < CREW_RUNNERS; i++)
		status = crew_hire(&p->crew, i);
	view_tell(&p->view, clock_ns(), "three runners: ada (pid %d), ben (%d), cleo (%d)",
	          p->crew.runners[0], p->crew.runners[1], p->crew.runners[2]);
	return status;
}

int play(struct out *out, const char *folder, const volatile sig_atomic_t *stop)
{
	struct play *p = calloc(1, sizeof *p);
	if (!p) {
		complain("no memory for the demo");
		return EX_OSERR;
	}
	p->out = out;
	p->crew.socket = -1;
	p->act = ACT_GATHER;
	view_begin(&p->view, out, clock_ns());
	int status = crew_gather(&p->crew);
	if (status == EX_OK)
		status = prepare(p, folder);
	if (status == EX_OK)
		status = perform(p, stop);
	crew_end(&p->crew);
	baton_store_close(p->probe);
	store_close(&p->store);
	free(p);
	crew_await();
	return status;
}
