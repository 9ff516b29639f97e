/* Where keys are counted that do not count in the whole cluster. */
#include "queue/site.h"

bool site_is_same(enum baton_key_scope scope, const struct baton_owner *a,
                  const struct baton_owner *b)
{
	switch (scope) {
	case BATON_KEY_SCOPE_PROCESS:
		break;
	case BATON_KEY_SCOPE_HOST:
		if (a->pid != 0 && b->pid != 0)
			return baton_id_equal(&a->boot, &b->boot);
		break;
	case BATON_KEY_SCOPE_CLUSTER:
		return true;
	}
	return baton_id_equal(&a->incarnation, &b->incarnation);
}

struct baton_str site_name(enum baton_key_scope scope, const struct baton_owner *owner,
                           char text[SITE_NAME_MAX])
{
	bool host = scope == BATON_KEY_SCOPE_HOST && owner->pid != 0;
	text[0] = host ? 'h' : 'p';
	baton_id_print(host ? &owner->boot : &owner->incarnation, text + 1);
	return baton_str_z(text);
}
