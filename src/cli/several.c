/* The jobs that a command is given, one after the other. */
#include <stdlib.h>
#include <sysexits.h>

#include "command.h"
#include "json.h"
#include "name.h"
#include "several.h"

static int read_ids(struct several *s, const struct operands *operands)
{
	s->ids = calloc(operands->count, sizeof *s->ids);
	if (!s->ids) {
		complain("no memory for %zu ids", operands->count);
		return EX_OSERR;
	}
	for (s->count = 0; s->count < operands->count; s->count++) {
		if (!name_job(operands->texts[s->count], &s->ids[s->count]))
			return EX_USAGE;
	}
	return EX_OK;
}

int several_parse(struct several *s, struct out *out, int argc, char **argv)
{
	struct operands operands = {.max = BATON_PUT_MAX};
	*s = (struct several){.ids = NULL};
	int status;
	if (!store_reading(&s->store, &operands, out, argc, argv, &status))
		return status;
	if (!name_needed(&operands, 1, argv[0], "the id of a job"))
		return EX_USAGE;
	status = read_ids(s, &operands);
	if (status == EX_OK)
		status = store_open(&s->store, STORE_EXISTING);
	if (status != EX_OK)
		several_done(s);
	return status;
}

void several_done(struct several *s)
{
	store_close(&s->store);
	free(s->ids);
	s->ids = NULL;
}

void several_tell(const struct several *s, struct out *out, size_t index, const char *what)
{
	struct json json = {.line = {.out = out}};
	if (!s->store.json) {
		out_print(out, "%s %s\n", s->ids[index].text, what);
		return;
	}
	json_open(&json, NULL);
	json_text(&json, "id", s->ids[index].text);
	json_text(&json, "answer", what);
	json_close(&json);
	json_end(&json);
}
