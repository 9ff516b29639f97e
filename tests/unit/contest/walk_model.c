/* The programs that the actors follow, and every action that is possible in the world. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "walk_world.h"

static_assert(sizeof(struct world) <= WALK_SIZE_MAX, "a state is kept in half of it");
static_assert(_Alignof(struct world) == 1, "a state is bytes without gaps");

#define ACQUIRE_BEGIN {"finds the place of the subject", find_place}
#define OBSERVE {"looks at the word", observe}
#define COMPARE {"compares the key of the place", compare_key}
#define ACQUIRE_END                                                             \
	{"looks whether its member lives", look_at_life},                       \
		{"reads the clock and decides to take", decide_take},           \
	{                                                                       \
		"swaps what was seen for its own", take                         \
	}

static const struct step acquire[] = {ACQUIRE_BEGIN, OBSERVE, COMPARE, ACQUIRE_END, {NULL, NULL}};
static const struct step acquire_key_first[] = {
	ACQUIRE_BEGIN, COMPARE, OBSERVE, ACQUIRE_END, {NULL, NULL}};

#define CLOCK {"reads the clock", read_clock}
static const struct step acquire_clock_first[] = {
	ACQUIRE_BEGIN, CLOCK, OBSERVE, COMPARE, ACQUIRE_END, {NULL, NULL}};
static const struct step renewal_clock_first[] = {
	{"takes up the claim of its process", take_up},
	CLOCK,
	OBSERVE,
	{"reads the clock and decides to renew", decide_renew},
	{"swaps what was seen for a longer one", renew},
	{NULL, NULL},
};

#define TAKE_UP {"takes up the claim of its process", take_up}

static const struct step renewal[] = {
	TAKE_UP,
	OBSERVE,
	{"reads the clock and decides to renew", decide_renew},
	{"swaps what was seen for a longer one", renew},
	{NULL, NULL},
};

static const struct step releasing[] = {
	TAKE_UP,
	OBSERVE,
	{"decides to release", decide_release},
	{"swaps what was seen for a free one", release},
	{NULL, NULL},
};

static const struct step forcing[] = {
	ACQUIRE_BEGIN,
	OBSERVE,
	{"compares the key and decides to force", decide_force},
	{"swaps what was seen for a free one", force},
	{NULL, NULL},
};

#define WRITE_KEY {"writes the key of the place", write_key}
#define SETTLE {"reads the clock", read_clock}, {"swaps a vacant word for its own", settle}
#define INSERT_BEGIN                                                   \
	{"locks the shard", lock}, {"looks for the subject", look_again}, \
	{                                                              \
		"chooses a place", choose_place                        \
	}
#define LIST {"lists the place", list}
#define UNLOCK {"unlocks the shard", unlock}

static const struct step insertion[] = {INSERT_BEGIN, WRITE_KEY, SETTLE, LIST, UNLOCK, {NULL, NULL}};
static const struct step insertion_key_last[] = {
	INSERT_BEGIN, SETTLE, WRITE_KEY, LIST, UNLOCK, {NULL, NULL}};

#define REMOVE_BEGIN                                                        \
	{"locks the shard", lock}, {"looks for a free word", decide_remove}, \
	{                                                                   \
		"swaps the free word for a vacant one", vacate              \
	}
#define RAISE {"raises the floor", raise_floor}
#define UNLIST {"takes the place off the list", unlist}

static const struct step removal[] = {REMOVE_BEGIN, RAISE, UNLIST, UNLOCK, {NULL, NULL}};
static const struct step removal_floor_last[] = {REMOVE_BEGIN, UNLIST, RAISE, UNLOCK, {NULL, NULL}};

static const struct step sweeping[] = {
	{"finds the process of a dead member gone", find_dead},
	{"looks for a claim of that member", look_for_claim},
	{"swaps it for a free one", free_claim},
	{"frees the code", free_code},
	{NULL, NULL},
};

const struct step *program_of(const struct rules *rules, enum program program)
{
	switch (program) {
	case PROGRAM_ACQUIRE:
		if (rules->clock_read_first)
			return acquire_clock_first;
		return rules->key_read_first ? acquire_key_first : acquire;
	case PROGRAM_INSERT:
		return rules->key_written_last ? insertion_key_last : insertion;
	case PROGRAM_RENEW:
		if (rules->clock_read_first)
			return renewal_clock_first;
		return renewal;
	case PROGRAM_RELEASE:
		return releasing;
	case PROGRAM_FORCE:
		return forcing;
	case PROGRAM_SWEEP:
		return sweeping;
	case PROGRAM_REMOVE:
		return rules->floor_raised_last ? removal_floor_last : removal;
	case PROGRAM_IDLE:
	case PROGRAM_COUNT:
		break;
	}
	return NULL;
}

/* Forgets what no step from there on looks at, so that equal states look equal. */
void go(struct scene *s, enum program program, step_fn *step)
{
	const struct step *steps = program_of(s->rules, program);
	unsigned i = 0;
	while (steps[i].make != step)
		CHECK(steps[++i].make != NULL);
	s->me->program = u8(program);
	s->me->step = u8(i);
	s->me->seen = (struct small){0};
	s->me->now = 0;
	if (step == find_place || step == lock)
		s->me->place = 0;
	if (program != PROGRAM_SWEEP && !s->rules->verdict_is_kept)
		s->me->dead = 0;
}

void next(struct scene *s)
{
	s->me->step++;
	CHECK(program_of(s->rules, s->me->program)[s->me->step].make != NULL);
}

void rest(struct scene *s)
{
	*s->me = (struct actor){.program = PROGRAM_IDLE, .left = s->me->left};
}

/* A process that was told that it holds asks for nothing until its time has run out. */
static bool begin_thread(struct scene *s)
{
	const struct process *p = own_process(s);
	if (p->fate != FATE_ALIVE && p->fate != FATE_DYING)
		return false;
	if (s->choice >= SUBJECTS) {
		if (p->fence == 0)
			return false;
		go(s, s->choice == SUBJECTS ? PROGRAM_RENEW : PROGRAM_RELEASE, take_up);
		return true;
	}
	if (s->choice >= s->cast->subjects)
		return false;
	if (p->fence != 0 && (p->deadline == 0 || p->deadline > s->w->now))
		return false;
	go(s, PROGRAM_ACQUIRE, find_place);
	s->me->subject = s->choice;
	return true;
}

static bool begin_helper(struct scene *s)
{
	unsigned number = s->self - threads_of(s->cast);
	if (number >= s->cast->operators && number < s->cast->operators + s->cast->sweepers) {
		go(s, PROGRAM_SWEEP, find_dead);
		return true;
	}
	if (s->choice >= s->cast->subjects)
		return false;
	if (number < s->cast->operators)
		go(s, PROGRAM_FORCE, find_place);
	else
		go(s, PROGRAM_REMOVE, lock);
	s->me->subject = s->choice;
	return true;
}

static const struct step *step_of(const struct scene *s)
{
	return &program_of(s->rules, s->me->program)[s->me->step];
}

/* Whether nobody else can tell when the next step is made, nor change what comes of it; it is then
 * made along with the one before it, which leaves out no order that matters. */
static bool is_private(const struct scene *s)
{
	if (s->me->program == PROGRAM_IDLE)
		return false;
	step_fn *step = step_of(s)->make;
	bool places_stay = s->cast->settled && s->cast->removers == 0;
	if (step == find_place || step == compare_key || step == decide_force)
		return places_stay;
	if (step == read_clock || step == decide_take || step == decide_renew)
		return s->cast->time == 1;
	if (step == look_at_life)
		return !word_is_held(word_of(s->me->seen));
	if (step == take_up)
		return s->cast->threads == 1;
	return step == look_again || step == decide_release;
}

static void make_private(struct scene *s)
{
	while (is_private(s))
		CHECK(step_of(s)->make(s));
}

/* Makes the actor's next step; one that is idle begins a call with its first one. */
bool actor_acts(struct scene *s)
{
	bool idle = s->me->program == PROGRAM_IDLE;
	if (idle) {
		bool thread = process_of(s->cast, s->self) != NONE;
		if (s->me->left == 0 || !(thread ? begin_thread(s) : begin_helper(s)))
			return false;
		s->me->left--;
	}
	if (s->choice != 0 && !idle && step_of(s)->make != choose_place)
		return false;
	make_private(s);
	if (s->me->program != PROGRAM_IDLE && !step_of(s)->make(s))
		return false;
	make_private(s);
	return true;
}

/* Actions are numbered: CHOICES of each actor; then the clock; then three of each process; then the
 * end of each helper. */
struct numbers {
	unsigned threads;
	unsigned actors;
	unsigned tick;
	unsigned fates;
	unsigned ends;
	unsigned count;
};

static struct numbers numbers_of(const struct cast *cast)
{
	struct numbers n;
	n.threads = threads_of(cast);
	n.actors = n.threads + helpers_of(cast);
	CHECK(n.actors <= ACTORS && cast->processes <= PROCESSES && cast->codes <= CODES);
	CHECK(cast->places <= PLACES && cast->subjects <= SUBJECTS);
	n.tick = n.actors * CHOICES;
	n.fates = n.tick + 1;
	n.ends = n.fates + cast->processes * 3u;
	n.count = n.ends + n.actors - n.threads;
	return n;
}

static bool fate_acts(const struct play *play, struct world *w, unsigned number)
{
	uint8_t process = u8(number / 3);
	if (number % 3 == 0)
		return process_joins(play, w, process);
	if (process >= play->cast.mortal)
		return false;
	return number % 3 == 1 ? process_is_killed(w, process)
	                       : process_goes(&play->cast, w, process);
}

static void model_init(const void *arg, void *state)
{
	const struct play *play = arg;
	world_init(&play->cast, state);
}

static bool model_act(const void *arg, void *state, unsigned action, const char **wrong)
{
	const struct play *play = arg;
	struct world *w = state;
	struct numbers n = numbers_of(&play->cast);
	struct scene s = {&play->cast, &play->rules, w, NULL, 0, 0, NULL};
	if (action == n.tick)
		return world_tick(&s);
	if (action >= n.ends)
		return helper_dies(w, u8(n.threads + action - n.ends));
	if (action >= n.fates)
		return fate_acts(play, w, action - n.fates);
	s.self = u8(action / CHOICES);
	s.choice = u8(action % CHOICES);
	s.me = &w->actors[s.self];
	bool done = actor_acts(&s);
	*wrong = s.wrong;
	return done;
}

static const char *model_judge(const void *arg, const void *state)
{
	return world_judge(arg, state);
}

static const char *const names[PROGRAM_COUNT] = {
	[PROGRAM_IDLE] = "idle",       [PROGRAM_ACQUIRE] = "acquire", [PROGRAM_INSERT] = "insert",
	[PROGRAM_RENEW] = "renew",     [PROGRAM_RELEASE] = "release", [PROGRAM_FORCE] = "force",
	[PROGRAM_SWEEP] = "sweep",     [PROGRAM_REMOVE] = "remove",
};

/* Which program an idle actor begins with a choice. */
static enum program begun(const struct play *play, const struct world *before, unsigned action)
{
	struct world w = *before;
	uint8_t self = u8(action / CHOICES);
	struct scene s = {&play->cast,           &play->rules, &w, &w.actors[self], self,
	                  u8(action % CHOICES), NULL};
	if (s.me->program == PROGRAM_IDLE)
		(void)(process_of(&play->cast, self) != NONE ? begin_thread(&s) : begin_helper(&s));
	return s.me->program;
}

static int tell_actor(const struct play *play, const struct world *before, unsigned action,
                      char text[WALK_TEXT_MAX])
{
	unsigned self = action / CHOICES;
	const struct actor *a = &before->actors[self];
	enum program program = begun(play, before, action);
	const struct step *step = &program_of(&play->rules, program)[a->step];
	uint8_t process = process_of(&play->cast, u8(self));
	if (process == NONE)
		return snprintf(text, WALK_TEXT_MAX, "helper %u: %s: %s", self, names[program],
		                step->text);
	return snprintf(text, WALK_TEXT_MAX, "process %u, thread %u: %s: %s", process,
	                self % play->cast.threads, names[program], step->text);
}

static void model_tell(const void *arg, const void *before, unsigned action, const void *after,
                       char text[WALK_TEXT_MAX])
{
	static const char *const fates[] = {"joins", "is killed: its keeper dies", "is gone"};
	const struct play *play = arg;
	const struct world *w = after;
	struct numbers n = numbers_of(&play->cast);
	int len;
	if (action < n.tick)
		len = tell_actor(play, before, action, text);
	else if (action == n.tick)
		len = snprintf(text, WALK_TEXT_MAX, "time passes");
	else if (action < n.ends)
		len = snprintf(text, WALK_TEXT_MAX, "process %u %s", (action - n.fates) / 3,
		               fates[(action - n.fates) % 3]);
	else
		len = snprintf(text, WALK_TEXT_MAX, "helper %u dies", n.threads + action - n.ends);
	len += snprintf(text + len, WALK_TEXT_MAX - (size_t)len, " [now %u", w->now);
	for (unsigned i = 0; i < play->cast.places; i++) {
		const struct place *p = &w->places[i];
		len += snprintf(text + len, WALK_TEXT_MAX - (size_t)len,
		                "; key %d: tenure %u, code %d, until %u",
		                p->key == NONE ? -1 : p->key, p->word.tenure,
		                p->word.code == NONE ? -1 : p->word.code, p->word.expires);
	}
	(void)snprintf(text + len, WALK_TEXT_MAX - (size_t)len, "]");
}

struct walk_model walk_world(const struct play *play)
{
	return (struct walk_model){
		.arg = play,
		.size = sizeof(struct world),
		.actions = numbers_of(&play->cast).count,
		.init = model_init,
		.act = model_act,
		.judge = model_judge,
		.tell = model_tell,
	};
}
