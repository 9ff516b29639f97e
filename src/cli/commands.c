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
	{
		.name = "holders",
		.usage = "[--fleet PATH] [--json] [-v] [NAMESPACE[/LABEL]]",
		.summary = "show who holds what on this host",
		.text = "Lists what the processes of a fleet hold, by namespace and label: who\n"
			"holds it, under which fence, since when and until when. Without such a\n"
			"fleet nobody holds anything. It changes nothing.\n"
			"\n"
			"      --fleet PATH  the fleet's file\n"
			"      --json        one JSON object per line\n"
			"  -v, --verbose     say on standard error which fleet is used\n",
		.run = cmd_holders,
	},
	{
		.name = "watch",
		.usage = "[--fleet PATH] [--json] [-v] [NAMESPACE[/LABEL]]",
		.summary = "show what happens to claims, as it happens",
		.text = "Begins with who holds what, and then writes a line whenever something is\n"
			"claimed or released, has expired, was forced away, or its holder died.\n"
			"It ends by a signal, when nobody reads it any more, or, with status 69,\n"
			"when the fleet's file is removed. It changes nothing.\n"
			"\n"
			"      --fleet PATH  the fleet's file\n"
			"      --json        one JSON object per line\n"
			"  -v, --verbose     say on standard error which fleet is used\n",
		.run = cmd_watch,
	},
	{
		.name = "force-release",
		.usage = "[--fleet PATH] [-v] NAME",
		.summary = "take a name away from whoever holds it",
		.text = "NAME is NAMESPACE/LABEL, or a label in the namespace 'lock'. It prints\n"
			"who held it. The holder goes on until it looks: its fence is what keeps\n"
			"it from doing harm. The status is 1 if nobody held it.\n"
			"\n"
			"      --fleet PATH  the fleet's file\n"
			"  -v, --verbose     say on standard error which fleet is used\n",
		.run = cmd_force_release,
	},
	{
		.name = "fleet",
		.usage = "[--fleet PATH] [-v] [--json | --reset | --create [LIMIT]... [--group]]",
		.summary = "show, make or remove the fleet of this host's processes",
		.text = "Shows the fleet's file, its members, and how full it is.\n"
			"\n"
			"      --create      make it, unless it is there with these limits\n"
			"      --members N   how many processes it can have\n"
			"      --subjects N  how many subjects can be held\n"
			"      --waiters N   how many threads can wait in line\n"
			"      --events N    how many events each member keeps; a power of 2\n"
			"      --wakeups N   how many wake-ups are kept; a power of 2\n"
			"      --group       make it for the group of its folder, with mode 660\n"
			"      --reset       remove it; refused while a member lives\n"
			"      --json        show it as one JSON object\n"
			"      --fleet PATH  its file, instead of $BATON_FLEET, of\n"
			"                    /run/baton/fleet, or of one of this user's own\n"
			"  -v, --verbose     say on standard error which fleet is used\n",
		.run = cmd_fleet,
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
