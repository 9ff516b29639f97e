/* A thread that does what it is told, one thing after the other. */
#include <stddef.h>

#include "actor.h"

static void *act(void *arg)
{
	struct actor *a = arg;
	pthread_mutex_lock(&a->mu);
	for (;;) {
		while (!a->task && !a->leaving)
			pthread_cond_wait(&a->changed, &a->mu);
		if (!a->task)
			break;
		void (*task)(void *) = a->task;
		void *what = a->arg;
		pthread_mutex_unlock(&a->mu);
		task(what);
		pthread_mutex_lock(&a->mu);
		a->task = NULL;
		pthread_cond_broadcast(&a->changed);
	}
	pthread_mutex_unlock(&a->mu);
	return NULL;
}

int actor_start(struct actor *a)
{
	*a = (struct actor){
		.mu = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
	};
	return pthread_create(&a->thread, NULL, act, a);
}

void actor_tell(struct actor *a, void (*task)(void *arg), void *arg)
{
	pthread_mutex_lock(&a->mu);
	a->task = task;
	a->arg = arg;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->mu);
}

void actor_await(struct actor *a)
{
	pthread_mutex_lock(&a->mu);
	while (a->task)
		pthread_cond_wait(&a->changed, &a->mu);
	pthread_mutex_unlock(&a->mu);
}

void actor_stop(struct actor *a)
{
	pthread_mutex_lock(&a->mu);
	a->leaving = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->mu);
	pthread_join(a->thread, NULL);
}
