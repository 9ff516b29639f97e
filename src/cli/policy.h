/* The policy of a queue as people type it, KEY=VALUE, and as it is shown. */
#ifndef CLI_POLICY_H
#define CLI_POLICY_H

#include <stdbool.h>

#include <baton.h>

#include "json.h"
#include "line.h"

/* What is asked for: these fields of the policy, an or of enum baton_policy_field. */
struct policy_change {
	struct baton_queue_policy policy;
	uint32_t fields;
};

/* Adds what `assignment` says. False: there is no such key, or it cannot have that value, as one
 * line on standard error has said; the change is as it was. */
bool policy_assign(struct policy_change *change, const char *assignment);

/* Writes a line KEY=VALUE for each key, as policy_assign() reads it. */
void policy_print(struct line *line, const struct baton_queue_policy *policy);

/* Adds a field for each key, with '_' instead of '-': numbers, words, and spans in milliseconds. */
void policy_json(struct json *j, const struct baton_queue_policy *policy);

/* "open", "pull", "lane", "runner" */
const char *policy_mode_name(enum baton_queue_mode mode);

#endif
