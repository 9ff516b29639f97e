/* When a schedule ticks. */
#include "store/timetable.h"

#include <stdio.h>

#include "base/fail.h"
#include "base/quote.h"
#include "base/zone_file.h"

/* What is wrong with the file does not say whose it is. */
static enum baton_err fail_zone(enum baton_err e, struct baton_str zone)
{
	char shown[QUOTE_TEXT], why[256];
	snprintf(why, sizeof why, "%s", baton_err_detail());
	return fail(e, "time zone %s: %s", quote(zone, shown), why);
}

enum baton_err timetable_open(const struct baton_alloc *alloc, struct baton_str cron,
                              struct baton_str zone, struct timetable *t)
{
	t->zone = ZONE_UTC;
	buf_init(&t->file, alloc, ZONE_FILE_MAX);
	enum baton_err e = cron_parse(cron, &t->cron);
	if (e != BATON_OK || zone.len == 0)
		return e;
	e = zone_file_read(ZONE_FILE_FOLDER, zone, &t->file);
	if (e != BATON_OK)
		return e;
	e = zone_parse(buf_str(&t->file), &t->zone);
	return e == BATON_OK ? e : fail_zone(e, zone);
}

void timetable_done(struct timetable *t)
{
	buf_done(&t->file);
}
