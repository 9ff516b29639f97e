/* A PostgreSQL server of a test's own: on a socket in a directory of its own, as a user that may
 * nothing, and gone with whoever started it, however he ends. */
#ifndef SUPPORT_CLUSTER_H
#define SUPPORT_CLUSTER_H

#include <stdbool.h>
#include <sys/types.h>

#define CLUSTER_FREE 16

struct cluster {
	char directory[128];         /* "": none                                       */
	pid_t helper;                /* starts and ends the server                     */
	int channel;                 /* the helper ends everything once it is closed   */
	unsigned databases;          /* that were made                                 */
	unsigned free[CLUSTER_FREE]; /* that were given back                   */
	unsigned free_count;
	pid_t proxy; /* 0: none */
};

/* Starts one. False: it cannot; what is missing was said. `safe`: what is committed outlasts a
 * server that is stopped at once. */
bool cluster_start(struct cluster *c, bool safe);

/* What has to be added to the name of a database to reach it through the proxy. */
#define CLUSTER_THROUGH " port=6432"

/* Starts a proxy before it that gives every transaction another of a few connections, in turn, so
 * that nobody keeps one by chance. False: there is no such program. */
bool cluster_proxy(struct cluster *c, int connections);

/* Stops it and removes all that it left. Fine for one that was not started. */
void cluster_stop(struct cluster *c);

/* An empty database, as baton_store_open() is told of it; and giving it back, once all stores in it
 * are closed. */
void cluster_database(struct cluster *c, char *where, size_t size);
void cluster_drop(struct cluster *c, const char *where);

/* Runs a statement in a database; ends the test if it fails. */
void cluster_run(const char *where, const char *sql);

/* The first value that it finds, as a number. */
long long cluster_number(const char *where, const char *sql);

/* Ends the server as if the machine had lost its power, and starts it again. */
void cluster_crash(struct cluster *c);

/* The same, but it comes back as a standby, until somebody calls pg_promote(). */
void cluster_standby(struct cluster *c);

#endif
