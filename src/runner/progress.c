/* How far a run is, as its handler says it. In a report it is a line such as
 *
 *	progress 17-3 50 nearly done
 *
 * with a '-' in the place of percent that were not said. */
#include "runner/progress.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <yajl/yajl_tree.h>

#include "base/fail.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/utf8.h"
#include "store/store.h"

#define LINE_WORD "progress "
#define LINE_MAX \
	(sizeof LINE_WORD + sizeof((struct baton_work_proof *)0)->id + 8 + BATON_PROGRESS_MAX)
#define JSON_MAX 4096 /* bytes of an object that is looked into */
#define PERCENT_MAX 100
#define PAGE 8 /* of runners */

void progress_set(struct progress *p, int32_t percent, struct baton_str text)
{
	size_t len =
		text.len <= BATON_PROGRESS_MAX ? text.len : utf8_cut(text.ptr, BATON_PROGRESS_MAX);
	size_t to = 0, from = 0;
	while (from < len) {
		uint32_t ch = 0;
		size_t size = utf8_next(text.ptr + from, len - from, &ch);
		if (size == 0 || utf8_is_control(ch)) {
			p->text[to++] = ' ';
		} else {
			memcpy(p->text + to, text.ptr + from, size);
			to += size;
		}
		from += size > 0 ? size : 1;
	}
	p->text[to] = '\0';
	p->percent = percent;
	p->said = true;
}

/* A number as a percentage. False: it cannot be one. */
static bool percent_of(yajl_val value, int32_t *ret)
{
	double number = YAJL_IS_INTEGER(value)  ? (double)YAJL_GET_INTEGER(value)
	                : YAJL_IS_DOUBLE(value) ? YAJL_GET_DOUBLE(value)
	                                        : -1;
	if (!(number >= 0 && number <= PERCENT_MAX))
		return false;
	*ret = (int32_t)floor(number);
	return true;
}

/* False: it is neither a percentage nor an object that has one or a text. */
static bool look_into(struct progress *p, yajl_val value)
{
	const char *percent_path[] = {"percent", NULL};
	const char *text_path[] = {"text", NULL};
	int32_t percent = BATON_PROGRESS_UNSAID;
	if (percent_of(value, &percent)) {
		progress_set(p, percent, BATON_STR(""));
		return true;
	}
	if (!YAJL_IS_OBJECT(value))
		return false;
	bool has = percent_of(yajl_tree_get(value, percent_path, yajl_t_any), &percent);
	yajl_val text = yajl_tree_get(value, text_path, yajl_t_string);
	if (has || text)
		progress_set(p, percent, baton_str_z(text ? YAJL_GET_STRING(text) : ""));
	return has || text;
}

void progress_said(struct progress *p, struct baton_str value, bool is_string)
{
	char json[JSON_MAX + 1];
	bool known = false;
	if (!is_string && value.len <= JSON_MAX) {
		memcpy(json, value.ptr, value.len);
		json[value.len] = '\0';
		yajl_val tree = yajl_tree_parse(json, NULL, 0);
		known = tree && look_into(p, tree);
		yajl_tree_free(tree);
	}
	if (!known)
		progress_set(p, BATON_PROGRESS_UNSAID, value);
}

void progress_print(const struct progress *p, const char *claim, struct buf *buf)
{
	if (!p->said || buf->max - buf->len < LINE_MAX)
		return;
	buf_printf(buf, LINE_WORD "%s ", claim);
	if (p->percent == BATON_PROGRESS_UNSAID)
		buf_append_str(buf, BATON_STR("-"));
	else
		buf_printf(buf, "%" PRId32, p->percent);
	buf_printf(buf, " %s\n", p->text);
}

/* What stands before the next `end`, which is left out; all of it, if there is none. */
static struct baton_str take_until(struct baton_str *rest, char end)
{
	struct baton_str s = *rest;
	const char *at = s.len > 0 ? memchr(s.ptr, end, s.len) : NULL;
	if (at)
		s.len = (size_t)(at - s.ptr);
	size_t used = at ? s.len + 1 : s.len;
	rest->ptr += used;
	rest->len -= used;
	return s;
}

/* What is behind the claim. False: it is not as progress_print() writes it. */
static bool parse_rest(struct baton_str line, struct baton_progress *ret)
{
	struct progress p = {.said = false};
	uint64_t percent = 0;
	struct baton_str number = take_until(&line, ' ');
	bool unsaid = baton_str_equal(number, BATON_STR("-"));
	if ((!unsaid && !number_parse(number, PERCENT_MAX, &percent)) ||
	    line.len > BATON_PROGRESS_MAX || !utf8_is_valid(line.ptr, line.len))
		return false;
	progress_set(&p, unsaid ? BATON_PROGRESS_UNSAID : (int32_t)percent, line);
	*ret = (struct baton_progress){.percent = p.percent};
	memcpy(ret->text, p.text, sizeof ret->text);
	return true;
}

bool progress_find(struct baton_str report, struct baton_str claim, struct baton_progress *ret)
{
	const struct baton_str word = BATON_STR("progress");
	while (report.len > 0) {
		struct baton_str line = take_until(&report, '\n');
		if (baton_str_equal(take_until(&line, ' '), word) &&
		    baton_str_equal(take_until(&line, ' '), claim))
			return parse_rest(line, ret);
	}
	return false;
}

static enum baton_err read_report(struct baton_store *store, uint64_t number,
                                  struct baton_str claim, struct baton_progress *ret)
{
	struct baton_str report;
	struct baton_store_time at;
	char *text = mem_new(store->alloc, BATON_RUNNER_REPORT_MAX, 1);
	if (!text)
		return fail_memory(BATON_RUNNER_REPORT_MAX, "the report of a runner");
	enum baton_err e = baton_runner_reported(store, number, text, &report, &at);
	if (e == BATON_OK && progress_find(report, claim, ret))
		ret->at = at;
	else if (e == BATON_OK)
		e = BATON_NOT_FOUND;
	mem_free(store->alloc, text, BATON_RUNNER_REPORT_MAX, 1);
	return e;
}

/* The number of the runner that is the owner; 0: there is none. `infos` has room for a page. */
static enum baton_err find_runner(struct baton_store *store, const struct baton_owner *owner,
                                  struct baton_runner_info *infos, uint64_t *ret)
{
	size_t count = PAGE;
	uint64_t after = 0;
	*ret = 0;
	while (count == PAGE && *ret == 0) {
		enum baton_err e = baton_runner_list(store, after, infos, PAGE, &count);
		if (e != BATON_OK)
			return e;
		for (size_t i = 0; i < count; i++) {
			after = infos[i].number;
			if (baton_id_equal(&infos[i].owner.incarnation, &owner->incarnation))
				*ret = after;
		}
	}
	return BATON_OK;
}

enum baton_err baton_progress_read(struct baton_store *store, const struct baton_work_info *info,
                                   struct baton_progress *ret)
{
	uint64_t number = 0;
	if (info->state != BATON_BATCH_CLAIMED)
		return fail(BATON_NOT_FOUND, "job %s does not run", info->batch.id.text);
	struct baton_runner_info *infos = mem_new(store->alloc, PAGE, sizeof *infos);
	if (!infos)
		return fail_memory(PAGE * sizeof *infos, "a list of runners");
	enum baton_err e = find_runner(store, &info->owner, infos, &number);
	mem_free(store->alloc, infos, PAGE, sizeof *infos);
	if (e == BATON_OK)
		e = number > 0 ? read_report(store, number, info->claim, ret) : BATON_NOT_FOUND;
	return e == BATON_NOT_FOUND
	               ? fail(e, "nothing was told of how far job %s is", info->batch.id.text)
	               : e;
}
