/* A command of the program, and the table of all of them. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stddef.h>

#include "out.h"

struct command {
	const char *name;
	const char *usage;   /* what may follow the name; "" for nothing     */
	const char *summary; /* half a line, for the list of commands        */
	const char *text;    /* what it does, lines with ends, for its help  */

	/* Does it. argv[0] is the command's name, argv[argc] is NULL. Returns the exit status. */
	int (*run)(struct out *out, int argc, char **argv);
};

extern const struct command commands[];
extern const size_t commands_count;

/* The command of that name. NULL: there is none, and one line on standard error has said so. */
const struct command *command_find(const char *name);

int cmd_abandon(struct out *out, int argc, char **argv);
int cmd_backend(struct out *out, int argc, char **argv);
int cmd_backup(struct out *out, int argc, char **argv);
int cmd_cancel(struct out *out, int argc, char **argv);
int cmd_check(struct out *out, int argc, char **argv);
int cmd_claim(struct out *out, int argc, char **argv);
int cmd_complete(struct out *out, int argc, char **argv);
int cmd_connect(struct out *out, int argc, char **argv);
int cmd_demo(struct out *out, int argc, char **argv);
int cmd_fail(struct out *out, int argc, char **argv);
int cmd_fleet(struct out *out, int argc, char **argv);
int cmd_force_release(struct out *out, int argc, char **argv);
int cmd_handoff(struct out *out, int argc, char **argv);
int cmd_help(struct out *out, int argc, char **argv);
int cmd_holders(struct out *out, int argc, char **argv);
int cmd_lock(struct out *out, int argc, char **argv);
int cmd_ls(struct out *out, int argc, char **argv);
int cmd_migrate(struct out *out, int argc, char **argv);
int cmd_put(struct out *out, int argc, char **argv);
int cmd_queue(struct out *out, int argc, char **argv);
int cmd_renew(struct out *out, int argc, char **argv);
int cmd_retry(struct out *out, int argc, char **argv);
int cmd_runner(struct out *out, int argc, char **argv);
int cmd_schedule(struct out *out, int argc, char **argv);
int cmd_serve(struct out *out, int argc, char **argv);
int cmd_services(struct out *out, int argc, char **argv);
int cmd_show(struct out *out, int argc, char **argv);
int cmd_snooze(struct out *out, int argc, char **argv);
int cmd_top(struct out *out, int argc, char **argv);
int cmd_watch(struct out *out, int argc, char **argv);
int cmd_where(struct out *out, int argc, char **argv);
int cmd_why(struct out *out, int argc, char **argv);
int cmd_work(struct out *out, int argc, char **argv);

/* Writes the overview that `baton --help` shows. */
void help_overview(struct out *out);

/* Writes what `baton help NAME` shows. */
void help_command(struct out *out, const struct command *command);

#endif
