/* baton abandon: gives the work of a claim back as if it had not been claimed. */
#include <sysexits.h>

#include "command.h"
#include "ending.h"

int cmd_abandon(struct out *out, int argc, char **argv)
{
	struct ending ending = {.end = {.how = BATON_ABANDON}};
	struct operands operands = {.max = 2};
	int status;
	if (!store_reading(&ending.store, &operands, out, argc, argv, &status))
		return status;
	return ending_run(out, &ending, &operands, 0);
}
