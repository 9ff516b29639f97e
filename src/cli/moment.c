/* Moments and spans as people type them. */
#include "moment.h"
#include "out.h"

bool moment_parse(const char *option, const char *text, struct baton_store_time *ret)
{
	char shown[SHOWN_MAX];
	if (baton_store_time_parse(baton_str_z(text), ret) == BATON_OK)
		return true;
	complain("'--%s' takes a moment such as 2026-02-28T09:05:00Z, 2026-02-28T10:05:00+01:00 or "
	         "@1772269500 from 1970 on, not '%s'",
	         option, show(text, shown));
	return false;
}

bool span_parse(const char *option, const char *text, const struct span_limits *limits,
                struct baton_duration *ret)
{
	char is[BATON_DURATION_TEXT], min[BATON_DURATION_TEXT], max[BATON_DURATION_TEXT];
	struct baton_duration d;
	if (baton_duration_parse(baton_str_z(text), &d) != BATON_OK) {
		complain("%s: %s", option, baton_err_detail());
		return false;
	}
	if (d.ns < limits->min.ns || d.ns > limits->max.ns) {
		complain("%s is %s: %s to %s are allowed", option, baton_duration_print(d, is),
		         baton_duration_print(limits->min, min),
		         baton_duration_print(limits->max, max));
		return false;
	}
	*ret = d;
	return true;
}

struct span_limits span_limits_ttl(void)
{
	return (struct span_limits){baton_duration_ms(BATON_LEASE_TTL_MIN_MS),
	                            baton_duration_ms(BATON_LEASE_TTL_MAX_MS)};
}

struct span_limits span_limits_delay(void)
{
	return (struct span_limits){{0}, baton_duration_ms(BATON_QUEUE_SPAN_MAX_MS)};
}
