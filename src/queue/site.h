/* Where keys are counted that do not count in the whole cluster: a runner, or all of a host. */
#ifndef QUEUE_SITE_H
#define QUEUE_SITE_H

#include <stdbool.h>

#include <baton/owner.h>
#include <baton/policy.h>

/* Whether what these two have claimed counts together. Who is opaque is alone on his host. */
bool site_is_same(enum baton_key_scope scope, const struct baton_owner *a,
                  const struct baton_owner *b);

#endif
