/* A schedule that is read ticks at local times that fit it, each later than the one before. */
#include "queue/cron.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct baton_str input = {(const char *)data, size};
	struct cron cron = {.hours = 77};
	struct zone utc = ZONE_UTC;
	if (cron_parse(input, &cron) != BATON_OK) {
		CHECK(cron.hours == 77);
		CHECK(baton_err_detail()[0] != '\0');
		CHECK(baton_str_is_utf8(baton_str_z(baton_err_detail())));
		return 0;
	}
	struct baton_store_time t = {INT64_C(1700000000123)};
	for (int i = 0; i < 20; i++) {
		struct baton_store_time next = cron_next(&cron, &utc, t);
		CHECK(next.ms > t.ms && next.ms != BATON_STORE_TIME_NEVER.ms);
		CHECK(cron_fit(&cron, next.ms / 1000) == next.ms / 1000);
		t = next;
	}
	return 0;
}
