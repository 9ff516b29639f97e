/* What a command can do, as the first of its operands says. */
#include <string.h>

#include "out.h"
#include "suggest.h"
#include "verb.h"

#define LIST_MAX 128

/* "list, show and set" */
static const char *list(const struct verbs *v, char text[LIST_MAX])
{
	size_t used = 0;
	for (size_t i = 0; i < v->count && used < LIST_MAX; i++) {
		const char *between = i == 0 ? "" : i + 1 == v->count ? " and " : ", ";
		used += (size_t)snprintf(text + used, LIST_MAX - used, "%s%s", between,
		                         v->verbs[i].name);
	}
	return text;
}

static const struct verb *find(const struct verbs *v, const char *name)
{
	struct suggestion meant = {.typed = name};
	char shown[SHOWN_MAX], known[LIST_MAX];
	for (size_t i = 0; i < v->count; i++) {
		if (strcmp(v->verbs[i].name, name) == 0)
			return &v->verbs[i];
		suggestion_consider(&meant, v->verbs[i].name);
	}
	show(name, shown);
	if (meant.nearest)
		complain("'%s' cannot '%s'; did you mean '%s'?", v->command, shown, meant.nearest);
	else
		complain("'%s' cannot '%s': %s are known", v->command, shown, list(v, known));
	return NULL;
}

const struct verb *verb_choose(const struct verbs *verbs, const struct operands *operands)
{
	char shown[SHOWN_MAX];
	if (operands->count == 0)
		return &verbs->verbs[0];
	const struct verb *verb = find(verbs, operands->texts[0]);
	if (!verb)
		return NULL;
	if (operands->count < verb->min)
		complain("'%s %s' needs %s", verbs->command, verb->name, verb->needs);
	else if (operands->count > verb->max)
		complain("'%s %s' got '%s' too", verbs->command, verb->name,
		         show(operands->texts[verb->max], shown));
	else
		return verb;
	return NULL;
}
