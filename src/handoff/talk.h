/* Talking on a stream with a deadline, for those who have nothing else to do. */
#ifndef HANDOFF_TALK_H
#define HANDOFF_TALK_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/str.h>
#include <baton/time.h>

#include "base/arena.h"
#include "wire/envelope.h"
#include "wire/frame.h"

/* How many milliseconds poll(2) may wait; 0 at the deadline and after it. */
int talk_patience_ms(struct baton_mono until);

/* Sends all of it. BATON_TIMEOUT. BATON_GONE: the other side has closed. BATON_SYSTEM. */
enum baton_err talk_send(int fd, struct baton_str bytes, struct baton_mono until);

/* Reads one frame and never a byte more, of at most `max` bytes. *ret is in the arena. *ret_more
 * (may be NULL): something was seen behind it.
 *
 * BATON_TIMEOUT. BATON_GONE: the other side has closed before. BATON_INVALID: it is no frame, or no
 * envelope. BATON_SYSTEM, BATON_NO_MEMORY. */
enum baton_err talk_receive(int fd, uint32_t max, struct baton_mono until, struct arena *arena,
                            struct wire_envelope *ret, bool *ret_more);

/* Waits until there is a byte, and leaves it there. BATON_TIMEOUT. BATON_GONE: the other side has
 * closed before. BATON_SYSTEM. */
enum baton_err talk_await(int fd, struct baton_mono until);

/* Connects to an endpoint: the path of a socket of this user's or root's, or tcp:HOST:PORT.
 *
 * BATON_NOT_FOUND: nobody is there. BATON_INVALID: it is no endpoint, or somebody else's.
 * BATON_TIMEOUT, BATON_SYSTEM. */
enum baton_err talk_connect(struct baton_str endpoint, struct baton_mono until, int *ret_fd);

/* Whether it has the form of an endpoint. */
bool talk_is_endpoint(struct baton_str endpoint);

#endif
