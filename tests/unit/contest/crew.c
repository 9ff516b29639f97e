/* Some agents in one fleet, and what has to be true of them when one has been killed. */
#include "crew.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contest/roster.h"
#include "support/harness.h"
#include "table.h"

/* Fails the test, saying where we are. */
static void __attribute__((format(printf, 3, 4)))
need(const struct crew *c, bool condition, const char *format, ...)
{
	char text[700];
	va_list args;
	if (condition)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fail_msg("%s: %s", c->about, text);
}

void crew_begin(struct crew *c)
{
	*c = (struct crew){.folder = "/tmp/baton-steps-XXXXXX"};
	assert_non_null(mkdtemp(c->folder));
	snprintf(c->path, sizeof c->path, "%s/fleet", c->folder);
	assert_int_equal(crew_do(c, 'a', "join").err, BATON_OK);
	struct segment_spec spec = layout_spec();
	spec.path = c->path;
	spec.init = NULL;
	assert_int_equal(segment_open(&spec, &c->view.segment), BATON_OK);
	view_init(&c->view);
	labels_find(&c->view, c->labels);
}

void crew_end(struct crew *c)
{
	char mark[112];
	for (int i = 0; i < CREW_SIZE; i++)
		agent_end(&c->agents[i]);
	segment_close(&c->view.segment);
	snprintf(mark, sizeof mark, "%s.mark", c->path);
	unlink(mark);
	unlink(c->path);
	assert_int_equal(rmdir(c->folder), 0);
}

struct agent *crew_agent(struct crew *c, char name)
{
	const char *at = strchr(CREW, name == 'w' ? 'v' : name);
	assert_non_null(at);
	struct agent *a = &c->agents[at - CREW];
	if (a->name == '\0')
		agent_start(a, *at, c->path);
	return a;
}

static int thread_of(char name)
{
	return name == 'w' ? 1 : 0;
}

/* What is known of a fence that somebody got. */
static void remember(struct crew *c, const char *command, const struct answer *answer)
{
	unsigned i;
	bool granted = sscanf(command, "try %u", &i) == 1 || sscanf(command, "steal %u", &i) == 1 ||
	               sscanf(command, "wait %u", &i) == 1;
	if (!granted || answer->err != BATON_OK)
		return;
	need(c, answer->fence > c->highest[i],
	     "label %u was granted with fence %" PRIu64 " after %" PRIu64, i, answer->fence,
	     c->highest[i]);
	c->highest[i] = answer->fence;
}

struct answer crew_do(struct crew *c, char name, const char *format, ...)
{
	char command[64];
	struct answer answer;
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	struct agent *a = crew_agent(c, name);
	agent_tell(a, thread_of(name), command);
	enum heard heard = agent_hear(a, thread_of(name), &answer);
	if (heard == HEARD_IN_LINE)
		heard = agent_hear(a, thread_of(name), &answer);
	need(c, heard == HEARD_ANSWER, "%c said something else to '%s'", name, command);
	remember(c, command, &answer);
	return answer;
}

static void line_add(struct crew *c, char name, unsigned label)
{
	size_t len = strlen(c->line);
	c->line[len] = name;
	c->line[len + 1] = '\0';
	c->waited = label;
}

static void line_drop(struct crew *c, char name)
{
	char *at = strchr(c->line, name);
	if (at != NULL)
		memmove(at, at + 1, strlen(at));
}

static enum baton_err error_named(const char *name)
{
#define ENTRY(error, number, text)     \
	if (strcmp(name, #error) == 0) \
		return BATON_##error;
	BATON_ERR_TABLE(ENTRY)
#undef ENTRY
	abort();
}

void crew_kill(struct crew *c, char name)
{
	agent_kill(crew_agent(c, name));
	line_drop(c, name);
}

/* One line of a script, which the agent may have been told already. False: the victim was stopped.
 */
static bool play(struct crew *c, const char *line, bool told)
{
	char who, command[64] = "", wanted[16] = "OK";
	struct answer answer;
	unsigned label = 0;
	assert_true(sscanf(line, " %c %63[^=;] = %15[A-Z_]", &who, command, wanted) >= 2);
	struct agent *a = crew_agent(c, who);
	bool collect = command[0] == '.';
	bool behind = strchr(command, '&') != NULL;
	if (strncmp(command, "kill", 4) == 0) {
		crew_kill(c, who);
		return true;
	}
	if (collect && strchr(c->line, who) == NULL)
		return true;
	if (!collect && !told)
		agent_tell(a, thread_of(who), command);
	enum heard heard = agent_hear(a, thread_of(who), &answer);
	if (heard == HEARD_STOPPED)
		return false;
	/* What began to wait in a trap of the victim, and goes on by itself. */
	if (heard == HEARD_IN_LINE && !behind)
		heard = agent_hear(a, thread_of(who), &answer);
	if (heard == HEARD_STOPPED)
		return false;
	if (heard == HEARD_IN_LINE) {
		assert_int_equal(sscanf(command, "wait %u", &label), 1);
		line_add(c, who, label);
		return true;
	}
	line_drop(c, who);
	char done[64];
	snprintf(done, sizeof done, "wait %u", c->waited);
	remember(c, collect ? done : command, &answer);
	need(c, c->lenient || answer.err == error_named(wanted), "%.40s: %s %s", line,
	     baton_err_name(answer.err), answer.text);
	return true;
}

static const char *line_after(const char *line)
{
	const char *end = strchr(line, ';');
	return end != NULL ? end + 1 : NULL;
}

const char *crew_play(struct crew *c, const char *script)
{
	for (const char *line = script; line != NULL; line = line_after(line)) {
		if (!play(c, line, false))
			return line;
	}
	return NULL;
}

void crew_resume(struct crew *c, const char *line)
{
	c->lenient = true;
	agent_go_on(crew_agent(c, 'v'), 0);
	assert_true(play(c, line, true));
	if (line_after(line) != NULL)
		assert_null(crew_play(c, line_after(line)));
}

/* Whether somebody who waits has it by now, and is about to say so. */
static bool is_news(struct crew *c, struct word w)
{
	struct member_facts facts;
	if (!word_is_held(w) || !roster_facts(&c->view, word_code(w), &facts))
		return false;
	for (const char *name = c->line; *name != '\0'; name++) {
		if (*name != 'v' && crew_agent(c, *name)->child.pid == facts.owner.pid)
			return true;
	}
	return false;
}

void crew_look(struct crew *c)
{
	for (unsigned i = 0; i < LABELS; i++) {
		struct word w = table_word(&c->view, c->labels[i]);
		if (word_tenure(w) > c->highest[i] && !is_news(c, w))
			c->highest[i] = word_tenure(w);
	}
}

/* The agent that holds the label as it says itself, or 0. */
static char holder_of(struct crew *c, unsigned label)
{
	char holder = '\0';
	for (int i = 0; i < CREW_SIZE; i++) {
		const struct agent *a = &c->agents[i];
		if (a->name == '\0' || !a->lives || strchr(c->line, a->name) != NULL)
			continue;
		if (crew_do(c, a->name, "check %u", label).err != BATON_OK)
			continue;
		need(c, holder == '\0', "%c and %c both hold label %u", holder, a->name, label);
		holder = a->name;
	}
	return holder;
}

/* Those who still wait get it one after the other, as they came. */
static void line_serve(struct crew *c)
{
	struct answer answer;
	while (c->line[0] != '\0') {
		char next = c->line[0];
		char holder = holder_of(c, c->waited);
		if (holder != '\0')
			assert_int_equal(crew_do(c, holder, "release %u", c->waited).err, BATON_OK);
		assert_int_equal(agent_hear(crew_agent(c, next), 0, &answer), HEARD_ANSWER);
		need(c, answer.err == BATON_OK, "%c waited and got %s", next,
		     baton_err_name(answer.err));
		char done[64];
		snprintf(done, sizeof done, "wait %u", c->waited);
		remember(c, done, &answer);
		line_drop(c, next);
	}
}

/* The label goes from a to b, who waits for it. */
static void label_hand_over(struct crew *c, unsigned label)
{
	struct answer answer = crew_do(c, 'b', "try %u", label);
	need(c, answer.err == BATON_YIELD && answer.pid == crew_agent(c, 'a')->child.pid,
	     "a holds label %u, and b is told %s, pid %d", label, baton_err_name(answer.err),
	     answer.pid);
	char command[64];
	snprintf(command, sizeof command, "wait %u 60000", label);
	agent_tell(crew_agent(c, 'b'), 0, command);
	need(c, agent_hear(crew_agent(c, 'b'), 0, &answer) == HEARD_IN_LINE,
	     "b does not wait for label %u: %s", label, baton_err_name(answer.err));
	need(c, crew_do(c, 'a', "release %u", label).err == BATON_OK, "a cannot release %u", label);
	assert_int_equal(agent_hear(crew_agent(c, 'b'), 0, &answer), HEARD_ANSWER);
	need(c, answer.err == BATON_OK, "b waited for label %u and got %s", label,
	     baton_err_name(answer.err));
	remember(c, command, &answer);
	need(c, crew_do(c, 'b', "release %u", label).err == BATON_OK, "b cannot release %u", label);
}

/* Where every place is held there is none for the rest. */
static void room_make(struct crew *c)
{
	unsigned held = 0;
	for (unsigned i = 0; i < LABELS; i++) {
		char holder = holder_of(c, i);
		held += holder != '\0';
		if (holder != '\0' && held == SUBJECTS)
			crew_do(c, holder, "release %u", i);
	}
}

static unsigned labels_check(struct crew *c)
{
	unsigned held = 0;
	for (unsigned i = 0; i < LABELS; i++) {
		char holder = holder_of(c, i);
		struct answer answer = crew_do(c, 'a', "try %u", i);
		if (holder != '\0') {
			need(c, answer.err == BATON_YIELD, "%c holds label %u, and a is told %s",
			     holder, i, baton_err_name(answer.err));
			need(c, answer.pid == crew_agent(c, holder)->child.pid,
			     "%c holds label %u, and a yields to pid %d", holder, i, answer.pid);
			held++;
			continue;
		}
		need(c, answer.err == BATON_OK, "nobody holds label %u, and a is told %s %s (%d)",
		     i, baton_err_name(answer.err), answer.text, answer.pid);
		label_hand_over(c, i);
	}
	return held;
}

static unsigned count_living(const struct crew *c)
{
	unsigned living = 0;
	for (int i = 0; i < CREW_SIZE; i++)
		living += c->agents[i].name != '\0' && c->agents[i].lives;
	return living;
}

void crew_check_dead(struct crew *c)
{
	line_serve(c);
	struct answer answer = crew_do(c, 'b', "join");
	need(c, answer.err == BATON_OK, "b cannot join: %s %s", baton_err_name(answer.err),
	     answer.text);
	room_make(c);
	unsigned held = labels_check(c);
	need(c, crew_do(c, 'b', "fill %u", SUBJECTS - held).err == BATON_OK,
	     "not all of the places can be had");
	need(c, crew_do(c, 'b', "look %u", held).err == BATON_OK, "a watch does not see it");
	need(c, crew_do(c, 'b', "crowd %u", MEMBERS - count_living(c)).err == BATON_OK,
	     "not all places of members can be had");
	need(c, table_members(&c->view) == count_living(c), "%u members are left of %u",
	     table_members(&c->view), count_living(c));
	table_check(&c->view);
	for (int i = 0; i < CREW_SIZE; i++) {
		if (c->agents[i].name != '\0' && c->agents[i].lives)
			crew_do(c, c->agents[i].name, "leave");
	}
	need(c, table_members(&c->view) == 0, "members are left");
	need(c, table_waiters(&c->view) == 0, "waiters are left");
	table_check(&c->view);
}

static void answer_check(struct crew *c, const char *what, struct answer answer)
{
	/* Full: where others hold everything. */
	bool fine = answer.err == BATON_OK || answer.err == BATON_FULL ||
	            answer.err == BATON_YIELD || answer.err == BATON_BUSY ||
	            answer.err == BATON_TIMEOUT;
	need(c, fine, "%s: %s %s", what, baton_err_name(answer.err), answer.text);
}

void crew_check_stopped(struct crew *c)
{
	struct answer joined = crew_do(c, 'b', "join");
	answer_check(c, "join", joined);
	for (unsigned i = 0; i < LABELS; i++) {
		struct answer answer = crew_do(c, 'a', "try %u", i);
		answer_check(c, "try", answer);
		if (answer.err == BATON_OK)
			need(c, crew_do(c, 'a', "release %u", i).err == BATON_OK, "no release");
		if (joined.err != BATON_OK || i % 4 != 0)
			continue;
		answer = crew_do(c, 'b', "wait %u 1", i);
		answer_check(c, "wait", answer);
		if (answer.err == BATON_OK)
			need(c, crew_do(c, 'b', "release %u", i).err == BATON_OK, "no release");
	}
	struct answer looked = crew_do(c, 'a', "look 0");
	need(c, looked.err == BATON_OK || looked.err == BATON_INVALID, "a watch is told %s",
	     baton_err_name(looked.err));
	if (joined.err == BATON_OK)
		crew_do(c, 'b', "leave");
}
