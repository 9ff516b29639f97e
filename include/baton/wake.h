/* How a lower layer tells a higher one that it should look again. */
#ifndef BATON_WAKE_H
#define BATON_WAKE_H

/* `call(arg)` only wakes somebody up: it writes to an eventfd, posts a semaphore, sets a flag. It
 * is called from any thread, with no lock held, must not block and must not call back into what
 * woke it. Losing a wake-up costs time and never correctness: whoever is woken reads the truth. */
struct baton_wake {
	void (*call)(void *arg);
	void *arg;
};

#endif
