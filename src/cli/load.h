/* Putting the lines of a file. */
#ifndef CLI_LOAD_H
#define CLI_LOAD_H

#include <stdbool.h>

#include <baton.h>

#include "out.h"
#include "store.h"

struct load {
	struct store *store; /* opened if the file can be, for the caller to close */
	struct out *out;
	struct baton_batch template; /* what holds for every line that says nothing else */
	bool json;                   /* write an object per job */
	bool atomic;                 /* all lines or none, in one transaction */
	bool check_first;            /* none if one of them is wrong */
};

/* Puts a job for each line of the file, "-" being standard input. Returns EX_OK, or another status
 * after one line on standard error that says which line is wrong, and what is stored of them. */
int load_file(const struct load *load, const char *path);

#endif
