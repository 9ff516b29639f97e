/* baton migrate: the tables of a store in PostgreSQL. */
#include <sysexits.h>

#include <baton/store.h>

#include "command.h"
#include "out.h"
#include "reading.h"
#include "status.h"
#include "store.h"

enum {
	PRINT = STORE_NEXT
};

struct request {
	struct store store;
	bool print;
};

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	if (option == PRINT)
		r->print = true;
	else
		return store_option(&r->store, option, value);
	return true;
}

static int print_all(struct out *out)
{
	const char *text;
	for (int version = 1; (text = baton_store_tables(version)); version++)
		out_print(out, "-- version %d\n%s", version, text);
	out_print(out, "-- functions\n%s", baton_store_tables(0));
	out_print(out, "-- the version that there is now\n%s",
	          baton_store_tables(BATON_STORE_STAMP));
	return EX_OK;
}

static int migrate(struct out *out, struct request *r)
{
	if (r->print)
		return print_all(out);
	int status = store_open(&r->store, STORE_MADE);
	if (status == EX_OK)
		out_print(out, "the tables of %s are those of this version\n",
		          baton_store_where(r->store.handle));
	return status;
}

int cmd_migrate(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {STORE_OPTIONS,
	                                        {"print", no_argument, NULL, PRINT},
	                                        {0}};
	struct request request = {.print = false};
	struct operands operands = {.max = 0};
	const struct reading reading = {options, &operands, take, &request};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	status = migrate(out, &request);
	store_close(&request.store);
	return status;
}
