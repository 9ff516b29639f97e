/* A holder is killed while somebody waits: how long until that one holds. */
#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "claims/arena.h"
#include "claims/game.h"
#include "claims/locks.h"
#include "claims/sleeper.h"

struct takeover {
	const struct lock_kind *kind;
	void *made;
	size_t resident;
	_Atomic uint32_t *held; /* shared: the victim holds it */
	struct sleeper *heir;
};

static void *heir_attach(const void *arg)
{
	const struct takeover *t = arg;
	return t->kind->attach(t->made);
}

/* All of it is written to, in small pages: what takes longest to take apart. */
static void memory_fill(size_t size)
{
	volatile char *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	madvise((void *)memory, size, MADV_NOHUGEPAGE);
	/* Kernels before 5.14 cannot do it in one call. */
	if (madvise((void *)memory, size, MADV_POPULATE_WRITE) == 0)
		return;
	for (size_t i = 0; i < size; i += 4096)
		memory[i] = 1;
}

static void victim_main(void *arg)
{
	const struct takeover *t = arg;
	memory_fill(t->resident);
	t->kind->take(t->kind->attach(t->made));
	word_set(t->held, 1);
	for (;;)
		pause();
}

static const struct lock_kind *kind_of(enum player who)
{
	static const struct lock_kind *const kinds[PLAYER_END] = {
		[PLAYER_CONTEST] = &lock_contest,
		[PLAYER_FLOCK] = &lock_flock,
		[PLAYER_MUTEX] = &lock_mutex,
	};
	return kinds[who];
}

static void *takeover_setup(enum player who, const struct load *load)
{
	if (!kind_of(who))
		return NULL;
	struct takeover *t = arena_new(sizeof *t);
	t->kind = kind_of(who);
	t->made = t->kind->make();
	t->resident = load->resident;
	t->held = arena_share(sizeof *t->held);
	t->heir = sleeper_start(&(struct sleeper_job){
		.attach = heir_attach,
		.wait = t->kind->take,
		.after = t->kind->give,
		.arg = t,
	});
	return t;
}

static void takeover_teardown(void *state)
{
	struct takeover *t = state;
	sleeper_free(t->heir);
	t->kind->unmake(t->made);
	munmap(t->held, sizeof *t->held);
	free(t);
}

static double takeover_sample(void *state)
{
	struct takeover *t = state;
	word_set(t->held, 0);
	struct peer victim = peer_start(victim_main, t);
	word_await(t->held, 1, &victim);
	peer_await_sleep(&victim);
	sleeper_ask(t->heir);
	int64_t killed = arena_now();
	kill(victim.pid, SIGKILL);
	int64_t held = sleeper_woke_at(t->heir);
	peer_end(&victim);
	return (double)(held - killed);
}

const struct game game_takeover = {
	.setup = takeover_setup,
	.sample = takeover_sample,
	.teardown = takeover_teardown,
};
