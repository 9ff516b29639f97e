/* Which of a lane's ready batches one claim takes. */
#include <string.h>

#include "queue/select.h"
#include "support/harness.h"

#define CANDIDATES_MAX 8

/* A lane in letters: e exclusive, E the same after commit, c command, C the same after commit,
 * j join, J the same after commit, g join of another group. The first has number 1. */
static size_t lane_of(const char *letters, struct candidate *c)
{
	size_t count = strlen(letters);
	for (size_t i = 0; i < count; i++) {
		char letter = letters[i];
		c[i] = (struct candidate){
			.seq = i + 1,
			.cls = letter == 'c' || letter == 'C' ? BATON_COMMAND : BATON_WORK,
			.delivery = strchr("ECJ", letter) ? BATON_AFTER_COMMIT : BATON_EARLIEST,
			.slot = strchr("jJg", letter) ? BATON_JOIN : BATON_EXCLUSIVE,
			.group = letter == 'g' ? BATON_STR("g") : BATON_STR(""),
		};
	}
	return count;
}

static void the_head_decides_what_is_taken(void **state)
{
	(void)state;
	static const struct {
		const char *lane;
		size_t max, idle, checkpoint;
	} cases[] = {
		{"", 9, 0, 0},    {"e", 9, 1, 1},   {"e", 0, 0, 0},     {"E", 9, 1, 0},
		{"ee", 9, 1, 1},  {"ej", 9, 1, 1},  {"c", 9, 1, 1},     {"C", 9, 1, 0},
		{"cj", 9, 1, 1},  {"cc", 9, 1, 1},  {"j", 9, 1, 1},     {"jj", 9, 2, 2},
		{"jjj", 2, 2, 2}, {"jjj", 1, 1, 1}, {"jjj", 0, 0, 0},   {"JJ", 9, 2, 0},
		{"jJ", 9, 1, 1},  {"Jj", 9, 1, 0},  {"jg", 9, 1, 1},    {"gg", 9, 2, 2},
		{"jgj", 9, 1, 1}, {"jcj", 9, 1, 1}, {"jej", 9, 1, 1},   {"jjc", 9, 2, 2},
		{"jje", 9, 2, 2}, {"gj", 9, 1, 1},  {"jjjjj", 9, 5, 5}, {"ecj", 9, 1, 1},
	};
	struct candidate c[CANDIDATES_MAX];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t count = lane_of(cases[i].lane, c);
		size_t idle = select_prefix(c, count, BATON_IDLE, cases[i].max);
		size_t mid = select_prefix(c, count, BATON_CHECKPOINT, cases[i].max);
		if (idle != cases[i].idle || mid != cases[i].checkpoint)
			fail_msg("%s, %zu: %zu and %zu", cases[i].lane, cases[i].max, idle, mid);
	}
}

static void exact_ids_follow_the_same_rules(void **state)
{
	(void)state;
	static const struct {
		const char *lane, *wanted; /* numbers as digits */
		bool plain, pass, pass_checkpoint;
	} cases[] = {
		{"e", "", false, false, false},     {"e", "1", true, true, true},
		{"E", "1", true, true, false},      {"ee", "2", false, true, true},
		{"ee", "12", false, false, false},  {"jj", "12", true, true, true},
		{"jj", "1", true, true, true},      {"jj", "2", false, false, false},
		{"jjj", "13", false, false, false}, {"jej", "13", false, true, true},
		{"jgj", "2", false, true, true},    {"jgj", "13", false, true, true},
		{"ce", "2", false, false, false},   {"ec", "2", false, true, true},
		{"jcj", "13", false, false, false}, {"ecj", "3", false, false, false},
		{"je", "3", false, false, false},   {"jj", "11", false, false, false},
		{"eE", "2", false, true, false},    {"jJ", "12", false, false, false},
		{"ejj", "23", false, true, true},   {"ejj", "3", false, false, false},
	};
	struct candidate c[CANDIDATES_MAX];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t seqs[CANDIDATES_MAX];
		size_t count = lane_of(cases[i].lane, c), wanted = strlen(cases[i].wanted);
		for (size_t j = 0; j < wanted; j++)
			seqs[j] = (uint64_t)(cases[i].wanted[j] - '0');
		bool plain = select_exact(c, count, seqs, wanted, BATON_IDLE, false);
		bool pass = select_exact(c, count, seqs, wanted, BATON_IDLE, true);
		bool mid = select_exact(c, count, seqs, wanted, BATON_CHECKPOINT, true);
		if (plain != cases[i].plain || pass != cases[i].pass ||
		    mid != cases[i].pass_checkpoint)
			fail_msg("%s, %s: %d, %d and %d", cases[i].lane, cases[i].wanted, plain,
			         pass, mid);
	}
}

static void only_work_of_one_delivery_and_group_joins(void **state)
{
	(void)state;
	struct candidate c[7];
	lane_of("eEcCjJg", c);
	for (int a = 0; a < 7; a++) {
		for (int b = 0; b < 7; b++)
			assert_int_equal(select_joins(&c[a], &c[b]), a == b && a >= 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_head_decides_what_is_taken),
		cmocka_unit_test(exact_ids_follow_the_same_rules),
		cmocka_unit_test(only_work_of_one_delivery_and_group_joins),
	};
	return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
