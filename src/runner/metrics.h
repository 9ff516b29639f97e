/* What a runner has done, in numbers: how it is counted, and the text that the store keeps. */
#ifndef RUNNER_METRICS_H
#define RUNNER_METRICS_H

#include <baton/metrics.h>

#include "base/buf.h"

/* A handler has taken so long. */
void metrics_took(struct baton_queue_metrics *m, struct baton_duration took);

/* Appends the text, at most BATON_RUNNER_REPORT_MAX bytes. Returns buf->err. */
enum baton_err metrics_print(const struct baton_runner_metrics *m, struct buf *buf);

/* Reads it, as if an enemy had written it. What is not known here is left out, and what is not
 * there is 0: it may be of another version. False: it is something else. */
bool metrics_parse(struct baton_str text, struct baton_runner_metrics *ret);

#endif
