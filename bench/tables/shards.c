/* How a table that is not made for threads is used by several. */
#include "shards.h"

#include <err.h>
#include <stdlib.h>

struct shards *shards_new(unsigned threads, size_t block)
{
	unsigned count = threads == 1 ? 1 : SHARDS;
	struct shards *s =
		aligned_alloc(_Alignof(struct shards), sizeof *s + count * sizeof(struct shard));
	if (!s)
		errx(1, "no memory");
	s->count = count;
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	/* The fastest kind where a lock is held this briefly. */
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	for (unsigned i = 0; i < count; i++) {
		s->at[i] = (struct shard){.pool = {.size = block}};
		pthread_mutex_init(&s->at[i].mutex, &attr);
	}
	pthread_mutexattr_destroy(&attr);
	return s;
}

void shards_free(struct shards *s)
{
	for (unsigned i = 0; i < s->count; i++) {
		pool_done(&s->at[i].pool);
		pthread_mutex_destroy(&s->at[i].mutex);
	}
	free(s);
}
