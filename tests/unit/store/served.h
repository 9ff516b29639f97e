/* A store in a PostgreSQL server of the test's own, and others who use the same database. */
#ifndef STORE_SERVED_H
#define STORE_SERVED_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include <baton/store.h>

#include "support/cluster.h"
#include "support/harness.h"

struct bench {
	char where[300];
	struct baton_store *store;
};

#define SERVED_TEST(f) cmocka_unit_test_setup_teardown(f, served_setup, served_teardown)

/* The state of a test is a struct bench. What it leaves has to be sound. */
int served_setup(void **state);
int served_teardown(void **state);

/* Starts the server, runs the tests, and ends it. */
int served_main(const char *name, const struct CMUnitTest *tests, size_t count);
struct cluster *served_cluster(void);

/* One more store, as another process would open it. */
struct baton_store *open_as(const char *where);

/* Another program's connection; and whether a statement of it succeeds. */
PGconn *user_of(const struct bench *b);
bool does(PGconn *pg, const char *sql);

/* Puts into queue "q". */
enum baton_err put_into(struct baton_store *store, const char *lane, const char *text);

/* Claims one batch of it, writes what its payload is, and completes it. Returns its number; 0:
 * there is none. */
uint64_t take_one(struct baton_store *store, char lane[64], char text[64]);
void assert_next(struct bench *b, const char *expected);

#endif
