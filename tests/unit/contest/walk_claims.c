/* What claimants and operators do to the word of a place: acquire, renew, release, force. */
#include "walk_world.h"

struct word word_of(struct small small)
{
	uint32_t code = small.code == NONE ? WORD_VACANT : small.code;
	return word_make(small.tenure, code, small.expires);
}

bool is_same(struct small a, struct small b)
{
	return a.tenure == b.tenure && a.code == b.code && a.expires == b.expires;
}

static struct small small_of(struct scene *s, struct word word)
{
	uint32_t code = word_code(word) == WORD_VACANT ? NONE : word_code(word);
	if (word_tenure(word) > 15 || word.expires > 15 || (code > CODES && code != NONE)) {
		s->wrong = WRONG_WORD;
		return (struct small){0};
	}
	return (struct small){u8((unsigned)word_tenure(word)), u8(code),
	                      u8((unsigned)word.expires)};
}

unsigned threads_of(const struct cast *cast)
{
	return (unsigned)cast->processes * cast->threads;
}

unsigned helpers_of(const struct cast *cast)
{
	return (unsigned)cast->operators + cast->sweepers + cast->removers;
}

uint8_t process_of(const struct cast *cast, uint8_t actor)
{
	return actor < threads_of(cast) ? u8(actor / cast->threads) : NONE;
}

struct process *own_process(const struct scene *s)
{
	return &s->w->processes[process_of(s->cast, s->self)];
}

/* The one compare-and-swap: from what was seen, or not at all. */
bool swap(struct scene *s, struct word to)
{
	struct place *place = &s->w->places[s->me->place];
	struct small seen = s->me->seen;
	if (s->rules->take_compares_who && s->me->program == PROGRAM_ACQUIRE)
		seen.expires = place->word.expires;
	if (!is_same(place->word, seen))
		return false;
	place->word = small_of(s, to);
	if (!word_is_held(to))
		place->holder = NONE;
	return true;
}

uint8_t after(const struct scene *s, uint8_t ttl)
{
	return ttl == 0 ? 0 : u8(s->me->now + ttl);
}

/* What its process knows, and what the walk keeps, once it has taken its place. */
void hold(struct scene *s, uint8_t ttl)
{
	struct place *place = &s->w->places[s->me->place];
	uint8_t subject = s->me->subject;
	uint8_t fence = place->word.tenure;
	if (fence <= s->w->last[subject])
		s->wrong = WRONG_FENCE;
	s->w->last[subject] = fence;
	place->holder = process_of(s->cast, s->self);
	struct process *p = own_process(s);
	p->fence = fence;
	p->subject = subject;
	p->place = s->me->place;
	p->deadline = after(s, ttl);
	p->believes = 1;
}

/* The caller is told that what he had is lost, or has given it back. */
static void forget(struct scene *s)
{
	struct process *p = own_process(s);
	if (p->fence == s->me->fence) {
		p->fence = 0;
		p->subject = 0;
		p->place = 0;
		p->deadline = 0;
		p->believes = 0;
	}
}

bool find_place(struct scene *s)
{
	uint8_t place = s->w->at[s->me->subject];
	if (place != NONE) {
		s->me->place = place;
		next(s);
	} else if (s->me->program == PROGRAM_ACQUIRE) {
		go(s, PROGRAM_INSERT, lock);
	} else {
		rest(s);
	}
	return true;
}

bool observe(struct scene *s)
{
	s->me->seen = s->w->places[s->me->place].word;
	next(s);
	return true;
}

/* The place may have become another subject's since it was found. */
bool compare_key(struct scene *s)
{
	if (s->w->places[s->me->place].key == s->me->subject)
		next(s);
	else
		go(s, s->me->program, find_place);
	return true;
}

/* Only a keeper that lives has an owner in its mutex. */
bool look_at_life(struct scene *s)
{
	struct actor *me = s->me;
	bool kept = s->rules->verdict_is_kept && me->dead == me->seen.code;
	if (!word_is_held(word_of(me->seen)))
		me->dead = 0;
	else if (!kept)
		me->dead = s->w->members[me->seen.code].life != LIFE_ALIVE ? me->seen.code : 0;
	next(s);
	return true;
}

bool decide_take(struct scene *s)
{
	struct actor *me = s->me;
	struct word seen = word_of(me->seen);
	me->now = s->w->now;
	bool own = word_is_of(seen, own_process(s)->code, word_tenure(seen));
	bool held_by_us = own && !word_has_expired(seen, me->now);
	if (!held_by_us && word_is_takeable(seen, me->dead != 0, me->now))
		next(s);
	else if (word_code(seen) == WORD_VACANT)
		go(s, PROGRAM_INSERT, lock);
	else
		rest(s);
	return true;
}

bool take(struct scene *s)
{
	uint8_t code = own_process(s)->code;
	struct word to = word_taken(word_of(s->me->seen), code, after(s, s->cast->ttl));
	if (s->rules->take_keeps_tenure)
		to = word_make(s->me->seen.tenure, code, after(s, s->cast->ttl));
	if (swap(s, to)) {
		hold(s, s->cast->ttl);
		rest(s);
	} else {
		go(s, PROGRAM_ACQUIRE, find_place);
	}
	return true;
}

/* Whoever renews or releases has a copy of the claim, and may be late with it. */
bool take_up(struct scene *s)
{
	const struct process *p = own_process(s);
	s->me->fence = p->fence;
	s->me->place = p->place;
	next(s);
	return true;
}

bool decide_renew(struct scene *s)
{
	struct actor *me = s->me;
	me->now = s->w->now;
	if (word_is_live(word_of(me->seen), own_process(s)->code, me->fence, me->now)) {
		next(s);
	} else {
		forget(s);
		rest(s);
	}
	return true;
}

/* The claim that is renewed or released must be the very one that the caller has. */
static void check_own(struct scene *s, const struct place *before)
{
	if (before->holder != process_of(s->cast, s->self) || before->word.tenure != s->me->fence)
		s->wrong = WRONG_TOUCH;
}

bool renew(struct scene *s)
{
	const struct small seen = s->me->seen;
	const struct place before = s->w->places[s->me->place];
	uint8_t until = after(s, s->cast->renewal);
	if (!swap(s, word_renewed(word_of(seen), until))) {
		go(s, PROGRAM_RENEW, observe);
		return true;
	}
	check_own(s, &before);
	if (seen.expires != 0 && seen.expires <= s->me->now)
		s->wrong = WRONG_LATE;
	struct process *p = own_process(s);
	if (until == 0 || (p->deadline != 0 && until > p->deadline))
		p->deadline = until;
	rest(s);
	return true;
}

/* The caller will believe that it is free now. */
static void give_up(struct scene *s)
{
	struct small word = s->w->places[s->me->place].word;
	if (word.code == own_process(s)->code && word.tenure == s->me->fence)
		s->wrong = WRONG_LEFT;
	forget(s);
	rest(s);
}

bool decide_release(struct scene *s)
{
	struct word seen = word_of(s->me->seen);
	uint64_t fence = s->rules->release_skips_fence ? word_tenure(seen) : s->me->fence;
	if (word_is_of(seen, own_process(s)->code, fence))
		next(s);
	else
		give_up(s);
	return true;
}

bool release(struct scene *s)
{
	const struct place before = s->w->places[s->me->place];
	if (swap(s, word_freed(word_of(s->me->seen)))) {
		check_own(s, &before);
		give_up(s);
	} else if (s->rules->release_tries_once) {
		give_up(s);
	} else {
		go(s, PROGRAM_RELEASE, observe);
	}
	return true;
}

bool decide_force(struct scene *s)
{
	if (!word_is_held(word_of(s->me->seen))) {
		rest(s);
		return true;
	}
	return compare_key(s);
}

bool force(struct scene *s)
{
	const struct place before = s->w->places[s->me->place];
	if (!swap(s, word_freed(word_of(s->me->seen)))) {
		go(s, PROGRAM_FORCE, find_place);
		return true;
	}
	if (before.key != s->me->subject)
		s->wrong = WRONG_TOUCH;
	if (before.holder != NONE && s->w->processes[before.holder].fence == before.word.tenure)
		s->w->processes[before.holder].believes = 0;
	rest(s);
	return true;
}
