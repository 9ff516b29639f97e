/* Which keys the jobs have that were put lately and stand together in rows. */
#include "store/sqlite/roster.h"

#include <string.h>

#include "base/check.h"

#define NOWHERE ROSTER_ROWS

static uint16_t *chain_of(struct roster *r, int64_t hash)
{
	return &r->chains[(uint64_t)hash % ROSTER_CHAINS];
}

static size_t row_of(const struct roster *r, int64_t first)
{
	size_t row = 0;
	while (row < r->top && r->firsts[row] != first)
		row++;
	return row < r->top ? row : NOWHERE;
}

void roster_forget(struct roster *r)
{
	memset(r->firsts, 0, sizeof r->firsts);
	memset(r->chains, 0, sizeof r->chains);
	r->top = 0;
	r->synced = false;
}

bool roster_has(const struct roster *r, int64_t first)
{
	return row_of(r, first) != NOWHERE;
}

void roster_add(struct roster *r, int64_t first, const int64_t *hashes, size_t count)
{
	const size_t hole = row_of(r, 0), row = hole != NOWHERE ? hole : r->top++;
	CHECK(first > 0 && row < ROSTER_ROWS && count <= ROSTER_JOBS);
	r->firsts[row] = first;
	for (size_t i = 0; i < ROSTER_JOBS; i++) {
		const size_t place = row * ROSTER_JOBS + i;
		r->hashes[row][i] = i < count ? hashes[i] : 0;
		if (r->hashes[row][i] == 0)
			continue;
		uint16_t *chain = chain_of(r, r->hashes[row][i]);
		r->next[place] = *chain;
		*chain = (uint16_t)(place + 1);
	}
}

static void strike(struct roster *r, size_t row, size_t index)
{
	const size_t place = row * ROSTER_JOBS + index;
	if (r->hashes[row][index] == 0)
		return;
	uint16_t *at = chain_of(r, r->hashes[row][index]);
	while (*at != place + 1)
		at = &r->next[*at - 1];
	*at = r->next[place];
	r->hashes[row][index] = 0;
}

/* Rows do not overlap: the job is in the last that begins with it or before it, or in none. */
void roster_strike(struct roster *r, int64_t seq)
{
	size_t row = NOWHERE;
	for (size_t i = 0; i < r->top; i++) {
		if (r->firsts[i] > 0 && r->firsts[i] <= seq &&
		    (row == NOWHERE || r->firsts[i] > r->firsts[row]))
			row = i;
	}
	if (row != NOWHERE && seq - r->firsts[row] < ROSTER_JOBS)
		strike(r, row, (size_t)(seq - r->firsts[row]));
}

void roster_drop(struct roster *r, int64_t first)
{
	const size_t row = row_of(r, first);
	if (row == NOWHERE)
		return;
	for (size_t i = 0; i < ROSTER_JOBS; i++)
		strike(r, row, i);
	r->firsts[row] = 0;
	while (r->top > 0 && r->firsts[r->top - 1] == 0)
		r->top--;
}

int64_t roster_find(const struct roster *r, int64_t hash)
{
	for (size_t at = r->chains[(uint64_t)hash % ROSTER_CHAINS]; at > 0; at = r->next[at - 1]) {
		const size_t row = (at - 1) / ROSTER_JOBS, index = (at - 1) % ROSTER_JOBS;
		if (r->hashes[row][index] == hash)
			return r->firsts[row] + (int64_t)index;
	}
	return 0;
}
