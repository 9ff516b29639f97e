/* What a claim gave, as it is written. */
#include <inttypes.h>
#include <stdio.h>

#include "grant.h"
#include "job.h"
#include "json.h"
#include "shell.h"

static void put_line(struct line *line, const struct baton_work_claim *claim)
{
	char token[BATON_ID_TEXT];
	line_print(line, "%s\t%s", claim->proof.id, baton_id_print(&claim->proof.token, token));
	for (size_t i = 0; i < claim->count; i++) {
		const struct baton_work_batch *b = &claim->batches[i];
		for (size_t k = 0; k < b->count; k++) {
			line_char(line, '\t');
			line_shown(line, b->payloads[k]);
		}
	}
	line_end(line);
}

void grant_lines(struct out *out, const struct baton_work_claims *claims)
{
	struct line line = {.out = out};
	for (size_t i = 0; i < claims->count && out->errnum == 0; i++)
		put_line(&line, &claims->claims[i]);
}

static void put_json(struct json *j, const struct baton_work_claim *claim)
{
	char token[BATON_ID_TEXT];
	json_open(j, NULL);
	json_text(j, "claim", claim->proof.id);
	json_text(j, "token", baton_id_print(&claim->proof.token, token));
	json_number(j, "fence", claim->fence.v);
	json_bytes(j, "queue", claim->queue);
	job_json_lane(j, claim->lane);
	job_json_keys(j, claim->keys, claim->key_count);
	json_time(j, "claimed", claim->claimed_at);
	json_time(j, "expires", claim->expires_at);
	json_open_list(j, "jobs");
	for (size_t i = 0; i < claim->count; i++) {
		json_open(j, NULL);
		job_json_batch(j, &claim->batches[i]);
		job_json_payloads(j, &claim->batches[i]);
		json_close(j);
	}
	json_close_list(j);
	json_close(j);
	json_end(j);
}

void grant_json(struct out *out, const struct baton_work_claims *claims)
{
	struct json json = {.line = {.out = out}};
	for (size_t i = 0; i < claims->count && out->errnum == 0; i++)
		put_json(&json, &claims->claims[i]);
}

static void export_number(struct line *line, const char *name, uint64_t number)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, number);
	shell_export(line, name, baton_str_z(text));
}

static void export_payloads(struct line *line, const struct baton_work_batch *batch)
{
	char name[40];
	export_number(line, "BATON_PAYLOADS", batch->count);
	shell_export(line, "BATON_PAYLOAD", batch->payloads[0]);
	for (size_t i = 1; i < batch->count; i++) {
		snprintf(name, sizeof name, "BATON_PAYLOAD_%zu", i + 1);
		shell_export(line, name, batch->payloads[i]);
	}
}

/* Several have a line each. */
static void export_keys(struct line *line, const struct baton_work_claim *claim)
{
	char text[BATON_KEYS_MAX * (BATON_NAME_MAX + 1)];
	size_t len = 0;
	for (size_t i = 0; i < claim->key_count; i++) {
		if (i > 0)
			text[len++] = '\n';
		memcpy(text + len, claim->keys[i].ptr, claim->keys[i].len);
		len += claim->keys[i].len;
	}
	shell_export(line, "BATON_KEY", (struct baton_str){text, len});
}

void grant_shell(struct out *out, const struct baton_work_claim *claim)
{
	struct line line = {.out = out};
	char text[BATON_ID_TEXT > BATON_STORE_TIME_TEXT ? BATON_ID_TEXT : BATON_STORE_TIME_TEXT];
	shell_export(&line, "BATON_CLAIM", baton_str_z(claim->proof.id));
	shell_export(&line, "BATON_TOKEN", baton_str_z(baton_id_print(&claim->proof.token, text)));
	export_number(&line, "BATON_FENCE", claim->fence.v);
	shell_export(&line, "BATON_EXPIRES",
	             baton_str_z(baton_store_time_print(claim->expires_at, text)));
	shell_export(&line, "BATON_QUEUE", claim->queue);
	shell_export(&line, "BATON_LANE", claim->lane);
	export_keys(&line, claim);
	shell_export(&line, "BATON_JOB", baton_str_z(claim->batches[0].id.text));
	export_number(&line, "BATON_ATTEMPT", claim->batches[0].attempt);
	export_payloads(&line, &claim->batches[0]);
	line_text(&line, ":"); /* whatever stood before, this succeeds */
	line_end(&line);
}

void grant_shell_none(struct out *out, int status)
{
	out_print(out,
	          "unset BATON_CLAIM BATON_TOKEN BATON_FENCE BATON_EXPIRES BATON_QUEUE BATON_LANE "
	          "BATON_KEY BATON_JOB BATON_ATTEMPT BATON_PAYLOADS BATON_PAYLOAD; (exit %d)\n",
	          status);
}
