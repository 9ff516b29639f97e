/* Whether bytes are JSON, by the letter of RFC 8259. */
#include "support/json.h"

/* Each of these moves *at past what its name says, or returns false. */
static bool value(const char **at, const char *end);

static bool byte(const char **at, const char *end, char c)
{
	if (*at == end || **at != c)
		return false;
	++*at;
	return true;
}

static bool digits(const char **at, const char *end)
{
	const char *from = *at;
	while (*at < end && **at >= '0' && **at <= '9')
		++*at;
	return *at > from;
}

static bool number(const char **at, const char *end)
{
	byte(at, end, '-');
	if (!byte(at, end, '0') && !digits(at, end))
		return false;
	if (byte(at, end, '.') && !digits(at, end))
		return false;
	if (byte(at, end, 'e') || byte(at, end, 'E')) {
		if (!byte(at, end, '+'))
			byte(at, end, '-');
		return digits(at, end);
	}
	return true;
}

static bool escape(const char **at, const char *end)
{
	if (*at == end)
		return false;
	char c = *(*at)++;
	if (c != 'u')
		return c != '\0' && strchr("\"\\/bfnrt", c) != NULL;
	for (int i = 0; i < 4; i++, ++*at)
		if (*at == end || strchr("0123456789abcdefABCDEF", **at) == NULL || **at == '\0')
			return false;
	return true;
}

static bool string(const char **at, const char *end)
{
	if (!byte(at, end, '"'))
		return false;
	while (*at < end) {
		unsigned char c = (unsigned char)*(*at)++;
		if (c == '"')
			return true;
		if (c < 0x20 || (c == '\\' && !escape(at, end)))
			return false;
	}
	return false;
}

static bool word(const char **at, const char *end, const char *z)
{
	for (; *z != '\0'; z++)
		if (!byte(at, end, *z))
			return false;
	return true;
}

static bool object(const char **at, const char *end)
{
	if (!byte(at, end, '{'))
		return false;
	if (byte(at, end, '}'))
		return true;
	do
		if (!string(at, end) || !byte(at, end, ':') || !value(at, end))
			return false;
	while (byte(at, end, ','));
	return byte(at, end, '}');
}

static bool value(const char **at, const char *end)
{
	if (*at == end)
		return false;
	switch (**at) {
	case '"':
		return string(at, end);
	case '{':
		return object(at, end);
	case 't':
		return word(at, end, "true");
	case 'f':
		return word(at, end, "false");
	case 'n':
		return word(at, end, "null");
	}
	return number(at, end);
}

bool json_is_object(struct baton_str text)
{
	const char *at = text.ptr;
	const char *end = at + text.len;
	return baton_str_is_utf8(text) && object(&at, end) && at == end;
}
