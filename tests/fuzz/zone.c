/* A time zone that is read has spans without holes, and finds every local time in them. */
#include "queue/zone.h"

#include "fuzz/fuzz.h"
#include "queue/cron.h"

/* Walks over some spans from the moment on. */
static void look_at(const struct zone *zone, int64_t utc_s)
{
	for (int i = 0; i < 8; i++) {
		struct zone_span span = zone_at(zone, utc_s);
		CHECK(span.begin_s <= utc_s && utc_s < span.end_s);
		CHECK(span.offset_s >= ZONE_OFFSET_MIN_S && span.offset_s <= ZONE_OFFSET_MAX_S);
		int64_t reached = zone_reached(zone, utc_s);
		CHECK(reached >= utc_s + span.offset_s);
		CHECK(zone_find(zone, reached).utc_s <= utc_s);
		CHECK(zone_find(zone, reached + 1).utc_s > utc_s);
		if (span.end_s > INT64_C(1) << 58)
			return;
		utc_s = span.end_s;
	}
}

static void tick(const struct zone *zone, const char *text)
{
	struct cron cron;
	struct baton_store_time t = {0};
	CHECK(cron_parse(baton_str_z(text), &cron) == BATON_OK);
	for (int i = 0; i < 8; i++) {
		struct baton_store_time next = cron_next(&cron, zone, t);
		CHECK(next.ms > t.ms);
		t = next;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct zone zone = {.width = 77};
	if (zone_parse((struct baton_str){(const char *)data, size}, &zone) != BATON_OK) {
		CHECK(zone.width == 77);
		CHECK(baton_str_is_utf8(baton_str_z(baton_err_detail())));
		return 0;
	}
	static const int64_t moments[] = {-(INT64_C(1) << 59), -4000000000,     0, 1000, 1700000000,
	                                  4000000000,          INT64_C(1) << 58};
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
		look_at(&zone, moments[i]);
	tick(&zone, "30 2 * * *");
	tick(&zone, "*/20 * * * *");
	return 0;
}
