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
	{
		.name = "lock",
		.usage = "NAME [OPTION]... [--] COMMAND [ARGUMENT]...\n"
			 "       baton lock NAME [OPTION]... -c STRING",
		.summary = "run a command while it holds a name",
		.text = "One command at a time runs under a name; the others wait, or yield and\n"
			"are told who holds it. BATON_FENCE is a number that only ever grows.\n"
			"\n"
			"  -n, --nonblock      yield at once if somebody holds it\n"
			"  -w, --wait D        yield after D, such as 90s or 5min\n"
			"  -E, --conflict-exit-code CODE\n"
			"                      the status when it yields, instead of 75\n"
			"  -c, --command STRING\n"
			"                      run STRING with /bin/sh\n"
			"      --ttl D         lose it when this host does not renew it for D\n"
			"      --at-least D    keep it for D from the start, in the background\n"
			"      --fleet PATH    hold it among those who use this file\n"
			"  -v, --verbose       say when it is held\n"
			"\n"
			"The status is that of the command; 75 it yielded, 76 the name was lost.\n"
			"baton-lock(1) says more.\n",
		.run = cmd_lock,
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
