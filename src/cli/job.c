/* A job as it is shown, to people and to programs. */
#include <inttypes.h>
#include <string.h>

#include "job.h"
#include "stall.h"
#include "suggest.h"
#include "wall.h"

static const char *const states[] = {
	[BATON_BATCH_READY] = "ready", [BATON_BATCH_DELAYED] = "delayed",
	[BATON_BATCH_RETRY] = "retry", [BATON_BATCH_CLAIMED] = "claimed",
	[BATON_BATCH_DEAD] = "dead",   [BATON_BATCH_DONE] = "done",
	[BATON_BATCH_GONE] = "gone",   [BATON_BATCH_SKIPPED] = "skipped",
};

static const char *const whys[] = {
	[BATON_WHY_NOTHING] = "claimed", [BATON_WHY_READY] = "ready",
	[BATON_WHY_PAUSED] = "paused",   [BATON_WHY_DELAYED] = "delayed",
	[BATON_WHY_RETRY] = "retry",     [BATON_WHY_BEHIND] = "behind",
	[BATON_WHY_LANE_HELD] = "held",  [BATON_WHY_KEY] = "key",
	[BATON_WHY_DEAD] = "dead",       [BATON_WHY_DONE] = "done",
	[BATON_WHY_SKIPPED] = "skipped", [BATON_WHY_RATE] = "rate",
};

const char *job_state_name(enum baton_batch_state state)
{
	return states[state];
}

const char *job_why_name(enum baton_why why)
{
	return whys[why];
}

bool job_state_parse(const char *text, enum baton_batch_state *ret)
{
	struct suggestion meant = {.typed = text};
	char shown[SHOWN_MAX];
	for (int i = BATON_BATCH_READY; i <= BATON_BATCH_SKIPPED; i++) {
		if (i == BATON_BATCH_GONE)
			continue;
		if (strcmp(states[i], text) == 0) {
			*ret = (enum baton_batch_state)i;
			return true;
		}
		suggestion_consider(&meant, states[i]);
	}
	show(text, shown);
	if (meant.nearest)
		complain("unknown state '%s'; did you mean '%s'?", shown, meant.nearest);
	else
		complain("unknown state '%s': ready, delayed, retry, claimed, dead, done and "
		         "skipped are known",
		         shown);
	return false;
}

void job_json_payload(struct json *j, struct baton_str bytes)
{
	if (baton_str_is_utf8(bytes))
		json_bytes(j, "payload", bytes);
	else
		json_base64(j, "payload_base64", bytes);
}

void job_json_payloads(struct json *j, const struct baton_work_batch *batch)
{
	if (batch->count == 1) {
		job_json_payload(j, batch->payloads[0]);
		return;
	}
	json_open_list(j, "payloads");
	for (size_t i = 0; i < batch->count; i++) {
		json_open(j, NULL);
		job_json_payload(j, batch->payloads[i]);
		json_close(j);
	}
	json_close_list(j);
}

void job_json_batch(struct json *j, const struct baton_work_batch *batch)
{
	json_text(j, "id", batch->id.text);
	json_number(j, "seq", batch->seq);
	json_number(j, "attempt", batch->attempt);
	json_number(j, "priority", batch->priority);
	json_bool(j, "command", batch->cls == BATON_COMMAND);
	json_bool(j, "after_commit", batch->delivery == BATON_AFTER_COMMIT);
	json_bool(j, "join", batch->slot == BATON_JOIN);
	if (batch->group.len > 0)
		json_bytes(j, "group", batch->group);
	else
		json_null(j, "group");
	json_time(j, "put", batch->put_at);
}

void job_json_lane(struct json *j, struct baton_str lane)
{
	if (lane.len > 0)
		json_bytes(j, "lane", lane);
	else
		json_null(j, "lane");
}

void job_json_keys(struct json *j, const struct baton_str *keys, size_t count)
{
	static const char name[] = "concurrency_key";
	if (count == 0)
		json_null(j, name);
	else if (count == 1)
		json_bytes(j, name, keys[0]);
	if (count < 2)
		return;
	json_open_list(j, name);
	for (size_t i = 0; i < count; i++)
		json_bytes(j, NULL, keys[i]);
	json_close_list(j);
}

void job_keys(struct line *line, const struct baton_str *keys, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			line_text(line, ", ");
		line_shown(line, keys[i]);
	}
}

/* A moment that is not known is 0. */
static void moment(struct json *j, const char *key, struct baton_store_time t)
{
	json_time(j, key, t.ms > 0 ? t : BATON_STORE_TIME_NEVER);
}

static void claim_json(struct json *j, const char *name, const struct baton_work_info *info)
{
	if (!info || info->state != BATON_BATCH_CLAIMED) {
		json_null(j, name);
		return;
	}
	json_open(j, name);
	json_bytes(j, "id", info->claim);
	json_number(j, "fence", info->fence.v);
	json_text(j, "owner", info->owner.id);
	moment(j, "claimed", info->claimed_at);
	moment(j, "expires", info->expires_at);
	json_bool(j, "cancel", info->cancel);
	json_close(j);
}

void job_json(struct json *j, const struct baton_work_info *info)
{
	job_json_batch(j, &info->batch);
	json_bytes(j, "queue", info->queue);
	job_json_lane(j, info->lane);
	job_json_keys(j, info->keys, info->key_count);
	json_text(j, "state", job_state_name(info->state));
	moment(j, "due", info->due);
	if (info->error.len > 0)
		json_bytes(j, "error", info->error);
	else
		json_null(j, "error");
	moment(j, "ended", info->ended_at);
	claim_json(j, "claim", info);
}

void job_json_ahead(struct json *j, const struct baton_work_info *info,
                    const struct baton_work_info *ahead)
{
	if (info->ahead.text[0] != '\0')
		json_text(j, "ahead", info->ahead.text);
	else
		json_null(j, "ahead");
	if (ahead)
		json_bytes(j, "ahead_queue", ahead->queue);
	else
		json_null(j, "ahead_queue");
	claim_json(j, "holder", ahead);
}

/* "until 2026-02-28 09:05:00 (in 12s)" */
static void until(struct line *line, struct baton_store_time t, struct baton_store_time now)
{
	char when[WALL_TEXT];
	char left[BATON_DURATION_TEXT];
	line_print(line, "until %s (in %s)", wall_print(t, when),
	           wall_span(baton_store_time_sub(t, now), left));
}

static void tell_error(struct line *line, const struct baton_work_info *info)
{
	if (info->error.len == 0)
		return;
	line_text(line, ": ");
	line_shown(line, info->error);
}

static void tell_claimed(struct line *line, const struct baton_work_info *info,
                         struct baton_store_time now)
{
	bool live = baton_store_time_live(info->expires_at, now);
	line_print(line,
	           live ? "is claimed, attempt %" PRIu32 ", by "
	                : "was claimed, attempt %" PRIu32 ", by ",
	           info->batch.attempt);
	line_shown(line, baton_str_z(info->owner.id));
	line_text(line, " ");
	if (info->expires_at.ms == BATON_STORE_TIME_NEVER.ms)
		line_text(line, "for as long as this runner has its shard: 'baton runner' says "
		                "how it is");
	else if (live)
		until(line, info->expires_at, now);
	else
		line_text(line, "whose time is over: the next who asks gets it");
	if (info->cancel)
		line_text(line, "; it is to be cancelled");
	if (info->cancel && info->ahead.text[0] != '\0')
		line_print(line, " for job %s, which replaces it", info->ahead.text);
}

/* Who has the job that is in the way, and since when; or how long that one waits itself. */
static void tell_ahead(struct line *line, const struct baton_work_info *ahead,
                       struct baton_store_time now)
{
	char when[WALL_TEXT], ago[BATON_DURATION_TEXT];
	if (ahead && ahead->state == BATON_BATCH_CLAIMED) {
		line_text(line, ": claimed by ");
		line_shown(line, baton_str_z(ahead->owner.id));
		line_print(line, " at %s, %s ago, under fence %" PRIu64,
		           wall_print(ahead->claimed_at, when),
		           wall_span(baton_store_time_sub(now, ahead->claimed_at), ago),
		           ahead->fence.v);
	} else if (ahead && ahead->state == BATON_BATCH_RETRY) {
		line_text(line, ": it has failed and waits for its next attempt ");
		until(line, ahead->due, now);
	}
}

/* Where a key counts that does not count in the cluster: where the job would run. */
static const char *where(enum baton_key_scope scope)
{
	switch (scope) {
	case BATON_KEY_SCOPE_PROCESS:
		return " in the same process";
	case BATON_KEY_SCOPE_HOST:
		return " on the same host";
	case BATON_KEY_SCOPE_CLUSTER:
		break;
	}
	return "";
}

/* Which key it waits for, and who has it since when. */
static void tell_key(struct line *line, const struct baton_work_info *info,
                     const struct baton_work_info *ahead, struct baton_store_time now)
{
	char when[WALL_TEXT], ago[BATON_DURATION_TEXT];
	line_text(line, "is ready, but waits for its key ");
	line_shown(line, info->held);
	line_print(line, ", which job %s", info->ahead.text);
	if (ahead && !baton_str_equal(ahead->queue, info->queue)) {
		line_text(line, " of queue ");
		line_shown(line, ahead->queue);
	}
	line_print(line, " holds%s", where(info->scope));
	if (ahead && ahead->state == BATON_BATCH_CLAIMED) {
		line_text(line, ", claimed by ");
		line_shown(line, baton_str_z(ahead->owner.id));
		line_print(line, " at %s, %s ago", wall_print(ahead->claimed_at, when),
		           wall_span(baton_store_time_sub(now, ahead->claimed_at), ago));
	} else if (ahead && ahead->state == BATON_BATCH_RETRY) {
		line_text(line, " and keeps for its next attempt ");
		until(line, ahead->due, now);
	}
}

/* Until when it is delayed; or, if that has passed, since when it is ready, and who does not see
 * it. */
static void tell_due(struct line *line, const struct baton_work_info *info,
                     const struct baton_stalled *stalled, struct baton_store_time now)
{
	char when[WALL_TEXT];
	if (!stalled) {
		until(line, info->due, now);
		return;
	}
	line_print(line, "was due at %s: it ", wall_print(info->due, when));
	stall_tell(line, info, stalled, now);
}

/* Which key has started as often as it may, and when it may again. */
static void tell_rate(struct line *line, const struct baton_work_info *info,
                      const struct baton_stalled *stalled, struct baton_store_time now)
{
	char window[BATON_DURATION_TEXT];
	if (stalled) {
		tell_due(line, info, stalled, now);
		return;
	}
	line_text(line, "is ready, but its key ");
	line_shown(line, info->held);
	line_print(line, " has started as often as it may%s, %" PRIu64 " in %s, and waits ",
	           where(info->scope), info->rate.starts,
	           baton_duration_print(info->rate.window, window));
	until(line, info->due, now);
}

/* One that has a lane and a key can wait for another one in either. */
static bool is_behind_in_lane(const struct baton_work_info *info,
                              const struct baton_work_info *ahead)
{
	return info->key.len == 0 ||
	       (info->lane.len > 0 && (!ahead || baton_str_equal(info->lane, ahead->lane)));
}

void job_why(struct line *line, const struct baton_work_info *info,
             const struct baton_work_info *ahead, const struct baton_stalled *stalled,
             struct baton_store_time now)
{
	char when[WALL_TEXT];
	line_print(line, "job %s ", info->batch.id.text);
	switch (info->why) {
	case BATON_WHY_NOTHING:
		tell_claimed(line, info, now);
		break;
	case BATON_WHY_READY:
		if (stalled)
			stall_tell(line, info, stalled, now);
		else
			line_text(line, "is ready: nobody has asked for it yet");
		break;
	case BATON_WHY_PAUSED:
		stall_tell_paused(line, info);
		break;
	case BATON_WHY_DELAYED:
		if (!stalled)
			line_text(line, "is delayed ");
		tell_due(line, info, stalled, now);
		break;
	case BATON_WHY_RETRY:
		if (!stalled)
			line_text(line, "has failed and waits for its next attempt ");
		tell_due(line, info, stalled, now);
		tell_error(line, info);
		break;
	case BATON_WHY_BEHIND:
		line_print(line, "is ready, but job %s comes first %s", info->ahead.text,
		           is_behind_in_lane(info, ahead) ? "in its lane"
		           : info->key_count > 1          ? "of one of its keys"
		                                          : "of its key");
		tell_ahead(line, ahead, now);
		break;
	case BATON_WHY_LANE_HELD:
		line_print(line, "is ready, but job %s, which is dead, holds its lane: ",
		           info->ahead.text);
		line_text(line, "retry or cancel that one");
		break;
	case BATON_WHY_KEY:
		tell_key(line, info, ahead, now);
		break;
	case BATON_WHY_RATE:
		tell_rate(line, info, stalled, now);
		break;
	case BATON_WHY_DEAD:
		line_print(line, "has failed for good at %s", wall_print(info->ended_at, when));
		tell_error(line, info);
		break;
	case BATON_WHY_DONE:
		line_print(line, "was completed at %s", wall_print(info->ended_at, when));
		break;
	case BATON_WHY_SKIPPED:
		line_print(line, "was skipped at %s, for job %s, which had its key ",
		           wall_print(info->ended_at, when), info->ahead.text);
		line_shown(line, info->key);
		break;
	}
}
