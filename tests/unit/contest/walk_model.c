/* The programs that the actors follow, and every action that is possible in the world. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "walk_world.h"

static_assert(sizeof(struct world) <= WALK_SIZE_MAX, "a state is kept in half of it");
static_assert(_Alignof(struct world) == 1, "a state is bytes without gaps");

static step_fn *const acquire[] = {
	find_place, observe, compare_key, look_at_life, decide_take, take, NULL,
};
static step_fn *const acquire_key_first[] = {
	find_place, compare_key, observe, look_at_life, decide_take, take, NULL,
};
static step_fn *const insertion[] = {
	lock, look_again, choose_place, write_key, read_clock, settle, list, unlock, NULL,
};
static step_fn *const insertion_key_last[] = {
	lock, look_again, choose_place, read_clock, settle, write_key, list, unlock, NULL,
};
static step_fn *const renewal[] = {take_up, observe, decide_renew, renew, NULL};
static step_fn *const releasing[] = {take_up, observe, decide_release, release, NULL};
static step_fn *const forcing[] = {find_place, observe, decide_force, force, NULL};
static step_fn *const removal[] = {
	lock, decide_remove, vacate, raise_floor, unlist, unlock, NULL,
};
static step_fn *const removal_floor_last[] = {
	lock, decide_remove, vacate, unlist, raise_floor, unlock, NULL,
};
static step_fn *const sweeping[] = {find_dead, look_for_claim, free_claim, free_code, NULL};

static const struct {
	step_fn *step;
	const char *text;
} texts[] = {
	{find_place, "finds the place of the subject"},
	{observe, "looks at the word"},
	{compare_key, "compares the key of the place"},
	{look_at_life, "looks whether the holder's keeper lives"},
	{decide_take, "reads the clock and decides"},
	{take, "swaps what it saw for its own"},
	{lock, "locks the shard"},
	{look_again, "looks for the subject again"},
	{choose_place, "chooses a place"},
	{write_key, "writes the key of the place"},
	{read_clock, "reads the clock"},
	{settle, "swaps the vacant word for its own"},
	{list, "lists the place"},
	{unlock, "unlocks the shard"},
	{take_up, "takes up the claim of its process"},
	{decide_renew, "reads the clock and decides"},
	{renew, "swaps what it saw for a later deadline"},
	{decide_release, "decides"},
	{release, "swaps what it saw for a free word"},
	{decide_force, "compares the key and decides"},
	{force, "swaps what it saw for a free word"},
	{decide_remove, "looks whether the word is free"},
	{vacate, "swaps the free word for a vacant one"},
	{raise_floor, "raises the floor"},
	{unlist, "takes the place off the list"},
	{find_dead, "finds a dead member"},
	{look_for_claim, "looks at a word for a claim of that member"},
	{free_claim, "swaps the claim for a free word"},
	{free_code, "frees the code"},
};

static const char *text_of(step_fn *step)
{
	size_t i = 0;
	while (texts[i].step != step)
		CHECK(++i < sizeof texts / sizeof *texts);
	return texts[i].text;
}

step_fn *const *program_of(const struct rules *rules, enum program program)
{
	switch (program) {
	case PROGRAM_ACQUIRE:
		return rules->key_read_first ? acquire_key_first : acquire;
	case PROGRAM_INSERT:
		return rules->key_written_last ? insertion_key_last : insertion;
	case PROGRAM_RENEW:
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
	step_fn *const *steps = program_of(s->rules, program);
	unsigned i = 0;
	while (steps[i] != step)
		CHECK(steps[++i] != NULL);
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
	CHECK(program_of(s->rules, s->me->program)[s->me->step] != NULL);
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

static step_fn *step_of(const struct scene *s)
{
	return program_of(s->rules, s->me->program)[s->me->step];
}

/* Whether nobody else can tell when the next step is made, nor change what comes of it; it is then
 * made along with the one before it, which leaves out no order that matters. */
static bool is_private(const struct scene *s)
{
	if (s->me->program == PROGRAM_IDLE)
		return false;
	step_fn *step = step_of(s);
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
		CHECK(step_of(s)(s));
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
	if (s->choice != 0 && !idle && step_of(s) != choose_place)
		return false;
	make_private(s);
	if (s->me->program != PROGRAM_IDLE && !step_of(s)(s))
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
	[PROGRAM_ACQUIRE] = "acquires", [PROGRAM_INSERT] = "inserts", [PROGRAM_RENEW] = "renews",
	[PROGRAM_RELEASE] = "releases", [PROGRAM_FORCE] = "forces",   [PROGRAM_SWEEP] = "sweeps",
	[PROGRAM_REMOVE] = "removes",
};

/* What an idle actor begins with a choice, and any other goes on with. */
static void tell_actor(const struct play *play, const struct world *before, unsigned action,
                       char text[WALK_TEXT_MAX])
{
	struct world w = *before;
	uint8_t self = u8(action / CHOICES);
	uint8_t process = process_of(&play->cast, self);
	struct scene s = {.cast = &play->cast, .rules = &play->rules, .w = &w};
	s.self = self;
	s.choice = u8(action % CHOICES);
	s.me = &w.actors[self];
	if (s.me->program == PROGRAM_IDLE)
		(void)(process != NONE ? begin_thread(&s) : begin_helper(&s));
	while (is_private(&s))
		next(&s);
	const char *step = text_of(step_of(&s));
	enum program program = s.me->program;
	char what[32];
	(void)snprintf(what, sizeof what, "%s", names[program]);
	if (program != PROGRAM_RENEW && program != PROGRAM_RELEASE && program != PROGRAM_SWEEP)
		(void)snprintf(what, sizeof what, "%s %u", names[program], s.me->subject);
	if (process == NONE)
		(void)snprintf(text, WALK_TEXT_MAX, "helper %u %s: %s", self, what, step);
	else
		(void)snprintf(text, WALK_TEXT_MAX, "process %u, thread %u %s: %s", process,
		               self % play->cast.threads, what, step);
}

static void tell_place(const struct world *w, unsigned i, char text[WALK_TEXT_MAX])
{
	size_t len = strlen(text);
	const struct place *p = &w->places[i];
	char key[16] = "no";
	char until[16] = "for good";
	if (p->key != NONE)
		(void)snprintf(key, sizeof key, "%u", p->key);
	if (p->word.expires != 0)
		(void)snprintf(until, sizeof until, "until %u", p->word.expires);
	char *at = text + len;
	size_t room = WALK_TEXT_MAX - len;
	if (p->word.code == NONE)
		(void)snprintf(at, room, " | key %s, tenure %u, vacant", key, p->word.tenure);
	else if (p->word.code == 0)
		(void)snprintf(at, room, " | key %s, tenure %u, free", key, p->word.tenure);
	else
		(void)snprintf(at, room, " | key %s, tenure %u, of code %u %s", key, p->word.tenure,
		               p->word.code, until);
}

static void model_tell(const void *arg, const void *before, unsigned action, const void *after,
                       char text[WALK_TEXT_MAX])
{
	static const char *const fates[] = {"joins", "is killed: its keeper is dead", "is gone"};
	const struct play *play = arg;
	const struct world *w = after;
	struct numbers n = numbers_of(&play->cast);
	if (action < n.tick)
		tell_actor(play, before, action, text);
	else if (action == n.tick)
		(void)snprintf(text, WALK_TEXT_MAX, "it is %u", w->now);
	else if (action < n.ends)
		(void)snprintf(text, WALK_TEXT_MAX, "process %u %s", (action - n.fates) / 3,
		               fates[(action - n.fates) % 3]);
	else
		(void)snprintf(text, WALK_TEXT_MAX, "helper %u dies", n.threads + action - n.ends);
	for (unsigned i = 0; i < play->cast.places; i++)
		tell_place(w, i, text);
}

struct walk_model walk_world(const struct play *play)
{
	size_t actors = numbers_of(&play->cast).actors;
	return (struct walk_model){
		.arg = play,
		.size = offsetof(struct world, actors) + actors * sizeof(struct actor),
		.actions = numbers_of(&play->cast).count,
		.init = model_init,
		.act = model_act,
		.judge = model_judge,
		.tell = model_tell,
	};
}
