/* Whatever somebody wrote into a fleet's segment, those who attach to it get answers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <baton/claim.h>
#include <baton/clock.h>
#include <baton/fleet.h>
#include <baton/wakeup.h>
#include <baton/watch.h>

#include "base/cleanup.h"
#include "contest/layout.h"
#include "fuzz/fuzz.h"

#define LABELS 10u
#define IMAGE_MAX (1u << 18)
#define PATCH_MAX 16u
#define EVENTS_MAX 64
#define MS INT64_C(1000000)

/* A piece of the image that is used. */
struct piece {
	size_t at, len;
};

/* A fleet as it was when it was well. The path of the mark is left alone: it says where a file is
 * written to. */
struct sample {
	char folder[64], path[96];
	size_t size;
	struct piece pieces[16];
	size_t count;
	char image[IMAGE_MAX];
};

static const struct baton_wakeup_interest interest = {1, BATON_WAKEUP_ANY_SHARD};

static enum baton_err join(const char *path, struct baton_fleet **ret)
{
	const struct baton_fleet_options options = {
		.path = path,
		.owner = BATON_STR("fuzz"),
		.limits = {4, 6, 4, 4, 4},
	};
	return baton_fleet_join(&options, ret);
}

static struct baton_subject subject_of(unsigned i, char label[8])
{
	int len = snprintf(label, 8, "s%u", i);
	return (struct baton_subject){BATON_STR("f"), {label, (size_t)len}, {0, 0}};
}

static struct baton_mono now(void)
{
	return baton_clock_boot()->now(baton_clock_boot());
}

/* A member that dies and leaves something behind. */
static void sample_die(const char *path)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct baton_fleet *fleet = NULL;
		struct baton_claim claim;
		char label[8];
		if (join(path, &fleet) != BATON_OK)
			_exit(1);
		for (unsigned i = 0; i < 3; i++) {
			struct baton_subject subject = subject_of(i, label);
			const struct baton_claim_ask ask = {.subject = &subject};
			if (baton_claim_try(fleet, &ask, &claim, NULL) != BATON_OK)
				_exit(1);
		}
		_exit(0);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void sample_live(struct baton_fleet *fleet)
{
	struct baton_claim claim;
	char label[8];
	for (unsigned i = 3; i < 6; i++) {
		struct baton_subject subject = subject_of(i, label);
		const struct baton_claim_ask ask = {.subject = &subject, .ttl = {1000 * MS}};
		CHECK(baton_claim_try(fleet, &ask, &claim, NULL) == BATON_OK);
		if (i == 4)
			CHECK(baton_claim_release(&claim) == BATON_OK);
	}
	struct baton_wakeup wakeup = {1, 2, 3};
	CHECK(baton_wakeup_publish(fleet, &wakeup, 1) == BATON_OK);
}

static void piece_add(struct sample *s, const struct view *v, const void *from, size_t len)
{
	size_t at = (size_t)((const char *)from - (const char *)v->segment.base);
	CHECK(at + len <= s->size);
	s->pieces[s->count++] = (struct piece){at, len};
}

static void pieces_find(struct sample *s, const struct view *v)
{
	const uint32_t *p = v->params;
	piece_add(s, v, v->segment.base, sizeof(struct segment_header));
	piece_add(s, v, v->bells, sizeof(struct bell) * 3);
	piece_add(s, v, v->control, sizeof *v->control);
	piece_add(s, v, v->members, p[PARAM_MEMBERS] * sizeof *v->members);
	piece_add(s, v, v->shards, v->shard_count * sizeof *v->shards);
	piece_add(s, v, v->index, v->shard_count * v->shard_places * sizeof *v->index);
	piece_add(s, v, v->slots, p[PARAM_SUBJECTS] * sizeof *v->slots);
	piece_add(s, v, v->names, p[PARAM_SUBJECTS] * sizeof *v->names);
	piece_add(s, v, v->waiters, p[PARAM_WAITERS] * sizeof *v->waiters);
	piece_add(s, v, v->lanes, p[PARAM_MEMBERS] * v->lane_size);
	piece_add(s, v, v->wakeups, ring_size(p[PARAM_WAKEUPS]));
}

static void sample_make(struct sample *s)
{
	struct baton_fleet *fleet = NULL;
	struct view v = {.bells = NULL};
	struct segment_spec spec = layout_spec();
	memcpy(s->folder, "/tmp/baton-fuzz-XXXXXX", sizeof "/tmp/baton-fuzz-XXXXXX");
	CHECK(mkdtemp(s->folder) != NULL);
	snprintf(s->path, sizeof s->path, "%s/fleet", s->folder);
	sample_die(s->path);
	CHECK(join(s->path, &fleet) == BATON_OK);
	sample_live(fleet);
	spec.path = s->path;
	spec.init = NULL;
	CHECK(segment_open(&spec, &v.segment) == BATON_OK);
	view_init(&v);
	s->size = v.segment.size;
	CHECK(s->size <= sizeof s->image);
	memcpy(s->image, v.segment.base, s->size);
	pieces_find(s, &v);
	segment_close(&v.segment);
	baton_fleet_leave(fleet);
}

static struct sample sample;

static void sample_remove(void)
{
	char mark[112];
	const struct sample *s = &sample;
	snprintf(mark, sizeof mark, "%s.mark", s->path);
	unlink(s->path);
	unlink(mark);
	rmdir(s->folder);
}

/* The input is a list of patches: which piece, where in it, how many bytes, and the bytes. */
static void image_patch(char *image, const struct sample *s, const uint8_t *data, size_t size)
{
	while (size > 4) {
		const struct piece *piece = &s->pieces[data[0] % s->count];
		size_t at = (data[1] | (size_t)data[2] << 8) % piece->len;
		size_t len = data[3] % PATCH_MAX + 1;
		len = len < size - 4 ? len : size - 4;
		len = len < piece->len - at ? len : piece->len - at;
		memcpy(image + piece->at + at, data + 4, len);
		data += 4 + len;
		size -= 4 + len;
	}
}

static void image_write(const struct sample *s, const char *image)
{
	unlink(s->path);
	int fd = open(s->path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK(write(fd, image, s->size) == (ssize_t)s->size);
	close(fd);
}

static void answer_check(enum baton_err e)
{
	if (e != BATON_OK)
		CHECK(baton_str_is_utf8(baton_str_z(baton_err_detail())));
}

static void holder_check(const struct baton_claim_holder *h)
{
	CHECK(memchr(h->owner, '\0', sizeof h->owner) != NULL);
}

static void use_claim(const struct baton_claim *claim)
{
	CHECK(claim->fence.v > 0 && claim->fence.v <= WORD_TENURE_MAX);
	answer_check(baton_claim_renew(claim, (struct baton_duration){MS}));
	answer_check(baton_claim_check(claim, NULL));
	answer_check(baton_claim_release(claim));
	CHECK(baton_claim_release(claim) == BATON_NOT_HELD);
}

static void use_subject(struct baton_fleet *fleet, unsigned i, bool patient)
{
	char label[8];
	struct baton_subject subject = subject_of(i, label);
	struct baton_claim claim;
	struct baton_claim_holder holder = {.pid = 0};
	struct baton_claim_ask ask = {.subject = &subject, .ttl = {i % 2 == 0 ? 0 : MS}};
	answer_check(baton_claim_holder(fleet, &subject, now(), &holder));
	enum baton_err e = baton_claim_try(fleet, &ask, &claim, &holder);
	answer_check(e);
	holder_check(&holder);
	if (e == BATON_OK)
		use_claim(&claim);
	ask.until.ns = patient ? now().ns + MS : 0;
	e = baton_claim_wait(fleet, &ask, &claim, &holder);
	answer_check(e);
	if (e == BATON_OK && baton_claim_adopt(fleet, &subject, &claim) == BATON_OK && i < 4)
		use_claim(&claim);
	answer_check(baton_claim_force(fleet, &subject, &holder));
	holder_check(&holder);
}

static void use_wakeups(struct baton_fleet *fleet)
{
	struct baton_listener *listener = NULL;
	struct baton_wakeup wakeups[4] = {{1, 2, 3}};
	struct baton_wakeup_news news = {.wakeups = wakeups, .max = 4};
	enum baton_err e = baton_listener_open(fleet, &interest, 1, &listener);
	answer_check(e);
	if (e != BATON_OK)
		return;
	answer_check(baton_wakeup_publish(fleet, wakeups, 1));
	for (int i = 0; i < EVENTS_MAX && e == BATON_OK; i++)
		e = baton_listener_wait(listener, (struct baton_mono){0}, NULL, &news);
	baton_listener_close(listener);
}

static bool see_subject(const struct baton_subject *subject,
                        const struct baton_claim_holder *holder, void *arg)
{
	(void)arg;
	CHECK(subject->space.len <= BATON_SPACE_MAX && subject->label.len <= BATON_LABEL_MAX);
	holder_check(holder);
	return true;
}

static bool see_member(const struct baton_member *member, void *arg)
{
	(void)arg;
	CHECK(memchr(member->owner, '\0', sizeof member->owner) != NULL);
	return true;
}

static void use_watch(struct baton_watch *watch)
{
	struct baton_fleet_usage usage;
	struct baton_event event;
	uint64_t lost;
	baton_watch_each(watch, now(), see_subject, NULL);
	baton_watch_members(watch, now(), see_member, NULL);
	baton_watch_usage(watch, now(), &usage);
	enum baton_err e = BATON_OK;
	for (int i = 0; i < EVENTS_MAX && (e == BATON_OK || e == BATON_FULL); i++) {
		e = baton_watch_next(watch, (struct baton_mono){0}, NULL, &event, &lost);
		if (e == BATON_OK)
			CHECK(event.space.len <= BATON_SPACE_MAX &&
			      event.label.len <= BATON_LABEL_MAX &&
			      memchr(event.owner, '\0', sizeof event.owner) != NULL);
	}
}

static void watch_closep(struct baton_watch **w)
{
	baton_watch_close(*w);
}

static void use_fleet(const struct sample *s, uint8_t how)
{
	AUTO(watch_closep) struct baton_watch *watch = NULL;
	struct baton_fleet *fleet = NULL;
	answer_check(baton_watch_open(s->path, &watch));
	if (watch != NULL)
		use_watch(watch);
	enum baton_err e = join(s->path, &fleet);
	answer_check(e);
	for (unsigned i = 0; e == BATON_OK && i < LABELS; i++)
		use_subject(fleet, i, (how & 7) == 1 && i == how >> 4);
	if (e == BATON_OK)
		use_wakeups(fleet);
	if (watch != NULL)
		use_watch(watch);
	baton_fleet_leave(fleet);
}

/* Called before libFuzzer starts a thread of its own: the child of a fork while that one comes into
 * being would wait for ever for a lock of AddressSanitizer. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	sample_make(&sample);
	CHECK(atexit(sample_remove) == 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char image[IMAGE_MAX];
	const struct sample *s = &sample;
	if (size == 0)
		return 0;
	memcpy(image, s->image, s->size);
	image_patch(image, s, data + 1, size - 1);
	image_write(s, image);
	use_fleet(s, data[0]);
	answer_check(baton_fleet_reset(s->path));
	return 0;
}
