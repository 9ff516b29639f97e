/* The singleton that puts what schedules have due. */
#include "runner/ticker.h"

#include <stdio.h>
#include <string.h>

#include "runner/duty.h"
#include "store/ticking.h"

#define SLEEP_MAX_MS 10000 /* the store's clock may be set: it is looked at now and then */
#define TROUBLE_MS 1000    /* after an error */
#define AGAIN_MS 100       /* somebody else was at it */

static bool may_act(void *duty)
{
	return duty_may_act(duty);
}

/* Says what is wrong, once for as long as it is the same. */
static void say(const struct ticker *t, enum baton_err e, char told[static 256])
{
	const char *detail = e == BATON_OK ? "" : baton_err_detail();
	bool same = strncmp(told, detail, 255) == 0;
	snprintf(told, 256, "%s", detail);
	if (e != BATON_OK && !same)
		BATON_LOG(t->log, BATON_LOG_WARN, "a schedule cannot tick",
		          baton_field_str("error", baton_str_z(told)));
}

/* How long there is nothing to do. */
static struct baton_duration pause_after(const struct ticker *t, enum baton_err e, size_t count,
                                         struct baton_store_time next)
{
	const struct baton_duration most = baton_duration_ms(SLEEP_MAX_MS), none = {0};
	if (e != BATON_OK)
		return baton_duration_ms(TROUBLE_MS);
	if (next.ms == BATON_STORE_TIME_NEVER.ms)
		return most;
	struct baton_duration left = baton_store_time_sub(next, baton_store_now(t->store));
	if (left.ns <= 0)
		return count > 0 ? none : baton_duration_ms(AGAIN_MS);
	return left.ns < most.ns ? left : most;
}

static void work(void *arg, struct baton_duty *duty)
{
	const struct ticker *t = arg;
	const struct schedule_gate gate = {.open = may_act, .arg = duty};
	char told[256] = "";
	while (!baton_duty_is_over(duty)) {
		uint32_t seen = duty_word(duty);
		struct baton_store_time next = BATON_STORE_TIME_NEVER;
		size_t count = 0;
		enum baton_err e = schedule_tick_while(t->store, &gate, &count, &next);
		if (e == BATON_STORAGE)
			duty_suspect(duty);
		if (e != BATON_CANCELLED)
			say(t, e, told);
		duty_wait(duty, seen, pause_after(t, e, count, next));
	}
}

struct baton_singleton ticker_singleton(struct ticker *ticker)
{
	return (struct baton_singleton){
		.name = BATON_STR(TICKER_NAME),
		.call = work,
		.arg = ticker,
		.overtime = BATON_OVERTIME_FENCED,
	};
}
