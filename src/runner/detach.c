/* The state machine of detachment: one word that decides, and what is told about it.
 *
 * The word is changed by compare-and-swap alone, so a detachment never waits for a lock and a step
 * that was decided on an older word fails. It has, from below: the state (2 bits), whether it is
 * manual (1), a count (29), the generation (32). While attached or suspect the count is that of the
 * failures in a row. While detached it counts the unhealthy signals of this detachment, so that
 * each of them is another word: a window that began under an older one is void.
 *
 * The reason and the moments are told after the word, under `mu`, by whoever changed the word.
 * Whoever reads them waits until all of this detachment's signals have been told. Only a thread
 * that has `mu` and waits for nobody makes it attached; so nobody has anything left to tell of a
 * detachment that is over. */
#include <baton/detach.h>

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/utf8.h"

#define MANUAL (UINT64_C(1) << 2)
#define COUNT_SHIFT 3
#define COUNT_MAX ((UINT32_C(1) << 29) - 1)
#define GENERATION_SHIFT 32

struct detach {
	_Atomic uint64_t word;          /* [atomic] */
	uint32_t streak;                /* [const]  */
	struct baton_duration recovery; /* [const]  */
	pthread_mutex_t mu;
	pthread_cond_t all_told;
	uint32_t told;              /* signals of this detachment, as the word's count      [mu] */
	bool given;                 /* a reason, in this detachment                         [mu] */
	uint32_t given_at;          /* the word's count then                                [mu] */
	enum baton_detach_why why;  /* [mu] */
	struct baton_mono since;    /* [mu] */
	struct baton_mono bad_last; /* of the latest unhealthy signal                       [mu] */
	uint64_t window_word;       /* under which the window began; 0: there was none yet  [mu] */
	struct baton_mono window;   /* when it began                                        [mu] */
	char text[BATON_DETACH_TEXT]; /* [mu] */
} __attribute__((may_alias));

static_assert(sizeof(struct detach) <= sizeof(struct baton_detach), "the room is large enough");
static_assert(_Alignof(struct detach) <= _Alignof(struct baton_detach), "it is aligned");

/* One signal that found or made it detached, to be told. */
struct signal {
	uint64_t before; /* the word */
	uint64_t after;
	struct baton_mono now;
	enum baton_detach_why why; /* 0: it gives no reason */
	const char *text;
};

static enum baton_attachment state_of(uint64_t word)
{
	return (enum baton_attachment)(word & 3);
}

static uint32_t count_of(uint64_t word)
{
	return (uint32_t)word >> COUNT_SHIFT;
}

static uint32_t generation_of(uint64_t word)
{
	return (uint32_t)(word >> GENERATION_SHIFT);
}

static uint64_t word_of(enum baton_attachment state, uint32_t count, uint32_t generation)
{
	return (uint64_t)state | (uint64_t)(count & COUNT_MAX) << COUNT_SHIFT |
	       (uint64_t)generation << GENERATION_SHIFT;
}

/* The word after one more unhealthy signal that detaches, or finds it detached. */
static uint64_t detached_after(uint64_t word)
{
	if (state_of(word) != BATON_DETACHED)
		return word_of(BATON_DETACHED, 0, generation_of(word) + 1);
	return word_of(BATON_DETACHED, count_of(word) + 1, generation_of(word)) | (word & MANUAL);
}

static uint64_t failed_after(uint64_t word, uint32_t streak)
{
	if (state_of(word) == BATON_DETACHED || count_of(word) + 1 >= streak)
		return detached_after(word);
	return word_of(BATON_SUSPECT, count_of(word) + 1, generation_of(word));
}

static uint64_t word_now(const struct detach *d)
{
	/* pairs with the release of swap() */
	return atomic_load_explicit(&d->word, memory_order_acquire);
}

/* False: somebody was faster, and *word is what it is now. */
static bool swap(struct detach *d, uint64_t *word, uint64_t next)
{
	/* pairs with itself and with word_now() */
	return atomic_compare_exchange_strong_explicit(&d->word, word, next, memory_order_acq_rel,
	                                               memory_order_acquire);
}

static bool all_told(const struct detach *d, uint64_t word)
{
	return state_of(word) != BATON_DETACHED || d->told == ((count_of(word) + 1) & COUNT_MAX);
}

static void reason_print(struct detach *d, const char *text)
{
	int len = 0;
	switch (d->why) {
	case BATON_DETACH_STORAGE:
		if (text == NULL || text[0] == '\0')
			text = "unknown";
		len = snprintf(d->text, sizeof d->text, "storage error: %s", text);
		break;
	case BATON_DETACH_STREAK:
		len = snprintf(d->text, sizeof d->text,
		               "keep-alive failure streak: %u consecutive failures", d->streak);
		break;
	case BATON_DETACH_EXPIRED:
		len = snprintf(d->text, sizeof d->text, "lease expired");
		break;
	case BATON_DETACH_MANUAL:
		len = snprintf(d->text, sizeof d->text, "manual detachment");
		break;
	case BATON_DETACH_GUARDIAN:
		len = snprintf(d->text, sizeof d->text, "guardian lost");
		break;
	}
	if (len >= (int)sizeof d->text)
		d->text[utf8_cut(d->text, sizeof d->text - 1)] = '\0';
}

/* Whether no later signal of this detachment has given a reason: they may tell in any order. */
static bool is_last_reason(const struct detach *d, const struct signal *s)
{
	uint32_t ahead = (count_of(s->after) - d->given_at) & COUNT_MAX;
	return !d->given || ahead <= COUNT_MAX / 2;
}

static void tell(struct detach *d, const struct signal *s)
{
	pthread_mutex_lock(&d->mu);
	if (state_of(s->before) != BATON_DETACHED)
		d->since = s->now;
	if (s->now.ns > d->bad_last.ns)
		d->bad_last = s->now;
	if (s->why != 0 && is_last_reason(d, s)) {
		d->why = s->why;
		d->given = true;
		d->given_at = count_of(s->after);
		reason_print(d, s->text);
	}
	d->told = (d->told + 1) & COUNT_MAX;
	pthread_cond_broadcast(&d->all_told);
	pthread_mutex_unlock(&d->mu);
}

void baton_detach_init(struct baton_detach *detach, const struct baton_detach_options *options)
{
	struct detach *d = (struct detach *)detach;
	memset(detach, 0, sizeof *detach);
	d->streak = BATON_DETACH_STREAK_DEFAULT;
	d->recovery = baton_duration_ms(BATON_DETACH_RECOVERY_DEFAULT_MS);
	if (options != NULL && options->streak > 0)
		d->streak = options->streak < COUNT_MAX ? options->streak : COUNT_MAX;
	if (options != NULL && options->recovery.ns > 0)
		d->recovery = options->recovery;
	d->bad_last = (struct baton_mono){INT64_MIN};
	CHECK(pthread_mutex_init(&d->mu, NULL) == 0);
	CHECK(pthread_cond_init(&d->all_told, NULL) == 0);
	atomic_init(&d->word, word_of(BATON_ATTACHED, 0, 1));
}

bool baton_detach_make(struct baton_detach *detach, enum baton_detach_why why, const char *text,
                       struct baton_mono now)
{
	struct detach *d = (struct detach *)detach;
	CHECK(why >= BATON_DETACH_STORAGE && why <= BATON_DETACH_GUARDIAN);
	struct signal s = {.before = word_now(d), .now = now, .why = why, .text = text};
	do {
		s.after = detached_after(s.before) | (why == BATON_DETACH_MANUAL ? MANUAL : 0);
	} while (!swap(d, &s.before, s.after));
	tell(d, &s);
	return state_of(s.before) != BATON_DETACHED;
}

void baton_detach_suspect(struct baton_detach *detach)
{
	struct detach *d = (struct detach *)detach;
	uint64_t word = word_now(d);
	while (state_of(word) == BATON_ATTACHED &&
	       !swap(d, &word, word_of(BATON_SUSPECT, count_of(word), generation_of(word))))
		;
}

bool baton_detach_failed(struct baton_detach *detach, struct baton_mono now)
{
	struct detach *d = (struct detach *)detach;
	struct signal s = {.before = word_now(d), .now = now};
	do {
		s.after = failed_after(s.before, d->streak);
	} while (!swap(d, &s.before, s.after));
	if (state_of(s.after) != BATON_DETACHED)
		return false;
	if (state_of(s.before) == BATON_DETACHED) {
		tell(d, &s);
		return false;
	}
	s.why = BATON_DETACH_STREAK;
	tell(d, &s);
	return true;
}

/* The word, once everything about it has been told. [mu] is given up meanwhile. */
static uint64_t word_told(struct detach *d)
{
	uint64_t word = word_now(d);
	while (!all_told(d, word)) {
		pthread_cond_wait(&d->all_told, &d->mu);
		word = word_now(d);
	}
	return word;
}

/* Whether the window has ended with this healthy signal. The one that begins it does not, because
 * no window is that short; so it takes two. [mu] */
static bool window_ends(struct detach *d, uint64_t word, struct baton_mono now)
{
	if (d->window_word != word) {
		d->window_word = word;
		d->window = now;
		return false;
	}
	return now.ns >= baton_mono_add(d->window, d->recovery).ns;
}

/* A healthy signal while detached. [mu] */
static bool recover(struct detach *d, struct baton_mono now)
{
	uint64_t word;
	do {
		word = word_told(d);
		if (state_of(word) != BATON_DETACHED || (word & MANUAL) != 0 ||
		    now.ns < d->bad_last.ns || !window_ends(d, word, now))
			return false;
	} while (!swap(d, &word, word_of(BATON_ATTACHED, 0, generation_of(word) + 1)));
	d->since = now;
	d->told = 0;
	d->given = false;
	return true;
}

bool baton_detach_healthy(struct baton_detach *detach, struct baton_mono now)
{
	struct detach *d = (struct detach *)detach;
	uint64_t word = word_now(d);
	while (state_of(word) != BATON_DETACHED) {
		uint64_t next = word_of(BATON_ATTACHED, 0, generation_of(word));
		if (next == word || swap(d, &word, next))
			return false;
	}
	pthread_mutex_lock(&d->mu);
	bool attached = recover(d, now);
	pthread_mutex_unlock(&d->mu);
	return attached;
}

bool baton_detach_attach(struct baton_detach *detach, struct baton_mono now)
{
	struct detach *d = (struct detach *)detach;
	struct signal s = {.before = word_now(d), .now = now};
	do {
		if ((s.before & MANUAL) == 0)
			return false;
		s.after = detached_after(s.before) & ~MANUAL;
	} while (!swap(d, &s.before, s.after));
	tell(d, &s);
	return true;
}

enum baton_attachment baton_detach_state(const struct baton_detach *detach)
{
	return state_of(word_now((const struct detach *)detach));
}

void baton_detach_look(struct baton_detach *detach, struct baton_detach_info *ret)
{
	struct detach *d = (struct detach *)detach;
	pthread_mutex_lock(&d->mu);
	uint64_t word = word_told(d);
	bool detached = state_of(word) == BATON_DETACHED;
	*ret = (struct baton_detach_info){
		.state = state_of(word),
		.generation = generation_of(word),
		.failures = detached ? 0 : count_of(word),
		.manual = (word & MANUAL) != 0,
		.since = d->since,
		.why = d->why,
	};
	memcpy(ret->text, d->text, sizeof ret->text);
	pthread_mutex_unlock(&d->mu);
}
