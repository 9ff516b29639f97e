/* What a claim gave, as it is written. */
#ifndef CLI_GRANT_H
#define CLI_GRANT_H

#include <baton.h>

#include "out.h"

/* A line per claim for people and scripts: id, token and payloads with tabs between them, the
 * payloads as text_show() shows them. */
void grant_lines(struct out *out, const struct baton_work_claims *claims);

/* An object per claim. */
void grant_json(struct out *out, const struct baton_work_claims *claims);

/* Variables of a shell, for one claim of one job. */
void grant_shell(struct out *out, const struct baton_work_claim *claim);

/* The same when there is none: the variables are unset, and the last command has `status`. */
void grant_shell_none(struct out *out, int status);

#endif
