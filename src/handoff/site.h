/* Where a broker's sockets are, and who may be at their other ends. */
#ifndef HANDOFF_SITE_H
#define HANDOFF_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/err.h>

#define SITE_FOLDER_MAX 80
#define SITE_PATH_MAX 107 /* what fits into a socket's address */

struct site {
	char folder[SITE_FOLDER_MAX + 1];
	uint32_t uid; /* who looks for it */
};

/* The names in the folder. */
#define SITE_CLIENTS "broker"
#define SITE_BACKENDS "backends"
#define SITE_LOCK "broker.lock"

/* Where it is: `folder`; else that of $BATON_BROKER; else the folder baton in $XDG_RUNTIME_DIR or
 * in this user's /run/user; else one of this user's own in /tmp.
 *
 * BATON_INVALID: no absolute path, or too long. */
enum baton_err site_find(const char *folder, struct site *ret);

/* Looks whether the folder is this user's, with mode 700, and no link; makes it before if `make`.
 *
 * BATON_NOT_FOUND: it is not there. BATON_INVALID: it is not so. BATON_SYSTEM. */
enum baton_err site_check(const struct site *site, int make);

/* A path in the folder. */
void site_path(const struct site *site, const char *name, char path[SITE_PATH_MAX + 1]);

/* Locks the site for one broker, for as long as the descriptor is open. BATON_BUSY: there is one.
 * BATON_SYSTEM. */
enum baton_err site_lock(const struct site *site, int *ret_fd);

/* Listens at a path with mode 600. What is there already is replaced if it is a socket at which
 * nobody listens.
 *
 * BATON_BUSY: somebody does. BATON_INVALID: it is something else. BATON_SYSTEM. */
enum baton_err site_listen(const char *path, int type, int *ret_fd);

/* Takes a socket at that path that listens already; the caller closes it in any case.
 *
 * BATON_INVALID: it is none of that type, does not listen, or is somewhere else. BATON_SYSTEM. */
enum baton_err site_adopt(const char *path, int type, int fd);

/* Removes a socket at which nobody listens. False: somebody does. */
bool site_sweep(const char *path);

/* Accepts one that waits. -1: errno says why. */
int site_accept(int listener);

/* Connects to a path, and looks who is there. It waits that long if whoever listens has to accept
 * others first.
 *
 * BATON_TIMEOUT. BATON_NOT_FOUND: nobody listens. BATON_INVALID: neither this user does nor root,
 * or the path is too long. BATON_SYSTEM. */
enum baton_err site_connect(const char *path, int type, int wait_ms, int *ret_fd);

/* The same in two steps, for who has something to say at once: calls on what is reached may not
 * wait before it is settled. `self` is this user. */
enum baton_err site_reach(const char *path, int type, uint32_t self, int wait_ms, int *ret_fd);
enum baton_err site_settle(int fd);

/* Who is at the other end of a connection, as the kernel says. */
struct site_peer {
	int32_t pid;
	uint32_t uid;
	uint32_t gid;
};

enum baton_err site_peer(int fd, struct site_peer *ret);

#endif
