/* What a persistent worker says about a claim, or a connection: one line of JSON, read as if an
 * enemy had written it.
 *
 * {"claim":ID,"ok":true,"result":VALUE,"emit":[{"queue":NAME,"payload":VALUE}]}
 * {"claim":ID,"ok":false,"error":TEXT,"retry":BOOLEAN,"delay_ms":N}
 * {"claim":ID,"progress":VALUE}
 * {"claim":ID,"checkpoint":true}
 * {"visits":N}
 * {"visit":N,"done":true} */
#ifndef RUNNER_REPLY_H
#define RUNNER_REPLY_H

#include <stdbool.h>

#include <baton/str.h>
#include <baton/work.h>

#include "base/arena.h"

#define REPLY_LINE_MAX ((size_t)BATON_QUEUE_PAYLOAD_LIMIT) /* bytes of a line */
#define REPLY_ERROR 256
#define REPLY_CHECKPOINT 100 /* jobs at most that "checkpoint":true asks for */

enum reply_about {
	REPLY_CLAIM = 1,
	REPLY_VISITS, /* how many connections it takes at once */
	REPLY_VISIT   /* one of them has ended */
};

struct reply {
	enum reply_about about;
	uint64_t visit;  /* about one: which */
	uint32_t visits; /* how many it takes; 0: none */

	/* About a claim. */
	char claim[sizeof((struct baton_work_proof *)0)->id];
	bool is_progress;          /* and no end */
	struct baton_str progress; /* a string, or the JSON of another value */
	bool is_text;              /* a string */
	uint32_t checkpoint;       /* it asks for so many more jobs; 0: it does not */
	struct baton_work_end end; /* without its proof */
};

/* Reads a line, without its line feed. What *ret points to is the arena's. False: `error` has half
 * a sentence that says what is wrong, and *ret is not to be used. */
bool reply_parse(struct baton_str line, struct arena *arena, struct reply *ret,
                 char error[REPLY_ERROR]);

#endif
