/* For a resource that is written to under fences: lets nobody in who comes after somebody newer. */
#include <baton/admit.h>

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/mem.h"
#include "contest/ledger.h"
#include "contest/ledger_slot.h"
#include "contest/roll.h"

#define SUBJECTS_DEFAULT 65536u

struct baton_admit {
	const struct baton_alloc *alloc;
	size_t size; /* of this block                                                            */
	pid_t pid;   /* of the process that opened it                                            */
	bool in_file;
	union {
		struct roll roll;
		struct ledger ledger;
	} in;
	char path[]; /* if in a file */
};

static enum baton_err admit_init(struct baton_admit *a, uint32_t subjects)
{
	if (a->in_file)
		return ledger_init(&a->in.ledger, a->path, subjects);
	return roll_init(&a->in.roll, subjects, a->alloc);
}

enum baton_err baton_admit_open(const struct baton_admit_options *options,
                                struct baton_admit **ret_admit)
{
	const struct baton_alloc *alloc = options->alloc ? options->alloc : baton_alloc_libc();
	uint32_t subjects = options->subjects ? options->subjects : SUBJECTS_DEFAULT;
	if (subjects > BATON_ADMIT_SUBJECTS_MAX)
		return fail(BATON_INVALID, "%u subjects; there can be %d", subjects,
		            BATON_ADMIT_SUBJECTS_MAX);
	size_t path_bytes = options->path ? strlen(options->path) + 1 : 0;
	size_t size = sizeof(struct baton_admit) + path_bytes;
	struct baton_admit *a = mem_new(alloc, 1, size);
	if (!a)
		return fail_memory(size, "what has been admitted");
	a->alloc = alloc;
	a->size = size;
	a->pid = getpid();
	a->in_file = options->path != NULL;
	if (path_bytes > 0)
		memcpy(a->path, options->path, path_bytes);
	enum baton_err e = admit_init(a, subjects);
	if (e != BATON_OK) {
		mem_free(alloc, a, 1, size);
		return e;
	}
	*ret_admit = a;
	return BATON_OK;
}

void baton_admit_close(struct baton_admit *admit)
{
	if (!admit)
		return;
	if (admit->in_file && admit->pid == getpid())
		ledger_done(&admit->in.ledger);
	else if (admit->in_file)
		ledger_drop(&admit->in.ledger);
	else
		roll_done(&admit->in.roll);
	mem_free(admit->alloc, admit, 1, admit->size);
}

enum baton_err baton_admit(struct baton_admit *admit, struct baton_str subject, baton_fence fence,
                           baton_fence *ret_highest)
{
	uint64_t highest;
	struct baton_str checked;
	enum baton_err e = baton_str_make("a subject", subject.ptr, subject.len,
	                                  BATON_ADMIT_SUBJECT_MAX, &checked);
	if (e != BATON_OK)
		return e;
	if (fence.v == 0 || fence.v > SLOT_FENCE_MAX)
		return fail(BATON_INVALID,
		            "%" PRIu64 " is no fence; the lowest is 1, the highest %" PRIu64,
		            fence.v, SLOT_FENCE_MAX);
	/* The lock of the file is one for a process and its forked children. */
	if (admit->pid != getpid())
		return fail(BATON_GONE,
		            "this was opened by process %d; a forked child opens it for itself",
		            (int)admit->pid);
	e = admit->in_file ? ledger_admit(&admit->in.ledger, checked, fence.v, &highest)
	                   : roll_admit(&admit->in.roll, checked, fence.v, &highest);
	if (e == BATON_STALE && ret_highest)
		ret_highest->v = highest;
	return e;
}
