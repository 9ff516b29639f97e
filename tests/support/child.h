/* A child process that runs a function of the test and talks with it in messages.
 *
 * The child is killed when the test process ends, however that happens. */
#ifndef SUPPORT_CHILD_H
#define SUPPORT_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The exit code by which a child says that the system does not let it do its part. */
#define CHILD_SKIP 77

struct child {
	pid_t pid;
	int channel;
};

/* Forks. The child runs body(channel, arg), which must not use cmocka's assertions, and exits with
 * what it returns. */
void child_start(struct child *c, int (*body)(int channel, void *arg), void *arg);

/* On either side. Receiving blocks until there is a message, which it terminates with a NUL; false:
 * the other side has hung up. */
void channel_send(int channel, const char *message);
bool channel_receive(int channel, char *message, size_t size);

/* Ends every channel_receive() of the child. */
void child_hang_up(struct child *c);

/* Returns once the child has ended, and leaves it unreaped. */
void child_await_end(const struct child *c);

/* Returns the exit code of a child that ends by itself, or 128 and the signal that killed it. */
int child_reap(struct child *c);

/* Moves this process into new namespaces, in a user namespace of its own if it has to. False: the
 * system does not allow it. For use in a child. */
bool child_unshare(int flags);

#endif
