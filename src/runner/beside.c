/* The file beside which the locks of a runner's commands lie. */
#include "runner/beside.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "contest/home.h"
#include "guardian/latch.h"
#include "store/store.h"

static_assert(LATCH_PATH_MAX == BESIDE_MAX, "the path of a lock fits");

enum baton_err beside_find(const struct baton_store *store, char path[BESIDE_MAX + 1])
{
	static const char suffix[] = "-beats";
	size_t length = strlen(store->beats_path);
	struct home home;
	if (length > sizeof suffix) {
		snprintf(path, BESIDE_MAX + 1, "%.*s", (int)(length + 1 - sizeof suffix),
		         store->beats_path);
		return BATON_OK;
	}
	enum baton_err err = home_find(NULL, NULL, &home);
	if (err != BATON_OK)
		return err;
	snprintf(path, BESIDE_MAX + 1, "%s-runners", home.path);
	int fd = open(path, O_CREAT | O_RDONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(errno, "'%.200s' cannot be made", path);
	close(fd);
	return BATON_OK;
}

enum baton_err beside_life(const char *beside, char path[BESIDE_MAX + 1])
{
	struct baton_id id;
	char text[BATON_ID_TEXT];
	struct latch latch = LATCH_NONE;
	enum baton_err e = baton_id_random(&id);
	if (e != BATON_OK)
		return e;
	const struct baton_subject subject = {
		.space = BATON_STR("runner"),
		.label = baton_str_z(baton_id_print(&id, text)),
	};
	e = latch_name(&latch, beside, &subject);
	memcpy(path, latch.path, sizeof latch.path);
	return e;
}
