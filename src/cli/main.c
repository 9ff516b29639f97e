/* The program: reads what stands before the command, and runs the command. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <baton.h>

#include "command.h"
#include "options.h"

static void print_version(struct out *out)
{
	if (strcmp(BATON_VERSION, baton_version()) == 0)
		out_print(out, "baton %s\n", BATON_VERSION);
	else
		out_print(out, "baton %s with libbaton %s\n", BATON_VERSION, baton_version());
}

static int run(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	static char program[] = PROGRAM;
	argv[0] = program; /* however it was called */
	optind = 0;
	switch (option_next(argc, argv, options)) {
	case 'h':
		help_overview(out);
		return EX_OK;
	case 'V':
		print_version(out);
		return EX_OK;
	case OPTION_BAD:
		return EX_USAGE;
	}
	if (optind >= argc) {
		complain("no command; 'baton --help' lists them");
		return EX_USAGE;
	}
	int first = optind;
	const struct command *command = command_find(argv[first]);
	return command ? command->run(out, argc - first, argv + first) : EX_USAGE;
}

/* Lets no file that is opened later have the number of a standard stream that was closed from the
 * start. As before, such a one can be neither read nor written, and a command that is executed
 * finds it closed. */
static bool standard_keep(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int access = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", access | O_CLOEXEC) != fd)
			return false;
	}
	return true;
}

static void hear_nothing(int number)
{
	(void)number;
}

/* A file that may not grow is an error like any other. With a handler, not ignored: what is
 * executed finds the signal as it was. */
static void survive_limits(void)
{
	const struct sigaction action = {.sa_handler = hear_nothing, .sa_flags = SA_RESTART};
	struct sigaction before;
	if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		sigaction(SIGXFSZ, &action, NULL);
}

int main(int argc, char **argv)
{
	survive_limits();
	if (!standard_keep())
		return EX_OSERR;
	struct out out = out_stdout();
	return out_finish(&out, run(&out, argc, argv));
}
