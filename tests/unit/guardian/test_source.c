/* A command that runs while its guardian holds what a source gave, which may fail or not answer. */
#include <baton/guardian.h>

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/clock.h>

#include "base/fail.h"
#include "guardian/renewer.h"
#include "scratch.h"
#include "support/harness.h"
#include "support/skips.h"

#define FENCE 4711
#define HOUR 3600

/* How a source answers a call. */
enum answer {
	ANSWER_WELL,
	ANSWER_LOST,
	ANSWER_ERROR,
	ANSWER_ERROR_ONCE,
	ANSWER_ERROR_THEN_SILENT,
	ANSWER_NEVER
};

/* A source that answers as it is told. It is shared with the guardian. */
struct fake {
	enum answer renew, look, release;
	enum baton_err take;
	bool silent;     /* it does not say why it fails */
	int64_t late_ns; /* how long before now it says that it was asked for */
	char beside[96];
	char fifo[96]; /* the command is told each renewal here */
	atomic_int takes, renewals, looks, releases;
	atomic_llong renewed_ns; /* when the last renewal was asked for */
	bool locks;              /* it locks `beside` as long as it has it */
	int locked;              /* the guardian's descriptor for that */
};

struct world {
	char folder[64];
	struct fake *fake;
	struct baton_subject subject;
	char *argv[5];
	struct baton_guardian_source source;
	struct baton_guardian_ask ask;
	struct baton_guardian_end end;
};

static struct baton_mono now_boot(void)
{
	const struct baton_clock *clock = baton_clock_boot();
	return clock->now(clock);
}

static enum baton_err take(void *arg, struct baton_mono until,
                           struct baton_guardian_tenure *ret_tenure,
                           struct baton_claim_holder *ret_holder)
{
	struct fake *f = arg;
	struct baton_mono now = now_boot();
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	atomic_fetch_add(&f->takes, 1);
	if (f->take == BATON_YIELD) {
		*ret_holder = (struct baton_claim_holder){.why = BATON_CLAIM_HELD, .pid = 7};
		strcpy(ret_holder->owner, "holder");
		return baton_mono_live(until, now) ? BATON_TIMEOUT : BATON_YIELD;
	}
	if (f->take != BATON_OK)
		return f->silent ? f->take : fail(f->take, "the source is dry");
	if (f->locks)
		f->locked = open(f->beside, O_RDWR | O_CLOEXEC);
	if (f->locks && fcntl(f->locked, F_SETLK, &lock) != 0)
		return fail(BATON_SYSTEM, "the source cannot be locked");
	*ret_tenure = (struct baton_guardian_tenure){
		.fence = {FENCE},
		.sent = {now.ns - f->late_ns},
		.beside = f->beside,
	};
	return BATON_OK;
}

/* Whether it is the first of these calls. */
static enum baton_err give(enum answer answer, bool first)
{
	switch (answer) {
	case ANSWER_WELL:
		return BATON_OK;
	case ANSWER_LOST:
		return BATON_NOT_HELD;
	case ANSWER_ERROR_ONCE:
		return first ? fail(BATON_STORAGE, "the source is blocked") : BATON_OK;
	case ANSWER_ERROR_THEN_SILENT:
		return first ? fail(BATON_STORAGE, "the source is blocked") : BATON_STORAGE;
	case ANSWER_ERROR:
		return fail(BATON_STORAGE, "the source is blocked");
	case ANSWER_NEVER:
		for (;;)
			pause();
	}
	return BATON_SYSTEM;
}

static void tell(const struct fake *f, const char *letter)
{
	int fd = open(f->fifo, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	(void)!write(fd, letter, 1);
	close(fd);
}

/* A lock of an open file conflicts with those of its own process too, so it can be asked for. */
static bool is_locked(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static enum baton_err renew(void *arg)
{
	struct fake *f = arg;
	atomic_store(&f->renewed_ns, now_boot().ns);
	enum baton_err e = give(f->renew, atomic_fetch_add(&f->renewals, 1) == 0);
	if (e == BATON_OK && f->locks && !is_locked(f->locked))
		e = fail(BATON_STORAGE, "the lock is gone");
	tell(f, e == BATON_OK ? "o" : "x");
	return e;
}

static enum baton_err look(void *arg)
{
	struct fake *f = arg;
	enum baton_err e = give(f->look, atomic_fetch_add(&f->looks, 1) == 0);
	if (e != BATON_OK)
		tell(f, "l");
	return e;
}

static void release(void *arg)
{
	struct fake *f = arg;
	atomic_fetch_add(&f->releases, 1);
	(void)give(f->release, true);
}

static int setup(void **state)
{
	static char shell[] = "sh", option[] = "-c";
	struct world *w = calloc(1, sizeof *w);
	*state = w;
	if (!w)
		return -1;
	*state = w;
	w->fake = mmap(NULL, sizeof *w->fake, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
	               -1, 0);
	strcpy(w->folder, "/tmp/baton-source-XXXXXX");
	if (w->fake == MAP_FAILED || !mkdtemp(w->folder))
		return -1;
	snprintf(w->fake->beside, sizeof w->fake->beside, "%s/store", w->folder);
	snprintf(w->fake->fifo, sizeof w->fake->fifo, "%s/fifo", w->folder);
	close(open(w->fake->beside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	if (mkfifo(w->fake->fifo, 0600) != 0)
		return -1;
	w->subject = (struct baton_subject)BATON_SUBJECT("lock", "x");
	w->argv[0] = shell;
	w->argv[1] = option;
	w->argv[3] = w->fake->fifo;
	w->source = (struct baton_guardian_source){
		.take = take, .renew = renew, .look = look, .release = release, .arg = w->fake};
	w->ask = (struct baton_guardian_ask){
		.source = &w->source,
		.subject = &w->subject,
		.ttl = baton_duration_s(HOUR),
		.argv = w->argv,
	};
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	munmap(w->fake, sizeof *w->fake);
	int failed = scratch_remove(w->folder);
	free(w);
	return failed;
}

/* $0 is the fifo. */
static enum baton_err run(struct world *w, const char *script)
{
	w->argv[2] = (char *)script;
	w->end = (struct baton_guardian_end){.code = -1};
	return baton_guardian_run(&w->ask, &w->end);
}

#define ENDLESS "trap '' TERM; while :; do sleep 1000; done"

static void the_command_runs_under_what_the_source_gave(void **state)
{
	struct world *w = *state;
	assert_int_equal(run(w, "exit $((BATON_FENCE % 100))"), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_EXITED);
	assert_int_equal(w->end.code, FENCE % 100);
	assert_int_equal(w->end.guardian, 0);
	assert_int_equal(w->fake->takes, 1);
	assert_int_equal(w->fake->renewals, 0);
	assert_int_equal(w->fake->releases, 1);
}

static void its_latch_lies_beside_what_the_source_says(void **state)
{
	struct world *w = *state;
	assert_int_equal(run(w, "set -- \"${0%/*}\"/store.locks/*; [ $# = 1 ] && [ -f \"$1\" ]"),
	                 BATON_OK);
	assert_int_equal(w->end.code, 0);
}

static void who_yields_is_told_who_holds_it(void **state)
{
	struct world *w = *state;
	w->fake->take = BATON_YIELD;
	assert_int_equal(run(w, "exit 3"), BATON_YIELD);
	assert_string_equal(w->end.holder.owner, "holder");
	w->ask.wait = baton_duration_s(HOUR);
	assert_int_equal(run(w, "exit 3"), BATON_TIMEOUT);
	assert_int_equal(w->end.holder.pid, 7);
	assert_int_equal(w->fake->releases, 0);
}

static void an_error_of_the_source_is_the_callers(void **state)
{
	struct world *w = *state;
	w->fake->take = BATON_STORAGE;
	assert_int_equal(run(w, "exit 3"), BATON_STORAGE);
	assert_string_equal(baton_err_detail(), "the source is dry");
	assert_int_equal(w->end.code, -1);
	assert_int_equal(w->fake->releases, 0);
}

static void a_source_that_does_not_say_why_is_not_told_by_older_words(void **state)
{
	struct world *w = *state;
	w->fake->take = BATON_STORAGE;
	w->fake->silent = true;
	fail_detail("%s", "older words");
	assert_int_equal(run(w, "exit 3"), BATON_STORAGE);
	assert_string_equal(baton_err_detail(), "");
}

static void what_comes_from_a_source_has_a_ttl(void **state)
{
	struct world *w = *state;
	w->ask.ttl = baton_duration_ms(0);
	assert_int_equal(run(w, "exit 3"), BATON_INVALID);
	assert_int_equal(w->fake->takes, 0);
}

static void it_is_renewed_again_and_again(void **state)
{
	struct world *w = *state;
	w->ask.ttl = baton_duration_s(3);
	assert_int_equal(run(w, "[ \"$(head -c 3 <>\"$0\")\" = ooo ] && exit 3"), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_EXITED);
	assert_int_equal(w->end.code, 3);
	assert_true(w->fake->renewals >= 3);
	assert_int_equal(w->fake->releases, 1);
}

static void what_the_caller_has_open_costs_the_source_no_lock(void **state)
{
	struct world *w = *state;
	int fd = open(w->fake->beside, O_RDWR);
	assert_true(fd >= 0);
	w->fake->locks = true;
	w->ask.ttl = baton_duration_s(3);
	assert_int_equal(run(w, "[ \"$(head -c 1 <>\"$0\")\" = o ] && exit 3"), BATON_OK);
	assert_int_equal(w->end.code, 3);
	close(fd);
}

static void a_renewal_counts_from_before_it_was_asked_for(void **state)
{
	struct world *w = *state;
	struct renewer renewer = RENEWER_NONE;
	struct baton_mono began = now_boot();
	struct renewer_news news = {.sent = began};
	assert_int_equal(renewer_start(&renewer, &w->source, baton_duration_ms(30), began),
	                 BATON_OK);
	while (news.sent.ns == began.ns) {
		sched_yield();
		renewer_look(&renewer, &news);
	}
	assert_true(renewer_stop(&renewer, BATON_MONO_NEVER));
	renewer_look(&renewer, &news);
	assert_false(news.lost);
	assert_true(news.sent.ns <= w->fake->renewed_ns);
	assert_int_equal(w->fake->releases, 1);
}

static void a_renewal_that_fails_is_repeated(void **state)
{
	struct world *w = *state;
	w->ask.ttl = baton_duration_s(3);
	w->fake->renew = ANSWER_ERROR_ONCE;
	assert_int_equal(run(w, "[ \"$(head -c 3 <>\"$0\")\" = xoo ] && exit 3"), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_EXITED);
	assert_int_equal(w->end.code, 3);
}

static void without_renewals_even_who_ignores_it_is_ended(void **state)
{
	struct world *w = *state;
	w->ask.ttl = baton_duration_s(3);
	w->ask.grace = baton_duration_s(HOUR); /* more than there is */
	w->fake->renew = ANSWER_ERROR;
	assert_int_equal(run(w, ENDLESS), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_LOST);
	assert_string_equal(baton_err_detail(),
	                    "it could not be renewed in time: the source is blocked");
	/* Nothing of it lives: its latch can be had. */
	w->fake->renew = ANSWER_WELL;
	assert_int_equal(run(w, "exit 3"), BATON_OK);
}

static void what_is_told_is_why_the_last_renewal_failed(void **state)
{
	struct world *w = *state;
	w->ask.ttl = baton_duration_s(3);
	w->ask.grace = baton_duration_ms(20);
	w->fake->renew = ANSWER_ERROR_THEN_SILENT;
	assert_int_equal(run(w, "exec sleep 1000"), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_LOST);
	assert_string_equal(baton_err_detail(),
	                    "it could not be renewed in time: the store failed");
}

static void a_source_that_never_answers_again_keeps_nobody_alive(void **state)
{
	struct world *w = *state;
	w->ask.ttl = baton_duration_s(3);
	w->fake->renew = ANSWER_NEVER;
	assert_int_equal(run(w, ENDLESS), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_LOST);
	assert_string_equal(baton_err_detail(), "it could not be renewed in time");
	assert_int_equal(w->fake->renewals, 1);
	assert_int_equal(w->fake->releases, 0);
	assert_true(w->end.guardian > 0);
	assert_int_equal(waitpid(w->end.guardian, NULL, 0), w->end.guardian);
}

static void what_is_lost_ends_the_command(void **state)
{
	struct world *w = *state;
	w->ask.ttl = baton_duration_s(3);
	w->ask.grace = baton_duration_ms(20);
	w->fake->renew = ANSWER_LOST;
	assert_int_equal(run(w, ENDLESS), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_LOST);
	assert_string_equal(baton_err_detail(), "");
	assert_int_equal(w->fake->renewals, 1);
	assert_int_equal(w->fake->releases, 1);
}

static void a_loss_is_seen_long_before_the_next_renewal(void **state)
{
	struct world *w = *state;
	w->ask.grace = baton_duration_ms(20);
	w->fake->look = ANSWER_LOST;
	assert_int_equal(run(w, ENDLESS), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_LOST);
	assert_int_equal(w->fake->renewals, 0);
	assert_int_equal(w->fake->looks, 1);
}

static void a_look_that_fails_changes_nothing(void **state)
{
	struct world *w = *state;
	w->fake->look = ANSWER_ERROR;
	assert_int_equal(run(w, "[ \"$(head -c 2 <>\"$0\")\" = ll ] && exit 3"), BATON_OK);
	assert_int_equal(w->end.code, 3);
}

static void a_source_need_not_be_looked_at(void **state)
{
	struct world *w = *state;
	w->ask.ttl = baton_duration_s(3);
	w->source.look = NULL;
	assert_int_equal(run(w, "[ \"$(head -c 1 <>\"$0\")\" = o ] && exit 3"), BATON_OK);
	assert_int_equal(w->end.code, 3);
}

static void what_was_given_too_late_starts_nothing(void **state)
{
	struct world *w = *state;
	w->fake->late_ns = INT64_C(1000000000) * HOUR;
	w->fake->renew = ANSWER_ERROR;
	assert_int_equal(run(w, "exit 3"), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_LOST);
}

static void a_source_that_does_not_take_it_back_keeps_no_status(void **state)
{
	struct world *w = *state;
	w->ask.ttl = baton_duration_s(3);
	w->fake->release = ANSWER_NEVER;
	assert_int_equal(run(w, "exit 3"), BATON_OK);
	assert_int_equal(w->end.how, BATON_GUARDIAN_EXITED);
	assert_int_equal(w->end.code, 3);
	assert_true(w->end.guardian > 0);
	assert_int_equal(waitpid(w->end.guardian, NULL, 0), w->end.guardian);
}

/* So that the offer is withdrawn, once. */
static void answer_late(baton_fence fence, void *arg)
{
	struct fake *f = arg;
	(void)fence;
	while (atomic_load(&f->releases) == 0)
		sched_yield();
}

static void what_was_offered_to_who_does_not_answer_is_taken_anew(void **state)
{
	struct world *w = *state;
	w->ask.held = answer_late;
	w->ask.arg = w->fake;
	assert_int_equal(run(w, "exit 3"), BATON_OK);
	assert_int_equal(w->end.code, 3);
	assert_int_equal(w->fake->takes, 2);
	assert_int_equal(w->fake->releases, 2);
}

int main(void)
{
	skips_repair();
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_command_runs_under_what_the_source_gave),
		TEST(its_latch_lies_beside_what_the_source_says),
		TEST(who_yields_is_told_who_holds_it),
		TEST(an_error_of_the_source_is_the_callers),
		TEST(a_source_that_does_not_say_why_is_not_told_by_older_words),
		TEST(what_comes_from_a_source_has_a_ttl),
		TEST(it_is_renewed_again_and_again),
		TEST(what_the_caller_has_open_costs_the_source_no_lock),
		TEST(a_renewal_counts_from_before_it_was_asked_for),
		TEST(a_renewal_that_fails_is_repeated),
		TEST(without_renewals_even_who_ignores_it_is_ended),
		TEST(what_is_told_is_why_the_last_renewal_failed),
		TEST(a_source_that_never_answers_again_keeps_nobody_alive),
		TEST(what_is_lost_ends_the_command),
		TEST(a_loss_is_seen_long_before_the_next_renewal),
		TEST(a_look_that_fails_changes_nothing),
		TEST(a_source_need_not_be_looked_at),
		TEST(what_was_given_too_late_starts_nothing),
		TEST(a_source_that_does_not_take_it_back_keeps_no_status),
		TEST(what_was_offered_to_who_does_not_answer_is_taken_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
