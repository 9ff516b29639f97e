/* Payloads as a handler reads them. */
#ifndef RUNNER_PAYLOAD_H
#define RUNNER_PAYLOAD_H

#include <baton/backend.h>
#include <baton/work.h>

#include "base/buf.h"

/* One line of JSON for each payload of the claim: {"job":ID,"seq":N,"payload":TEXT}, or, if it is
 * no UTF-8, "payload_base64" instead of "payload". */
enum baton_err payload_lines(struct buf *buf, const struct baton_work_claim *claim);

/* The claim as a persistent worker reads it, with a line feed: {"claim":ID,"fence":N,"queue":NAME,
 * "lane":NAME,"concurrency_key":KEY,"attempt":N,"jobs":[{"id":ID,"seq":N,"payload":TEXT}]}. The
 * lane and the key may be null; a payload is as above, and a job with several has "payloads", a
 * list of objects with one each. */
enum baton_err payload_claim(struct buf *buf, const struct baton_work_claim *claim);

/* The answer to a worker that asked for more for a claim: {"claim":ID,"fence":N,"more":[JOB]}, with
 * jobs as above and the fence that holds from then on. `more` NULL: there is nothing. */
enum baton_err payload_more(struct buf *buf, const struct baton_work_claim *claim,
                            const struct baton_work_claim *more);

/* A connection as a persistent worker reads of it, with a line feed: {"visit":N,"fence":N,
 * "queue":NAME,"lane":NAME,"connection":ID,"client_pid":N,"client_uid":N}. */
enum baton_err payload_visit(struct buf *buf, const struct baton_connection *connection,
                             baton_fence fence, uint64_t number);

#endif
