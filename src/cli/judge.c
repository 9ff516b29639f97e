/* What the witness of the demo makes of what it is told. */
#include "judge.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALL_JOBS ((UINT64_C(1) << JUDGE_JOBS) - 1)

static_assert(JUDGE_JOBS < 64, "a bit for each job");
static_assert(JUDGE_ALL == JUDGE_LANES * JUDGE_JOBS, "as many in each");

/* Reads " NUMBER" up to `max`, and moves on behind it. */
static bool take_number(const char **text, uint64_t max, uint64_t *ret)
{
	char *end;
	if ((*text)[0] != ' ' || !isdigit((unsigned char)(*text)[1]))
		return false;
	errno = 0;
	*ret = strtoull(*text + 1, &end, 10);
	*text = end;
	return errno == 0 && *ret <= max;
}

static bool take_word(const char **text, const char *word)
{
	size_t len = strlen(word);
	if (strncmp(*text, word, len) != 0)
		return false;
	*text += len;
	return true;
}

bool judge_read(const char *line, struct judge_record *ret)
{
	uint64_t lane, job, fence, pid;
	bool effect = take_word(&line, "effect");
	if ((!effect && !take_word(&line, "begin")) ||
	    !take_number(&line, JUDGE_LANES - 1, &lane) ||
	    !take_number(&line, JUDGE_JOBS - 1, &job) || !take_number(&line, UINT64_MAX, &fence) ||
	    !take_number(&line, INT32_MAX, &pid) || *line != '\0')
		return false;
	*ret = (struct judge_record){
		.effect = effect,
		.lane = (uint32_t)lane,
		.job = (uint32_t)job,
		.fence = fence,
		.pid = (int32_t)pid,
	};
	return true;
}

/* Those that come before the job in its lane. */
static uint64_t before(uint32_t job)
{
	return (UINT64_C(1) << job) - 1;
}

void judge_begin(struct judge *j, const struct judge_record *r, bool busy, int64_t now_ns)
{
	struct judge_lane *lane = &j->lanes[r->lane];
	j->together += busy;
	j->backward += r->fence < lane->fence;
	j->disordered += (lane->accepted & before(r->job)) != before(r->job);
	if (r->fence > lane->fence) {
		lane->fence = r->fence;
		lane->since_ns = now_ns;
	}
}

bool judge_effect(struct judge *j, const struct judge_record *r)
{
	struct judge_lane *lane = &j->lanes[r->lane];
	uint64_t job = UINT64_C(1) << r->job;
	if (r->fence < lane->fence) {
		j->late++;
		return false;
	}
	lane->fence = r->fence;
	if (lane->accepted & job) {
		j->repeated++;
		return true;
	}
	j->disordered += (lane->accepted & before(r->job)) != before(r->job);
	j->accepted++;
	lane->accepted |= job;
	return true;
}

bool judge_lane_done(const struct judge *j, size_t lane)
{
	return j->lanes[lane].accepted == ALL_JOBS;
}
