/* Bytes as text that JSON can hold: base64 of RFC 4648, with its padding. */
#ifndef CLI_BASE64_H
#define CLI_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include <baton.h>

/* The four digits of the next one to three bytes; `s` goes on behind them. */
void base64_digits(struct baton_str *s, char digits[4]);

/* Replaces the text by the bytes that it stands for, in place, and *len by their number. False: it
 * is no base64, or has bits that no encoder leaves. */
bool base64_decode(char *text, size_t *len);

#endif
