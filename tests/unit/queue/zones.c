/* The system's time zones, and moments and local times as people write them. */
#include "zones.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <baton/alloc.h>

#include "base/zone_file.h"
#include "support/harness.h"

void zone_data_init(struct zone_data *data, const char *name)
{
	char variable[64];
	buf_init(&data->bytes, baton_alloc_libc(), ZONE_FILE_MAX);
	if (zone_file_read(ZONE_FILE_FOLDER, baton_str_z(name), &data->bytes) != BATON_OK ||
	    zone_parse(buf_str(&data->bytes), &data->zone) != BATON_OK)
		fail_msg("%s: %s", name, baton_err_detail());
	snprintf(variable, sizeof variable, ":%s", name);
	assert_int_equal(setenv("TZ", variable, 1), 0);
	tzset();
}

void zone_data_done(struct zone_data *data)
{
	buf_done(&data->bytes);
}

int64_t seconds_of(const char *text)
{
	struct tm tm = {.tm_isdst = 0};
	const char *end = strptime(text, "%Y-%m-%d %H:%M", &tm);
	if (end != NULL && *end != '\0')
		end = strptime(end, ":%S", &tm);
	if (end == NULL || *end != '\0')
		fail_msg("%s is no moment", text);
	return timegm(&tm);
}

char *seconds_print(int64_t seconds, char text[32])
{
	struct tm tm;
	time_t t = seconds;
	assert_non_null(gmtime_r(&t, &tm));
	assert_int_not_equal(strftime(text, 32, "%Y-%m-%d %H:%M:%S", &tm), 0);
	return text;
}
