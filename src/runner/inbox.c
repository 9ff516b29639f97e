/* What other threads tell the runner's loop. */
#include "runner/inbox.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fail.h"

enum baton_err inbox_init(struct inbox *inbox)
{
	*inbox = (struct inbox){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	if (inbox->fd < 0)
		return fail_errno(errno, "making a descriptor for a runner");
	pthread_mutex_init(&inbox->mu, NULL);
	inbox->end_last = &inbox->mail.ends;
	return BATON_OK;
}

void inbox_done(struct inbox *inbox)
{
	if (inbox->fd < 0)
		return;
	close(inbox->fd);
	pthread_mutex_destroy(&inbox->mu);
	inbox->fd = -1;
}

void inbox_wake(struct inbox *inbox)
{
	int errnum = errno;
	uint64_t one = 1;
	/* A counter that is full wakes as well. */
	if (write(inbox->fd, &one, sizeof one) < 0)
		errno = errnum;
}

void inbox_answered(struct inbox *inbox)
{
	pthread_mutex_lock(&inbox->mu);
	inbox->mail.answered = true;
	pthread_mutex_unlock(&inbox->mu);
	inbox_wake(inbox);
}

void inbox_news(struct inbox *inbox)
{
	pthread_mutex_lock(&inbox->mu);
	inbox->mail.news = true;
	pthread_mutex_unlock(&inbox->mu);
	inbox_wake(inbox);
}

void inbox_want(struct inbox *inbox, enum baton_runner_wish want)
{
	pthread_mutex_lock(&inbox->mu);
	inbox->mail.want = want;
	pthread_mutex_unlock(&inbox->mu);
	inbox_wake(inbox);
}

void inbox_beat(struct inbox *inbox, const struct inbox_beat *beat)
{
	pthread_mutex_lock(&inbox->mu);
	if (inbox->mail.beat.number == 0)
		inbox->unheard = beat->sent;
	inbox->mail.beat = *beat;
	pthread_mutex_unlock(&inbox->mu);
	inbox_wake(inbox);
}

bool inbox_is_heard(struct inbox *inbox, struct baton_mono then)
{
	pthread_mutex_lock(&inbox->mu);
	bool heard = inbox->mail.beat.number == 0 || inbox->unheard.ns > then.ns;
	pthread_mutex_unlock(&inbox->mu);
	return heard;
}

void inbox_end(struct inbox *inbox, struct inbox_end *end)
{
	end->next = NULL;
	pthread_mutex_lock(&inbox->mu);
	bool first = !inbox->mail.ends;
	*inbox->end_last = end;
	inbox->end_last = &end->next;
	pthread_mutex_unlock(&inbox->mu);
	if (first)
		inbox_wake(inbox);
}

void inbox_more(struct inbox *inbox, struct inbox_more *more)
{
	pthread_mutex_lock(&inbox->mu);
	more->next = inbox->mail.mores;
	inbox->mail.mores = more;
	pthread_mutex_unlock(&inbox->mu);
	inbox_wake(inbox);
}

void inbox_stop(struct inbox *inbox, struct baton_duration grace)
{
	/* Pairs with inbox_take(): who sees the stop sees its grace. */
	atomic_store_explicit(&inbox->grace, grace.ns, memory_order_relaxed);
	atomic_store_explicit(&inbox->stop, true, memory_order_release);
	inbox_wake(inbox);
}

void inbox_take(struct inbox *inbox, struct inbox_mail *ret)
{
	uint64_t count;
	/* Before the mail, so that none is left without a wake-up. */
	if (read(inbox->fd, &count, sizeof count) < 0)
		errno = 0;
	pthread_mutex_lock(&inbox->mu);
	*ret = inbox->mail;
	inbox->mail = (struct inbox_mail){.answered = false};
	inbox->end_last = &inbox->mail.ends;
	pthread_mutex_unlock(&inbox->mu);
	ret->stop = atomic_exchange_explicit(&inbox->stop, false, memory_order_acquire);
	ret->grace.ns = atomic_load_explicit(&inbox->grace, memory_order_relaxed);
}
