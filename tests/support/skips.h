/* Skipped tests that Meson understands. */
#ifndef SUPPORT_SKIPS_H
#define SUPPORT_SKIPS_H

/* cmocka 1.1 reports a skipped test as `not ok 1 # SKIP name`, which Meson takes for a failure.
 * After this call at the beginning of main() it is `ok 1 # SKIP name`. */
void skips_repair(void);

#endif
