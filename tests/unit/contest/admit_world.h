/* What the tests of admission share: a folder with a file in it, and those who ask. */
#ifndef TEST_CONTEST_ADMIT_WORLD_H
#define TEST_CONTEST_ADMIT_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/admit.h>

#include "support/fault.h"

struct world {
	char folder[64];
	char path[96]; /* of the file, if there is one */
	struct baton_admit_options options;
	struct fault fault;
};

/* For cmocka: 16 subjects, in a file or in memory. */
int world_setup(void **state);
int world_setup_in_memory(void **state);
int world_teardown(void **state);

struct baton_admit *opened(const struct world *w);
void admit_closep(struct baton_admit **a);

unsigned files_in(const char *folder);

enum baton_err ask(struct baton_admit *a, const char *subject, uint64_t fence);

/* The mark of a subject that has one of at least 2: what refuses 1. */
uint64_t mark_of(struct baton_admit *a, const char *subject);

/* Threads that ask for one subject at once. */
struct crew {
	struct baton_admit *admit;
	_Atomic uint64_t *admitted; /* the highest, by anybody */
	uint64_t seed;
	unsigned rounds;
	_Atomic unsigned ok;
	_Atomic bool wrong;
};

/* Four threads ask `rounds` times each. Whoever is admitted must not be lower than what was
 * admitted before he asked, or else crew->wrong is set. */
void crew_run(struct crew *crew);

#endif
