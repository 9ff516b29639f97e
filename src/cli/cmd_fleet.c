/* baton fleet: which fleet there is and how full it is; makes one, and removes one. */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "census.h"
#include "command.h"
#include "number.h"
#include "reading.h"
#include "where.h"

/* What is to be done with the fleet. */
enum deed {
	DEED_SHOW = 1,
	DEED_CREATE,
	DEED_RESET
};

enum limit {
	LIMIT_MEMBERS,
	LIMIT_SUBJECTS,
	LIMIT_WAITERS,
	LIMIT_EVENTS,
	LIMIT_WAKEUPS,
	LIMITS
};

/* The options of the command; those of the limits come first, in their order. */
enum {
	OPTION_LIMIT = WHERE_NEXT,
	OPTION_JSON = OPTION_LIMIT + LIMITS,
	OPTION_CREATE,
	OPTION_RESET,
	OPTION_GROUP
};

static const struct {
	const char *name;
	uint32_t max;
	bool power_of_2;
} limits[LIMITS] = {
	[LIMIT_MEMBERS] = {"members", BATON_FLEET_MEMBERS_MAX, false},
	[LIMIT_SUBJECTS] = {"subjects", BATON_FLEET_SUBJECTS_MAX, false},
	[LIMIT_WAITERS] = {"waiters", BATON_FLEET_WAITERS_MAX, false},
	[LIMIT_EVENTS] = {"events", BATON_FLEET_EVENTS_MAX, true},
	[LIMIT_WAKEUPS] = {"wakeups", BATON_FLEET_WAKEUPS_MAX, true},
};

struct request {
	struct where where;
	bool json, create, reset, group;
	uint32_t wanted[LIMITS]; /* 0: whatever it is */
};

/* Takes an option of a limit. False: its value is bad, as one line has said. */
static bool limit_take(struct request *r, enum limit limit, const char *value)
{
	uint32_t number;
	if (!number_parse(limits[limit].name, value, limits[limit].max, &number))
		return false;
	if (limits[limit].power_of_2 && (number & (number - 1)) != 0) {
		complain("'--%s' takes a power of 2, not %" PRIu32, limits[limit].name, number);
		return false;
	}
	r->wanted[limit] = number;
	return true;
}

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	if (where_option(&r->where, option, value))
		return true;
	if (option >= OPTION_LIMIT && option < OPTION_LIMIT + LIMITS)
		return limit_take(r, (enum limit)(option - OPTION_LIMIT), value);
	if (option == OPTION_JSON)
		r->json = true;
	else if (option == OPTION_CREATE)
		r->create = true;
	else if (option == OPTION_RESET)
		r->reset = true;
	else
		r->group = true;
	return true;
}

/* The one thing that is asked for; 0: several, or with options that are not its own. */
static enum deed deed_find(const struct request *r)
{
	bool shapes = r->group;
	for (size_t i = 0; i < LIMITS; i++)
		shapes = shapes || r->wanted[i] != 0;
	if (r->create + r->reset + r->json > 1)
		complain("only one of '--create', '--reset' and '--json' can be done at once");
	else if (shapes && !r->create)
		complain("limits and '--group' are for '--create'");
	else
		return r->create ? DEED_CREATE : r->reset ? DEED_RESET : DEED_SHOW;
	return 0;
}

static int show_fleet(struct out *out, const struct request *r)
{
	struct baton_watch *watch = NULL;
	struct census census;
	int status = where_watch(&r->where, &watch);
	if (status != EX_OK)
		return status;
	if (!watch)
		return where_absent(&r->where);
	if (!census_take(watch, &census)) {
		complain("no memory for the list of members");
		status = EX_OSERR;
	} else {
		if (r->json)
			census_json(&census, out);
		else
			census_print(&census, out);
		census_done(&census);
	}
	baton_watch_close(watch);
	return status;
}

/* Whether the fleet is as it was wanted; complains if not. */
static bool is_as_wanted(const struct request *r, struct baton_watch *watch)
{
	struct baton_fleet_usage usage;
	struct stat st;
	baton_watch_usage(watch, wall_now().boot, &usage);
	const uint32_t found[LIMITS] = {
		[LIMIT_MEMBERS] = usage.limits.members, [LIMIT_SUBJECTS] = usage.limits.subjects,
		[LIMIT_WAITERS] = usage.limits.waiters, [LIMIT_EVENTS] = usage.limits.events,
		[LIMIT_WAKEUPS] = usage.limits.wakeups,
	};
	for (size_t i = 0; i < LIMITS; i++) {
		if (r->wanted[i] != 0 && r->wanted[i] != found[i]) {
			complain("the fleet '%s' is there already, with %" PRIu32 " %s and not "
			         "%" PRIu32,
			         r->where.path, found[i], limits[i].name, r->wanted[i]);
			return false;
		}
	}
	if (r->group && stat(r->where.path, &st) == 0 && (st.st_mode & 0777) != 0660) {
		complain("the fleet '%s' is there already, and is not for a group", r->where.path);
		return false;
	}
	return true;
}

/* A fleet is made by its first member. */
static int make_fleet(const struct request *r)
{
	const struct baton_fleet_options options = {
		.path = r->where.path,
		.owner = BATON_STR("fleet"),
		.limits = {.members = r->wanted[LIMIT_MEMBERS],
	                   .subjects = r->wanted[LIMIT_SUBJECTS],
	                   .waiters = r->wanted[LIMIT_WAITERS],
	                   .events = r->wanted[LIMIT_EVENTS],
	                   .wakeups = r->wanted[LIMIT_WAKEUPS]},
		.group = r->group,
	};
	struct baton_fleet *fleet = NULL;
	enum baton_err e = baton_fleet_join(&options, &fleet);
	if (e != BATON_OK)
		return where_fail(&r->where, e);
	baton_fleet_leave(fleet);
	return EX_OK;
}

static int create_fleet(struct out *out, const struct request *r)
{
	struct baton_watch *watch = NULL;
	int status = where_watch(&r->where, &watch);
	if (status != EX_OK)
		return status;
	bool found = watch != NULL;
	if (!found) {
		status = make_fleet(r);
		if (status == EX_OK)
			status = where_watch(&r->where, &watch);
		if (status != EX_OK)
			return status;
	}
	/* Somebody else may have been faster, or have removed it again. */
	if (!watch)
		return where_absent(&r->where);
	if (!is_as_wanted(r, watch))
		status = EXIT_FAILURE;
	else
		out_print(out, "%s '%s'\n", found ? "there is already" : "made", r->where.path);
	baton_watch_close(watch);
	return status;
}

static int reset_fleet(struct out *out, const struct request *r)
{
	enum baton_err e = baton_fleet_reset(r->where.path);
	if (e == BATON_NOT_HELD)
		return where_absent(&r->where);
	if (e != BATON_OK)
		return where_fail(&r->where, e);
	out_print(out, "removed '%s'\n", r->where.path);
	return EX_OK;
}

static int run(struct out *out, struct request *r)
{
	enum deed deed = deed_find(r);
	if (deed == 0)
		return EX_USAGE;
	int status = where_find(&r->where);
	if (status == EX_OK && !out_is_writable(out))
		status = EX_IOERR;
	if (status != EX_OK)
		return status;
	switch (deed) {
	case DEED_SHOW:
		return show_fleet(out, r);
	case DEED_CREATE:
		return create_fleet(out, r);
	case DEED_RESET:
		return reset_fleet(out, r);
	}
	return EX_SOFTWARE;
}

int cmd_fleet(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {
		WHERE_OPTIONS,
		{"json", no_argument, NULL, OPTION_JSON},
		{"create", no_argument, NULL, OPTION_CREATE},
		{"reset", no_argument, NULL, OPTION_RESET},
		{"group", no_argument, NULL, OPTION_GROUP},
		{"members", required_argument, NULL, OPTION_LIMIT + LIMIT_MEMBERS},
		{"subjects", required_argument, NULL, OPTION_LIMIT + LIMIT_SUBJECTS},
		{"waiters", required_argument, NULL, OPTION_LIMIT + LIMIT_WAITERS},
		{"events", required_argument, NULL, OPTION_LIMIT + LIMIT_EVENTS},
		{"wakeups", required_argument, NULL, OPTION_LIMIT + LIMIT_WAKEUPS},
		{0},
	};
	struct request request = {.json = false};
	struct operands none = {.max = 0};
	const struct reading reading = {options, &none, take, &request};
	int status;
	return reading_do(&reading, out, argc, argv, &status) ? run(out, &request) : status;
}
