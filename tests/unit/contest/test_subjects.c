/* What a subject is, how many there can be, and that their room is used again. */
#include <baton/claim.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contest/index.h"
#include "contest/subjects.h"
#include "support/rng.h"
#include "support/soak.h"
#include "world.h"

static enum baton_err try_bytes(struct baton_fleet *f, const void *space, size_t space_len,
                                const void *label, size_t label_len, struct baton_claim *claim)
{
	struct baton_subject subject = {{space, space_len}, {label, label_len}, {0, 0}};
	struct baton_claim_ask ask = {.subject = &subject};
	struct baton_claim unused;
	return baton_claim_try(f, &ask, claim != NULL ? claim : &unused, NULL);
}

static void where_the_namespace_ends_is_part_of_the_name(void **state)
{
	struct world *w = *state;
	assert_int_equal(try_bytes(w->ada, "ab", 2, "c", 1, NULL), BATON_OK);
	assert_int_equal(try_bytes(w->ben, "a", 1, "bc", 2, NULL), BATON_OK);
	assert_int_equal(try_bytes(w->ben, "ab", 2, "c", 1, NULL), BATON_YIELD);
	assert_int_equal(try_bytes(w->ada, "a", 1, "bc", 2, NULL), BATON_YIELD);
}

static void names_are_bytes_and_not_text(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *bytes;
		size_t len;
	} names[] = {
		{"\0", 1},        {"\0\0", 2},       {"a\0", 2},
		{"a", 1},         {"a\0b", 3},       {"\xff\xfe", 2},
		{"aaaaaaaa", 8},  {"aaaaaaaa\0", 9}, {"aaaaaaa", 7},
		{"aaaaaaa\0", 8}, {"aaaa", 4},       {"aaaa\0", 5},
		{"\0aaaaaaa", 8}, {"aaaaaaaaa", 9},  {"\0\0\0\0\0\0\0\0", 8},
	};
	size_t count = sizeof names / sizeof names[0];
	for (size_t i = 0; i < count; i++)
		assert_int_equal(try_bytes(w->ada, "t", 1, names[i].bytes, names[i].len, NULL),
		                 BATON_OK);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(try_bytes(w->ben, "t", 1, names[i].bytes, names[i].len, NULL),
		                 BATON_YIELD);
		assert_int_equal(try_bytes(w->ada, names[i].bytes, names[i].len, "t", 1, NULL),
		                 BATON_OK);
	}
	assert_int_equal(usage_of(w->ada).subjects, 2 * count);
}

static void assert_label_at(const struct view *v, uint32_t n, const char *label, size_t len)
{
	struct name_text text;
	struct baton_subject name;
	assert_true(subjects_name(v, n, atomic_load(&v->slots[n].hash), &text, &name));
	assert_int_equal(name.label.len, len);
	assert_memory_equal(name.label.ptr, label, len);
}

static void names_of_every_length_are_told_apart_by_their_last_byte(void **state)
{
	struct world *w = *state;
	char label[BATON_LABEL_MAX];
	for (size_t i = 0; i < sizeof label; i++)
		label[i] = "abcdefghijkl"[i % 12];
	for (size_t len = 1; len <= BATON_LABEL_MAX - 3; len++) {
		struct baton_claim one, other;
		assert_int_equal(try_bytes(w->ada, "t", 1, label, len, &one), BATON_OK);
		assert_label_at(w->ada->view, one.slot, label, len);
		label[len - 1] = 'y';
		assert_int_equal(try_bytes(w->ben, "t", 1, label, len, &other), BATON_OK);
		label[len - 1] = "abcdefghijkl"[(len - 1) % 12];
		assert_int_equal(try_bytes(w->ben, "t", 1, label, len, NULL), BATON_YIELD);
		assert_int_equal(baton_claim_release(&one), BATON_OK);
		assert_int_equal(baton_claim_release(&other), BATON_OK);
	}
}

/* The owner of three bytes is "ada". */
static void lengths_are_limited_and_the_detail_says_so(void **state)
{
	struct world *w = *state;
	char bytes[1000];
	memset(bytes, 'x', sizeof bytes);
	static const struct {
		size_t space, label;
		enum baton_err answer;
		const char *said[2];
	} cases[] = {
		{0, 1, BATON_INVALID, {"namespace", "empty"}},
		{1, 0, BATON_INVALID, {"label", "empty"}},
		{31, 1, BATON_OK, {"", ""}},
		{32, 1, BATON_INVALID, {"32", "31"}},
		{1, 477, BATON_OK, {"", ""}},
		{1, 478, BATON_INVALID, {"478", "480"}},
		{31, 477, BATON_OK, {"", ""}},
		{1, 999, BATON_INVALID, {"999", "480"}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct baton_claim claim = {.slot = 77};
		struct baton_fleet_usage before = usage_of(w->ada);
		enum baton_err e =
			try_bytes(w->ada, bytes, cases[i].space, bytes, cases[i].label, &claim);
		assert_int_equal(e, cases[i].answer);
		if (e == BATON_OK)
			continue;
		assert_non_null(strstr(baton_err_detail(), cases[i].said[0]));
		assert_non_null(strstr(baton_err_detail(), cases[i].said[1]));
		struct baton_fleet_usage after = usage_of(w->ada);
		assert_memory_equal(&before, &after, sizeof before);
		assert_int_equal(claim.slot, 77);
	}
}

static void the_owners_label_counts_towards_the_limit(void **state)
{
	struct world *w = *state;
	char owner[256], label[480];
	memset(owner, 'o', 255);
	owner[255] = '\0';
	memset(label, 'x', sizeof label);
	struct baton_fleet *f = world_join(w, owner);
	assert_int_equal(try_bytes(f, "t", 1, label, 225, NULL), BATON_OK);
	assert_int_equal(try_bytes(f, "t", 1, label, 226, NULL), BATON_INVALID);
	assert_non_null(strstr(baton_err_detail(), "226"));
	assert_non_null(strstr(baton_err_detail(), "255"));
	assert_non_null(strstr(baton_err_detail(), "480"));
	baton_fleet_leave(f);
}

static void every_call_that_takes_a_subject_looks_at_its_lengths(void **state)
{
	struct world *w = *state;
	struct baton_subject empty = {BATON_STR("t"), {NULL, 0}, {0, 0}};
	struct baton_claim_ask ask = {.subject = &empty, .until = some_day()};
	struct baton_claim claim;
	struct baton_claim_holder holder;
	assert_int_equal(baton_claim_wait(w->ada, &ask, &claim, NULL), BATON_INVALID);
	assert_int_equal(baton_claim_try_at(w->ada, &ask, now(), &claim, NULL), BATON_INVALID);
	assert_int_equal(baton_claim_adopt(w->ada, &empty, &claim), BATON_INVALID);
	assert_int_equal(baton_claim_force(w->ada, &empty, &holder), BATON_INVALID);
	assert_int_equal(baton_claim_holder(w->ada, &empty, now(), &holder), BATON_INVALID);
}

static void a_label_rewritten_in_its_buffer_is_another_subject(void **state)
{
	struct world *w = *state;
	char label[] = "one";
	struct baton_subject subject = {BATON_STR("t"), {label, 3}, {0, 0}};
	struct baton_claim_ask ask = {.subject = &subject};
	struct baton_claim one, two;
	assert_int_equal(baton_claim_try(w->ada, &ask, &one, NULL), BATON_OK);
	memcpy(label, "two", 3);
	assert_int_equal(baton_claim_try(w->ada, &ask, &two, NULL), BATON_OK);
	assert_int_not_equal(one.slot, two.slot);
	memcpy(label, "one", 3);
	assert_int_equal(baton_claim_try(w->ada, &ask, &two, NULL), BATON_YIELD);
}

/* Rewrites each byte of a text by which the member found what it holds. */
static void each_byte_counts(struct baton_fleet *f, struct baton_subject *subject, char *text,
                             size_t len)
{
	struct baton_claim_ask ask = {.subject = subject};
	struct baton_claim first, other;
	for (size_t i = 0; i < len; i++) {
		memset(subject->seen, 0, sizeof subject->seen);
		assert_int_equal(baton_claim_try(f, &ask, &first, NULL), BATON_OK);
		text[i] ^= 1;
		assert_int_equal(baton_claim_try(f, &ask, &other, NULL), BATON_OK);
		text[i] ^= 1;
		assert_int_equal(baton_claim_release(&other), BATON_OK);
		assert_int_equal(baton_claim_release(&first), BATON_OK);
	}
}

static void every_byte_of_a_name_that_was_seen_before_counts(void **state)
{
	struct world *w = *state;
	char space[BATON_SPACE_MAX] = "the namespace, which is as long";
	char label[48] = "the label, which has a few more words than that";
	for (size_t len = 1; len <= sizeof label; len++) {
		struct baton_subject subject = {{space, len < sizeof space ? len : sizeof space},
		                                {label, len},
		                                {0, 0}};
		each_byte_counts(w->ada, &subject, subject.space.len == len ? space : label, len);
		each_byte_counts(w->ada, &subject, label, len);
	}
}

static void what_one_membership_remembers_another_does_not_believe(void **state)
{
	struct world *w = *state;
	struct baton_subject x = subject_of("x"), y = subject_of("y");
	struct baton_claim_ask ask = {.subject = &x};
	struct baton_claim claim;
	void *other = NULL;
	assert_int_equal(baton_claim_try(w->ada, &ask, &claim, NULL), BATON_OK);
	assert_int_equal(world_setup(&other), 0);
	struct world *o = other;
	/* There the same place has another subject. */
	ask.subject = &y;
	assert_int_equal(baton_claim_try(o->ada, &ask, &claim, NULL), BATON_OK);
	ask.subject = &x;
	assert_int_equal(baton_claim_try(o->ben, &ask, &claim, NULL), BATON_OK);
	/* And numbers that nobody wrote there lead nowhere. */
	x.seen[0] = w->ben->tag;
	x.seen[1] = UINT64_MAX;
	assert_int_equal(baton_claim_try(w->ben, &ask, &claim, NULL), BATON_YIELD);
	assert_int_equal(world_teardown(&other), 0);
}

static const char *numbered(char label[32], unsigned n)
{
	snprintf(label, 32, "subject-%u", n);
	return label;
}

static void a_full_table_refuses_and_evicts_nothing(void **state)
{
	struct world *w = *state;
	struct baton_claim claims[WORLD_SUBJECTS];
	char label[32];
	for (unsigned i = 0; i < WORLD_SUBJECTS; i++)
		claims[i] = hold(i % 2 ? w->ada : w->ben, numbered(label, i));
	struct baton_claim none = {.slot = 77};
	assert_int_equal(try_label(w->ada, "one more", &none), BATON_FULL);
	assert_non_null(strstr(baton_err_detail(), "64"));
	assert_int_equal(none.slot, 77);
	for (unsigned i = 0; i < WORLD_SUBJECTS; i++) {
		assert_int_equal(baton_claim_check(&claims[i], NULL), BATON_OK);
		assert_int_equal(holder_of(w->ada, numbered(label, i)).fence.v, claims[i].fence.v);
	}
	/* One that is released makes room for one. */
	assert_int_equal(baton_claim_release(&claims[5]), BATON_OK);
	assert_int_equal(try_label(w->ada, "one more", NULL), BATON_OK);
	assert_int_equal(try_label(w->ada, "and another", NULL), BATON_FULL);
	assert_int_equal(try_label(w->ada, numbered(label, 5), NULL), BATON_FULL);
	assert_int_equal(usage_of(w->ada).subjects, WORLD_SUBJECTS);
}

static void room_of_what_has_expired_is_used_again(void **state)
{
	struct world *w = *state;
	char label[32];
	struct baton_claim first = {.slot = 0};
	for (unsigned i = 0; i < WORLD_SUBJECTS; i++) {
		struct baton_subject subject = subject_of(numbered(label, i));
		struct baton_claim_ask ask = {.subject = &subject, .ttl = {1}};
		/* Long ago by the real clock. */
		assert_int_equal(baton_claim_try_at(w->ada, &ask, (struct baton_mono){1}, &first,
		                                    NULL),
		                 BATON_OK);
	}
	for (unsigned i = 0; i < WORLD_SUBJECTS; i++)
		hold(w->ben, numbered(label, 1000 + i));
	assert_int_equal(baton_claim_release(&first), BATON_NOT_HELD);
}

static void what_somebody_waits_for_keeps_its_room(void **state)
{
	struct world *w = *state;
	char label[32];
	struct queued q;
	struct baton_claim x = hold(w->ada, "x");
	queued_start(&q, w->ben, "x", some_day());
	await_in_line(w->ada, 1);
	struct baton_claim claims[WORLD_SUBJECTS];
	for (unsigned i = 1; i < WORLD_SUBJECTS; i++)
		claims[i] = hold(w->ada, numbered(label, i));
	assert_int_equal(baton_claim_release(&x), BATON_OK);
	/* Either it is ben's by now, or he is about to take it. */
	assert_int_equal(try_label(w->ada, "one more", NULL), BATON_FULL);
	assert_int_equal(queued_end(&q), BATON_OK);
	assert_int_equal(baton_claim_release(&claims[1]), BATON_OK);
	assert_int_equal(try_label(w->ada, "one more", NULL), BATON_OK);
}

/* How many entries a lookup of the key looks at. */
static uint32_t probes_for(const struct view *v, const struct key *key)
{
	const struct shard *shard = index_shard(v, key->hash);
	const index_entry *entries = v->index + (size_t)(shard - v->shards) * v->shard_places;
	uint32_t at = (uint32_t)key->hash & (v->shard_places - 1), count = 0;
	while (count < v->shard_places &&
	       atomic_load(&entries[(at + count) & (v->shard_places - 1)]) != 0)
		count++;
	return count;
}

static uint32_t entries_used(const struct view *v)
{
	uint32_t used = 0;
	for (uint32_t i = 0; i < v->shard_count * v->shard_places; i++)
		used += atomic_load(&v->index[i]) != 0;
	return used;
}

/* Every place that says that it is listed is found by its name, and nothing else is indexed. */
static void assert_index_is_sound(struct view *v)
{
	uint32_t listed = 0;
	for (uint32_t n = 0; n < view_fresh(v); n++) {
		struct name_text text;
		struct baton_subject subject;
		if (atomic_load(&v->slots[n].listed) == 0)
			continue;
		listed++;
		uint64_t hash = atomic_load(&v->slots[n].hash);
		assert_true(subjects_name(v, n, hash, &text, &subject));
		struct key key = key_make(v, &subject);
		uint32_t found = SUBJECTS_NONE;
		struct word word;
		assert_true(key.hash == hash);
		assert_int_equal(subjects_find(v, &key, &found, &word), BATON_OK);
		assert_int_equal(found, n);
	}
	assert_int_equal(entries_used(v), listed);
}

static void lookups_stay_as_cheap_after_endless_new_subjects(void **state)
{
	struct world *w = *state;
	struct view *v = w->ada->view;
	unsigned cycles = soak_scale(200000, 10000000);
	uint64_t probes = 0;
	uint32_t longest = 0;
	char label[32];
	for (unsigned i = 0; i < cycles; i++) {
		struct baton_subject subject = subject_of(numbered(label, i));
		struct baton_claim_ask ask = {.subject = &subject};
		struct baton_claim claim;
		if (baton_claim_try(w->ada, &ask, &claim, NULL) != BATON_OK ||
		    baton_claim_release(&claim) != BATON_OK)
			fail_msg("cycle %u: %s", i, baton_err_detail());
		if (i % 64 != 0)
			continue;
		struct baton_subject unknown = subject_of(numbered(label, i + cycles));
		struct key key = key_make(v, &unknown);
		uint32_t one = probes_for(v, &key);
		probes += one;
		longest = one > longest ? one : longest;
	}
	/* Half full or less: a lookup that finds nothing looks at 2.5 entries on average. */
	assert_true(entries_used(v) <= WORLD_SUBJECTS);
	assert_true(probes < UINT64_C(5) * (cycles / 64 + 1));
	assert_true(longest <= WORLD_SUBJECTS);
	assert_index_is_sound(v);
}

static void holding_some_while_others_come_and_go_loses_none(void **state)
{
	struct world *w = *state;
	struct rng rng = rng_seed_from_env();
	struct baton_claim claims[WORLD_SUBJECTS] = {{.fleet = NULL}};
	unsigned names[WORLD_SUBJECTS] = {0};
	char label[32];
	unsigned next = 0;
	for (unsigned i = 0; i < soak_scale(50000, 5000000); i++) {
		unsigned at = (unsigned)rng_below(&rng, WORLD_SUBJECTS);
		if (claims[at].fleet == NULL) {
			names[at] = next++;
			claims[at] = hold(w->ada, numbered(label, names[at]));
		} else {
			assert_int_equal(try_label(w->ben, numbered(label, names[at]), NULL),
			                 BATON_YIELD);
			assert_int_equal(baton_claim_release(&claims[at]), BATON_OK);
			claims[at].fleet = NULL;
		}
	}
	assert_index_is_sound(w->ada->view);
	for (unsigned at = 0; at < WORLD_SUBJECTS; at++)
		if (claims[at].fleet != NULL)
			assert_int_equal(baton_claim_check(&claims[at], NULL), BATON_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(where_the_namespace_ends_is_part_of_the_name),
		WORLD_TEST(names_are_bytes_and_not_text),
		WORLD_TEST(names_of_every_length_are_told_apart_by_their_last_byte),
		WORLD_TEST(lengths_are_limited_and_the_detail_says_so),
		WORLD_TEST(the_owners_label_counts_towards_the_limit),
		WORLD_TEST(every_call_that_takes_a_subject_looks_at_its_lengths),
		WORLD_TEST(a_label_rewritten_in_its_buffer_is_another_subject),
		WORLD_TEST(every_byte_of_a_name_that_was_seen_before_counts),
		WORLD_TEST(what_one_membership_remembers_another_does_not_believe),
		WORLD_TEST(a_full_table_refuses_and_evicts_nothing),
		WORLD_TEST(room_of_what_has_expired_is_used_again),
		WORLD_TEST(what_somebody_waits_for_keeps_its_room),
		WORLD_TEST(lookups_stay_as_cheap_after_endless_new_subjects),
		WORLD_TEST(holding_some_while_others_come_and_go_loses_none),
	};
	return cmocka_run_group_tests_name("subjects", tests, NULL, NULL);
}
