/* Bytes from outside, made fit for a message. */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stddef.h>

#include <baton/str.h>

/* Room for what quote() writes, with the terminator. */
#define QUOTE_TEXT 80

/* Writes `s` between quotation marks, in the form of quote_next(), with "..." in place of what does
 * not fit. Returns `text`. */
char *quote(struct baton_str s, char text[QUOTE_TEXT]);

/* The longest form of one character: a C1 control as two bytes of \xNN. */
#define QUOTE_PIECE_MAX 8

/* One character as it is shown. */
struct quote_piece {
	char text[QUOTE_PIECE_MAX];
	size_t len;   /* of the text                          */
	size_t taken; /* how many bytes of the source it shows */
};

/* The first character of `s`, which is not empty: a control character, or a byte that is no UTF-8,
 * as \xNN; a quotation mark or a backslash after a backslash; everything else as it is. */
struct quote_piece quote_next(struct baton_str s);

#endif
