/* baton lock: runs a command while it holds a name. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <baton.h>

#include "cluster.h"
#include "command.h"
#include "moment.h"
#include "options.h"
#include "subject.h"
#include "wall.h"
#include "where.h"

/* Statuses besides those of sysexits.h: what a shell answers for a command that it cannot run, and
 * for one that a signal ended. */
#define STATUS_NOT_FOUND 127
#define STATUS_NOT_EXECUTABLE 126
#define STATUS_SIGNAL 128

#define STATUS_MAX 255
#define HOST_MAX 65
#define PLACE_MAX (HOST_MAX + 32)

/* The values of options that have no letter. */
enum {
	OPTION_TTL = WHERE_NEXT,
	OPTION_AT_LEAST,
	OPTION_CLUSTER,
	OPTION_STORE
};

static const struct option options[] = {
	WHERE_OPTIONS,
	{"nonblock", no_argument, NULL, 'n'},
	{"nb", no_argument, NULL, 'n'},
	{"wait", required_argument, NULL, 'w'},
	{"timeout", required_argument, NULL, 'w'},
	{"conflict-exit-code", required_argument, NULL, 'E'},
	{"command", required_argument, NULL, 'c'},
	{"exclusive", no_argument, NULL, 'x'},
	{"exclusive", no_argument, NULL, 'e'},
	{"shared", no_argument, NULL, 's'},
	{"unlock", no_argument, NULL, 'u'},
	{"ttl", required_argument, NULL, OPTION_TTL},
	{"at-least", required_argument, NULL, OPTION_AT_LEAST},
	{"cluster", no_argument, NULL, OPTION_CLUSTER},
	{"store", required_argument, NULL, OPTION_STORE},
	{0},
};

/* What the command line asks for. */
struct lock {
	struct baton_guardian_ask ask;
	struct baton_subject subject;
	struct where where;
	struct cluster cluster;
	bool in_store;         /* --cluster */
	const char *name;      /* as it was typed */
	const char *ttl;       /* as it was typed; NULL: it was not */
	char *shell[4];        /* the command of -c */
	char owner[SHOWN_MAX]; /* what others are told about who holds */
	int conflict;          /* the status when somebody else holds it */
};

/* Each of these returns EX_OK, or another status after a complaint. */

static int read_duration(const char *option, const char *text, struct baton_duration *ret)
{
	if (baton_duration_parse(baton_str_z(text), ret) == BATON_OK)
		return EX_OK;
	complain("%s: %s", option, baton_err_detail());
	return EX_USAGE;
}

static int read_status(const char *text, int *ret)
{
	char *end;
	errno = 0;
	long n = strtol(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && n <= STATUS_MAX) {
		*ret = (int)n;
		return EX_OK;
	}
	char shown[SHOWN_MAX];
	complain("-E: '%s' is no exit status; a number from 0 to %d is needed", show(text, shown),
	         STATUS_MAX);
	return EX_USAGE;
}

static int refuse(const char *option, const char *why)
{
	complain("%s: %s", option, why);
	return EX_USAGE;
}

/* As flock(1) has it, a command that is a string is for the shell. */
static void set_string(struct lock *lock, char *string)
{
	static char shell[] = "/bin/sh", option[] = "-c";
	lock->shell[0] = shell;
	lock->shell[1] = option;
	lock->shell[2] = string;
	lock->ask.argv = lock->shell;
}

static int take_option(struct lock *lock, int option)
{
	switch (option) {
	case 'n':
		lock->ask.wait = baton_duration_ms(0);
		return EX_OK;
	case 'w':
		return read_duration("-w", optarg, &lock->ask.wait);
	case 'E':
		return read_status(optarg, &lock->conflict);
	case 'c':
		set_string(lock, optarg);
		return EX_OK;
	case 's':
		return refuse("-s", "a name is never shared; it has one holder");
	case 'u':
		return refuse("-u", "a name is free when its command has ended");
	case OPTION_TTL:
		lock->ttl = optarg;
		return read_duration("--ttl", optarg, &lock->ask.ttl);
	case OPTION_AT_LEAST:
		return read_duration("--at-least", optarg, &lock->ask.at_least);
	case OPTION_CLUSTER:
		lock->in_store = true;
		return EX_OK;
	case OPTION_STORE:
		lock->cluster.store.given = optarg;
		return EX_OK;
	}
	(void)where_option(&lock->where, option, optarg);
	return option == OPTION_BAD ? EX_USAGE : EX_OK;
}

/* Reads the options at the beginning of argv, after argv[0]. *ret_used is how many words that took,
 * argv[0] included; 0: help is wanted. */
static int take_options(struct lock *lock, int argc, char **argv, int *ret_used)
{
	static char command[] = "lock";
	int status = EX_OK, option = OPTION_END;
	char *before = argv[0];
	argv[0] = command; /* that is what the options are of */
	optind = 0;
	while (status == EX_OK && option != 'h' &&
	       (option = option_next(argc, argv, options)) != OPTION_END)
		status = option == 'h' ? EX_OK : take_option(lock, option);
	argv[0] = before;
	*ret_used = option == 'h' ? 0 : optind;
	return status;
}

static int take_name(struct lock *lock, const char *name)
{
	lock->name = name;
	return subject_parse(name, &lock->subject) ? EX_OK : EX_USAGE;
}

/* As much of the owner's label, in whole characters, as there is room for beside the name. */
static struct baton_str owner_fit(const char *owner, size_t label)
{
	struct baton_str fit = baton_str_z(owner);
	while (fit.len > 1 && (fit.len + label > BATON_LABEL_MAX || !baton_str_is_utf8(fit)))
		fit.len--;
	return baton_str_is_utf8(fit) ? fit : BATON_STR("?");
}

static int take_command(struct lock *lock, char **argv)
{
	char shown[SHOWN_MAX];
	if (lock->ask.argv && argv[0]) {
		complain("-c has the command already, but got '%s' too", show(argv[0], shown));
		return EX_USAGE;
	}
	if (!lock->ask.argv && !argv[0]) {
		complain("no command to run while '%s' is held; 'baton help lock' says more",
		         show(lock->name, shown));
		return EX_USAGE;
	}
	if (!lock->ask.argv)
		lock->ask.argv = argv;
	const char *command = lock->shell[2] ? lock->shell[2] : argv[0];
	const char *slash = lock->shell[2] ? NULL : strrchr(command, '/');
	show(slash && slash[1] ? slash + 1 : command, lock->owner);
	if (lock->owner[0] == '\0')
		memcpy(lock->owner, "?", 2);
	lock->ask.owner = owner_fit(lock->owner, lock->subject.label.len);
	return EX_OK;
}

/* NAME may stand before or after the options, as people type it; the command ends them. *ret_help:
 * nothing else is wanted. */
static int read_command_line(struct lock *lock, int argc, char **argv, bool *ret_help)
{
	int used;
	int status = take_options(lock, argc, argv, &used);
	*ret_help = status == EX_OK && used == 0;
	if (status != EX_OK || *ret_help)
		return status;
	if (used >= argc) {
		complain("no name to hold; 'baton help lock' says more");
		return EX_USAGE;
	}
	argc -= used;
	argv += used;
	status = take_name(lock, argv[0]);
	if (status == EX_OK)
		status = take_options(lock, argc, argv, &used);
	*ret_help = status == EX_OK && used == 0;
	if (status != EX_OK || *ret_help)
		return status;
	return take_command(lock, argv + used);
}

static const char *host(char name[HOST_MAX])
{
	if (gethostname(name, HOST_MAX) != 0)
		memcpy(name, "this host", sizeof "this host");
	name[HOST_MAX - 1] = '\0';
	return name;
}

/* A holder without a pid is somebody about whom only the name is known. */
static const char *place(int32_t pid, char at[PLACE_MAX])
{
	char name[HOST_MAX];
	if (pid > 0)
		snprintf(at, PLACE_MAX, "pid %" PRId32 " on %s", pid, host(name));
	else
		snprintf(at, PLACE_MAX, "elsewhere");
	return at;
}

static void complain_held(const struct lock *lock, const struct baton_claim_holder *holder)
{
	char shown[SHOWN_MAX], owner[SHOWN_MAX], at[PLACE_MAX];
	char since[WALL_TEXT], until[WALL_TEXT];
	struct wall now = wall_now();
	const char *who = holder->owner[0] ? show(holder->owner, owner) : "somebody who has left";
	if (holder->why == BATON_CLAIM_IN_LINE)
		complain("%s is not held, but %s (%s) is first in line for it",
		         show(lock->name, shown), who, place(holder->pid, at));
	else
		complain("%s is held by %s (%s) since %s until %s", show(lock->name, shown), who,
		         place(holder->pid, at), wall_print(wall_at(&now, holder->since), since),
		         holder->expires.ns == BATON_MONO_NEVER.ns
		                 ? "it is released"
		                 : wall_print(wall_at(&now, holder->expires), until));
}

static void complain_leftovers(const struct lock *lock, const struct baton_guardian_end *end)
{
	char shown[SHOWN_MAX], pids[BATON_GUARDIAN_LEFTOVERS * 16] = "";
	size_t used = 0;
	for (size_t i = 0; i < end->leftovers_count; i++)
		used += (size_t)snprintf(pids + used, sizeof pids - used, "%s%" PRId32,
		                         i == 0 ? " (pid " : ", ", end->leftovers[i]);
	complain("processes of the former holder of %s still run%s%s", show(lock->name, shown),
	         pids, used > 0 ? ")" : "");
}

static int yielded(const struct lock *lock, const struct baton_guardian_end *end)
{
	if (end->holder.why != 0)
		complain_held(lock, &end->holder);
	else
		complain_leftovers(lock, end);
	return lock->conflict;
}

/* Dies of the signal, as it would have without us. */
static int interrupted(int sig)
{
	signal(sig, SIG_DFL);
	raise(sig);
	return STATUS_SIGNAL + sig;
}

static int ended(const struct lock *lock, const struct baton_guardian_end *end)
{
	char shown[SHOWN_MAX], command[SHOWN_MAX];
	const char *why = baton_err_detail();
	show(lock->name, shown);
	switch (end->how) {
	case BATON_GUARDIAN_EXITED:
		return end->code;
	case BATON_GUARDIAN_SIGNALED:
		return STATUS_SIGNAL + end->code;
	case BATON_GUARDIAN_UNSTARTED:
		complain("'%s' cannot be run: %s", show(lock->ask.argv[0], command),
		         strerror(end->code));
		return end->code == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
	case BATON_GUARDIAN_INTERRUPTED:
		return interrupted(end->code);
	case BATON_GUARDIAN_LOST:
		complain("%s was lost%s%s%s, so the command and all that it had started were ended",
		         shown, why[0] ? " (" : "", why, why[0] ? ")" : "");
		return EX_PROTOCOL;
	case BATON_GUARDIAN_KILLED:
		if (!end->started) {
			complain("the guardian of %s was killed (signal %d); nothing was run",
			         shown, end->code);
			return EX_SOFTWARE;
		}
		complain("the guardian of %s was killed (signal %d), and the command with it; %s "
		         "stays taken while processes that it had started run",
		         shown, end->code, shown);
		return EX_SOFTWARE;
	}
	return EX_SOFTWARE;
}

static void say_held(baton_fence fence, void *arg)
{
	const struct lock *lock = arg;
	char shown[SHOWN_MAX];
	complain("%s is held with fence %" PRIu64, show(lock->name, shown), fence.v);
}

/* What a fleet allows and a store does not, and the other way round. */
static bool fits(struct lock *lock)
{
	const struct span_limits limits = span_limits_ttl();
	if (!cluster_fits(lock->in_store, &lock->where, &lock->cluster.store))
		return false;
	return !lock->in_store || !lock->ttl ||
	       span_parse("--ttl", lock->ttl, &limits, &lock->ask.ttl);
}

/* Finds where the name is to be held. */
static int find_store(struct lock *lock)
{
	if (!lock->ttl)
		lock->ask.ttl = baton_duration_ms(BATON_LEASE_TTL_MS);
	lock->cluster.owner = lock->ask.owner;
	lock->cluster.ttl = lock->ask.ttl;
	lock->cluster.store.verbose = lock->where.verbose;
	lock->ask.source = &lock->cluster.source;
	return cluster_ready(&lock->cluster, &lock->subject);
}

static int run(struct lock *lock)
{
	int status = lock->in_store ? find_store(lock) : where_find(&lock->where);
	if (status != EX_OK)
		return status;
	lock->ask.fleet = lock->where.path;
	lock->ask.subject = &lock->subject;
	lock->ask.held = lock->where.verbose ? say_held : NULL;
	lock->ask.arg = lock;
	struct baton_guardian_end end;
	enum baton_err e = baton_guardian_run(&lock->ask, &end);
	if (e == BATON_OK)
		return ended(lock, &end);
	if (e == BATON_YIELD || e == BATON_TIMEOUT)
		return yielded(lock, &end);
	return lock->in_store ? cluster_fail(&lock->cluster, e) : where_fail(&lock->where, e);
}

int cmd_lock(struct out *out, int argc, char **argv)
{
	struct lock lock = {
		.ask = {.wait = BATON_DURATION_FOREVER},
		.conflict = EX_TEMPFAIL,
	};
	bool help;
	int status = read_command_line(&lock, argc, argv, &help);
	if (status != EX_OK)
		return status;
	if (help) {
		help_command(out, command_find("lock"));
		return EX_OK;
	}
	return fits(&lock) ? run(&lock) : EX_USAGE;
}
