/* baton force-release: takes a subject away from whoever holds it. */
#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

#include "cluster.h"
#include "command.h"
#include "holds.h"
#include "out.h"
#include "reading.h"
#include "store.h"
#include "where.h"

enum {
	OPTION_CLUSTER = WHERE_NEXT,
	OPTION_STORE
};

struct request {
	struct where where;
	struct store store;
	bool cluster;
};

/* What others see of the short membership. It counts towards the room for the subject's label, so
 * beside a long one it is cut. */
static struct baton_str owner_label(const struct baton_subject *subject)
{
	struct baton_str owner = BATON_STR("force-release");
	if (owner.len > BATON_LABEL_MAX - subject->label.len)
		owner.len = BATON_LABEL_MAX - subject->label.len;
	return owner;
}

static int nobody(const struct baton_subject *subject)
{
	char shown[SUBJECT_SHOWN];
	complain("nobody holds '%s'", subject_show(subject->space, subject->label, shown));
	return EXIT_FAILURE;
}

static void print_former(struct out *out, const struct hold *former)
{
	char name[SUBJECT_SHOWN];
	char owner[OWNER_SHOWN];
	char since[WALL_TEXT];
	char expires[WALL_TEXT];
	out_print(out, "%s was held by %s, fence %" PRIu64,
	          subject_show(former->space, former->label, name),
	          owner_show(former->owner, former->pid, owner), former->fence.v);
	if (former->since.ms != BATON_STORE_TIME_NEVER.ms)
		out_print(out, ", since %s", wall_print(former->since, since));
	if (former->expires.ms != BATON_STORE_TIME_NEVER.ms)
		out_print(out, ", until %s", wall_print(former->expires, expires));
	out_print(out, "\n");
	if (out->errnum != 0)
		complain("'%s' was released all the same", name);
}

static void print_claim(struct out *out, const struct baton_subject *subject,
                        const struct baton_claim_holder *holder)
{
	const struct wall now = wall_now();
	const struct hold former = {
		.space = subject->space,
		.label = subject->label,
		.owner = baton_str_z(holder->owner),
		.pid = holder->pid,
		.fence = holder->fence,
		.since = holder->since.ns > 0 ? wall_at(&now, holder->since)
	                                      : BATON_STORE_TIME_NEVER,
		.expires = wall_at(&now, holder->expires),
	};
	print_former(out, &former);
}

static void print_lease(struct out *out, const struct baton_subject *subject,
                        const struct baton_lease_holder *holder)
{
	const struct hold former = {
		.space = subject->space,
		.label = subject->label,
		.owner = baton_str_z(holder->owner.id),
		.pid = holder->owner.pid,
		.fence = holder->fence,
		.since = holder->claimed_at,
		.expires = holder->expires_at,
	};
	print_former(out, &former);
}

static int force(struct out *out, const struct where *where, struct baton_subject *subject)
{
	const struct baton_fleet_options options = {
		.path = where->path,
		.owner = owner_label(subject),
	};
	struct baton_fleet *fleet = NULL;
	struct baton_claim_holder holder;
	if (!out_is_writable(out))
		return EX_IOERR;
	enum baton_err e = baton_fleet_join(&options, &fleet);
	if (e != BATON_OK)
		return where_fail(where, e);
	e = baton_claim_force(fleet, subject, &holder);
	int status = EX_OK;
	if (e == BATON_OK)
		print_claim(out, subject, &holder);
	else
		status = e == BATON_NOT_HELD ? nobody(subject) : where_fail(where, e);
	baton_fleet_leave(fleet);
	return status;
}

/* Joining would make a fleet that is not there; so it is looked at first. */
static int run_fleet(struct out *out, struct where *where, struct baton_subject *subject)
{
	struct baton_watch *watch = NULL;
	int status = where_find(where);
	if (status == EX_OK)
		status = where_watch(where, &watch);
	if (status != EX_OK)
		return status;
	if (!watch)
		return nobody(subject);
	baton_watch_close(watch);
	return force(out, where, subject);
}

static int run_cluster(struct out *out, struct store *store, const struct baton_subject *subject)
{
	char text[BATON_LEASE_SUBJECT_MAX + 1];
	struct baton_lease_answer answer;
	if (!cluster_subject(subject, text))
		return EX_USAGE;
	struct baton_str name = baton_str_z(text);
	if (!out_is_writable(out))
		return EX_IOERR;
	int status = store_open(store, STORE_EXISTING);
	if (status != EX_OK)
		return status;
	enum baton_err e = baton_lease_force(store->handle, &name, 1, &answer);
	if (e != BATON_OK)
		status = store_fail(store, e);
	else if (answer.err != BATON_OK)
		status = nobody(subject);
	else
		print_lease(out, subject, &answer.holder);
	store_close(store);
	return status;
}

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	if (option == OPTION_CLUSTER)
		r->cluster = true;
	else if (option == OPTION_STORE)
		r->store.given = value;
	else
		return where_option(&r->where, option, value);
	return true;
}

int cmd_force_release(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {
		WHERE_OPTIONS,
		{"cluster", no_argument, NULL, OPTION_CLUSTER},
		{"store", required_argument, NULL, OPTION_STORE},
		{0},
	};
	struct request request = {.cluster = false};
	struct operands name = {.max = 1};
	struct baton_subject subject;
	const struct reading reading = {options, &name, take, &request};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	if (name.count == 0) {
		complain("'force-release' needs the name of what is to be released");
		return EX_USAGE;
	}
	if (!cluster_fits(request.cluster, &request.where, &request.store) ||
	    !subject_parse(name.texts[0], &subject))
		return EX_USAGE;
	request.store.verbose = request.where.verbose;
	return request.cluster ? run_cluster(out, &request.store, &subject)
	                       : run_fleet(out, &request.where, &subject);
}
