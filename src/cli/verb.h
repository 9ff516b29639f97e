/* What a command can do, as the first of its operands says. */
#ifndef CLI_VERB_H
#define CLI_VERB_H

#include <stddef.h>

#include "options.h"
#include "store.h"

struct verb {
	const char *name;
	enum store_need need;
	size_t min, max;   /* operands, with the verb itself */
	const char *needs; /* what these are */
	int (*run)(void *request);
};

/* What a command can do; the first is what it does without any operand. */
struct verbs {
	const char *command;
	const struct verb *verbs;
	size_t count;
};

/* The verb that the operands begin with. NULL: there is none, or it has too few or too many of
 * them, as one line on standard error has said. */
const struct verb *verb_choose(const struct verbs *verbs, const struct operands *operands);

#endif
