/* A lease as it is stored. */
#ifndef SQLITE_LEASES_H
#define SQLITE_LEASES_H

#include "queue/lease.h"
#include "store/sqlite/db.h"

struct stored_lease {
	struct lease_row row;
	uint64_t counter; /* of the claims of work under its fence */
};

enum baton_err lease_load(struct db *db, struct baton_str subject, struct stored_lease *ret,
                          bool *ret_found);

/* Writes how many claims there have been under the lease. */
enum baton_err lease_count(struct db *db, struct baton_str subject, uint64_t counter);

#endif
