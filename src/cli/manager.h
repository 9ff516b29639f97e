/* The service manager that has started this process, if one has: systemd, or another one that does
 * as it does. */
#ifndef CLI_MANAGER_H
#define CLI_MANAGER_H

#include <stdbool.h>

#include <baton.h>

struct manager {
	struct baton_duration every; /* how often it wants to hear of this process; 0: never */
	struct baton_mono next;      /* when it does so at the latest */
	bool ready, stopping;        /* as it was told */
};

/* Asks what it wants. Without one all of the others do nothing. */
void manager_init(struct manager *m);

/* Tells it, once: this process does what it is for; it is about to end. */
void manager_ready(struct manager *m);
void manager_stopping(struct manager *m);

/* Tells it that this process lives, if it is time. Called by whoever would not call it if he hung.
 */
void manager_alive(struct manager *m);

/* Until then, for poll(2). */
int manager_patience_ms(const struct manager *m);

/* The sockets that it has opened for a broker; 0: none. */
struct manager_sockets {
	int clients;
	int backends;
};

/* False: it has passed something else, as one line on standard error says. */
bool manager_sockets(struct manager_sockets *ret);

#endif
