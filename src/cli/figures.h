/* What runners have done, in numbers, as they told the store. */
#ifndef CLI_FIGURES_H
#define CLI_FIGURES_H

#include <stddef.h>

#include <baton.h>

#include "json.h"
#include "runners.h"

/* Begins zeroed. */
struct figures {
	struct baton_runner_metrics *all; /* in the order of the runners */
	struct baton_store_time *told;    /* when each did; 0: it has not yet */
};

/* BATON_NO_MEMORY, and errors of the store. */
enum baton_err figures_read(struct figures *f, const struct runners *r, struct baton_store *store);
void figures_done(struct figures *f);

/* The field "metrics" of a runner: an object, or null. */
void figures_json(const struct figures *f, size_t runner, struct json *j);

/* All of them, in the text format of Prometheus. BATON_NO_MEMORY: nothing was written. */
enum baton_err figures_expose(const struct figures *f, const struct runners *r,
                              struct baton_store_time now, struct out *out);

#endif
