/* baton fail: ends a claim whose work has failed. */
#include <sysexits.h>

#include "command.h"
#include "ending.h"
#include "moment.h"
#include "reading.h"

enum {
	OPTION_ERROR = STORE_NEXT,
	OPTION_RETRY_IN,
	OPTION_DEAD
};

static bool take(void *arg, int option, const char *value)
{
	const struct span_limits limits = {baton_duration_ms(1),
	                                   baton_duration_ms(BATON_QUEUE_SPAN_MAX_MS)};
	struct ending *e = arg;
	if (option == OPTION_RETRY_IN)
		return span_parse("--retry-in", value, &limits, &e->end.delay);
	if (option == OPTION_ERROR)
		e->end.error = baton_str_z(value);
	else if (option == OPTION_DEAD)
		e->end.how = BATON_REJECT;
	else
		return store_option(&e->store, option, value);
	return true;
}

static bool fits(const struct ending *e)
{
	if (e->end.error.len == 0)
		complain("'fail' needs --error with the reason: whoever looks at the job sees it");
	else if (!baton_str_is_utf8(e->end.error))
		complain("the error is no UTF-8");
	else if (e->end.how == BATON_REJECT && e->end.delay.ns > 0)
		complain("--retry-in and --dead cannot be together");
	else
		return true;
	return false;
}

int cmd_fail(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {
		STORE_OPTIONS,
		{"error", required_argument, NULL, OPTION_ERROR},
		{"retry-in", required_argument, NULL, OPTION_RETRY_IN},
		{"dead", no_argument, NULL, OPTION_DEAD},
		{0},
	};
	struct ending ending = {.end = {.how = BATON_FAIL}};
	struct operands operands = {.max = 2};
	const struct reading reading = {options, &operands, take, &ending};
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	return fits(&ending) ? ending_run(out, &ending, &operands, 0) : EX_USAGE;
}
