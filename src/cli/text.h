/* Bytes that somebody else has chosen, as they may be shown to people. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <baton.h>

/* The longest character in bytes of UTF-8. */
#define TEXT_CHARACTER 4

/* The first character of `s`, which is not empty, or else its first byte. */
struct baton_str text_first(struct baton_str s);

/* Room for `n` bytes as text_show() shows them, with the terminator. */
#define TEXT_SHOWN(n) (4 * (n) + 1)

/* Writes `s` so that it stays on its line and looks like nothing else: a backslash is doubled, and
 * every byte of a control character, of a character that is invisible or turns the direction of
 * writing, of what is no UTF-8, and of any character in `also`, becomes \xNN. Two different byte
 * strings are shown differently. `shown` has TEXT_SHOWN(s.len) bytes. Returns `shown`. */
const char *text_show(struct baton_str s, const char *also, char *shown);

/* How many columns a text of UTF-8 takes, each character counting as one. */
size_t text_width(const char *text);

#endif
