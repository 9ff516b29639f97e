/* baton retry: brings dead jobs back, and has those that wait tried now. */
#include <stdlib.h>
#include <sysexits.h>

#include "command.h"
#include "several.h"

static const char *word(enum baton_err answer)
{
	if (answer == BATON_OK)
		return "ready";
	return answer == BATON_NOT_FOUND ? "missing" : "unchanged";
}

static int retry_some(struct out *out, const struct several *s, size_t first,
                      enum baton_err *answers)
{
	int status = EX_OK;
	size_t left = s->count - first, count = left < SEVERAL_STEP ? left : SEVERAL_STEP;
	enum baton_err e =
		baton_work_revive(s->store.handle, s->ids + first, count, answers + first);
	if (e != BATON_OK)
		return store_fail(&s->store, e);
	for (size_t i = first; i < first + count; i++) {
		several_tell(s, out, i, word(answers[i]));
		if (answers[i] != BATON_OK)
			status = EXIT_FAILURE;
	}
	return status;
}

static int retry(struct out *out, const struct several *s, enum baton_err *answers)
{
	int status = EX_OK;
	for (size_t i = 0; i < s->count && (status == EX_OK || status == EXIT_FAILURE);
	     i += SEVERAL_STEP) {
		int some = retry_some(out, s, i, answers);
		status = some == EX_OK ? status : some;
	}
	return status;
}

int cmd_retry(struct out *out, int argc, char **argv)
{
	struct several several;
	int status = several_parse(&several, BATON_BATCH_DEAD, out, argc, argv);
	if (status != EX_OK || !several.ids)
		return status;
	enum baton_err *answers = calloc(several.count + 1, sizeof *answers);
	if (answers) {
		status = retry(out, &several, answers);
	} else {
		complain("no memory for %zu answers", several.count);
		status = EX_OSERR;
	}
	free(answers);
	several_done(&several);
	return status;
}
