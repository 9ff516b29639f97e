/* Bytes as text, and back: base64 of RFC 4648, with its padding. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include <baton/str.h>

#include "base/buf.h"

/* The room that the bytes of a text of that length may take. */
#define BASE64_ROOM(len) ((len) / 4 * 3)

/* Writes what the text stands for into `bytes`, which has BASE64_ROOM() of its length. False: it is
 * no base64, or has bits that no encoder leaves. */
bool base64_decode(struct baton_str text, char *bytes, size_t *ret_len);

/* Appends the bytes as text. Returns buf->err. */
enum baton_err base64_append(struct buf *buf, struct baton_str bytes);

#endif
