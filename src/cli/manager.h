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

#define MANAGER_SAFE_MAX 1100

/* The sockets that it has opened for a broker; 0: none. And what it has kept of a broker that has
 * died. */
struct manager_sockets {
	int clients;
	int backends;
	struct baton_broker_safe safe[MANAGER_SAFE_MAX];
	size_t safe_count;
	char **names; /* of all */
};

/* False: it has passed something else, as one line on standard error says. manager_sockets_done()
 * is fine all the same, and leaves the descriptors. */
bool manager_sockets(struct manager_sockets *ret);
void manager_sockets_done(struct manager_sockets *sockets);

/* Whether there is one that is told something. */
bool manager_is_there(void);

/* Has it keep a descriptor in case that this process dies, under a name; -1: no longer. */
void manager_keep(const char *name, int fd);

/* Whether it would take that process for this one's successor, and that it is. */
bool manager_knows(int32_t pid);
void manager_succeeded(int32_t pid);

/* What the process that takes the place of this one has to know, and taking its place, after which
 * it is not told again that this one is ready. The text is one that was made so, or is ignored. */
#define MANAGER_WILL 512
struct baton_str manager_will(char will[MANAGER_WILL]);
void manager_succeed(struct manager *m, struct baton_str will);

#endif
