/* How processes join, die and are swept, and how their codes come to others. */
#include <string.h>

#include "walk_world.h"

void world_init(const struct cast *cast, struct world *w)
{
	memset(w, 0, sizeof *w);
	w->now = 1;
	w->lock = NONE;
	w->roster = NONE;
	for (uint8_t i = 0; i < SUBJECTS; i++)
		w->at[i] = cast->settled && i < cast->subjects ? i : NONE;
	for (uint8_t i = 0; i < PLACES; i++) {
		bool used = cast->settled && i < cast->subjects;
		w->places[i].word = (struct small){1, used ? 0 : NONE, 0};
		w->places[i].key = used ? i : NONE;
		w->places[i].holder = NONE;
	}
	for (uint8_t i = 1; i <= CODES; i++)
		w->members[i] = (struct member){LIFE_FREE, NONE};
	for (uint8_t i = 0; i < cast->processes; i++) {
		w->processes[i].fate = FATE_ABSENT;
		if (i < cast->present) {
			w->processes[i].fate = FATE_ALIVE;
			w->processes[i].code = u8(i + 1);
			w->members[i + 1] = (struct member){LIFE_ALIVE, i};
		}
	}
	for (uint8_t i = 0; i < threads_of(cast) + helpers_of(cast); i++) {
		uint8_t process = process_of(cast, i);
		w->actors[i].program = PROGRAM_IDLE;
		w->actors[i].left = process == 0 ? cast->calls : cast->rival_calls;
		if (process == NONE)
			w->actors[i].left = cast->helper_calls;
	}
}

bool world_tick(struct scene *s)
{
	if (s->w->now >= s->cast->time)
		return false;
	s->w->now++;
	return true;
}

/* The keeper goes first: from now on its claims may be taken, while its threads may still be on
 * their way through any number of steps. */
bool process_is_killed(struct world *w, uint8_t process)
{
	struct process *p = &w->processes[process];
	if (p->fate != FATE_ALIVE)
		return false;
	p->fate = FATE_DYING;
	w->members[p->code].life = LIFE_DEAD;
	return true;
}

/* Locks are robust: the next one gets it, and is told. */
static void drop_locks(struct world *w, uint8_t actor)
{
	if (w->lock == actor) {
		w->lock = NONE;
		w->torn = 1;
	}
	if (w->roster == actor)
		w->roster = NONE;
}

static void end(struct world *w, uint8_t actor)
{
	drop_locks(w, actor);
	w->actors[actor] = (struct actor){.program = PROGRAM_IDLE};
}

bool process_goes(const struct cast *cast, struct world *w, uint8_t process)
{
	struct process *p = &w->processes[process];
	if (p->fate != FATE_DYING)
		return false;
	*p = (struct process){.fate = FATE_GONE};
	for (uint8_t i = 0; i < cast->threads; i++)
		end(w, u8((unsigned)process * cast->threads + i));
	return true;
}

bool process_joins(const struct play *play, struct world *w, uint8_t process)
{
	struct process *p = &w->processes[process];
	if (p->fate != FATE_ABSENT || w->roster != NONE)
		return false;
	for (uint8_t code = 1; code <= play->cast.codes; code++) {
		if (w->members[code].life != LIFE_FREE)
			continue;
		w->members[code] = (struct member){LIFE_ALIVE, process};
		p->code = code;
		p->fate = FATE_ALIVE;
		return true;
	}
	return false;
}

bool helper_dies(struct world *w, uint8_t actor)
{
	if (w->actors[actor].program == PROGRAM_IDLE)
		return false;
	end(w, actor);
	return true;
}

/* A code is swept, and given away after that, only when its whole process is gone. */
bool find_dead(struct scene *s)
{
	uint8_t code = u8(s->choice + 1u);
	if (code > s->cast->codes || s->w->members[code].life != LIFE_DEAD || s->w->roster != NONE)
		return false;
	bool gone = s->w->processes[s->w->members[code].process].fate == FATE_GONE;
	if (!gone && !s->rules->reuse_without_proof)
		return false;
	if (!s->rules->sweep_without_lock)
		s->w->roster = s->self;
	s->me->dead = code;
	if (s->rules->reuse_without_sweep)
		go(s, PROGRAM_SWEEP, free_code);
	else
		next(s);
	return true;
}

bool look_for_claim(struct scene *s)
{
	struct actor *me = s->me;
	if (word_code(word_of(s->w->places[me->place].word)) == me->dead) {
		me->seen = s->w->places[me->place].word;
		next(s);
	} else if (++me->place == s->cast->places) {
		go(s, PROGRAM_SWEEP, free_code);
	}
	return true;
}

/* Whatever comes of it, it is looked at again. */
bool free_claim(struct scene *s)
{
	uint8_t holder = s->w->places[s->me->place].holder;
	bool swapped = swap(s, word_freed(word_of(s->me->seen)));
	if (swapped && holder != NONE && s->w->processes[holder].fate == FATE_ALIVE)
		s->wrong = WRONG_TOUCH;
	go(s, PROGRAM_SWEEP, look_for_claim);
	return true;
}

bool free_code(struct scene *s)
{
	struct member *member = &s->w->members[s->me->dead];
	if (member->life == LIFE_DEAD)
		*member = (struct member){LIFE_FREE, NONE};
	if (s->w->roster == s->self)
		s->w->roster = NONE;
	rest(s);
	return true;
}
