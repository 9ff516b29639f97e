/* Who holds what in a store. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "leases.h"

#define PAGE 100

static void split(const struct baton_lease_entry *entry, struct hold *hold)
{
	const char *slash = memchr(entry->subject, '/', entry->len);
	size_t before = slash ? (size_t)(slash - entry->subject) : 0;
	bool has_space = before > 0 && before <= BATON_SPACE_MAX;
	size_t first = has_space ? before + 1 : 0;
	hold->space = (struct baton_str){entry->subject, has_space ? before : 0};
	hold->label = (struct baton_str){entry->subject + first, entry->len - first};
}

static bool add(struct holds *holds, const struct subject_filter *filter,
                const struct baton_lease_entry *entry)
{
	struct hold hold = {
		.since = entry->holder.claimed_at,
		.expires = entry->holder.expires_at,
		.fence = entry->holder.fence,
		.incarnation = entry->holder.owner.incarnation,
		.pid = entry->holder.owner.pid,
		.owner = baton_str_z(entry->holder.owner.id),
	};
	split(entry, &hold);
	return !subject_matches(filter, hold.space, hold.label) || holds_add(holds, &hold);
}

/* What all subjects of the namespace begin with. */
static struct baton_str prefix_of(const struct subject_filter *filter,
                                  char text[BATON_SPACE_MAX + 1])
{
	size_t len = filter->space.len;
	if (len == 0)
		return (struct baton_str){NULL, 0};
	memcpy(text, filter->space.ptr, len);
	text[len] = '/';
	return (struct baton_str){text, len + 1};
}

static int take_into(const struct store *store, const struct subject_filter *filter,
                     struct baton_lease_entry *entries, struct holds *holds)
{
	char text[BATON_SPACE_MAX + 1];
	char last[BATON_LEASE_SUBJECT_MAX + 1];
	struct baton_str after = {last, 0};
	size_t count;
	do {
		enum baton_err e = baton_lease_list(store->handle, prefix_of(filter, text), after,
		                                    entries, PAGE, &count);
		if (e != BATON_OK)
			return store_fail(store, e);
		for (size_t i = 0; i < count; i++) {
			if (!add(holds, filter, &entries[i])) {
				complain("no memory for the list of holders");
				return EX_OSERR;
			}
		}
		if (count > 0) {
			after.len = entries[count - 1].len;
			memcpy(last, entries[count - 1].subject, after.len);
		}
	} while (count == PAGE);
	return EX_OK;
}

int leases_take(const struct store *store, const struct subject_filter *filter, struct holds *ret)
{
	struct holds holds = {.items = NULL};
	struct baton_lease_entry *entries = calloc(PAGE, sizeof *entries);
	int status = EX_OSERR;
	if (entries)
		status = take_into(store, filter, entries, &holds);
	else
		complain("no memory for the list of holders");
	free(entries);
	if (status == EX_OK) {
		holds_sort(&holds);
		*ret = holds;
	} else {
		holds_done(&holds);
	}
	return status;
}
