/* What other threads tell the runner's loop: entries, and a descriptor that wakes it. */
#ifndef RUNNER_INBOX_H
#define RUNNER_INBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runner/core.h"

/* The end of a run; what it is part of is freed by way of its drop(). */
struct inbox_end {
	struct inbox_end *next;
	uint64_t run;
	struct core_end end;
};

/* A run that asks for more work. */
struct inbox_more {
	struct inbox_more *next;
	uint64_t run;
	uint32_t max;
};

struct inbox_beat {
	uint64_t number; /* of the registration; 0: none has come */
	enum baton_err err;
	char why[CORE_WHY];
	struct baton_mono sent;
};

/* What has come since the last time. */
struct inbox_mail {
	bool answered;               /* the clerk is done */
	bool news;                   /* there may be work */
	enum baton_runner_wish want; /* detached or attached by hand, the last of them; 0: none */
	bool stop;
	struct baton_duration grace; /* of the stop */
	struct inbox_beat beat;
	struct inbox_end *ends; /* in the order in which they came */
	struct inbox_more *mores;
};

struct inbox {
	int fd; /* [const] an eventfd */
	pthread_mutex_t mu;
	struct inbox_mail mail;      /* [mu] but for the stop */
	struct baton_mono unheard;   /* [mu] when the first beat was sent that is in it */
	struct inbox_end **end_last; /* [mu] */
	_Atomic bool stop;           /* [atomic] */
	_Atomic int64_t grace;       /* [atomic] before `stop` */
};

/* BATON_SYSTEM: no descriptor. */
enum baton_err inbox_init(struct inbox *inbox);
void inbox_done(struct inbox *inbox);

void inbox_answered(struct inbox *inbox);
void inbox_news(struct inbox *inbox);
void inbox_want(struct inbox *inbox, enum baton_runner_wish want);
void inbox_beat(struct inbox *inbox, const struct inbox_beat *beat);

/* Whether all beats were taken out that were sent before that moment. */
bool inbox_is_heard(struct inbox *inbox, struct baton_mono then);

void inbox_end(struct inbox *inbox, struct inbox_end *end);

void inbox_more(struct inbox *inbox, struct inbox_more *more);

/* Wakes the loop, which has something to look at elsewhere. */
void inbox_wake(struct inbox *inbox);

/* Fine in a signal handler. */
void inbox_stop(struct inbox *inbox, struct baton_duration grace);

/* Takes out what is there. */
void inbox_take(struct inbox *inbox, struct inbox_mail *ret);

#endif
