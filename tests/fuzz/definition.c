/* A definition of a service is read, or each line that is wrong gets a sentence. */
#include <stdio.h>
#include <string.h>

#include <baton/alloc.h>

#include "fuzz/fuzz.h"
#include "handoff/definition.h"

static bool user(const char *name, uint32_t *ret_uid)
{
	*ret_uid = 7;
	return strcmp(name, "root") == 0;
}

static void wrong(void *arg, const char *sentence)
{
	size_t *count = arg;
	CHECK(strncmp(sentence, "f:", 2) == 0);
	++*count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct definition got;
	size_t count = 0;
	const struct definition_source source = {
		.file = "f",
		.name = BATON_STR("echo"),
		.text = {(const char *)data, size},
		.user = user,
		.wrong = wrong,
		.arg = &count,
	};
	arena_init(&arena, baton_alloc_libc());
	if (definition_read(&source, &arena, &got) == BATON_OK) {
		CHECK(count == 0);
		CHECK(got.command && got.command[0] && got.command[0][0] != '\0');
		CHECK(got.max >= 1 && got.start.ns > 0 && got.stop.ns > 0 && got.idle.ns > 0);
	} else {
		CHECK(count > 0);
	}
	arena_done(&arena);
	return 0;
}
