/* Whatever stands in a lane: what one claim takes of it follows from the rules, said in another way
 * than the code does. */
#include "queue/select.h"

#include "fuzz/fuzz.h"

#define LANE_MAX 64

/* The input: how many may be taken, where, then a byte for each candidate, of which two bits say
 * whether it is among the exact ones that are asked for. */
struct lane {
	struct candidate all[LANE_MAX];
	struct candidate wanted[LANE_MAX];
	uint64_t seqs[LANE_MAX]; /* of the wanted */
	size_t count, wanted_count, max;
	size_t last; /* behind the last that is wanted */
	enum baton_boundary at;
};

static void read_lane(const uint8_t *data, size_t size, struct lane *l)
{
	static const struct baton_str groups[] = {{"", 0}, {"g", 1}, {"gg", 2}, {"h", 1}};
	l->max = data[0] % (LANE_MAX + 2);
	l->at = data[1] % 2 ? BATON_IDLE : BATON_CHECKPOINT;
	for (size_t i = 2; i < size && l->count < LANE_MAX; i++, l->count++) {
		uint8_t bits = data[i];
		l->all[l->count] = (struct candidate){
			.seq = 1 + l->count * 3,
			.cls = bits & 1 ? BATON_WORK : BATON_COMMAND,
			.delivery = bits & 2 ? BATON_EARLIEST : BATON_AFTER_COMMIT,
			.slot = bits & 4 ? BATON_JOIN : BATON_EXCLUSIVE,
			.group = groups[bits >> 3 & 3],
		};
		if (bits >> 6 != 3)
			continue;
		l->wanted[l->wanted_count] = l->all[l->count];
		l->seqs[l->wanted_count++] = l->all[l->count].seq;
		l->last = l->count + 1;
	}
}

/* What may stand beside others in one claim. */
static bool joins(const struct candidate *c)
{
	return c->cls == BATON_WORK && c->slot == BATON_JOIN;
}

static bool alike(const struct candidate *a, const struct candidate *b)
{
	return joins(a) && joins(b) && a->delivery == b->delivery &&
	       baton_str_equal(a->group, b->group);
}

static void check_prefix(const struct lane *l)
{
	size_t n = select_prefix(l->all, l->count, l->at, l->max);
	CHECK(n <= l->count && n <= l->max);
	if (n == 0) {
		CHECK(l->count == 0 || l->max == 0 ||
		      (l->at == BATON_CHECKPOINT && l->all[0].delivery == BATON_AFTER_COMMIT));
		return;
	}
	CHECK(l->at == BATON_IDLE || l->all[0].delivery == BATON_EARLIEST);
	for (size_t i = 1; i < n; i++)
		CHECK(alike(&l->all[0], &l->all[i]));
	/* No fewer than could be: the next one does not fit, or there is no room for it. */
	CHECK(n == l->count || n == l->max || !alike(&l->all[0], &l->all[n]));
	size_t more = select_more(l->all, l->count, l->max);
	CHECK(more == (joins(&l->all[0]) && l->all[0].delivery == BATON_EARLIEST ? n : 0));
}

/* A claim of exactly the wanted ones: as if the others that it passes were not there, none of which
 * may be passed if it is a command or belongs into the claim. */
static bool may_have(const struct lane *l, bool pass)
{
	size_t n = l->wanted_count, found = 0;
	if (n == 0 || select_prefix(l->wanted, n, l->at, n) != n)
		return false;
	for (size_t i = 0; i < l->last; i++) {
		const struct candidate *c = &l->all[i];
		if (found < n && c->seq == l->seqs[found])
			found++;
		else if (!pass || c->cls == BATON_COMMAND || alike(&l->wanted[0], c))
			return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lane l = {.count = 0};
	if (size < 2)
		return 0;
	read_lane(data, size, &l);
	check_prefix(&l);
	for (int pass = 0; pass < 2; pass++)
		CHECK(select_exact(l.all, l.count, l.seqs, l.wanted_count, l.at, pass == 1) ==
		      may_have(&l, pass == 1));
	return 0;
}
