/* Ending a claim: what complete, fail, abandon and snooze share. */
#ifndef CLI_ENDING_H
#define CLI_ENDING_H

#include <baton.h>

#include "options.h"
#include "out.h"
#include "store.h"

struct ending {
	struct store store;
	struct baton_work_end end;
};

/* Ends the claim that the operands from `first` on name, and writes what became of its work.
 * Returns the status, after one line on standard error unless it is EX_OK. */
int ending_run(struct out *out, struct ending *e, const struct operands *operands, size_t first);

#endif
