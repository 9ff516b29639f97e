/* What baton top has: what it saw last, and what is chosen of it. */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>

#include <baton.h>

#include "out.h"
#include "sight.h"
#include "store.h"
#include "terminal.h"

#define TOP_NAME_WIDTH 16
#define TOP_MESSAGE 200

enum panel {
	PANEL_QUEUES = 0,
	PANEL_FAILURES,
	PANELS
};

enum section {
	SECTION_QUEUES = 0,
	SECTION_RUNNERS,
	SECTION_SHARDS,
	SECTION_HITCHES,
	SECTION_FAILURES,
	SECTIONS
};

struct top {
	struct store store;
	struct out *out;
	bool once;
	int interval_ms;
	struct terminal terminal;
	struct sight sight;
	struct baton_mono looked; /* when it looked last, whether it saw anything or not */
	enum panel panel;
	char queue[BATON_NAME_MAX + 1]; /* that is chosen; "": none yet */
	struct baton_batch_id job;
	char asked;                /* the key that waits for a yes; 0: none */
	char message[TOP_MESSAGE]; /* what came of the last key */
	unsigned lines[SECTIONS];  /* that each section may have */
};

/* The place of what is chosen; the first if it is gone. */
size_t top_queue_chosen(const struct top *t);
size_t top_failure_chosen(const struct top *t);

/* The name, as a terminal may have it, in no more than so many columns; `shown` has
 * TEXT_SHOWN(BATON_NAME_MAX) bytes. */
const char *top_cut(const char *name, size_t width, char *shown);

/* Shows what was seen last on the terminal, which is open. */
void top_draw(struct top *t);

/* Prints what was seen, as tables or as JSON. BATON_NO_MEMORY, and errors of the store. */
enum baton_err top_print(struct top *t);

#endif
