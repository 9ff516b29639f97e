/* baton force-release: takes a subject away from whoever holds it. */
#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

#include "command.h"
#include "holds.h"
#include "options.h"
#include "out.h"
#include "where.h"

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

static void print_former(struct out *out, const struct baton_subject *subject,
                         const struct baton_claim_holder *holder)
{
	struct wall now = wall_now();
	char name[SUBJECT_SHOWN];
	char owner[OWNER_SHOWN];
	char since[WALL_TEXT];
	char expires[WALL_TEXT];
	out_print(out, "%s was held by %s, fence %" PRIu64,
	          subject_show(subject->space, subject->label, name),
	          owner_show(baton_str_z(holder->owner), holder->pid, owner), holder->fence.v);
	if (holder->since.ns > 0)
		out_print(out, ", since %s", wall_print(wall_at(&now, holder->since), since));
	if (holder->expires.ns != BATON_MONO_NEVER.ns)
		out_print(out, ", until %s", wall_print(wall_at(&now, holder->expires), expires));
	out_print(out, "\n");
	if (out->errnum != 0)
		complain("'%s' was released all the same", name);
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
		print_former(out, subject, &holder);
	else
		status = e == BATON_NOT_HELD ? nobody(subject) : where_fail(where, e);
	baton_fleet_leave(fleet);
	return status;
}

/* Joining would make a fleet that is not there; so it is looked at first. */
static int run(struct out *out, struct where *where, struct baton_subject *subject)
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

int cmd_force_release(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {WHERE_OPTIONS, {0}};
	struct where where = {.given = NULL};
	struct operands name = {.max = 1};
	struct baton_subject subject;
	optind = 0;
	for (;;) {
		int option = option_mixed(argc, argv, options, &name);
		if (option == OPTION_END)
			break;
		if (option == OPTION_BAD)
			return EX_USAGE;
		if (option == 'h') {
			help_command(out, command_find(argv[0]));
			return EX_OK;
		}
		where_option(&where, option, optarg);
	}
	if (name.count == 0) {
		complain("'force-release' needs the name of what is to be released");
		return EX_USAGE;
	}
	if (!subject_parse(name.texts[0], &subject))
		return EX_USAGE;
	return run(out, &where, &subject);
}
