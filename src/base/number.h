/* Whole numbers as programs write them. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/str.h>

/* Reads a decimal number in its only form: digits, no sign, no space, no leading zero. False, with
 * *ret untouched: anything else, or above `max`. */
bool number_parse(struct baton_str text, uint64_t max, uint64_t *ret);

/* The digits of the largest number. */
#define NUMBER_DIGITS 20

/* Writes it so, without a NUL, and returns the end. */
char *number_print(uint64_t number, char *at);

#endif
