/* baton help: what there is, and what each command does. */
#include <sysexits.h>

#include "command.h"
#include "options.h"

void help_overview(struct out *out)
{
	out_print(out, "Baton gives every piece of work exactly one owner.\n"
	               "\n"
	               "usage: baton COMMAND [ARGUMENT]...\n"
	               "\n");
	for (size_t i = 0; i < commands_count; i++)
		out_print(out, "  %-14s %s\n", commands[i].name, commands[i].summary);
	out_print(out, "\n"
	               "  -h, --help     print this\n"
	               "  -V, --version  print the version\n"
	               "\n"
	               "'baton help COMMAND' says more about one of them.\n");
}

void help_command(struct out *out, const struct command *command)
{
	out_print(out, "usage: baton %s%s%s\n\n%s", command->name, command->usage[0] ? " " : "",
	          command->usage, command->text);
}

int cmd_help(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	optind = 0;
	int option = option_next(argc, argv, options);
	if (option == OPTION_BAD)
		return EX_USAGE;
	if (argc - optind > 1) {
		char shown[SHOWN_MAX];
		complain("'help' takes one command, but got '%s' too",
		         show(argv[optind + 1], shown));
		return EX_USAGE;
	}
	const char *name = option == 'h' ? argv[0] : argv[optind];
	if (!name) {
		help_overview(out);
		return EX_OK;
	}
	const struct command *command = command_find(name);
	if (!command)
		return EX_USAGE;
	help_command(out, command);
	return EX_OK;
}
