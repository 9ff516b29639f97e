/* Which name a client asks for, as seen in its first bytes: the server name of TLS, or the Host of
 * HTTP. Pure. */
#ifndef HANDOFF_PEEK_H
#define HANDOFF_PEEK_H

#include <baton/str.h>

#define PEEK_MAX 16384 /* bytes that are looked at */
#define PEEK_NAME_MAX 255

enum peek_verdict {
	PEEK_MORE = 1, /* it cannot be told yet                              */
	PEEK_NAME,     /* that one                                           */
	PEEK_NONE      /* it is something else, or names nobody, or too long */
};

/* Looks at the bytes, of which there may be more to come. A name is in small letters, without a
 * port, a last dot or brackets. Once it is PEEK_NAME or PEEK_NONE, more bytes do not change it. */
enum peek_verdict peek_name(struct baton_str bytes, char name[PEEK_NAME_MAX + 1]);

#endif
