/* baton cancel: removes jobs, or asks those who have claimed them to stop. */
#include <stdlib.h>
#include <sysexits.h>

#include "command.h"
#include "several.h"

static const char *const words[] = {
	[BATON_CANCEL_REMOVED] = "removed",
	[BATON_CANCEL_TOLD] = "told",
	[BATON_CANCEL_MISSING] = "missing",
};

static int cancel_some(struct out *out, const struct several *s, size_t first,
                       enum baton_cancelled *answers)
{
	int status = EX_OK;
	size_t left = s->count - first, count = left < SEVERAL_STEP ? left : SEVERAL_STEP;
	enum baton_err e =
		baton_work_cancel(s->store.handle, s->ids + first, count, answers + first);
	if (e != BATON_OK)
		return store_fail(&s->store, e);
	for (size_t i = first; i < first + count; i++) {
		several_tell(s, out, i, words[answers[i]]);
		if (answers[i] == BATON_CANCEL_MISSING)
			status = EXIT_FAILURE;
	}
	return status;
}

static int cancel(struct out *out, const struct several *s, enum baton_cancelled *answers)
{
	int status = EX_OK;
	for (size_t i = 0; i < s->count && (status == EX_OK || status == EXIT_FAILURE);
	     i += SEVERAL_STEP) {
		int some = cancel_some(out, s, i, answers);
		status = some == EX_OK ? status : some;
	}
	return status;
}

int cmd_cancel(struct out *out, int argc, char **argv)
{
	struct several several;
	int status = several_parse(&several, 0, out, argc, argv);
	if (status != EX_OK || !several.ids)
		return status;
	enum baton_cancelled *answers = calloc(several.count + 1, sizeof *answers);
	if (answers) {
		status = cancel(out, &several, answers);
	} else {
		complain("no memory for %zu answers", several.count);
		status = EX_OSERR;
	}
	free(answers);
	several_done(&several);
	return status;
}
