/* What must be true in every state. */
#include "walk_world.h"

/* Steps that are enough for an attempt to get anything, from the middle of another one. */
#define STEPS_ALONE 40
#define ATTEMPTS_ALONE 3

/* Whether its caller may act on it: the process lives, and its time has not come. */
static bool is_holder(const struct play *play, const struct world *w, const struct process *p)
{
	if (p->fate != FATE_ALIVE || p->fence == 0 || !p->believes)
		return false;
	if (play->rules.lives_at_deadline && p->deadline == w->now)
		return true;
	return p->deadline == 0 || p->deadline > w->now;
}

static const char *judge_holders(const struct play *play, const struct world *w)
{
	uint8_t holders[SUBJECTS] = {0};
	for (unsigned i = 0; i < play->cast.processes; i++) {
		const struct process *p = &w->processes[i];
		if (is_holder(play, w, p) && ++holders[p->subject] > 1)
			return WRONG_TWO;
	}
	return NULL;
}

/* Whoever has the shard's lock may be about to write the key of what he holds. */
static const char *judge_keys(const struct play *play, const struct world *w)
{
	for (uint8_t i = 0; i < play->cast.processes; i++) {
		const struct process *p = &w->processes[i];
		const struct place *place = &w->places[p->place];
		bool inserts = w->lock != NONE && process_of(&play->cast, w->lock) == i;
		bool has = p->fence != 0 && place->holder == i && place->word.tenure == p->fence;
		if (has && place->key != p->subject && !inserts)
			return WRONG_KEY;
	}
	return NULL;
}

static const char *judge_words(const struct play *play, const struct world *w)
{
	for (unsigned i = 0; i < play->cast.places; i++) {
		const struct place *place = &w->places[i];
		if (!word_is_held(word_of(place->word))) {
			if (place->word.expires != 0)
				return WRONG_WORD;
			continue;
		}
		const struct member *m = &w->members[place->word.code];
		if (m->life == LIFE_FREE || (m->life == LIFE_ALIVE && m->process != place->holder))
			return WRONG_CODE;
	}
	return NULL;
}

/* Everybody else is dead and gone, and so are the locks that they had. */
static void leave_alone(const struct cast *cast, struct world *w, uint8_t process)
{
	for (uint8_t i = 0; i < cast->processes; i++) {
		if (i == process)
			continue;
		(void)process_is_killed(w, i);
		(void)process_goes(cast, w, i);
	}
	unsigned threads = threads_of(cast);
	for (unsigned i = threads; i < threads + helpers_of(cast); i++)
		(void)helper_dies(w, u8(i));
}

/* Makes the next step, whichever of its choices is possible. */
static bool step_on(struct scene *s)
{
	for (s->choice = 0; s->choice < CHOICES; s->choice++)
		if (actor_acts(s))
			return true;
	return false;
}

static bool has(const struct scene *s, uint8_t subject)
{
	const struct place *place = &s->w->places[s->w->at[subject] % PLACES];
	return s->w->at[subject] != NONE && place->key == subject &&
	       place->word.code == own_process(s)->code;
}

/* Whether the actor, which is acquiring, comes to hold it while nobody else does anything. */
static bool acquires(const struct play *play, struct world *w, uint8_t actor)
{
	struct scene s = {&play->cast, &play->rules, w, &w->actors[actor], actor, 0, NULL};
	uint8_t subject = s.me->subject;
	unsigned attempts = 1;
	/* Whoever was stopped with the lock in his hands is waited for. */
	if (w->lock != NONE && w->lock != actor)
		return true;
	for (unsigned i = 0; i < STEPS_ALONE; i++) {
		if (s.me->program != PROGRAM_IDLE) {
			if (!step_on(&s))
				return false;
			continue;
		}
		if (has(&s, subject))
			return true;
		if (++attempts > ATTEMPTS_ALONE)
			return false;
		s.me->subject = subject;
		go(&s, PROGRAM_ACQUIRE, find_place);
	}
	return false;
}

/* Dead holders are in nobody's way, and those that are stopped only until their time has come. */
static const char *judge_progress(const struct play *play, const struct world *w)
{
	for (uint8_t i = 0; i < threads_of(&play->cast); i++) {
		uint8_t program = w->actors[i].program;
		if (program != PROGRAM_ACQUIRE && program != PROGRAM_INSERT)
			continue;
		if (w->processes[process_of(&play->cast, i)].fate != FATE_ALIVE)
			continue;
		struct world alone = *w;
		leave_alone(&play->cast, &alone, process_of(&play->cast, i));
		if (!acquires(play, &alone, i))
			return WRONG_STUCK;
		struct world later = *w;
		later.now = u8((unsigned)play->cast.time + play->cast.ttl + play->cast.renewal);
		if (play->cast.ttl != 0 && play->cast.renewal != 0 && !acquires(play, &later, i))
			return WRONG_STUCK;
	}
	return NULL;
}

const char *world_judge(const struct play *play, const struct world *w)
{
	const char *wrong = judge_holders(play, w);
	if (!wrong)
		wrong = judge_keys(play, w);
	if (!wrong)
		wrong = judge_words(play, w);
	if (!wrong && !play->cast.safety_only)
		wrong = judge_progress(play, w);
	return wrong;
}
