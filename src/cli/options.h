/* Reads the options of a command line: getopt_long() with one clear line for whatever is wrong. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/* What argv[0] is where no command has been read yet; else it is the command. */
#define PROGRAM "baton"

#define OPTION_END (-1)
#define OPTION_BAD '?'

/* From here on a `val` has no short form. */
#define OPTION_LONG 256

/* The `val` of the next option that argv has, of those in `options`, which end with zeros; a `val`
 * that is a letter is its short form too. OPTION_END: no more, argv[optind] is the first operand.
 * OPTION_BAD: one line on standard error has said what is wrong.
 * The first call for a command line has optind 0. */
int option_next(int argc, char **argv, const struct option *options);

/* What a command is given besides options. Begins as {.max = ...}. */
struct operands {
	size_t max;   /* how many the command takes                      */
	size_t count; /* how many have been given so far                 */
	char **texts; /* they are argv's, moved together at its beginning */
};

/* As option_next(), for a command whose operands may stand before, among or after its options.
 *
 * OPTION_END: `operands` has what was given. OPTION_BAD also: one was too many. */
int option_mixed(int argc, char **argv, const struct option *options, struct operands *operands);

/* The operand of that number, from 0; NULL: it was not given. */
const char *operand_at(const struct operands *operands, size_t index);

/* Reads the options of a command that has none of its own but --help.
 *
 * OPTION_END: as above. 'h': help is wanted. OPTION_BAD: as above. */
int option_none(int argc, char **argv);

#endif
