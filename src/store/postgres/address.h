/* What a store's address says to Baton, among what it says to libpq. */
#ifndef POSTGRES_ADDRESS_H
#define POSTGRES_ADDRESS_H

#include <stdbool.h>

#include <baton/err.h>

/* Takes baton_pooled=1 (or 0) out of a connection string, which is a URI or a list of settings.
 *
 * BATON_INVALID: it is there with another value. What libpq cannot read may be left as it is. */
enum baton_err address_split(char *info, bool *ret_pooled);

#endif
