/* Whole numbers as people type them. */
#ifndef CLI_NUMBER_H
#define CLI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the value of `option`: digits that make 1 to `max`. False: it is something else, as one
 * line on standard error has said. */
bool number_parse(const char *option, const char *text, uint32_t max, uint32_t *ret);

#endif
