/* Names as people type them, NAMESPACE/LABEL, and as they are shown. */
#include <string.h>

#include "out.h"
#include "subject.h"

static bool part_check(const char *name, const char *what, struct baton_str part, size_t max)
{
	char shown[SHOWN_MAX];
	if (part.len > 0 && part.len <= max)
		return true;
	show(name, shown);
	if (part.len == 0)
		complain("the %s of '%s' is empty; a name is LABEL or NAMESPACE/LABEL", what,
		         shown);
	else
		complain("the %s of '%s' has %zu bytes; %zu are allowed", what, shown, part.len,
		         max);
	return false;
}

/* Splits at the first slash. Without one, `after` is NULL with length 0. */
static void split(const char *name, struct baton_str *before, struct baton_str *after)
{
	const char *slash = strchr(name, '/');
	*before = slash ? (struct baton_str){name, (size_t)(slash - name)} : baton_str_z(name);
	*after = baton_str_z(slash ? slash + 1 : NULL);
}

bool subject_parse(const char *name, struct baton_subject *ret)
{
	struct baton_str space;
	struct baton_str label;
	split(name, &space, &label);
	if (!label.ptr) {
		label = space;
		space = BATON_STR(SUBJECT_SPACE);
	}
	/* A holder has a label of one byte at least, which counts too. */
	if (!part_check(name, "namespace", space, BATON_SPACE_MAX) ||
	    !part_check(name, "label", label, BATON_LABEL_MAX - 1))
		return false;
	*ret = (struct baton_subject){.space = space, .label = label};
	return true;
}

bool subject_filter_parse(const char *text, struct subject_filter *ret)
{
	struct subject_filter filter = {.space = {NULL, 0}};
	if (text) {
		split(text, &filter.space, &filter.label);
		if (!part_check(text, "namespace", filter.space, BATON_SPACE_MAX))
			return false;
		if (filter.label.ptr &&
		    !part_check(text, "label", filter.label, BATON_LABEL_MAX - 1))
			return false;
	}
	*ret = filter;
	return true;
}

bool subject_matches(const struct subject_filter *filter, struct baton_str space,
                     struct baton_str label)
{
	if (filter->space.len > 0 && !baton_str_equal(filter->space, space))
		return false;
	return filter->label.len == 0 || baton_str_equal(filter->label, label);
}

static struct baton_str cut(struct baton_str s, size_t max)
{
	return (struct baton_str){s.ptr, s.len < max ? s.len : max};
}

const char *subject_show(struct baton_str space, struct baton_str label, char shown[SUBJECT_SHOWN])
{
	text_show(cut(space, BATON_SPACE_MAX), "/", shown);
	size_t used = strlen(shown);
	if (used > 0)
		shown[used++] = '/';
	text_show(cut(label, SUBJECT_LABEL_MAX), "", shown + used);
	return shown;
}
