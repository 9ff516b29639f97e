/* baton snooze: gives the work of a claim back for later. */
#include <sysexits.h>

#include "command.h"
#include "ending.h"
#include "moment.h"
#include "name.h"

int cmd_snooze(struct out *out, int argc, char **argv)
{
	const struct span_limits limits = span_limits_delay();
	struct ending ending = {.end = {.how = BATON_SNOOZE}};
	struct operands operands = {.max = 3};
	int status;
	if (!store_reading(&ending.store, &operands, out, argc, argv, &status))
		return status;
	if (!name_needed(&operands, 1, argv[0], "how long, such as 10min") ||
	    !span_parse("the time to snooze", operands.texts[0], &limits, &ending.end.delay))
		return EX_USAGE;
	return ending_run(out, &ending, &operands, 1);
}
