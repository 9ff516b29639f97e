/* Which claim a command is about: its id and its token. */
#ifndef CLI_PROOF_H
#define CLI_PROOF_H

#include <stdbool.h>

#include <baton.h>

#include "options.h"

/* Reads CLAIM and TOKEN from the operands from `first` on, or else $BATON_CLAIM and $BATON_TOKEN.
 * False: they are not there, or not what they should be, as one line on standard error has said. */
bool proof_parse(const struct operands *operands, size_t first, struct baton_work_proof *ret);

/* Says that the claim is not held, and returns the status for that. */
int proof_lost(const struct baton_work_proof *proof);

#endif
