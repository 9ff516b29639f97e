/* The table of commands. */
#include <string.h>

#include "command.h"
#include "suggest.h"

const struct command commands[] = {
	{
		.name = "demo",
		.usage = "",
		.summary = "show what Baton does, live",
		.text = "Threads of this process ask for keys: who holds and who yields, waiting\n"
			"in line, handing over with growing fences, a limit raised while running,\n"
			"several keys all or none. Every claim it prints is checked.\n"
			"The status is 1 if one is not true.\n",
		.run = cmd_demo,
	},
	{
		.name = "help",
		.usage = "[COMMAND]",
		.summary = "explain a command, or list them all",
		.text = "Without a command it lists all of them.\n",
		.run = cmd_help,
	},
};

const size_t commands_count = sizeof commands / sizeof commands[0];

const struct command *command_find(const char *name)
{
	struct suggestion meant = {.typed = name};
	for (size_t i = 0; i < commands_count; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
		suggestion_consider(&meant, commands[i].name);
	}
	char shown[SHOWN_MAX];
	show(name, shown);
	if (meant.nearest)
		complain("unknown command '%s'; did you mean '%s'?", shown, meant.nearest);
	else
		complain("unknown command '%s'; 'baton --help' lists them", shown);
	return NULL;
}
