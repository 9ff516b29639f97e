/* A log of records with fields, a line each. */
#include <baton/log.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/record.h"

static_assert(BATON_LOG_RECORD_MAX <= PIPE_BUF, "a pipe takes a record whole or not at all");

/* A write that signals keep interrupting has to end some time. */
#define TRIES_MAX 1000

static ssize_t write_patiently(int fd, const char *bytes, size_t len)
{
	ssize_t n = -1;
	for (int i = 0; i < TRIES_MAX; i++) {
		n = write(fd, bytes, len);
		if (n >= 0 || errno != EINTR)
			break;
	}
	return n;
}

static bool write_whole(int fd, const char *bytes, size_t len)
{
	ssize_t n = write_patiently(fd, bytes, len);
	if (n <= 0 || (size_t)n == len)
		return n > 0;
	size_t rest = len - (size_t)n;
	return write_patiently(fd, bytes + n, rest) == (ssize_t)rest;
}

/* A reader that went away must cost a record, not the process: SIGPIPE is held back during the
 * write, and taken out if it is ours. */
static bool write_quietly(int fd, const char *bytes, size_t len)
{
	sigset_t sigpipe, pending, old;
	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	sigemptyset(&pending);
	if (pthread_sigmask(SIG_BLOCK, &sigpipe, &old) != 0)
		return false;
	/* While it was not blocked, none can have been pending. */
	if (sigismember(&old, SIGPIPE) == 1)
		sigpending(&pending);

	bool written = write_whole(fd, bytes, len);
	if (!written && errno == EPIPE && sigismember(&pending, SIGPIPE) == 0)
		sigtimedwait(&sigpipe, NULL, &(struct timespec){0, 0});
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return written;
}

/* The counter stands alone: nothing else is published by it, so no order is needed. */
static uint64_t take_dropped(uint64_t *dropped)
{
	if (dropped == NULL || __atomic_load_n(dropped, __ATOMIC_RELAXED) == 0)
		return 0;
	return __atomic_exchange_n(dropped, 0, __ATOMIC_RELAXED);
}

static void add_dropped(uint64_t *dropped, uint64_t count)
{
	if (dropped != NULL)
		__atomic_add_fetch(dropped, count, __ATOMIC_RELAXED);
}

void baton_log_write(const struct baton_log *log, enum baton_log_level level, const char *message,
                     const struct baton_field *fields, size_t count)
{
	if (log == NULL || level < log->level)
		return;
	int saved = errno;
	const struct baton_clock *clock = log->clock != NULL ? log->clock : baton_clock_awake();
	struct record record = {
		.format = log->format,
		.time = clock->wall(clock),
		.level = level,
		.message = message,
		.fields = fields,
		.count = count,
		.dropped = take_dropped(log->dropped),
	};
	char bytes[BATON_LOG_RECORD_MAX];
	size_t len = record_write(&record, bytes);
	if (!write_quietly(log->fd, bytes, len))
		add_dropped(log->dropped, record.dropped + 1);
	errno = saved;
}
