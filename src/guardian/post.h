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
	POST_OFFER = 1, /* the subject is held with `fence`; answered by ORDER_GO */
	POST_WITHDRAWN, /* that took too long, it is no longer held; answered by ORDER_BACK */
	POST_BEGUN,     /* the answer to ORDER_GO, unless the offer was withdrawn: it runs */
	POST_END,       /* how it ended: `end`, `detail`; unless `last` answered by ORDER_HEARD */
	POST_REFUSED    /* nothing runs: `err`, `errnum`, `detail`; after a yield `end`; the last */
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

/* To the guardian: that signal for the command, or one of these. */
enum {
	ORDER_GO = -1,   /* the command may begin */
	ORDER_BACK = -2, /* ask for the subject once more */
	ORDER_HEARD = -3 /* the patron knows how it ended, and goes */
};

struct order {
	int32_t what;
};

/* Sends without waiting, because a patron may be stopped for long: there is always room for the few
 * posts that wait for its answer. Nothing happens when it is gone. */
void post_send(int socket, const struct post *post);

/* Sends, and waits while a guardian that is stopped has too many to read. Nothing happens when it
 * is gone. */
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
