/* What the tests of admission share. */
#include "admit_world.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/harness.h"
#include "support/rng.h"

int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	strcpy(w->folder, "/tmp/baton-admit-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->path, sizeof w->path, "%s/admitted", w->folder);
	fault_init(&w->fault);
	w->options = (struct baton_admit_options){
		.path = w->path,
		.subjects = 16,
		.alloc = &w->fault.alloc,
	};
	*state = w;
	return 0;
}

int world_setup_in_memory(void **state)
{
	int failed = world_setup(state);
	if (!failed)
		((struct world *)*state)->options.path = NULL;
	return failed;
}

int world_teardown(void **state)
{
	struct world *w = *state;
	unlink(w->path);
	rmdir(w->path);
	int left = rmdir(w->folder);
	fault_done(&w->fault);
	free(w);
	return left;
}

void admit_closep(struct baton_admit **a)
{
	baton_admit_close(*a);
}

struct baton_admit *opened(const struct world *w)
{
	struct baton_admit *a = NULL;
	enum baton_err e = baton_admit_open(&w->options, &a);
	if (e != BATON_OK)
		fail_msg("%s: %s", baton_err_name(e), baton_err_detail());
	return a;
}

unsigned files_in(const char *folder)
{
	unsigned count = 0;
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));)
		count += d->d_name[0] != '.';
	closedir(dir);
	return count;
}

enum baton_err ask(struct baton_admit *a, const char *subject, uint64_t fence)
{
	return baton_admit(a, baton_str_z(subject), (baton_fence){fence}, NULL);
}

uint64_t mark_of(struct baton_admit *a, const char *subject)
{
	baton_fence highest = {0};
	enum baton_err e = baton_admit(a, baton_str_z(subject), (baton_fence){1}, &highest);
	assert_int_equal(e, BATON_STALE);
	return highest.v;
}

static void *crew_work(void *arg)
{
	struct crew *crew = arg;
	struct rng rng = rng_seed(crew->seed + (uint64_t)(uintptr_t)&rng);
	for (unsigned i = 0; i < crew->rounds; i++) {
		uint64_t before = atomic_load(crew->admitted);
		uint64_t fence = before + rng_below(&rng, 4);
		fence -= fence > 1 ? 1 : 0;
		fence += fence == 0;
		baton_fence highest = {0};
		enum baton_err e =
			baton_admit(crew->admit, BATON_STR("s"), (baton_fence){fence}, &highest);
		if (e == BATON_OK) {
			uint64_t seen = atomic_load(crew->admitted);
			while (seen < fence &&
			       !atomic_compare_exchange_weak(crew->admitted, &seen, fence))
				;
			atomic_fetch_add(&crew->ok, 1);
		}
		bool right = e == BATON_OK      ? fence >= before
		             : e == BATON_STALE ? highest.v > fence
		                                : e == BATON_BUSY;
		if (!right)
			atomic_store(&crew->wrong, true);
	}
	return NULL;
}

void crew_run(struct crew *crew)
{
	pthread_t threads[4];
	for (unsigned i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, crew_work, crew) != 0)
			abort();
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}
