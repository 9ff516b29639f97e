/* baton complete: ends a claim whose work is done. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "ending.h"
#include "input.h"
#include "reading.h"

#define OPTION_RESULT STORE_NEXT

struct request {
	struct ending ending;
	const char *result;
};

static bool take(void *arg, int option, const char *value)
{
	struct request *r = arg;
	if (option == OPTION_RESULT)
		r->result = value;
	else
		return store_option(&r->ending.store, option, value);
	return true;
}

int cmd_complete(struct out *out, int argc, char **argv)
{
	static const struct option options[] = {
		STORE_OPTIONS,
		{"result", required_argument, NULL, OPTION_RESULT},
		{0},
	};
	struct request request = {.ending = {.end = {.how = BATON_COMPLETE}}};
	struct operands operands = {.max = 2};
	const struct reading reading = {options, &operands, take, &request};
	char *read = NULL;
	int status;
	if (!reading_do(&reading, out, argc, argv, &status))
		return status;
	struct baton_work_end *end = &request.ending.end;
	end->result = baton_str_z(request.result);
	if (request.result && strcmp(request.result, "-") == 0) {
		status = input_all("the result", BATON_RESULT_MAX, &read, &end->result.len);
		if (status != EX_OK)
			return status;
		end->result.ptr = read;
	}
	status = ending_run(out, &request.ending, &operands, 0);
	free(read);
	return status;
}
