/* Which name a client asks for, however its bytes arrive. */
#include "handoff/peek.h"

#include <stdio.h>
#include <string.h>

#include "support/harness.h"

struct bytes {
	char data[2 * PEEK_MAX];
	size_t len;
};

static void add(struct bytes *b, const char *data, size_t len)
{
	assert_true(b->len + len <= sizeof b->data);
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

static void add_number(struct bytes *b, size_t value, size_t size)
{
	while (size-- > 0) {
		char c = (char)(value >> (8 * size));
		add(b, &c, 1);
	}
}

/* The handshake of a client that asks for `name`, behind another extension. */
static void handshake(struct bytes *b, const char *name)
{
	static const char zeros[64];
	size_t len = strlen(name);
	size_t extensions = 4 + 3 + 4 + 5 + len;
	add_number(b, 1, 1);
	add_number(b, 2 + 32 + 1 + 8 + 2 + 4 + 1 + 1 + 2 + extensions, 3);
	add_number(b, 0x0303, 2);
	add(b, zeros, 32);
	add_number(b, 8, 1);
	add(b, zeros, 8);
	add_number(b, 4, 2);
	add(b, zeros, 4);
	add_number(b, 1, 1);
	add(b, zeros, 1);
	add_number(b, extensions, 2);
	add_number(b, 43, 2);
	add_number(b, 3, 2);
	add(b, zeros, 3);
	add_number(b, 0, 2);
	add_number(b, 5 + len, 2);
	add_number(b, 3 + len, 2);
	add_number(b, 0, 1);
	add_number(b, len, 2);
	add(b, name, len);
}

/* The same in records of that many bytes each. */
static void records(struct bytes *b, const char *name, size_t size)
{
	static struct bytes whole;
	whole.len = 0;
	handshake(&whole, name);
	for (size_t at = 0; at < whole.len; at += size) {
		size_t n = whole.len - at < size ? whole.len - at : size;
		add_number(b, 0x160301, 3);
		add_number(b, n, 2);
		add(b, whole.data + at, n);
	}
}

static enum peek_verdict look(const struct bytes *b, size_t len, char name[PEEK_NAME_MAX + 1])
{
	return peek_name((struct baton_str){b->data, len}, name);
}

/* More is wanted for each beginning of it, and then it is the name. */
static void assert_name(struct bytes *b, const char *expected)
{
	char name[PEEK_NAME_MAX + 1];
	for (size_t len = 0; len < b->len; len++)
		assert_int_equal(look(b, len, name), PEEK_MORE);
	assert_int_equal(look(b, b->len, name), PEEK_NAME);
	assert_string_equal(name, expected);
	/* What comes behind it changes nothing. */
	add(b, "\x17\0\xff", 3);
	assert_int_equal(look(b, b->len, name), PEEK_NAME);
}

static void tls_in_one_record_or_many(void **state)
{
	static struct bytes b;
	(void)state;
	for (size_t size = 1; size <= 120; size += 7) {
		b.len = 0;
		records(&b, "Chat.Example.org", size);
		assert_name(&b, "chat.example.org");
	}
}

static void http_with_a_host(void **state)
{
	static const struct {
		const char *request;
		const char *name;
	} cases[] = {
		{"GET / HTTP/1.1\r\nHost: example.org\r\n", "example.org"},
		{"POST /x HTTP/1.1\r\nAccept: *\r\nhOST:Example.Org.:8080\n", "example.org"},
		{"GET / HTTP/1.1\r\nHost:\t[::1]:80\r\n", "::1"},
		{"M-SEARCH * HTTP/1.1\nHost: 127.0.0.1\n", "127.0.0.1"},
	};
	static struct bytes b;
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		b.len = 0;
		add(&b, cases[i].request, strlen(cases[i].request));
		assert_name(&b, cases[i].name);
	}
}

static void what_names_nobody(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{"SSH-2.0-OpenSSH_9\r\n", 19},
		{"get / HTTP/1.1\r\n", 3},
		{" ", 1},
		{"\0", 1},
		{"GET / HTTP/1.1\r\n\r\n", 18},
		{"GET / HTTP/1.1\n\n", 16},
		{"GET / HTTP/1.1\r\nHost: \r\n", 24},
		{"GET / HTTP/1.1\r\nHost: a/b\r\n", 27},
		{"GET / HTTP/1.1\r\nHost: [::1\r\n", 28},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ", 36},
		{"\x16\x02", 2},
		{"\x16\x03\x01\0\0", 5},
		{"\x16\x03\x01\xff\xff", 5},
		{"\x16\x03\x01\0\x01\x02", 6},
		{"\x16\x03\x01\0\x04\x01\xff\xff\xff", 9},
		{"\x16\x03\x01\0\x05\x01\0\0\x01\x03", 10},
		{"\x16\x03\x01\0\x04\x01\0\0\x01\x15\x03\x01\0\x02\x02\x28", 16},
	};
	char name[PEEK_NAME_MAX + 1];
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(peek_name((struct baton_str){cases[i].bytes, cases[i].len}, name),
		                 PEEK_NONE);
}

static void a_whole_hello_without_a_name(void **state)
{
	static struct bytes b;
	char name[PEEK_NAME_MAX + 1];
	(void)state;
	static const char *const wrong[] = {"", "a b", "a\n"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		b.len = 0;
		records(&b, wrong[i], 4096);
		assert_int_equal(look(&b, b.len, name), PEEK_NONE);
	}
}

static void no_more_than_so_much_is_looked_at(void **state)
{
	static struct bytes b;
	char name[PEEK_NAME_MAX + 1];
	(void)state;
	b.len = 0;
	add(&b, "GET / HTTP/1.1\r\nX: ", 19);
	memset(b.data + b.len, 'x', sizeof b.data - b.len);
	assert_int_equal(look(&b, PEEK_MAX - 1, name), PEEK_MORE);
	assert_int_equal(look(&b, PEEK_MAX, name), PEEK_NONE);
	assert_int_equal(look(&b, sizeof b.data, name), PEEK_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tls_in_one_record_or_many),
		cmocka_unit_test(http_with_a_host),
		cmocka_unit_test(what_names_nobody),
		cmocka_unit_test(a_whole_hello_without_a_name),
		cmocka_unit_test(no_more_than_so_much_is_looked_at),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
