/* A watch: a view of a fleet and where it reads in each member's ring. */
#ifndef CONTEST_WATCH_H
#define CONTEST_WATCH_H

#include <pthread.h>

#include <baton/watch.h>

#include "contest/layout.h"
#include "contest/subjects.h"

/* What a watch knows of a member. */
struct watched {
	struct ring_reader reader;
	int64_t pending; /* since when its next entry is begun and not finished; 0: it is not */
	bool lived;      /* when it was last looked at                                        */
	uint32_t held, waiting; /* as last counted                                          */
};

/* What was read and not told yet. */
struct heard {
	uint64_t who;
	uint64_t hash;
	uint32_t slot;
	enum baton_event_kind kind;
	uint16_t version; /* of the facts about the member */
};

#define HEARD_MAX 1024

/* Tells an event loop by a descriptor. */
struct pump {
	struct baton_cancel stop;
	pthread_t thread;
	int fd; /* -1: there is none */
};

struct baton_watch {
	struct view own;
	struct view *view; /* own, or a member's                             */
	struct watched *members;
	uint64_t *ended; /* the last tenure of each place that was told to have died */
	struct heard heard[HEARD_MAX];
	size_t heard_from, heard_to;
	uint64_t lost;
	struct name_text text;
	struct pump pump;
};

enum baton_err pump_start(struct baton_watch *w);
void pump_stop(struct baton_watch *w);

#endif
