/* Where a command writes: standard output, with the first error kept, and complaints. */
#ifndef CLI_OUT_H
#define CLI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct out {
	FILE *file;
	bool colour; /* it is a terminal whose user wants colours      */
	int errnum;  /* why the first write failed; 0: none has failed */
};

/* Standard output, as it is found. */
struct out out_stdout(void);

/* Whether it is a terminal that obeys more than line feeds. */
bool out_is_screen(int fd);

/* Writes as printf() does, and hands it on at once, so that it is seen when it happens. */
__attribute__((format(printf, 2, 3))) void out_print(struct out *out, const char *format, ...);

/* Writes the bytes as they are. */
void out_bytes(struct out *out, const void *bytes, size_t len);

/* Whether it is open for writing; for a command that does nothing unless it can say so. False:
 * out_finish() says why. */
bool out_is_writable(struct out *out);

/* The ways in which text can be set off from the rest. */
enum look {
	LOOK_PLAIN = 1,
	LOOK_BOLD,
	LOOK_FAINT,
	LOOK_GOOD,
	LOOK_WAITING,
	LOOK_BAD
};

/* The terminal's command to begin `look`; "" without colour. LOOK_PLAIN ends any other. */
const char *out_look(const struct out *out, enum look look);

/* The exit status: `status`, or EX_IOERR with a complaint if something could not be written. */
int out_finish(struct out *out, int status);

/* Writes one line to standard error, with the program's name before it. */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

#define SHOWN_MAX 80

/* What a user typed as it may be shown: '?' instead of control characters and of bytes that are not
 * UTF-8, and whole characters cut off its end if it is long. Returns `shown`. */
const char *show(const char *typed, char shown[SHOWN_MAX]);

#endif
