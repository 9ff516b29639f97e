/* baton demo: runners that are killed and frozen, and a witness who says what came of it.
 *
 * Two processes see to it that nothing is left behind: the one that was started, and the player.
 * Whichever ends, the other one ends the rest, and removes the folder. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include <baton.h>

#include "command.h"
#include "crew.h"
#include "options.h"
#include "play.h"
#include "stage.h"

#define BY_SIGNAL 128 /* the player's status, plus the signal that ended the play */

static volatile sig_atomic_t stop;   /* the signal that asks the player to end; 0: none */
static volatile sig_atomic_t player; /* to whom this process passes it on; 0: to nobody */

static void on_signal(int number)
{
	stop = number;
	if (player > 0)
		kill(player, number);
}

static void listen_for_signals(void)
{
	static const int heard[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction action = {.sa_handler = on_signal};
	for (size_t i = 0; i < sizeof heard / sizeof heard[0]; i++)
		sigaction(heard[i], &action, NULL);
}

/* What others will look for from another folder. */
static void make_absolute(const char *variable)
{
	char path[PATH_MAX];
	const char *set = getenv(variable);
	if (set && set[0] != '\0' && set[0] != '/' && realpath(set, path))
		setenv(variable, path, 1);
}

static int play_in(struct out *out, const char *folder)
{
	make_absolute("BATON_GUARDIAN");
	if (chdir(folder) != 0) {
		complain("cannot enter '%s': %s", folder, strerror(errno));
		return EX_OSERR;
	}
	int status = play(out, folder, &stop);
	stage_remove(folder);
	return stop != 0 ? BY_SIGNAL + stop : status;
}

/* The status of this process once the player has ended like that; it does not return if that was by
 * a signal that this one was to get, too. */
static int end_like(int how)
{
	int number = 0;
	if (WIFSIGNALED(how))
		number = WTERMSIG(how);
	else if (WEXITSTATUS(how) > BY_SIGNAL)
		number = WEXITSTATUS(how) - BY_SIGNAL;
	else
		return WEXITSTATUS(how);
	if (number != SIGKILL) {
		signal(number, SIG_DFL);
		raise(number);
	}
	complain("the demo was ended by signal %d", number);
	return EX_OSERR;
}

static int watch(pid_t child, const char *folder)
{
	int how = 0;
	player = child;
	if (stop != 0)
		kill(child, stop);
	while (waitpid(child, &how, 0) < 0 && errno == EINTR)
		;
	player = 0;
	crew_await();
	stage_remove(folder);
	return end_like(how);
}

int cmd_demo(struct out *out, int argc, char **argv)
{
	char folder[PATH_MAX];
	switch (option_none(argc, argv)) {
	case 'h':
		help_command(out, command_find(argv[0]));
		return EX_OK;
	case OPTION_BAD:
		return EX_USAGE;
	}
	out_print(out, "Three runners share 50 lanes. One will be killed, one frozen.\n\n");
	if (out->errnum != 0)
		return EX_OK;
	int status = stage_make(folder);
	if (status != EX_OK)
		return status;
	pid_t self = getpid();
	listen_for_signals();
	crew_adopt();
	pid_t child = fork();
	if (child == 0) {
		crew_follow(self, SIGTERM);
		crew_adopt();
		_exit(out_finish(out, play_in(out, folder)));
	}
	if (child > 0)
		return watch(child, folder);
	complain("no process for the demo: %s", strerror(errno));
	stage_remove(folder);
	return EX_OSERR;
}
