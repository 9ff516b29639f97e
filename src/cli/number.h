/* Whole numbers as people type them. */
#ifndef CLI_NUMBER_H
#define CLI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads digits that make `min` to `max`. False: it is something else. */
bool number_read(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* Reads the value of `option`: digits that make 1 to `max`. False: it is something else, as one
 * line on standard error has said. */
bool number_parse(const char *option, const char *text, uint32_t max, uint32_t *ret);

/* The same from `min` on. */
bool number_between(const char *option, const char *text, uint32_t min, uint32_t max,
                    uint32_t *ret);

#endif
