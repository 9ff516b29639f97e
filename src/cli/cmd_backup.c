/* baton backup: copies a store while it is in use. */
#include <inttypes.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "json.h"
#include "name.h"
#include "progress.h"
#include "status.h"
#include "store.h"

struct request {
	struct store store;
	const char *path;
	struct progress progress;
	uint64_t pages;
};

static bool on_progress(void *arg, uint64_t done, uint64_t all)
{
	struct request *r = arg;
	r->pages = all;
	progress_step(&r->progress, done, done, all);
	return true;
}

static void tell(struct out *out, const struct request *r)
{
	struct json json = {.line = {.out = out}};
	if (!r->store.json) {
		line_print(&json.line, "%" PRIu64 " pages copied to ", r->pages);
		line_shown(&json.line, baton_str_z(r->path));
		line_end(&json.line);
		return;
	}
	json_open(&json, NULL);
	json_text(&json, "file", r->path);
	json_number(&json, "pages", r->pages);
	json_close(&json);
	json_end(&json);
}

static bool path_fits(const char *path)
{
	size_t len = strlen(path);
	if (len > 0 && len <= BATON_STORE_PATH_MAX)
		return true;
	complain("the path of the copy has %zu bytes: 1 to %d are allowed", len,
	         BATON_STORE_PATH_MAX);
	return false;
}

static int backup(struct out *out, struct request *r)
{
	const struct baton_store_progress progress = {.call = on_progress, .arg = r};
	int status = store_open(&r->store, STORE_EXISTING);
	if (status != EX_OK)
		return status;
	r->progress = progress_begin("pages");
	enum baton_err e = baton_store_backup(r->store.handle, r->path, &progress);
	progress_clear(&r->progress);
	if (e != BATON_OK) {
		complain("%s", baton_err_detail());
		return e == BATON_INVALID ? EX_CANTCREAT : status_of(e);
	}
	tell(out, r);
	return EX_OK;
}

int cmd_backup(struct out *out, int argc, char **argv)
{
	struct request request = {.path = NULL};
	struct operands operands = {.max = 1};
	int status;
	if (!store_reading(&request.store, &operands, out, argc, argv, &status))
		return status;
	if (!name_needed(&operands, 1, argv[0], "the path of the copy"))
		return EX_USAGE;
	request.path = operands.texts[0];
	if (!path_fits(request.path))
		return EX_USAGE;
	if (!out_is_writable(out))
		return EX_IOERR;
	status = backup(out, &request);
	store_close(&request.store);
	return status;
}
