/* Moments and spans as people type them. */
#ifndef CLI_MOMENT_H
#define CLI_MOMENT_H

#include <stdbool.h>

#include <baton.h>

/* The value of `option`, as baton_store_time_parse() reads it. False: it is no moment, as one line
 * on standard error has said. */
bool moment_parse(const char *option, const char *text, struct baton_store_time *ret);

/* The value of `option`, as baton_duration_parse() reads it, `min` to `max`. False: as above. */
struct span_limits {
	struct baton_duration min, max;
};
bool span_parse(const char *option, const char *text, const struct span_limits *limits,
                struct baton_duration *ret);

/* The limits of a ttl, and of a delay, which may be 0. */
struct span_limits span_limits_ttl(void);
struct span_limits span_limits_delay(void);

#endif
