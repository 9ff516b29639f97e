/* The processes that descend from this one, as /proc shows them. */
#ifndef GUARDIAN_TREE_H
#define GUARDIAN_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <baton/alloc.h>
#include <baton/err.h>
#include <baton/str.h>

/* Whether the line of a process leads to the ancestor that is asked about. */
enum kin_line {
	KIN_OURS = 1,
	KIN_EXCUSED, /* it does, and is not signalled */
	KIN_OTHERS
};

struct kin {
	int32_t pid;
	int32_t parent;
	enum kin_line line; /* 0: not followed yet */
};

/* Begins as {.alloc = ...}. */
struct tree {
	const struct baton_alloc *alloc; /* [const] */
	struct kin *kin;                 /* those who descend from this process, by pid */
	size_t count;
	size_t room;
};

/* Looks at who descends from this process now. What is forked while it looks may be missing, and
 * what has ended is not reaped by it.
 *
 * BATON_SYSTEM: /proc cannot be read. BATON_NO_MEMORY. The tree is empty unless BATON_OK. */
enum baton_err tree_look(struct tree *t);

/* Forgets those of `pids`, and all who descend from these. */
void tree_spare(struct tree *t, const int32_t *pids, size_t count);

/* Lets tree_signal() pass over those of `pids`, but not over who descends from these. */
void tree_excuse(struct tree *t, const int32_t *pids, size_t count);

/* Sends `sig` to all of them. Nobody else gets it, even if a pid was given to another process in
 * the meantime. */
void tree_signal(const struct tree *t, int sig);

/* Frees the memory. Fine for a zeroed tree with an allocator, and twice. For AUTO(). */
void tree_done(struct tree *t);

/* Keeps those of `count` kin that descend from `ancestor`, and returns how many these are. They are
 * sorted by pid before and after. A parent that is not among them is the end of its line. */
size_t tree_keep(struct kin *kin, size_t count, int32_t ancestor);

/* The parent in a line of /proc/PID/stat. False: it is none, and *ret is untouched. */
bool tree_parse_parent(struct baton_str stat, int32_t *ret);

#endif
