/* Asks where lanes are, on a thread of its own. */
#include "handoff/locator.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"

struct question {
	uint64_t connection;
	char queue[BATON_NAME_MAX + 1];
	char lane[BATON_NAME_MAX + 1];
};

struct locator {
	const struct baton_alloc *alloc; /* [const] */
	locator_where *where;            /* [const] */
	void *arg;                       /* [const] */
	int wake;                        /* [const] */
	pthread_t thread;                /* [const] */
	pthread_mutex_t mu;
	pthread_cond_t asked;                       /* [mu] there is a question, or it is over */
	bool over;                                  /* [mu] */
	struct question questions[LOCATOR_MAX];     /* [mu] a ring */
	struct locator_answer answers[LOCATOR_MAX]; /* [mu] a ring */
	uint32_t first_question, question_count;    /* [mu] */
	uint32_t first_answer, answer_count;        /* [mu] */
	uint32_t open;                              /* [mu] questions whose answer was not taken */
};

/* Takes the next question; false: it is over. */
static bool question_take(struct locator *l, struct question *ret)
{
	pthread_mutex_lock(&l->mu);
	while (l->question_count == 0 && !l->over)
		pthread_cond_wait(&l->asked, &l->mu);
	bool over = l->over;
	if (!over) {
		*ret = l->questions[l->first_question];
		l->first_question = (l->first_question + 1) % LOCATOR_MAX;
		l->question_count--;
	}
	pthread_mutex_unlock(&l->mu);
	return !over;
}

static void answer_put(struct locator *l, const struct locator_answer *answer)
{
	static const uint64_t one = 1;
	pthread_mutex_lock(&l->mu);
	CHECK(l->answer_count < LOCATOR_MAX);
	l->answers[(l->first_answer + l->answer_count++) % LOCATOR_MAX] = *answer;
	pthread_mutex_unlock(&l->mu);
	/* It cannot fail for want of room: the reader takes all of it at a time. */
	CHECK(write(l->wake, &one, sizeof one) == (ssize_t)sizeof one);
}

static void *work(void *arg)
{
	struct locator *l = arg;
	struct question question;
	while (question_take(l, &question)) {
		struct locator_answer answer = {.connection = question.connection};
		answer.err = l->where(l->arg, baton_str_z(question.queue),
		                      baton_str_z(question.lane), &answer.place);
		answer_put(l, &answer);
	}
	return NULL;
}

/* Signals are for the thread that runs the broker. */
static int thread_start(struct locator *l)
{
	sigset_t all;
	sigset_t before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int why = pthread_create(&l->thread, NULL, work, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return why;
}

enum baton_err locator_open(const struct baton_alloc *alloc, locator_where *where, void *arg,
                            struct locator **ret)
{
	struct locator *l = mem_new(alloc, 1, sizeof *l);
	if (!l)
		return fail_memory(sizeof *l, "questions about lanes");
	l->alloc = alloc;
	l->where = where;
	l->arg = arg;
	l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&l->mu, NULL);
	pthread_cond_init(&l->asked, NULL);
	int why = l->wake < 0 ? errno : thread_start(l);
	if (why != 0) {
		fd_closep(&l->wake);
		mem_free(alloc, l, 1, sizeof *l);
		return fail_errno(why, "no thread to ask for lanes");
	}
	*ret = l;
	return BATON_OK;
}

void locator_close(struct locator *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->mu);
	l->over = true;
	pthread_cond_signal(&l->asked);
	pthread_mutex_unlock(&l->mu);
	pthread_join(l->thread, NULL);
	pthread_cond_destroy(&l->asked);
	pthread_mutex_destroy(&l->mu);
	close(l->wake);
	mem_free(l->alloc, l, 1, sizeof *l);
}

int locator_fd(const struct locator *l)
{
	return l->wake;
}

static void name_keep(char name[BATON_NAME_MAX + 1], struct baton_str s)
{
	CHECK(s.len <= BATON_NAME_MAX);
	memcpy(name, s.ptr, s.len);
	name[s.len] = '\0';
}

bool locator_ask(struct locator *l, uint64_t connection, struct baton_str queue,
                 struct baton_str lane)
{
	pthread_mutex_lock(&l->mu);
	bool room = l->open < LOCATOR_MAX;
	if (room) {
		uint32_t at = (l->first_question + l->question_count) % LOCATOR_MAX;
		l->questions[at].connection = connection;
		name_keep(l->questions[at].queue, queue);
		name_keep(l->questions[at].lane, lane);
		l->question_count++;
		l->open++;
		pthread_cond_signal(&l->asked);
	}
	pthread_mutex_unlock(&l->mu);
	return room;
}

bool locator_next(struct locator *l, struct locator_answer *ret)
{
	uint64_t count;
	pthread_mutex_lock(&l->mu);
	bool found = l->answer_count > 0;
	if (found) {
		*ret = l->answers[l->first_answer];
		l->first_answer = (l->first_answer + 1) % LOCATOR_MAX;
		l->answer_count--;
		l->open--;
	} else if (read(l->wake, &count, sizeof count) < 0) {
		count = 0;
	}
	pthread_mutex_unlock(&l->mu);
	return found;
}
