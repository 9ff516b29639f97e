/* Reads the options of a command line: getopt_long() with one clear line for whatever is wrong. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <getopt.h>

#define OPTION_END (-1)
#define OPTION_BAD '?'

/* The `val` of the next option that argv has, of those in `options`, which end with zeros; a `val`
 * that is a letter is its short form too. OPTION_END: no more, argv[optind] is the first operand.
 * OPTION_BAD: one line on standard error has said what is wrong.
 * The first call for a command line has optind 0. */
int option_next(int argc, char **argv, const struct option *options);

/* Reads the options of a command that has none of its own but --help.
 *
 * OPTION_END: as above. 'h': help is wanted. OPTION_BAD: as above. */
int option_none(int argc, char **argv);

#endif
