/* The file beside which the locks of a runner's commands lie. */
#include "runner/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "contest/home.h"
#include "store/store.h"

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
