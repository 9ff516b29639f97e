/* Threads that start together. */
#include "crew.h"

#include <err.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct hand {
	struct crew *crew; /* [const] */
	unsigned number;   /* [const] */
	pthread_t thread;  /* [const] */
	int64_t begin_ns;  /* [barrier] as what follows: written in a turn, read after it */
	int64_t end_ns;
	uint64_t done;
} __attribute__((aligned(128)));

struct crew {
	pthread_barrier_t barrier;
	const struct crew_turn *turn; /* [barrier] NULL: go home */
	unsigned count;               /* [const] */
	struct hand hands[];
};

static int64_t clock_ns(const struct crew_turn *turn)
{
	struct timespec t;
	clock_gettime(turn->cpu ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void hand_work(struct hand *h)
{
	const struct crew_turn *t = h->crew->turn;
	uint64_t led = t->work(t->state, h->number, t->from, t->lead);
	pthread_barrier_wait(&h->crew->barrier);
	h->begin_ns = clock_ns(t);
	h->done = led + t->work(t->state, h->number, t->from + t->lead, t->ops);
	h->end_ns = clock_ns(t);
}

static void *hand_main(void *arg)
{
	struct hand *h = arg;
	for (;;) {
		pthread_barrier_wait(&h->crew->barrier);
		if (!h->crew->turn)
			return NULL;
		hand_work(h);
		pthread_barrier_wait(&h->crew->barrier);
	}
}

struct crew *crew_new(unsigned threads)
{
	struct crew *crew =
		aligned_alloc(_Alignof(struct crew), sizeof *crew + threads * sizeof(struct hand));
	if (!crew || pthread_barrier_init(&crew->barrier, NULL, threads) != 0)
		errx(1, "no memory for %u threads", threads);
	crew->turn = NULL;
	crew->count = threads;
	for (unsigned i = 0; i < threads; i++) {
		struct hand *h = &crew->hands[i];
		*h = (struct hand){.crew = crew, .number = i};
		if (i > 0 && pthread_create(&h->thread, NULL, hand_main, h) != 0)
			errx(1, "cannot start thread %u", i);
	}
	return crew;
}

void crew_free(struct crew *crew)
{
	if (!crew)
		return;
	crew->turn = NULL;
	pthread_barrier_wait(&crew->barrier);
	for (unsigned i = 1; i < crew->count; i++)
		pthread_join(crew->hands[i].thread, NULL);
	pthread_barrier_destroy(&crew->barrier);
	free(crew);
}

double crew_run(struct crew *crew, const struct crew_turn *turn, uint64_t *ret_done)
{
	crew->turn = turn;
	pthread_barrier_wait(&crew->barrier);
	hand_work(&crew->hands[0]);
	pthread_barrier_wait(&crew->barrier);
	int64_t begin = crew->hands[0].begin_ns;
	int64_t end = crew->hands[0].end_ns;
	*ret_done = 0;
	for (unsigned i = 0; i < crew->count; i++) {
		const struct hand *h = &crew->hands[i];
		begin = h->begin_ns < begin ? h->begin_ns : begin;
		end = h->end_ns > end ? h->end_ns : end;
		*ret_done += h->done;
	}
	return (double)(end - begin);
}
