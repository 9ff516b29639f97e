/* Bytes from outside, made fit for a message. */
#include "base/quote.h"

#include "base/utf8.h"

static void add_hex(struct quote_piece *p, unsigned char byte)
{
	static const char digits[] = "0123456789abcdef";
	const char hex[] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
	memcpy(p->text + p->len, hex, sizeof hex);
	p->len += sizeof hex;
}

struct quote_piece quote_next(struct baton_str s)
{
	uint32_t ch;
	size_t n = utf8_next(s.ptr, s.len, &ch);
	struct quote_piece p = {.len = 0, .taken = n == 0 ? 1 : n};
	if (n == 0 || utf8_is_control(ch)) {
		for (size_t i = 0; i < p.taken; i++)
			add_hex(&p, (unsigned char)s.ptr[i]);
		return p;
	}
	if (ch == '"' || ch == '\\')
		p.text[p.len++] = '\\';
	memcpy(p.text + p.len, s.ptr, n);
	p.len += n;
	return p;
}

char *quote(struct baton_str s, char text[QUOTE_TEXT])
{
	static const char ellipsis[] = "...";
	const size_t room = QUOTE_TEXT - sizeof "\"\"";
	size_t used = 0;  /* by the pieces so far                          */
	size_t spare = 0; /* by those that leave room for the ellipsis too */

	text[0] = '"';
	while (s.len > 0) {
		struct quote_piece p = quote_next(s);
		if (used + p.len > room) {
			memcpy(text + 1 + spare, ellipsis, sizeof ellipsis - 1);
			used = spare + sizeof ellipsis - 1;
			break;
		}
		memcpy(text + 1 + used, p.text, p.len);
		used += p.len;
		if (used + sizeof ellipsis - 1 <= room)
			spare = used;
		s = (struct baton_str){s.ptr + p.taken, s.len - p.taken};
	}
	memcpy(text + 1 + used, "\"", sizeof "\"");
	return text;
}
