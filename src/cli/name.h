/* Names of queues, lanes and jobs as people type them. */
#ifndef CLI_NAME_H
#define CLI_NAME_H

#include <stdbool.h>

#include <baton.h>

/* Whether a queue can have that name. False: it cannot, as one line on standard error has said. */
bool name_queue(const char *text, struct baton_str *ret);

/* The same for the name of anything else, which the line calls "the" and `what`. */
bool name_other(const char *what, const char *text, struct baton_str *ret);

/* The same for a job. */
bool name_job(const char *text, struct baton_batch_id *ret);

/* Whether a command has as many operands as it needs: `names` says what they are, such as "the name
 * of a queue". False: as above. */
struct operands;
bool name_needed(const struct operands *operands, size_t min, const char *command,
                 const char *names);

#endif
