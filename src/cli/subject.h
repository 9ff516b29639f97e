/* Names as people type them, NAMESPACE/LABEL, and as they are shown. */
#ifndef CLI_SUBJECT_H
#define CLI_SUBJECT_H

#include <stdbool.h>

#include <baton.h>

#include "text.h"

/* Where a name lies that has no namespace of its own. */
#define SUBJECT_SPACE "lock"

/* Reads the name of one subject, split at its first slash; without one it is a label of the
 * namespace SUBJECT_SPACE. False: it is too long, or a part of it is empty, as one line on standard
 * error has said. `ret` borrows from `name`. */
bool subject_parse(const char *name, struct baton_subject *ret);

/* Which subjects are meant: all (no namespace), those of a namespace (no label), or one. */
struct subject_filter {
	struct baton_str space;
	struct baton_str label;
};

/* Reads NAMESPACE or NAMESPACE/LABEL; NULL is all. False: as above. */
bool subject_filter_parse(const char *text, struct subject_filter *ret);

bool subject_matches(const struct subject_filter *filter, struct baton_str space,
                     struct baton_str label);

/* The longest label: that of a lease, which may have a lane's name in it. */
#define SUBJECT_LABEL_MAX BATON_LEASE_SUBJECT_MAX

#define SUBJECT_SHOWN TEXT_SHOWN(BATON_SPACE_MAX + 1 + SUBJECT_LABEL_MAX)

/* Writes NAMESPACE/LABEL as text_show() does; a slash in the namespace is \x2f. Without a
 * namespace it is just the label. Both may be too long, and are cut then. Returns `shown`. */
const char *subject_show(struct baton_str space, struct baton_str label, char shown[SUBJECT_SHOWN]);

#endif
