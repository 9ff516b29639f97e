/* Addresses to listen at, as people type them. */
#ifndef CLI_LISTEN_H
#define CLI_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include <baton.h>

#define LISTEN_MAX 64
#define LISTEN_TEXT 512

struct listen {
	struct baton_broker_listener all[LISTEN_MAX];
	char texts[LISTEN_MAX][LISTEN_TEXT];
	size_t count;
};

/* Adds ADDRESS:PORT=SERVICE, or ADDRESS:PORT=SERVICE@NAME. False: it is something else, or too
 * much, as one line on standard error has said. */
bool listen_add(struct listen *l, const char *text);

#endif
