/* baton demo: a short play about the gate, by real threads. Every claim it makes is checked. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <baton.h>

#include "actor.h"
#include "command.h"
#include "move.h"
#include "options.h"

#define CAST 3
#define NOTE_MAX 160
#define KEYS_WIDTH 14

struct person {
	const char *name;
	struct actor actor;
	struct move move; /* the one he makes or made last */
};

/* Everything here is the director's; an actor sees only his move. */
struct play {
	struct out *out;
	struct baton_gate *gate;
	struct person cast[CAST];
	size_t present; /* how many of the cast have started */
	unsigned scenes;
	unsigned claims;
	unsigned untrue;
};

__attribute__((format(printf, 2, 3))) static void scene(struct play *play, const char *format, ...)
{
	char title[NOTE_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(title, sizeof title, format, args);
	va_end(args);
	out_print(play->out, "\n%s%u. %s%s\n", out_look(play->out, LOOK_BOLD), ++play->scenes,
	          title, out_look(play->out, LOOK_PLAIN));
}

/* Counts a claim, and says so if it is not true. */
__attribute__((format(printf, 3, 4))) static void claim(struct play *play, bool is_true,
                                                        const char *format, ...)
{
	play->claims++;
	if (is_true)
		return;
	play->untrue++;
	char text[NOTE_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	out_print(play->out, "   %sNOT TRUE: %s%s\n", out_look(play->out, LOOK_BAD), text,
	          out_look(play->out, LOOK_PLAIN));
}

/* One line: who does what to the keys of his move, and a note. */
__attribute__((format(printf, 5, 6))) static void line(struct play *play, const struct person *who,
                                                       enum look look, const char *verb,
                                                       const char *format, ...)
{
	char note[NOTE_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(note, sizeof note, format, args);
	va_end(args);
	char keys[NOTE_MAX];
	const struct move *m = &who->move;
	snprintf(keys, sizeof keys, "%.*s%s%.*s", (int)m->keys[0].text.len, m->keys[0].text.ptr,
	         m->count > 1 ? " + " : "", m->count > 1 ? (int)m->keys[1].text.len : 0,
	         m->count > 1 ? m->keys[1].text.ptr : "");
	out_print(play->out, "   %-5s %s%-9s%s %-*s%s\n", who->name, out_look(play->out, look),
	          verb, out_look(play->out, LOOK_PLAIN), note[0] ? KEYS_WIDTH : 0, keys, note);
}

static const struct person *by_run(const struct play *play, const struct baton_id *run)
{
	for (size_t i = 0; i < play->present; i++) {
		if (baton_id_equal(&play->cast[i].move.run, run))
			return &play->cast[i];
	}
	return NULL;
}

static void show_yield(struct play *play, const struct person *who)
{
	const struct baton_gate_yield *y = &who->move.yield;
	const struct person *other = by_run(play, &y->holder.run);
	const char *name = other ? other->name : "somebody unknown";
	if (who->move.ticket)
		line(play, who, LOOK_WAITING, "waits", "number %" PRIu32 " in line", y->waiting);
	else
		line(play, who, LOOK_WAITING, "yields", "to %s, who has fence %" PRIu64, name,
		     y->holder.fence.v);
}

/* Says what came of a move that asked for keys. */
static void show_answer(struct play *play, const struct person *who)
{
	const struct move *m = &who->move;
	if (m->answer == BATON_OK && m->count == 1)
		line(play, who, LOOK_GOOD, "holds", "fence %" PRIu64, m->fences[0].v);
	else if (m->answer == BATON_OK)
		line(play, who, LOOK_GOOD, "holds", "fences %" PRIu64 " and %" PRIu64,
		     m->fences[0].v, m->fences[1].v);
	else if (m->answer == BATON_YIELD)
		show_yield(play, who);
	else
		line(play, who, LOOK_BAD, "fails", "%s: %s", baton_err_name(m->answer), m->detail);
}

/* Writes down what `who` is to do next. `second` NULL: one key. */
static void prepare(struct person *who, baton_gate_class cls, const char *first, const char *second)
{
	struct move *m = &who->move;
	m->keys[0] = (struct baton_gate_key){baton_str_z(first), cls};
	m->keys[1] = (struct baton_gate_key){baton_str_z(second), cls};
	m->count = second ? 2 : 1;
	m->start = NULL;
}

static void perform(struct person *who, void (*task)(void *))
{
	actor_tell(&who->actor, task, &who->move);
	actor_await(&who->actor);
}

static void acquire(struct play *play, struct person *who)
{
	perform(who, move_acquire);
	show_answer(play, who);
}

static void release(struct play *play, struct person *who)
{
	line(play, who, LOOK_FAINT, "releases", "%s", "");
	perform(who, move_release);
	claim(play, who->move.answer == BATON_OK, "%s had something to release (%s)", who->name,
	      baton_err_name(who->move.answer));
}

/* `who` takes his place in line, and blocks there while the play goes on. */
static void wait_in_line(struct play *play, struct person *who, uint32_t place)
{
	perform(who, move_enter);
	show_answer(play, who);
	claim(play, who->move.answer == BATON_YIELD && who->move.yield.waiting == place,
	      "%s is number %" PRIu32 " in line", who->name, place);
	actor_tell(&who->actor, move_wait, &who->move);
}

/* `who` must be let in, with a fence above `past`. Returns that fence. */
static baton_fence let_in(struct play *play, struct person *who, baton_fence past)
{
	actor_await(&who->actor);
	show_answer(play, who);
	claim(play, who->move.answer == BATON_OK, "%s holds the key", who->name);
	claim(play, who->move.fences[0].v > past.v,
	      "%s's fence is above the one before (%" PRIu64 ")", who->name, past.v);
	return who->move.fences[0];
}

/* Both ask at the same moment. Returns the one who holds the key; *ret_other is the other. */
static struct person *one_key_two_threads(struct play *play, struct person **ret_other)
{
	struct person *a = &play->cast[0];
	struct person *b = &play->cast[1];
	scene(play, "%s and %s want order-42, at the same moment.", a->name, b->name);
	pthread_barrier_t start;
	pthread_barrier_init(&start, NULL, 2);
	prepare(a, BATON_GATE_CLASS_DEFAULT, "order-42", NULL);
	prepare(b, BATON_GATE_CLASS_DEFAULT, "order-42", NULL);
	a->move.start = b->move.start = &start;
	actor_tell(&a->actor, move_acquire, &a->move);
	actor_tell(&b->actor, move_acquire, &b->move);
	actor_await(&a->actor);
	actor_await(&b->actor);
	pthread_barrier_destroy(&start);
	a->move.start = b->move.start = NULL;

	struct person *holder = a->move.answer == BATON_OK ? a : b;
	struct person *other = holder == a ? b : a;
	show_answer(play, holder);
	show_answer(play, other);
	claim(play, holder->move.answer == BATON_OK, "one of them holds the key");
	claim(play, other->move.answer == BATON_YIELD, "the other yields");
	claim(play, by_run(play, &other->move.yield.holder.run) == holder,
	      "%s is told who holds it", other->name);
	*ret_other = other;
	return holder;
}

static void the_same_answer_again(struct play *play, struct person *holder)
{
	scene(play, "%s asks once more, as after a lost reply: the same answer.", holder->name);
	baton_fence before = holder->move.fences[0];
	acquire(play, holder);
	claim(play, holder->move.answer == BATON_OK && holder->move.fences[0].v == before.v,
	      "the fence is still %" PRIu64, before.v);
}

static void waiting_in_line(struct play *play, struct person *holder, struct person *second)
{
	struct person *third = &play->cast[2];
	scene(play, "%s and %s wait in line. The key goes from hand to hand.", second->name,
	      third->name);
	prepare(third, BATON_GATE_CLASS_DEFAULT, "order-42", NULL);
	wait_in_line(play, second, 1);
	wait_in_line(play, third, 2);
	baton_fence fence = holder->move.fences[0];
	release(play, holder);
	fence = let_in(play, second, fence);
	release(play, second);
	let_in(play, third, fence);

	perform(holder, move_release);
	line(play, holder, LOOK_FAINT, "releases", "again: %s",
	     baton_strerror(holder->move.answer));
	claim(play, holder->move.answer == BATON_NOT_HELD, "%s cannot release %s's key",
	      holder->name, third->name);
	release(play, third);
	claim(play, !baton_gate_is_held(play->gate, &third->move.keys[0], move_now()),
	      "nobody holds the key any more");
}

static void a_limit_raised(struct play *play)
{
	scene(play, "At most 2 may print. The limit becomes 3 while they do.");
	struct baton_key_policy policy = baton_key_policy_default();
	policy.scope = BATON_KEY_SCOPE_PROCESS;
	policy.limit = 2;
	baton_gate_class printing;
	enum baton_err e = baton_gate_class_add(play->gate, &policy, &printing);
	claim(play, e == BATON_OK, "there can be a class with limit 2 (%s)", baton_err_detail());
	if (e != BATON_OK)
		return;
	for (size_t i = 0; i < CAST; i++)
		prepare(&play->cast[i], printing, "printer", NULL);
	for (size_t i = 0; i < 2; i++) {
		acquire(play, &play->cast[i]);
		claim(play, play->cast[i].move.answer == BATON_OK, "%s may print",
		      play->cast[i].name);
	}
	struct person *last = &play->cast[2];
	wait_in_line(play, last, 1);
	policy.limit = 3;
	e = baton_gate_class_set(play->gate, printing, &policy, move_now());
	claim(play, e == BATON_OK, "the limit can be raised (%s)", baton_err_detail());
	out_print(play->out, "   the limit is raised to %" PRIu32 "\n", policy.limit);
	let_in(play, last, play->cast[1].move.fences[0]);
	for (size_t i = 0; i < CAST; i++)
		release(play, &play->cast[i]);
}

static void all_or_none(struct play *play)
{
	struct person *a = &play->cast[0];
	struct person *b = &play->cast[1];
	scene(play, "%s needs two keys: all or none.", b->name);
	prepare(a, BATON_GATE_CLASS_DEFAULT, "left", NULL);
	prepare(b, BATON_GATE_CLASS_DEFAULT, "left", "right");
	acquire(play, a);
	acquire(play, b);
	claim(play, b->move.answer == BATON_YIELD, "%s yields", b->name);
	bool right = baton_gate_is_held(play->gate, &b->move.keys[1], move_now());
	out_print(play->out, "   and right is %s\n", right ? "held" : "still free");
	claim(play, !right, "a refusal takes nothing");
	release(play, a);
	acquire(play, b);
	claim(play, b->move.answer == BATON_OK, "%s holds both", b->name);
	release(play, b);
}

/* Both actors race many times; every round must have exactly one winner. */
static void race(struct play *play, struct race races[2])
{
	scene(play, "And once more the first scene, %d times.", RACE_ROUNDS);
	pthread_barrier_t start;
	pthread_barrier_init(&start, NULL, 2);
	for (size_t i = 0; i < 2; i++) {
		prepare(&play->cast[i], BATON_GATE_CLASS_DEFAULT, "order-43", NULL);
		races[i].move = play->cast[i].move;
		races[i].move.start = &start;
		actor_tell(&play->cast[i].actor, race_run, &races[i]);
	}
	for (size_t i = 0; i < 2; i++)
		actor_await(&play->cast[i].actor);
	pthread_barrier_destroy(&start);

	unsigned won[2] = {0};
	unsigned both = 0;
	unsigned none = 0;
	for (size_t i = 0; i < RACE_ROUNDS; i++) {
		won[0] += races[0].won[i];
		won[1] += races[1].won[i];
		both += races[0].won[i] && races[1].won[i];
		none += !races[0].won[i] && !races[1].won[i];
	}
	out_print(play->out,
	          "   %s held it %u times, %s %u times, both at once %u times, nobody %u times\n",
	          play->cast[0].name, won[0], play->cast[1].name, won[1], both, none);
	claim(play, both == 0, "never do both hold the key");
	claim(play, none == 0, "never does nobody hold it");
	claim(play, races[0].failed + races[1].failed == 0, "no call fails");
}

static bool count_hold(const struct baton_gate_hold *hold, void *arg)
{
	(void)hold;
	(*(unsigned *)arg)++;
	return true;
}

static void perform_all(struct play *play)
{
	struct person *other = NULL;
	struct person *holder = one_key_two_threads(play, &other);
	the_same_answer_again(play, holder);
	waiting_in_line(play, holder, other);
	a_limit_raised(play);
	all_or_none(play);
	struct race *races = calloc(2, sizeof *races);
	claim(play, races, "there is memory for a race");
	if (races)
		race(play, races);
	free(races);
	unsigned left = 0;
	enum baton_err e = baton_gate_each(play->gate, move_now(), count_hold, &left);
	claim(play, e == BATON_OK && left == 0, "in the end nobody holds anything (%u do)", left);
}

/* Gets the gate and the cast. Returns EX_OK, or another status after a complaint. */
static int raise_curtain(struct play *play)
{
	static const char *const names[CAST] = {"ada", "ben", "cleo"};
	if (baton_gate_new(NULL, &play->gate) != BATON_OK) {
		complain("no gate: %s", baton_err_detail());
		return EX_OSERR;
	}
	for (; play->present < CAST; play->present++) {
		struct person *p = &play->cast[play->present];
		p->name = names[play->present];
		p->move.gate = play->gate;
		if (baton_id_random(&p->move.run) != BATON_OK) {
			complain("no id: %s", baton_err_detail());
			return EX_OSERR;
		}
		int errnum = actor_start(&p->actor);
		if (errnum != 0) {
			complain("no thread: %s", strerror(errnum));
			return EX_OSERR;
		}
	}
	return EX_OK;
}

static void drop_curtain(struct play *play)
{
	while (play->present > 0)
		actor_stop(&play->cast[--play->present].actor);
	baton_gate_free(play->gate);
}

static int verdict(struct play *play)
{
	bool good = play->untrue == 0;
	out_print(play->out, "\n%s", out_look(play->out, good ? LOOK_GOOD : LOOK_BAD));
	if (good)
		out_print(play->out, "verdict: all %u claims were checked and are true",
		          play->claims);
	else
		out_print(play->out, "verdict: %u of %u claims are not true", play->untrue,
		          play->claims);
	out_print(play->out, "%s\n", out_look(play->out, LOOK_PLAIN));
	return good ? EX_OK : EXIT_FAILURE;
}

int cmd_demo(struct out *out, int argc, char **argv)
{
	switch (option_none(argc, argv)) {
	case 'h':
		help_command(out, command_find(argv[0]));
		return EX_OK;
	case OPTION_BAD:
		return EX_USAGE;
	}
	struct play play = {.out = out};
	int status = raise_curtain(&play);
	if (status == EX_OK) {
		out_print(out, "Claim or yield: one owner for every key, among the threads of one "
		               "process.\n");
		perform_all(&play);
		status = verdict(&play);
	}
	drop_curtain(&play);
	return status;
}
