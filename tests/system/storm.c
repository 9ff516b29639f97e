/* A process that claims and releases the same few subjects as others do, and tells a witness.
 *
 *	storm work FLEET WITNESS ID SEED PIPE
 *	storm end FLEET WITNESS
 *
 * The witness is a file that all of them map. Whoever holds a subject says so there right after it
 * has won and takes it back right before it releases, so that whoever comes in meanwhile finds
 * somebody there: that is right only if that one's time has run out, or it was about to be killed,
 * which the driver notes before it does so. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <baton.h>

#include "support/rng.h"

#define CONTESTED 5u /* subjects that all of them want   */
#define OTHERS 20u   /* subjects that come and go        */
#define SUBJECTS 16u /* places for them                  */
#define MEMBERS 10u
#define IDS_MAX 65536u
#define MS INT64_C(1000000)
#define JOIN_NS (30000 * MS)

/* Rounds of an empty loop. */
#define SHORT_WORK 2000u
#define LONG_WORK 1000000u

/* Grants between two notes to the driver. */
#define NOTE_EVERY 16u

/* What the driver reads and writes is at the offsets that it knows. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct witness {
	_Atomic uint64_t grants;     /* at 0 */
	_Atomic uint64_t violations; /* at 8 */
	_Atomic uint64_t takeovers;  /* at 16: somebody came in while another was */
	uint64_t unused[509];
	_Atomic uint8_t doomed[IDS_MAX];    /* at 4096: it is being killed */
	_Atomic int64_t deadline[IDS_MAX];  /* of what it holds; 0: it has none */
	_Atomic uint64_t inside[CONTESTED]; /* the highest fence that was seen, and below it the id
	                                     * of the one who is in, or 0 */
};

struct storm {
	struct baton_fleet *fleet;
	struct witness *witness;
	uint32_t id;
	int pipe;
	struct rng rng;
};

static _Noreturn void __attribute__((format(printf, 2, 3)))
broken(const struct storm *s, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	atomic_fetch_add(&s->witness->violations, 1);
	fprintf(stderr, "worker %u: ", s->id);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	_exit(2);
}

static struct baton_mono now(void)
{
	return baton_clock_boot()->now(baton_clock_boot());
}

static struct witness *witness_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(struct witness)) != 0)
		return NULL;
	void *at = mmap(NULL, sizeof(struct witness), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static enum baton_err join(const char *path, struct baton_fleet **ret)
{
	const struct baton_fleet_options options = {
		.path = path,
		.owner = BATON_STR("storm"),
		.limits = {.members = MEMBERS, .subjects = SUBJECTS, .waiters = 16, .events = 16},
	};
	return baton_fleet_join(&options, ret);
}

/* Whether what the worker holds cannot have been taken from it, as far as it can tell now. */
static bool is_safe(const struct storm *s, uint32_t id)
{
	int64_t deadline = atomic_load(&s->witness->deadline[id]);
	return atomic_load(&s->witness->doomed[id]) == 0 && (deadline == 0 || deadline > now().ns);
}

static void witness_enter(struct storm *s, uint32_t subject, uint64_t fence)
{
	struct witness *w = s->witness;
	uint64_t seen = atomic_load(&w->inside[subject]);
	do {
		/* That is right for one who was stopped for longer than it may hold. */
		if (seen >> 16 >= fence && is_safe(s, s->id))
			broken(s, "subject %u was granted with fence %" PRIu64 " after %" PRIu64,
			       subject, fence, seen >> 16);
		if (seen >> 16 >= fence)
			return;
	} while (!atomic_compare_exchange_weak(&w->inside[subject], &seen, fence << 16 | s->id));
	uint32_t before = seen & 0xffff;
	if (before == 0)
		return;
	atomic_fetch_add(&w->takeovers, 1);
	if (is_safe(s, before))
		broken(s, "subject %u is held by %u at the same time", subject, before);
}

static void witness_leave(struct storm *s, uint32_t subject, uint64_t fence)
{
	uint64_t mine = fence << 16 | s->id;
	if (!atomic_compare_exchange_strong(&s->witness->inside[subject], &mine, fence << 16) &&
	    is_safe(s, s->id))
		broken(s, "subject %u was taken by %u while it was held", subject,
		       (uint32_t)(mine & 0xffff));
}

/* Tells the driver that there was progress; if it does not listen, it knows already. */
static void grant_note(const struct storm *s)
{
	uint64_t grants = atomic_fetch_add(&s->witness->grants, 1) + 1;
	if (grants % NOTE_EVERY == 0)
		(void)!write(s->pipe, "", 1);
}

/* Not later than the claim's own end. */
static int64_t deadline_of(const struct baton_claim *claim)
{
	struct baton_duration left = {0};
	int64_t before = now().ns;
	if (baton_claim_check(claim, &left) != BATON_OK)
		return 1;
	return left.ns == BATON_DURATION_FOREVER.ns ? 0 : before + left.ns;
}

static void use(struct storm *s, uint32_t subject, const struct baton_claim *claim, bool ttl)
{
	if (subject < CONTESTED) {
		atomic_store(&s->witness->deadline[s->id], deadline_of(claim));
		witness_enter(s, subject, claim->fence.v);
	}
	grant_note(s);
	/* Now and then for so long that many are killed and stopped while they hold something. */
	uint64_t most = rng_below(&s->rng, 8) == 0 ? LONG_WORK : SHORT_WORK;
	for (volatile uint64_t i = rng_below(&s->rng, most); i > 0; i--)
		;
	if (ttl && rng_below(&s->rng, 2) == 0) {
		enum baton_err e = baton_claim_renew(claim, (struct baton_duration){8 * MS});
		if (subject < CONTESTED && e == BATON_OK)
			atomic_store(&s->witness->deadline[s->id], deadline_of(claim));
		if (subject < CONTESTED && e != BATON_OK && is_safe(s, s->id))
			broken(s, "subject %u was lost: %s", subject, baton_err_name(e));
	}
	if (subject < CONTESTED)
		witness_leave(s, subject, claim->fence.v);
	enum baton_err e = baton_claim_release(claim);
	if (subject < CONTESTED && e != BATON_OK && is_safe(s, s->id))
		broken(s, "subject %u could not be released: %s", subject, baton_err_name(e));
}

static bool is_fine(enum baton_err e)
{
	return e == BATON_OK || e == BATON_YIELD || e == BATON_TIMEOUT || e == BATON_BUSY ||
	       e == BATON_FULL;
}

static void turn(struct storm *s)
{
	char label[16];
	struct baton_claim claim;
	bool contested = rng_below(&s->rng, 8) != 0;
	uint32_t n = (uint32_t)(contested ? rng_below(&s->rng, CONTESTED)
	                                  : CONTESTED + rng_below(&s->rng, OTHERS));
	int len = snprintf(label, sizeof label, "s%u", n);
	struct baton_subject subject = {BATON_STR("storm"), {label, (size_t)len}, {0, 0}};
	bool ttl = rng_below(&s->rng, 2) == 0;
	struct baton_claim_ask ask = {
		.subject = &subject,
		.ttl = {ttl ? (int64_t)rng_below(&s->rng, 8) * MS + MS : 0},
		.until = {now().ns + (int64_t)rng_below(&s->rng, 50) * MS},
	};
	enum baton_err e = rng_below(&s->rng, 2) == 0
	                           ? baton_claim_try(s->fleet, &ask, &claim, NULL)
	                           : baton_claim_wait(s->fleet, &ask, &claim, NULL);
	if (!is_fine(e))
		broken(s, "subject %u: %s, %s", n, baton_err_name(e), baton_err_detail());
	if (e == BATON_OK)
		use(s, n, &claim, ttl);
}

static int work(struct storm *s, const char *path)
{
	int64_t until = now().ns + JOIN_NS;
	enum baton_err e;
	/* Behind a stopped process it is busy, or the dead cannot be swept out and it is full. */
	do
		e = join(path, &s->fleet);
	while ((e == BATON_BUSY || e == BATON_FULL) && now().ns < until);
	if (e != BATON_OK)
		broken(s, "it cannot join: %s, %s", baton_err_name(e), baton_err_detail());
	for (;;)
		turn(s);
}

/* When all are dead: every subject can be had, with a higher fence, and every place. */
static int end(struct storm *s, const char *path)
{
	struct baton_fleet *fleets[MEMBERS + 1] = {NULL};
	struct baton_claim claim;
	char label[16];
	for (uint32_t i = 0; i < MEMBERS; i++)
		if (join(path, &fleets[i]) != BATON_OK)
			broken(s, "place %u of the members: %s", i, baton_err_detail());
	if (join(path, &fleets[MEMBERS]) != BATON_FULL)
		broken(s, "there are more members than there can be");
	for (uint32_t i = 0; i < SUBJECTS; i++) {
		int len = snprintf(label, sizeof label, "%c%u", i < CONTESTED ? 's' : 'e', i);
		struct baton_subject subject = {BATON_STR("storm"), {label, (size_t)len}, {0, 0}};
		const struct baton_claim_ask ask = {.subject = &subject};
		enum baton_err e = baton_claim_try(fleets[i % MEMBERS], &ask, &claim, NULL);
		if (e != BATON_OK)
			broken(s, "%s cannot be had: %s", label, baton_err_name(e));
		if (i < CONTESTED && claim.fence.v <= atomic_load(&s->witness->inside[i]) >> 16)
			broken(s, "the fence of %s went back", label);
	}
	for (uint32_t i = 0; i < MEMBERS; i++)
		baton_fleet_leave(fleets[i]);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 64;
	struct storm s = {.witness = witness_open(argv[3]), .pipe = -1};
	if (s.witness == NULL)
		return 71;
	if (strcmp(argv[1], "end") == 0)
		return end(&s, argv[2]);
	if (argc != 7)
		return 64;
	s.id = (uint32_t)strtoul(argv[4], NULL, 10);
	if (s.id == 0 || s.id >= IDS_MAX)
		return 64;
	s.rng = rng_seed(strtoull(argv[5], NULL, 10));
	s.pipe = (int)strtol(argv[6], NULL, 10);
	return work(&s, argv[2]);
}
