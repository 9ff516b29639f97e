/* Reading the command line of a command from its beginning to its end. */
#ifndef CLI_READING_H
#define CLI_READING_H

#include <stdbool.h>

#include "options.h"
#include "out.h"

struct reading {
	const struct option *options; /* end with zeros; 'h' is help */
	struct operands *operands;

	/* Takes an option other than help. False: its value is wrong, as one line on standard error
	 * has said. */
	bool (*take)(void *arg, int option, const char *value);
	void *arg;
};

/* True: all of it has been taken. False: the command ends with *ret_status, as what is wrong, or
 * the help that was asked for, has been written. */
bool reading_do(const struct reading *reading, struct out *out, int argc, char **argv,
                int *ret_status);

#endif
