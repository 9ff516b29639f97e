/* What a store's address says to Baton, among what it says to libpq. */
#include <stdio.h>
#include <string.h>

#include "store/postgres/address.h"
#include "store/postgres/conn.h"
#include "support/harness.h"

static const struct {
	const char *given, *left;
	bool pooled;
} fine[] = {
	{"", "", false},
	{"host=h dbname=d", "host=h dbname=d", false},
	{"baton_pooled=1", "", true},
	{"baton_pooled=0", "", false},
	{"host=h baton_pooled=1 dbname=d", "host=h  dbname=d", true},
	{"host=h baton_pooled = 1", "host=h ", true},
	{"password='x baton_pooled=1' host=h", "password='x baton_pooled=1' host=h", false},
	{"password='it\\'s baton_pooled=1' baton_pooled=1", "password='it\\'s baton_pooled=1' ",
         true},
	{"password=a\\ baton_pooled=1", "password=a\\ baton_pooled=1", false},
	{"not_baton_pooled=1", "not_baton_pooled=1", false},
	{"host", "host", false},
	{"= x", "= x", false},
	{"password='open", "password='open", false},
	{"postgresql://h/d", "postgresql://h/d", false},
	{"postgresql://h/d?baton_pooled=1", "postgresql://h/d", true},
	{"postgres://h/d?baton_pooled=1&sslmode=require", "postgres://h/d?sslmode=require", true},
	{"postgres://h/d?a=b&baton_pooled=1", "postgres://h/d?a=b", true},
	{"postgres://h/d?a=b&baton_pooled=1&c=d", "postgres://h/d?a=b&c=d", true},
	{"postgres://h/d?a=baton_pooled=1", "postgres://h/d?a=baton_pooled=1", false},
	{"postgres://u:p?baton_pooled=1@h/d", "postgres://u:p?baton_pooled=1@h/d", false},
	{"postgres://", "postgres://", false},
	{"postgres://?", "postgres://", false},
};

static void what_is_batons_is_taken_out_and_the_rest_is_left(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
		char info[100];
		bool pooled = !fine[i].pooled;
		snprintf(info, sizeof info, "%s", fine[i].given);
		assert_int_equal(address_split(info, &pooled), BATON_OK);
		assert_string_equal(info, fine[i].left);
		assert_int_equal(pooled, fine[i].pooled);
	}
}

static const char *const bad[] = {
	"baton_pooled=2",
	"baton_pooled=",
	"baton_pooled='1'",
	"baton_pooled=yes host=h",
	"postgres://h/d?baton_pooled",
	"postgres://h/d?baton_pooled=11&a=b",
};

static void what_is_neither_yes_nor_no_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char info[100];
		bool pooled;
		snprintf(info, sizeof info, "%s", bad[i]);
		assert_int_equal(address_split(info, &pooled), BATON_INVALID);
	}
}

static void assert_option(const char *info, const char *name, const char *expected)
{
	PGconn *pg = conn_start(info);
	PQconninfoOption *options = PQconninfo(pg);
	const char *found = NULL;
	for (const PQconninfoOption *o = options; o->keyword; o++)
		found = strcmp(o->keyword, name) == 0 ? o->val : found;
	assert_string_equal(found, expected);
	PQconninfoFree(options);
	PQfinish(pg);
}

static void what_an_address_says_of_a_connection_is_heard(void **state)
{
	(void)state;
	assert_option("host=/nonexistent", "tcp_user_timeout", "3000");
	assert_option("host=/nonexistent tcp_user_timeout=7", "tcp_user_timeout", "7");
	assert_option("postgresql:///x?connect_timeout=8", "connect_timeout", "8");
	assert_option("postgresql:///x", "connect_timeout", "10");
	assert_option("client_encoding=LATIN1", "client_encoding", "UTF8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_batons_is_taken_out_and_the_rest_is_left),
		cmocka_unit_test(what_an_address_says_of_a_connection_is_heard),
		cmocka_unit_test(what_is_neither_yes_nor_no_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
