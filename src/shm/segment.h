/* A file that several processes map: made complete or not at all, and trusted only after a look. */
#ifndef SHM_SEGMENT_H
#define SHM_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <baton/err.h>
#include <baton/id.h>

#define SEGMENT_PATH_MAX 4095
#define SEGMENT_PARAMS 8

/* How the file begins. What follows at `data_offset` belongs to the segment's kind. Whoever
 * attaches checks every field before anything is mapped; after that the header never changes. */
struct segment_header {
	char magic[8];                   /* "BATONSHM"                                          */
	uint32_t layout;                 /* the version of this header                          */
	uint32_t data_offset;            /* where the kind's own data begin                     */
	uint64_t size;                   /* of the whole file                                   */
	char kind[16];                   /* what is inside, padded with NULs                    */
	uint32_t kind_version;           /* the version of what is inside                       */
	uint32_t param_count;            /* how many of params count                            */
	uint32_t params[SEGMENT_PARAMS]; /* the geometry, as the kind means it                  */
	struct baton_id id;              /* random: two segments of one path are told apart     */
	struct baton_id boot;            /* the boot in which it was made                       */
	uint8_t unused[24];
};

/* What to attach to, and how to make it if it is not there. */
struct segment_spec {
	const char *path; /* absolute */
	const char *kind; /* 1 to 15 bytes */
	uint32_t kind_version;
	uint32_t params[SEGMENT_PARAMS]; /* for a new one; one that is there keeps its own       */
	uint32_t param_count;
	mode_t mode;    /* 0600, or 0660 to share it with the group of its folder               */
	bool read_only; /* map it to look at; never makes one                                   */

	/* With read_only: so many bytes at the beginning of the data, whole pages, can be written
	 * to all the same, if the file can. */
	size_t writable;

	/* How large the data of this geometry are; 0: the geometry is not allowed, after fail().
	 * Also asked about the params of a segment that is there, which an enemy may have written.
	 *  */
	size_t (*size)(const uint32_t *params);

	/* Fills in the data of a new segment, which are zeros, before anybody else can see them.
	 * NULL: none is made. */
	enum baton_err (*init)(void *data, const uint32_t *params, void *arg);
	void *arg;
};

struct segment {
	void *base;                          /* of the mapping; NULL: not attached */
	size_t size;                         /* of the mapping                     */
	const struct segment_header *header; /* inside of it                       */
	void *data;                          /* inside of it                       */
	uint32_t params[SEGMENT_PARAMS];     /* as they were when they were checked */
	dev_t dev;                           /* the file, which cannot come again  */
	ino_t ino;                           /* while it is mapped                 */
	bool writable;                       /* some of it, at least               */
	char path[SEGMENT_PATH_MAX + 1];     /* "": it has none                    */
};

/* Attaches to the segment at spec->path, which is made if it is not there, or is there from an
 * earlier boot, of which nobody lives.
 *
 * BATON_OK:      *ret is attached, and ended by segment_close().
 * BATON_NOT_HELD: there is none, and none is to be made.
 * BATON_INVALID: the path, the kind or the geometry; or what is there is no such segment, of
 *                another version, owner or mode. It is left as it is, and the detail says what is
 *                wrong.
 * BATON_FULL:    the file system has no room for it.
 * BATON_SYSTEM:  anything else. *ret is untouched unless BATON_OK. Any thread. */
enum baton_err segment_open(const struct segment_spec *spec, struct segment *ret);

/* Makes a segment in the memory of this process alone, without a file. `path` and `mode` of the
 * spec mean nothing. BATON_INVALID: the geometry. BATON_NO_MEMORY, BATON_SYSTEM. */
enum baton_err segment_make_private(const struct segment_spec *spec, struct segment *ret);

/* Unmaps it. Fine for a zeroed segment, and twice. For AUTO(). */
void segment_close(struct segment *s);

/* Whether the path still leads to this segment: false once it was removed or replaced, always true
 * without one. One system call. */
bool segment_is_current(const struct segment *s);

#endif
