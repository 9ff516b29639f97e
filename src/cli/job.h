/* A job as it is shown, to people and to programs. */
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include <baton.h>

#include "json.h"
#include "line.h"

/* "ready", "delayed", ... */
const char *job_state_name(enum baton_batch_state state);

/* The state of that name. False: there is none, as one line on standard error has said. */
bool job_state_parse(const char *text, enum baton_batch_state *ret);

/* Adds "payload", or "payload_base64" where the bytes are no UTF-8. */
void job_json_payload(struct json *j, struct baton_str bytes);

/* Adds that; or, if there are several, the list "payloads" of objects that have one of these. */
void job_json_payloads(struct json *j, const struct baton_work_batch *batch);

/* Adds what was put. */
void job_json_batch(struct json *j, const struct baton_work_batch *batch);

/* Adds the name of a lane, or null. */
void job_json_lane(struct json *j, struct baton_str lane);

/* Adds its concurrency key, or null. */
/* null, the key, or a list of them. */
void job_json_keys(struct json *j, const struct baton_str *keys, size_t count);

/* All of its keys, a comma between them. */
void job_keys(struct line *line, const struct baton_str *keys, size_t count);

/* Adds all that is known of a job. */
void job_json(struct json *j, const struct baton_work_info *info);

/* Adds one sentence that says why the job is not running. `ahead` is the one that keeps it, or
 * NULL; `stalled` is what it waits for if it is ready, or NULL: that is not known. */
void job_why(struct line *line, const struct baton_work_info *info,
             const struct baton_work_info *ahead, const struct baton_stalled *stalled,
             const struct baton_store *store);

/* Adds "ahead", the job that keeps it, and "holder", who has claimed that one; or null. */
void job_json_ahead(struct json *j, const struct baton_work_info *info,
                    const struct baton_work_info *ahead);

/* The reason in one word. */
const char *job_why_name(enum baton_why why);

#endif
