/* Payloads as a handler reads them. */
#ifndef RUNNER_PAYLOAD_H
#define RUNNER_PAYLOAD_H

#include "base/buf.h"
#include "baton/work.h"

/* One line of JSON for each payload of the claim: {"job":ID,"seq":N,"payload":TEXT}, or, if it is no
 * UTF-8, "payload_base64" instead of "payload". */
enum baton_err payload_lines(struct buf *buf, const struct baton_work_claim *claim);

#endif
