/* Shares of shards: tables of literals, and random clusters that must settle. */
#include "runner/balance.h"

#include <stdio.h>
#include <string.h>

#include "support/harness.h"
#include "support/rng.h"
#include "support/soak.h"

#define NAMES "-ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* What a runner takes and gives up, as text: shards in the order of the plan. */
static void plan_print(const struct balance_ask *ask, char *ret, size_t room)
{
	static uint32_t take[BATON_QUEUE_SHARDS_MAX];
	static uint32_t give[BATON_QUEUE_SHARDS_MAX];
	size_t takes;
	size_t gives;
	balance_plan(ask, take, &takes, give, &gives);
	size_t n = 0;
	ret[0] = '\0';
	for (size_t i = 0; i < takes; i++)
		n += (size_t)snprintf(ret + n, room - n, "+%u", take[i]);
	for (size_t i = 0; i < gives; i++)
		n += (size_t)snprintf(ret + n, room - n, "-%u", give[i]);
}

/* A queue as a text with a letter for each shard: its owner, or '-' for nobody. A has number 1. */
static uint32_t owners_read(const char *text, uint64_t *ret)
{
	uint32_t n = 0;
	for (; text[n] != '\0'; n++)
		ret[n] = (uint64_t)(strchr(NAMES, text[n]) - NAMES);
	return n;
}

static void tables(void **state)
{
	(void)state;
	static const struct {
		const char *about;
		const char *members; /* letter and weight, of one digit */
		const char *owners;
		const char *plans[4]; /* of A, B, C, D */
	} cases[] = {
		{"alone, nothing taken", "A1", "----", {"+0+1+2+3"}},
		{"alone, all taken", "A1", "AAAA", {""}},
		{"two begin at once and do not meet", "A1B1", "----", {"+0+1", "+2+3"}},
		{"one too many goes to the lower number", "A1B1", "-----", {"+0+1+2", "+3+4"}},
		{"it stays where it is", "A1B1", "AABBB", {"", ""}},
		{"one joins", "A1B1", "AAAA", {"-3-2", ""}},
		{"one joins and takes what is free by now", "A1B1", "AA--", {"", "+2+3"}},
		{"a third joins two", "A1B1C1", "AAABBB", {"-2", "-5", ""}},
		{"two have one more; the lower keeps it", "A1B1C1", "AABB", {"", "-3", ""}},
		{"one leaves", "A1C1", "ABCABC", {"", "-4-1", ""}},
		{"one has left", "A1C1", "A-CA-C", {"+1", "", "+4"}},
		{"by weight", "A2B1", "------", {"+0+1+2+3", "+4+5"}},
		{"the largest remainder gets the rest", "A3B2", "----", {"+0+1", "+2+3"}},
		{"a remainder counts more than what one has", "A3B2", "AAAB", {"-2", ""}},
		{"more members than shards", "A1B1C1D1", "--", {"+0", "+1", "", ""}},
		{"more members than shards, which stay", "A1B1C1D1", "DC", {"", "", "", ""}},
		{"weight 0 keeps nothing", "A0B1", "AABB", {"-1-0", ""}},
		{"weight 0 takes nothing", "A0B1", "----", {"", "+0+1+2+3"}},
		{"all weights 0", "A0B0", "A-B-", {"-0", "-2"}},
		{"who is no member gives all up", "B1", "AABB", {"-1-0", ""}},
		{"what others have is not free", "A1B1", "CCCC", {"", ""}},
		{"what others have is lacked", "A1B1", "CC--", {"+2+3", "+2+3"}},
		{"nobody serves it", "", "A--", {"-0"}},
		{"no shards", "A1B1", "", {"", ""}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct balance_member members[4];
		uint64_t owners[16];
		struct balance_ask ask = {.members = members, .owners = owners};
		for (const char *m = cases[i].members; *m != '\0'; m += 2)
			members[ask.count++] =
				(struct balance_member){(uint64_t)(strchr(NAMES, m[0]) - NAMES),
			                                (uint32_t)(m[1] - '0')};
		ask.shards = owners_read(cases[i].owners, owners);
		for (ask.me = 1; ask.me <= 4 && cases[i].plans[ask.me - 1] != NULL; ask.me++) {
			char plan[64];
			plan_print(&ask, plan, sizeof plan);
			if (strcmp(plan, cases[i].plans[ask.me - 1]) != 0)
				fail_msg("%s: runner %c plans '%s' and not '%s'", cases[i].about,
				         NAMES[ask.me], plan, cases[i].plans[ask.me - 1]);
		}
	}
}

#define MEMBERS 12u
#define SHARDS 64u

/* A queue and who serves it, with what each of them saw last. */
struct cluster {
	struct balance_member members[MEMBERS];
	size_t count;
	uint64_t owners[SHARDS];
	uint32_t shards;
	uint64_t seen[MEMBERS][SHARDS];
	unsigned moves;  /* shards that were given up, or taken */
	unsigned misses; /* takes of what was free no more      */
};

/* The shares, by the simplest way there is: one shard after the other of what is left over goes to
 * the member that comes first by the rule. */
static void reference_shares(const struct cluster *c, uint32_t ret[MEMBERS])
{
	uint64_t sum = 0;
	uint32_t rest = c->shards;
	uint32_t have[MEMBERS] = {0};
	for (size_t i = 0; i < c->count; i++) {
		sum += c->members[i].weight;
		for (uint32_t s = 0; s < c->shards; s++)
			have[i] += c->owners[s] == c->members[i].number;
	}
	for (size_t i = 0; i < c->count; i++) {
		ret[i] = sum == 0 ? 0 : (uint32_t)(c->shards * c->members[i].weight / sum);
		rest -= ret[i];
	}
	bool got[MEMBERS] = {false};
	for (; sum > 0 && rest > 0; rest--) {
		size_t best = c->count;
		uint64_t best_left = 0;
		bool best_has = false;
		for (size_t i = 0; i < c->count; i++) {
			uint64_t left = c->shards * c->members[i].weight % sum;
			bool has = have[i] > ret[i];
			if (got[i] || (best < c->count && (left < best_left ||
			                                   (left == best_left && has <= best_has))))
				continue;
			best = i;
			best_left = left;
			best_has = has;
		}
		got[best] = true;
	}
	for (size_t i = 0; i < c->count; i++)
		ret[i] += got[i];
}

static uint32_t owned(const struct cluster *c, uint64_t number)
{
	uint32_t n = 0;
	for (uint32_t s = 0; s < c->shards; s++)
		n += c->owners[s] == number;
	return n;
}

/* A random queue: among its owners are runners that serve it no more, number 1000 and up. */
static void cluster_random(struct cluster *c, struct rng *r, bool strangers)
{
	*c = (struct cluster){.count = rng_below(r, MEMBERS + 1),
	                      .shards = (uint32_t)rng_below(r, SHARDS + 1)};
	unsigned kinds = 1 + (unsigned)rng_below(r, 4); /* of weights */
	uint64_t number = 0;
	for (size_t i = 0; i < c->count; i++) {
		number += 1 + rng_below(r, 5);
		c->members[i].number = number;
		c->members[i].weight = (uint32_t)(rng_below(r, kinds) + (kinds == 1));
	}
	/* Some members have more than others. */
	uint64_t reach = c->count > 0 ? 1 + rng_below(r, c->count) : 0;
	for (uint32_t s = 0; s < c->shards; s++) {
		uint64_t kind = rng_below(r, 8);
		if (kind == 0 && strangers)
			c->owners[s] = 1000 + rng_below(r, 2);
		else if (kind > 2 && reach > 0)
			c->owners[s] = c->members[rng_below(r, reach)].number;
	}
}

static void look_around(struct cluster *c, size_t i)
{
	memcpy(c->seen[i], c->owners, sizeof c->owners);
}

/* One member follows its plan, made on what it saw, as far as the store lets it. It knows always
 * what it owns itself. True: it had a plan. */
static bool act(struct cluster *c, size_t i)
{
	uint32_t take[SHARDS];
	uint32_t give[SHARDS];
	size_t takes;
	size_t gives;
	uint64_t me = c->members[i].number;
	for (uint32_t s = 0; s < c->shards; s++)
		if ((c->seen[i][s] == me) != (c->owners[s] == me))
			c->seen[i][s] = c->owners[s];
	struct balance_ask ask = {c->members, c->count, me, c->seen[i], c->shards};
	balance_plan(&ask, take, &takes, give, &gives);
	assert_true(takes == 0 || gives == 0);
	for (size_t n = 0; n < gives; n++) {
		assert_int_equal(c->owners[give[n]], me);
		c->owners[give[n]] = 0;
		c->moves++;
	}
	for (size_t n = 0; n < takes; n++) {
		assert_in_range(take[n], 0, c->shards - 1);
		assert_int_equal(c->seen[i][take[n]], 0);
		if (c->owners[take[n]] != 0) {
			c->misses++;
			continue;
		}
		c->owners[take[n]] = me;
		c->moves++;
	}
	return takes + gives > 0;
}

/* Rounds in which every member acts once, in a random order, until nobody has anything to do.
 * Returns how many it took. */
static unsigned settle(struct cluster *c, struct rng *r)
{
	for (unsigned round = 0; round < 8; round++) {
		size_t order[MEMBERS] = {0};
		bool busy = false;
		for (size_t i = 0; i < c->count; i++) {
			size_t j = rng_below(r, i + 1);
			order[i] = order[j];
			order[j] = i;
		}
		for (size_t i = 0; i < c->count; i++) {
			look_around(c, order[i]);
			busy = act(c, order[i]) || busy;
		}
		if (!busy)
			return round;
	}
	fail_msg("it does not settle");
	return 0;
}

static void check_settled(const struct cluster *c)
{
	uint32_t shares[MEMBERS];
	reference_shares(c, shares);
	uint32_t strangers = 0;
	uint32_t free = 0;
	uint64_t weights = 0;
	for (uint32_t s = 0; s < c->shards; s++) {
		strangers += c->owners[s] >= 1000;
		free += c->owners[s] == 0;
	}
	uint32_t lacked = 0;
	for (size_t i = 0; i < c->count; i++) {
		uint32_t have = owned(c, c->members[i].number);
		assert_true(have <= shares[i]);
		lacked += shares[i] - have;
		weights += c->members[i].weight;
	}
	assert_int_equal(lacked, weights > 0 ? strangers : 0);
	assert_int_equal(free, weights > 0 ? 0 : c->shards - strangers);
}

static void every_member_meets_its_share_with_the_fewest_moves(void **state)
{
	(void)state;
	struct rng r = rng_seed_from_env();
	for (unsigned n = soak_scale(5000, 1000000); n > 0; n--) {
		struct cluster c;
		cluster_random(&c, &r, n % 2 == 0);
		uint32_t shares[MEMBERS];
		reference_shares(&c, shares);
		/* What is above a share has to be given up; what is free by then, and lacked, has
		 * to be taken. */
		uint32_t above = 0;
		uint32_t lacked = 0;
		uint32_t free = owned(&c, 0);
		for (size_t i = 0; i < c.count; i++) {
			uint32_t have = owned(&c, c.members[i].number);
			above += have > shares[i] ? have - shares[i] : 0;
			lacked += have < shares[i] ? shares[i] - have : 0;
		}
		uint32_t taken = lacked < free + above ? lacked : free + above;
		assert_in_range(settle(&c, &r), 0, 2);
		check_settled(&c);
		uint32_t after[MEMBERS];
		reference_shares(&c, after);
		for (size_t i = 0; i < c.count; i++)
			assert_int_equal(after[i], shares[i]);
		assert_int_equal(c.moves, above + taken);
		assert_int_equal(c.misses, 0);
	}
}

static void shares_are_within_one_shard_of_the_weights(void **state)
{
	(void)state;
	struct rng r = rng_seed_from_env();
	for (unsigned n = soak_scale(2000, 1000000); n > 0; n--) {
		struct cluster c;
		cluster_random(&c, &r, false);
		settle(&c, &r);
		uint64_t weights = 0;
		for (size_t i = 0; i < c.count; i++)
			weights += c.members[i].weight;
		for (size_t i = 0; i < c.count && weights > 0; i++) {
			uint64_t part = (uint64_t)c.shards * c.members[i].weight;
			uint64_t have = owned(&c, c.members[i].number);
			assert_true(have >= part / weights);
			assert_true(have <= part / weights + (part % weights > 0));
		}
	}
}

static void who_sees_the_same_takes_different_shards(void **state)
{
	(void)state;
	struct rng r = rng_seed_from_env();
	for (unsigned n = soak_scale(2000, 1000000); n > 0; n--) {
		struct cluster c;
		cluster_random(&c, &r, false);
		uint32_t shares[MEMBERS];
		reference_shares(&c, shares);
		/* Nobody has too much: as many are free as are lacked. */
		for (size_t i = 0; i < c.count; i++)
			for (uint32_t s = 0; owned(&c, c.members[i].number) > shares[i]; s++)
				if (c.owners[s] == c.members[i].number)
					c.owners[s] = 0;
		for (size_t i = 0; i < c.count; i++)
			look_around(&c, i);
		for (size_t i = 0; i < c.count; i++)
			act(&c, i);
		assert_int_equal(c.misses, 0);
		check_settled(&c);
	}
}

static void old_views_do_no_harm_and_end_with_the_last_of_them(void **state)
{
	(void)state;
	struct rng r = rng_seed_from_env();
	unsigned misses = 0;
	for (unsigned n = soak_scale(2000, 500000); n > 0; n--) {
		struct cluster c;
		cluster_random(&c, &r, n % 2 == 0);
		for (size_t i = 0; i < c.count; i++)
			look_around(&c, i);
		for (unsigned step = 0; c.count > 0 && step < 60; step++) {
			size_t i = rng_below(&r, c.count);
			if (rng_below(&r, 3) == 0)
				look_around(&c, rng_below(&r, c.count));
			else
				act(&c, i);
		}
		misses += c.misses;
		settle(&c, &r);
		check_settled(&c);
	}
	assert_true(misses > 0);
}

static void members_come_and_go_and_the_fewest_shards_move(void **state)
{
	(void)state;
	struct rng r = rng_seed_from_env();
	struct cluster c = {.shards = 60};
	for (unsigned n = soak_scale(500, 100000); n > 0; n--) {
		c.moves = 0;
		uint32_t most = 0;
		if (c.count > 0 && (c.count == MEMBERS || rng_below(&r, 2) == 0)) {
			size_t gone = rng_below(&r, c.count);
			most = owned(&c, c.members[gone].number);
			for (uint32_t s = 0; s < c.shards; s++)
				if (c.owners[s] == c.members[gone].number)
					c.owners[s] = 0;
			memmove(c.members + gone, c.members + gone + 1,
			        (c.count - gone - 1) * sizeof *c.members);
			c.count--;
			if (c.count == 0)
				most = 0;
		} else {
			uint64_t last = c.count > 0 ? c.members[c.count - 1].number : 0;
			c.members[c.count++] = (struct balance_member){last + 1, 1};
			/* Each is given up and taken; when it is the first, only taken. */
			most = c.count == 1 ? c.shards : 2 * (c.shards / (uint32_t)c.count);
		}
		settle(&c, &r);
		check_settled(&c);
		assert_int_equal(c.moves, most);
	}
}

static void the_largest_cluster_is_shared_out(void **state)
{
	(void)state;
	static struct balance_member members[BATON_RUNNERS_MAX];
	static uint64_t owners[BATON_QUEUE_SHARDS_MAX];
	static uint32_t take[BATON_QUEUE_SHARDS_MAX];
	static uint32_t give[BATON_QUEUE_SHARDS_MAX];
	static bool taken[BATON_QUEUE_SHARDS_MAX];
	for (uint32_t i = 0; i < BATON_RUNNERS_MAX; i++)
		members[i] = (struct balance_member){UINT64_MAX - BATON_RUNNERS_MAX + i,
		                                     1 + i % BATON_RUNNER_WEIGHT_MAX};
	size_t sum = 0;
	for (size_t i = 0; i < BATON_RUNNERS_MAX; i++) {
		struct balance_ask ask = {members, BATON_RUNNERS_MAX, members[i].number, owners,
		                          BATON_QUEUE_SHARDS_MAX};
		size_t takes;
		size_t gives;
		balance_plan(&ask, take, &takes, give, &gives);
		assert_int_equal(gives, 0);
		for (size_t n = 0; n < takes; n++) {
			assert_false(taken[take[n]]);
			taken[take[n]] = true;
		}
		sum += takes;
	}
	assert_int_equal(sum, BATON_QUEUE_SHARDS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables),
		cmocka_unit_test(every_member_meets_its_share_with_the_fewest_moves),
		cmocka_unit_test(shares_are_within_one_shard_of_the_weights),
		cmocka_unit_test(who_sees_the_same_takes_different_shards),
		cmocka_unit_test(old_views_do_no_harm_and_end_with_the_last_of_them),
		cmocka_unit_test(members_come_and_go_and_the_fewest_shards_move),
		cmocka_unit_test(the_largest_cluster_is_shared_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
