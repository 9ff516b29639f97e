/* The whole terminal, as long as a command has it: drawn anew at each look, with keys read as they
 * are pressed. However the command ends, the terminal is as it was. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "out.h"

enum key {
	KEY_NONE = 0, /* the time is over, or the size has changed */
	KEY_UP = 256,
	KEY_DOWN,
	KEY_END /* asked to end, by a signal or the end of the input */
};

#define TERMINAL_KEYS 32

struct terminal {
	struct out *out;
	struct termios before;
	unsigned rows, columns;
	char keys[TERMINAL_KEYS]; /* read, and not taken yet */
	size_t key_count;
	char *frame; /* what is being drawn */
	size_t used, room;
	unsigned row, column; /* where it is being drawn, from 0 */
	bool full;            /* no memory for the frame: it stays as it was */
};

/* Takes the terminal. False: standard input and output are none, as errno says. */
bool terminal_open(struct terminal *t, struct out *out);
void terminal_close(struct terminal *t);

/* Begins a picture: from its top left corner on, lines are added, and then all of it is shown. What
 * does not fit is cut off. */
void terminal_begin(struct terminal *t);

/* Adds text to the line, in that look; `colour` 1 to 6 is one of the terminal's own, 0 none. */
void terminal_add(struct terminal *t, enum look look, const char *text);
void terminal_colour(struct terminal *t, unsigned colour, const char *text);
__attribute__((format(printf, 3, 4))) void terminal_print(struct terminal *t, enum look look,
                                                          const char *format, ...);
void terminal_line_end(struct terminal *t);

/* Goes on in that line. */
void terminal_go(struct terminal *t, unsigned row);
void terminal_show(struct terminal *t);

/* The next key: a character, or one of enum key. Waits for at most so long. */
int terminal_key(struct terminal *t, int timeout_ms);

#endif
