/* What libFuzzer calls with each input. A target ends with a failed CHECK, or returns 0. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

/* Once, before anything else; a target may do without. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
