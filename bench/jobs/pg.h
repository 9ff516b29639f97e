/* Queues in one PostgreSQL server, and the processes that work on them. */
#ifndef BENCH_JOBS_PG_H
#define BENCH_JOBS_PG_H

#include <stdbool.h>
#include <stdint.h>

#define PG_EACH 100   /* jobs in a call */
#define PG_MANY 1000  /* the same, beside other queues */
#define PG_LOAD 10000 /* jobs in a load */
#define PG_HANDS_MAX 16
#define PG_WHERE_MAX 300

/* What a process does for a queue, so many times. `state` is what begin() has made. */
struct pg_work {
	void *(*begin)(const char *where);
	void (*live)(void *state, uint64_t jobs);
};

/* Processes, each of which does its part of the work when it is told to. */
struct pg_hands;

/* The server; started by the first who asks, and ended with the program. False: there is none. */
bool pg_server(void);

/* A new database of it, for baton_store_open(). */
void pg_database(char where[PG_WHERE_MAX]);

/* What libpq is told of it. */
const char *pg_info(const char *where);

/* The first value that a statement finds, as a number. */
double pg_number(const char *where, const char *sql);

struct pg_hands *pg_hands_start(const struct pg_work *work, const char *where, unsigned count);

/* The same, for a program in another language: a script that bench/get-peers has got, which reads
 * numbers and answers with a line each. NULL: it is not there. */
struct pg_hands *pg_hands_script(const char *script, const char *where);

/* Has that hand do `jobs`, and waits for it. */
void pg_hands_do(struct pg_hands *h, unsigned hand, uint64_t jobs);
void pg_hands_end(struct pg_hands *h);

extern const struct pg_work pg_baton_lives; /* in bulks of PG_EACH */
extern const struct pg_work pg_baton_many;  /* of PG_MANY */
extern const struct pg_work pg_baton_puts;  /* one by one, from several threads */
extern const struct pg_work pg_bare_lives;

/* Loads, by this library without lanes and in a thousand of them; and by hand into the rows that it
 * has for those, from arrays and by COPY. */
extern const struct pg_work pg_baton_load, pg_baton_load_lanes;
extern const struct pg_work pg_bare_arrays, pg_bare_copies;

/* A process that sleeps until something is put, again and again. */
extern const struct pg_work pg_baton_sleeper;

#endif
