/* What a command reads: all of a file, or line by line, within a bound. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <baton.h>

#include "out.h"

/* Reads standard input to its end, at most `max` bytes of what is called `what`. Returns EX_OK, and
 * *ret_bytes is freed by the caller; or another status after one line on standard error. */
int input_all(const char *what, size_t max, char **ret_bytes, size_t *ret_len);

/* A file of lines. */
struct input {
	char name[SHOWN_MAX + 2]; /* as it is shown */
	FILE *file;
	char *bytes; /* of the last line */
	size_t room;
	uint64_t line; /* the number of the last line, from 1 */
	uint64_t read; /* bytes so far */
	uint64_t size; /* of the file; 0: not known */
};

/* Opens it; "-" is standard input. Returns EX_OK, or another status after one line on standard
 * error; input_close() ends it either way. */
int input_open(struct input *in, const char *path);
void input_close(struct input *in);

/* Sees to it that all of it can be read again: what is no file is kept in one without a name, in
 * $TMPDIR or /tmp. Before the first line. Returns EX_OK, or another status after one line on
 * standard error. */
int input_keep(struct input *in);

/* From the first line on again. Returns EX_OK, or another status after one line on standard
 * error. */
int input_again(struct input *in);

/* Why a line could not be read. */
#define INPUT_ERROR 256

/* Reads the next line of at most `max` bytes; its line feed is not part of it. EX_OK: *ret is valid
 * until the next call; ret->ptr is NULL at the end. Else another status, and `error` is the
 * sentence that says why, for the caller to write. */
int input_line(struct input *in, size_t max, struct baton_str *ret, char error[INPUT_ERROR]);

#endif
