/* The environment of a command. */
#include "guardian/env.h"

#include <stdbool.h>
#include <string.h>

#include "base/fail.h"
#include "base/mem.h"

/* Whether both set the same variable. */
static bool same_name(const char *a, const char *b)
{
	size_t length = strcspn(b, "=");
	return strncmp(a, b, length) == 0 && a[length] == '=';
}

static bool is_replaced(const char *text, char *const *extra)
{
	for (; *extra; extra++) {
		if (same_name(text, *extra))
			return true;
	}
	return false;
}

enum baton_err env_make(const struct baton_alloc *alloc, char *const *base, char *const *extra,
                        struct env *ret)
{
	size_t count = 1;
	for (char *const *e = base; *e; e++)
		count++;
	for (char *const *e = extra; *e; e++)
		count++;
	char **all = mem_new(alloc, count, sizeof *all);
	if (!all)
		return fail_memory(count * sizeof *all, "an environment");
	size_t used = 0;
	for (char *const *e = base; *e; e++) {
		if (!is_replaced(*e, extra))
			all[used++] = *e;
	}
	for (char *const *e = extra; *e; e++)
		all[used++] = *e;
	*ret = (struct env){.alloc = alloc, .all = all, .count = count};
	return BATON_OK;
}

void env_done(struct env *env)
{
	if (env->all)
		mem_free(env->alloc, env->all, env->count, sizeof *env->all);
	*env = (struct env){.all = NULL};
}
