/* The environment of a command: that of this process with some variables set anew. */
#ifndef GUARDIAN_ENV_H
#define GUARDIAN_ENV_H

#include <stddef.h>

#include <baton/alloc.h>
#include <baton/err.h>

struct env {
	const struct baton_alloc *alloc;
	char **all;   /* with NULL at the end; borrows the texts */
	size_t count; /* with the NULL */
};

/* Makes it of `base` (NULL at its end) and `extra`, texts of the form NAME=value, which win.
 * All texts are borrowed. BATON_NO_MEMORY: *ret is untouched. */
enum baton_err env_make(const struct baton_alloc *alloc, char *const *base, char *const *extra,
                        struct env *ret);

/* For AUTO(). Fine for zeros. */
void env_done(struct env *env);

#endif
