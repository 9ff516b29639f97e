/* How subjects get their places and lose them, under the lock of their shard. */
#include "walk_world.h"

static bool is_vacant(const struct place *place)
{
	return word_code(word_of(place->word)) == WORD_VACANT;
}

static bool is_listed(const struct world *w, uint8_t place)
{
	for (unsigned i = 0; i < SUBJECTS; i++)
		if (w->at[i] == place)
			return true;
	return false;
}

static void raise_to(struct world *w, uint8_t subject, uint8_t tenure)
{
	if (w->floor[subject] < tenure)
		w->floor[subject] = tenure;
}

/* Whoever had the lock died with it. The words and keys are the truth; the index and the floor
 * follow from them. */
static void repair(const struct cast *cast, struct world *w)
{
	for (uint8_t i = 0; i < cast->places; i++) {
		const struct place *place = &w->places[i];
		if (place->key == NONE)
			continue;
		if (!is_vacant(place)) {
			w->at[place->key] = i;
		} else if (w->at[place->key] == i) {
			raise_to(w, place->key, place->word.tenure);
			w->at[place->key] = NONE;
		}
	}
}

bool lock(struct scene *s)
{
	if (s->w->lock != NONE)
		return false;
	s->w->lock = s->self;
	if (s->w->torn && !s->rules->repair_is_skipped)
		repair(s->cast, s->w);
	s->w->torn = 0;
	next(s);
	return true;
}

bool unlock(struct scene *s)
{
	s->w->lock = NONE;
	rest(s);
	return true;
}

/* Somebody may have been faster. */
bool look_again(struct scene *s)
{
	if (s->w->at[s->me->subject] == NONE) {
		next(s);
	} else {
		s->w->lock = NONE;
		go(s, PROGRAM_ACQUIRE, find_place);
	}
	return true;
}

static bool is_room(const struct scene *s, uint8_t place)
{
	bool unheld = !word_is_held(word_of(s->w->places[place].word));
	bool room = is_vacant(&s->w->places[place]) || (s->rules->remove_keeps_word && unheld);
	return place < s->cast->places && room && !is_listed(s->w, place);
}

bool choose_place(struct scene *s)
{
	if (s->choice < PLACES && is_room(s, s->choice)) {
		s->me->place = s->choice;
		s->me->seen = s->w->places[s->choice].word;
		next(s);
		return true;
	}
	for (uint8_t i = 0; i < s->cast->places; i++)
		if (is_room(s, i))
			return false;
	return s->choice == 0 && unlock(s);
}

bool write_key(struct scene *s)
{
	s->w->places[s->me->place].key = s->me->subject;
	next(s);
	return true;
}

bool read_clock(struct scene *s)
{
	s->me->now = s->w->now;
	next(s);
	return true;
}

bool settle(struct scene *s)
{
	uint64_t floor = s->rules->insert_skips_floor ? 0 : s->w->floor[s->me->subject];
	uint8_t until = after(s, s->cast->ttl);
	if (swap(s, word_settled(word_of(s->me->seen), floor, own_process(s)->code, until))) {
		hold(s, s->cast->ttl);
		next(s);
	} else {
		s->w->lock = NONE;
		go(s, PROGRAM_ACQUIRE, find_place);
	}
	return true;
}

bool list(struct scene *s)
{
	s->w->at[s->me->subject] = s->me->place;
	next(s);
	return true;
}

bool decide_remove(struct scene *s)
{
	uint8_t place = s->w->at[s->me->subject];
	if (place == NONE || word_code(word_of(s->w->places[place].word)) != WORD_FREE)
		return unlock(s);
	s->me->place = place;
	s->me->seen = s->w->places[place].word;
	next(s);
	return true;
}

bool vacate(struct scene *s)
{
	if (!s->rules->remove_keeps_word && !swap(s, word_vacated(word_of(s->me->seen))))
		return unlock(s);
	next(s);
	return true;
}

bool raise_floor(struct scene *s)
{
	raise_to(s->w, s->me->subject, s->me->seen.tenure);
	next(s);
	return true;
}

bool unlist(struct scene *s)
{
	s->w->at[s->me->subject] = NONE;
	next(s);
	return true;
}
