/* What a guardian and its patron, the process that it serves, tell each other. Both are of one
 * program, so the messages are plain structs, one packet each. */
#ifndef GUARDIAN_POST_H
#define GUARDIAN_POST_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/err.h>
#include <baton/guardian.h>
#include <baton/id.h>

/* From the guardian. */
enum post_kind {
	POST_OFFER = 1, /* the subject is held with `fence`; the patron says when to begin */
	POST_END,    /* how it ended: `end`; unless `last` the guardian still keeps the subject */
	POST_REFUSED /* nothing runs: `err`, `errnum`, `detail`; `end` after a yield; the last */
};

#define POST_DETAIL 1024

struct post {
	enum post_kind kind;
	bool last;
	enum baton_err err;
	int errnum;
	baton_fence fence;
	struct baton_guardian_end end;
	char detail[POST_DETAIL];
};

/* To the guardian: that signal for the command, or ORDER_GO. */
#define ORDER_GO 0

struct order {
	int32_t what;
};

/* Both send without waiting and without a signal; what the other side does not take is dropped. */
void post_send(int socket, const struct post *post);
void order_send(int socket, int32_t what);

/* What receiving came to. */
enum post_got {
	POST_GOT = 1,
	POST_NOTHING, /* now */
	POST_HUNG_UP  /* the other side is gone, and nothing more will come */
};

enum post_got post_receive(int socket, struct post *ret);
enum post_got order_receive(int socket, struct order *ret);

#endif
