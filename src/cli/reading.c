/* Reading the command line of a command from its beginning to its end. */
#include <sysexits.h>

#include "command.h"
#include "reading.h"

bool reading_do(const struct reading *reading, struct out *out, int argc, char **argv,
                int *ret_status)
{
	*ret_status = EX_USAGE;
	optind = 0;
	for (;;) {
		int option = option_mixed(argc, argv, reading->options, reading->operands);
		if (option == OPTION_END)
			return true;
		if (option == 'h') {
			help_command(out, command_find(argv[0]));
			*ret_status = EX_OK;
			return false;
		}
		if (option == OPTION_BAD || !reading->take(reading->arg, option, optarg))
			return false;
	}
}
