/* What a store's address says to Baton, among what it says to libpq. */
#include "store/postgres/address.h"

#include <string.h>

#include "base/fail.h"

#define OURS "baton_pooled"
#define BLANKS " \t\n\r\f\v"

/* A setting in a list: its name, its value, and what it takes up. */
struct setting {
	char *name, *value;
	size_t name_len, value_len;
	char *end;
};

/* One of a URI, up to the next '&'. */
static void read_parameter(char *at, struct setting *s)
{
	size_t len = strcspn(at, "&");
	char *equals = memchr(at, '=', len);
	s->name = at;
	s->name_len = equals ? (size_t)(equals - at) : len;
	s->value = equals ? equals + 1 : at + len;
	s->end = at + len;
	s->value_len = (size_t)(s->end - s->value);
}

/* The end of a value, which may be quoted, and may have characters behind backslashes. */
static char *value_end(char *at)
{
	bool quoted = *at == '\'';
	for (at += quoted ? 1 : 0; *at; at++) {
		if (*at == '\\' && at[1])
			at++;
		else if (quoted && *at == '\'')
			return at + 1;
		else if (!quoted && strchr(BLANKS, *at))
			break;
	}
	return at;
}

/* One of a list of KEY=VALUE with blanks between them. */
static void read_pair(char *at, struct setting *s)
{
	s->name = at;
	s->name_len = strcspn(at, "=" BLANKS);
	at += s->name_len;
	at += strspn(at, BLANKS);
	s->value = s->end = at;
	s->value_len = 0;
	if (*at != '=')
		return;
	at++;
	s->value = at + strspn(at, BLANKS);
	s->end = value_end(s->value);
	s->value_len = (size_t)(s->end - s->value);
}

static bool is_ours(const struct setting *s)
{
	return s->name_len == strlen(OURS) && memcmp(s->name, OURS, s->name_len) == 0;
}

static enum baton_err obey(const struct setting *s, bool *pooled)
{
	if (s->value_len != 1 || (*s->value != '0' && *s->value != '1'))
		return fail(BATON_INVALID, "the store's address has a " OURS " that is not 0 or 1");
	*pooled = *s->value == '1';
	return BATON_OK;
}

/* Where the parameters of a URI begin: a '?' in the user's name or password is not it. */
static char *parameters(char *uri)
{
	char *at = strstr(uri, "://") + 3;
	size_t user = strcspn(at, "@/");
	return strchr(at[user] == '@' ? at + user : at, '?');
}

static void cut(char *from, const char *to)
{
	memmove(from, to, strlen(to) + 1);
}

static enum baton_err split_uri(char *uri, bool *pooled)
{
	char *mark = parameters(uri);
	enum baton_err e = BATON_OK;
	for (char *at = mark ? mark + 1 : NULL; at && *at && e == BATON_OK;) {
		struct setting s;
		read_parameter(at, &s);
		bool ours = is_ours(&s);
		if (ours)
			e = obey(&s, pooled);
		if (ours)
			cut(at, *s.end == '&' ? s.end + 1 : s.end);
		else
			at = *s.end == '&' ? s.end + 1 : NULL;
	}
	size_t len = strlen(uri);
	if (mark && (uri[len - 1] == '?' || uri[len - 1] == '&'))
		uri[len - 1] = '\0';
	return e;
}

static enum baton_err split_pairs(char *info, bool *pooled)
{
	enum baton_err e = BATON_OK;
	for (char *at = info + strspn(info, BLANKS); *at && e == BATON_OK;
	     at += strspn(at, BLANKS)) {
		struct setting s;
		read_pair(at, &s);
		if (s.end == at)
			break; /* libpq says what is wrong with it */
		bool ours = is_ours(&s);
		if (ours)
			e = obey(&s, pooled);
		if (ours)
			cut(at, s.end);
		else
			at = s.end;
	}
	return e;
}

enum baton_err address_split(char *info, bool *ret_pooled)
{
	bool uri = strncmp(info, "postgres://", strlen("postgres://")) == 0 ||
	           strncmp(info, "postgresql://", strlen("postgresql://")) == 0;
	*ret_pooled = false;
	return uri ? split_uri(info, ret_pooled) : split_pairs(info, ret_pooled);
}
