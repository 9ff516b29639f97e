/* When a schedule ticks. */
#include "store/timetable.h"

#include "base/zone_file.h"

enum baton_err timetable_open(const struct baton_alloc *alloc, struct baton_str cron,
                              struct baton_str zone, struct timetable *t)
{
	t->zone = ZONE_UTC;
	buf_init(&t->file, alloc, ZONE_FILE_MAX);
	enum baton_err e = cron_parse(cron, &t->cron);
	if (e != BATON_OK || zone.len == 0)
		return e;
	e = zone_file_read(ZONE_FILE_FOLDER, zone, &t->file);
	return e == BATON_OK ? zone_parse(buf_str(&t->file), &t->zone) : e;
}

void timetable_done(struct timetable *t)
{
	buf_done(&t->file);
}
