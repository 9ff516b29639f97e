/* Which of a lane's ready batches one claim takes. */
#include "queue/select.h"

bool select_joins(const struct candidate *a, const struct candidate *b)
{
	return a->cls == BATON_WORK && b->cls == BATON_WORK && a->slot == BATON_JOIN &&
	       b->slot == BATON_JOIN && a->delivery == b->delivery &&
	       baton_str_equal(a->group, b->group) && baton_str_equal(a->key, b->key);
}

static bool is_given(const struct candidate *head, enum baton_boundary at)
{
	return at == BATON_IDLE || head->delivery == BATON_EARLIEST;
}

size_t select_prefix(const struct candidate *c, size_t count, enum baton_boundary at, size_t max)
{
	if (count == 0 || max == 0 || !is_given(&c[0], at))
		return 0;
	size_t n = 1;
	while (n < count && n < max && select_joins(&c[0], &c[n]))
		n++;
	return n;
}

size_t select_more(const struct candidate *c, size_t count, size_t max)
{
	if (count == 0 || c[0].key.len > 0 || !select_joins(&c[0], &c[0]))
		return 0;
	return select_prefix(c, count, BATON_CHECKPOINT, max);
}

/* Whether the wanted ones may pass by `c`. */
static bool may_pass(const struct candidate *c, const struct candidate *head, bool pass)
{
	return pass && c->cls != BATON_COMMAND && !(head && select_joins(head, c));
}

/* The first candidate that is wanted, or NULL. */
static const struct candidate *find(const struct candidate *c, size_t count, uint64_t seq)
{
	for (size_t i = 0; i < count; i++) {
		if (c[i].seq == seq)
			return &c[i];
	}
	return NULL;
}

bool select_exact(const struct candidate *c, size_t count, const uint64_t *seqs, size_t wanted,
                  enum baton_boundary at, bool pass)
{
	const struct candidate *head = wanted > 0 ? find(c, count, seqs[0]) : NULL;
	if (!head || !is_given(head, at))
		return false;
	size_t found = 0;
	for (size_t i = 0; i < count && found < wanted; i++) {
		if (c[i].seq != seqs[found]) {
			if (!may_pass(&c[i], head, pass))
				return false;
			continue;
		}
		if (found > 0 && !select_joins(head, &c[i]))
			return false;
		found++;
	}
	return found == wanted;
}
