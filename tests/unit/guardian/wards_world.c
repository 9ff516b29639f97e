/* A runner's side with a guardian, in a folder of its own. */
#include "wards_world.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"
#include "support/harness.h"

int wards_setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return -1;
	strcpy(w->folder, "/tmp/baton-wards-XXXXXX");
	if (!mkdtemp(w->folder))
		return -1;
	snprintf(w->life, sizeof w->life, "%s/life", w->folder);
	snprintf(w->file, sizeof w->file, "%s/witness", w->folder);
	snprintf(w->gate, sizeof w->gate, "%s/gate", w->folder);
	struct wards_ask ask = {.life = w->life};
	*state = w;
	return wards_open(&ask, &w->wards) == BATON_OK ? 0 : -1;
}

int wards_teardown(void **state)
{
	struct world *w = *state;
	wards_close(w->wards);
	int failed = access(w->life, F_OK) == 0; /* it is removed */
	failed |= scratch_remove(w->folder);
	free(w);
	return failed;
}

struct ward_spec spec_of(uint64_t id, char *const *argv)
{
	return (struct ward_spec){
		.id = id,
		.argv = argv,
		.channel = -1,
		.grace = baton_duration_s(HOUR),
		.output_max = sizeof((struct world *)NULL)->text,
	};
}

enum baton_err start(struct wards *w, uint64_t id, const char *script)
{
	char shell[] = "sh", option[] = "-c";
	char *argv[] = {shell, option, (char *)script, NULL};
	struct ward_spec spec = spec_of(id, argv);
	return wards_start(w, &spec);
}

/* Waits for the next news. */
struct ward_news await_news(struct world *w)
{
	struct ward_news news = {.kind = 0};
	while (!wards_next(w->wards, &news)) {
		struct pollfd fd = {.fd = wards_fd(w->wards), .events = POLLIN};
		if (poll(&fd, 1, BOUND_MS) == 0)
			fail_msg("nothing happens");
	}
	return news;
}

static void note(struct world *w, const struct ward_news *news)
{
	size_t used = strlen(w->said);
	switch (news->kind) {
	case WARD_BEGUN:
		w->begun = true;
		break;
	case WARD_SAID:
		snprintf(w->said + used, sizeof w->said - used, "%.*s\n", (int)news->text.len,
		         news->text.ptr);
		break;
	case WARD_ENDED:
		assert_true(news->text.len < sizeof w->text);
		if (news->text.len > 0)
			memcpy(w->text, news->text.ptr, news->text.len);
		w->text[news->text.len] = '\0';
		w->text_len = news->text.len;
		break;
	case WARD_GUARDIAN_LOST:
		w->lost = true;
		break;
	}
}

/* Waits until `kind` is told, and notes all that comes before. */
struct ward_news await_kind(struct world *w, enum ward_kind kind)
{
	for (;;) {
		struct ward_news news = await_news(w);
		note(w, &news);
		if (news.kind == kind)
			return news;
	}
}

struct ward_news await_end(struct world *w)
{
	return await_kind(w, WARD_ENDED);
}

/* Waits until it has said this line. */
void await_line(struct world *w, const char *line)
{
	for (;;) {
		struct ward_news news = await_kind(w, WARD_SAID);
		if (news.text.len == strlen(line) &&
		    memcmp(news.text.ptr, line, news.text.len) == 0)
			return;
	}
}

struct ward_news run(struct world *w, const char *script)
{
	assert_int_equal(start(w->wards, 7, script), BATON_OK);
	return await_end(w);
}

void exits_with(const struct ward_news *news, int code)
{
	assert_int_equal(news->how, WARD_EXITED);
	assert_int_equal(news->code, code);
}

void killed_by(const struct ward_news *news, int sig)
{
	assert_int_equal(news->how, WARD_SIGNALED);
	assert_int_equal(news->code, sig);
}
