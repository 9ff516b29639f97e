/* Which name a client asks for. */
#include "handoff/peek.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RECORD_HEAD 5
#define RECORD_HANDSHAKE 22
#define RECORD_MAX (16384 + 256)
#define HELLO_HEAD 4
#define CLIENT_HELLO 1
#define SERVER_NAME 0
#define METHOD_MAX 32

/* Bytes that are read from their front; `bad` once more was wanted than there is. */
struct cursor {
	const uint8_t *at;
	size_t left;
	bool bad;
};

static struct cursor cut(struct cursor *c, size_t n)
{
	struct cursor part = {c->at, n, c->bad || n > c->left};
	c->bad = part.bad;
	if (part.bad) {
		part.left = 0;
		return part;
	}
	c->at += n;
	c->left -= n;
	return part;
}

static size_t number(struct cursor *c, size_t bytes)
{
	struct cursor part = cut(c, bytes);
	size_t value = 0;
	while (!part.bad && part.left > 0) {
		value = value << 8 | *part.at++;
		part.left--;
	}
	return value;
}

static bool is_name_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == ':';
}

/* Takes it as a name. */
static enum peek_verdict name_keep(const uint8_t *bytes, size_t len, char name[PEEK_NAME_MAX + 1])
{
	if (len > 0 && bytes[len - 1] == '.')
		len--;
	if (len == 0 || len > PEEK_NAME_MAX)
		return PEEK_NONE;
	for (size_t i = 0; i < len; i++) {
		uint8_t c = bytes[i];
		if (!is_name_byte(c))
			return PEEK_NONE;
		name[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	name[len] = '\0';
	return PEEK_NAME;
}

/* A list of names, of which there is one. */
static enum peek_verdict server_name(struct cursor c, char name[PEEK_NAME_MAX + 1])
{
	struct cursor list = cut(&c, number(&c, 2));
	size_t type = number(&list, 1);
	struct cursor entry = cut(&list, number(&list, 2));
	if (entry.bad || type != SERVER_NAME)
		return PEEK_NONE;
	return name_keep(entry.at, entry.left, name);
}

/* A whole ClientHello behind its head. */
static enum peek_verdict client_hello(struct cursor c, char name[PEEK_NAME_MAX + 1])
{
	cut(&c, 2 + 32);        /* version, random   */
	cut(&c, number(&c, 1)); /* session           */
	cut(&c, number(&c, 2)); /* ciphers           */
	cut(&c, number(&c, 1)); /* compressions      */
	struct cursor extensions = cut(&c, number(&c, 2));
	while (!extensions.bad && extensions.left > 0) {
		size_t type = number(&extensions, 2);
		struct cursor body = cut(&extensions, number(&extensions, 2));
		if (type == SERVER_NAME && !body.bad)
			return server_name(body, name);
	}
	return PEEK_NONE;
}

/* Puts together what the records carry of the handshake. False: they are no such records. */
static bool records_join(struct cursor c, uint8_t *handshake, size_t *ret_len)
{
	size_t len = 0;
	while (c.left > 0) {
		if (c.at[0] != RECORD_HANDSHAKE || (c.left > 1 && c.at[1] != 3))
			return false;
		if (c.left < RECORD_HEAD)
			break;
		cut(&c, 3);
		size_t size = number(&c, 2);
		if (size == 0 || size > RECORD_MAX)
			return false;
		struct cursor part = cut(&c, size < c.left ? size : c.left);
		memcpy(handshake + len, part.at, part.left);
		len += part.left;
		/* What follows a whole ClientHello may be anything. */
		if (len >= HELLO_HEAD &&
		    len >= HELLO_HEAD + ((size_t)handshake[1] << 16 | (size_t)handshake[2] << 8 |
		                         handshake[3]))
			break;
	}
	*ret_len = len;
	return true;
}

static enum peek_verdict tls(struct cursor c, char name[PEEK_NAME_MAX + 1])
{
	uint8_t handshake[PEEK_MAX];
	size_t len;
	if (!records_join(c, handshake, &len))
		return PEEK_NONE;
	if (len > 0 && handshake[0] != CLIENT_HELLO)
		return PEEK_NONE;
	if (len < HELLO_HEAD)
		return PEEK_MORE;
	struct cursor hello = {handshake + 1, len - 1, false};
	size_t size = number(&hello, 3);
	if (size > PEEK_MAX)
		return PEEK_NONE;
	return size > hello.left ? PEEK_MORE : client_hello(cut(&hello, size), name);
}

/* The value of a header, without blanks around it. */
static struct cursor value_of(const uint8_t *at, size_t len)
{
	while (len > 0 && (*at == ' ' || *at == '\t')) {
		at++;
		len--;
	}
	while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t' || at[len - 1] == '\r'))
		len--;
	return (struct cursor){at, len, false};
}

/* A host with or without a port, and with brackets around an address. */
static enum peek_verdict host(struct cursor value, char name[PEEK_NAME_MAX + 1])
{
	const uint8_t *end;
	if (value.left > 0 && value.at[0] == '[') {
		end = memchr(value.at, ']', value.left);
		return end ? name_keep(value.at + 1, (size_t)(end - value.at) - 1, name)
		           : PEEK_NONE;
	}
	end = memchr(value.at, ':', value.left);
	return name_keep(value.at, end ? (size_t)(end - value.at) : value.left, name);
}

/* Whether this can be the beginning of a request. */
static bool is_request(struct cursor c)
{
	size_t i = 0;
	while (i < c.left && i < METHOD_MAX &&
	       ((c.at[i] >= 'A' && c.at[i] <= 'Z') || c.at[i] == '-'))
		i++;
	return i == c.left || (i > 0 && c.at[i] == ' ');
}

/* Whether the line begins with that header, which is in small letters. */
static bool is_header(struct cursor line, const char *header)
{
	size_t i = 0;
	while (i < line.left && header[i] != '\0' &&
	       (line.at[i] | (line.at[i] >= 'A' && line.at[i] <= 'Z' ? 32 : 0)) == header[i])
		i++;
	return header[i] == '\0';
}

static enum peek_verdict http(struct cursor c, char name[PEEK_NAME_MAX + 1])
{
	static const char header[] = "host:";
	bool first = true;
	if (!is_request(c))
		return PEEK_NONE;
	while (c.left > 0) {
		const uint8_t *end = memchr(c.at, '\n', c.left);
		if (!end)
			return PEEK_MORE;
		struct cursor line = cut(&c, (size_t)(end - c.at) + 1);
		line.left--;
		if (!first && (line.left == 0 || (line.left == 1 && line.at[0] == '\r')))
			return PEEK_NONE;
		size_t len = sizeof header - 1;
		if (!first && is_header(line, header))
			return host(value_of(line.at + len, line.left - len), name);
		first = false;
	}
	return PEEK_MORE;
}

enum peek_verdict peek_name(struct baton_str bytes, char name[PEEK_NAME_MAX + 1])
{
	size_t len = bytes.len < PEEK_MAX ? bytes.len : PEEK_MAX;
	struct cursor c = {(const uint8_t *)bytes.ptr, len, false};
	if (len == 0)
		return PEEK_MORE;
	enum peek_verdict verdict = c.at[0] == RECORD_HANDSHAKE ? tls(c, name) : http(c, name);
	return verdict == PEEK_MORE && len == PEEK_MAX ? PEEK_NONE : verdict;
}
