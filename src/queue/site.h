/* Where keys are counted that do not count in the whole cluster: a runner, or all of a host. */
#ifndef QUEUE_SITE_H
#define QUEUE_SITE_H

#include <stdbool.h>

#include <baton/owner.h>
#include <baton/policy.h>
#include <baton/str.h>

/* Whether what these two have claimed counts together. Who is opaque is alone on his host. */
bool site_is_same(enum baton_key_scope scope, const struct baton_owner *a,
                  const struct baton_owner *b);

/* A name for where he is: two have the same one iff what they claim counts together. */
#define SITE_NAME_MAX (1 + BATON_ID_TEXT)
struct baton_str site_name(enum baton_key_scope scope, const struct baton_owner *owner,
                           char text[SITE_NAME_MAX]);

#endif
