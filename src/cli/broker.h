/* What commands about a broker share. */
#ifndef CLI_BROKER_H
#define CLI_BROKER_H

#include <stdbool.h>

#include <baton.h>

#include "options.h"
#include "out.h"

enum {
	OPTION_BROKER = OPTION_LONG,
	OPTION_BROKER_JSON,
	BROKER_NEXT
};

/* The options that all of them have. */
#define BROKER_OPTIONS                                      \
	{"broker", required_argument, NULL, OPTION_BROKER}, \
	{                                                   \
		"help", no_argument, NULL, 'h'              \
	}

/* Asks the broker in that folder (NULL: the usual one) about itself.
 *
 * EX_OK: *ret is the caller's. Otherwise that is the status, as one line on standard error says. */
int broker_look(const char *folder, struct baton_broker_status **ret);

/* The status for what went wrong, after one line on standard error. */
int broker_fail(enum baton_err e);

/* A view as text, for tables; cut off if it is longer. Returns `text`. */
#define BROKER_TEXT 256
const char *broker_text(struct baton_str s, char text[BROKER_TEXT]);

#endif
