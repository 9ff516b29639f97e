/* A lease in a store, as what a guardian holds while a command runs. */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H

#include <limits.h>
#include <stdbool.h>

#include <baton.h>

#include "store.h"
#include "where.h"

struct cluster {
	struct store store;
	struct baton_str owner; /* what others are told about who holds */
	struct baton_duration ttl;
	char subject[BATON_LEASE_SUBJECT_MAX + 1];
	char path[PATH_MAX];   /* of the file beside which the locked files lie, in the guardian */
	char folder[PATH_MAX]; /* of that file, if the store is none; "": it is one */
	struct baton_lease lease;
	struct baton_guardian_source source; /* for the guardian; cluster_ready() makes it */
};

/* Whether what is said of a fleet and of a store fits together. False: it does not, as one line on
 * standard error has said. */
bool cluster_fits(bool cluster, const struct where *where, const struct store *store);

/* The name as that of a lease. False: it cannot be one, as one line on standard error has said. */
bool cluster_subject(const struct baton_subject *subject, char text[BATON_LEASE_SUBJECT_MAX + 1]);

/* Finds the store and makes the source, which points to `c`. Nothing is opened yet. Returns EX_OK,
 * or another status after one line on standard error. */
int cluster_ready(struct cluster *c, const struct baton_subject *subject);

/* Says what has failed, of the store or of the files beside it, and returns its status. */
int cluster_fail(const struct cluster *c, enum baton_err e);

#endif
