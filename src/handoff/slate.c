/* A page that a broker shares with one backend. */
#include "handoff/slate.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"

/* The first word: "slate", and the version of what follows. */
#define HEAD UINT64_C(0x736c617465000001)
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

static_assert(sizeof(_Atomic uint64_t) == 8, "a word of a slate");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a word is changed by two processes");

/* The lowest two bits of a word. In front of them: the connection, if it is offered or was taken
 * back; when it was taken, in nanoseconds, if it was. */
enum state { STATE_FREE = 0, STATE_OFFERED, STATE_TAKEN, STATE_REVOKED };

static uint64_t word_of(uint64_t front, enum state state)
{
	return front << 2 | (uint64_t)state;
}

static enum baton_err map(int fd, struct slate *ret)
{
	void *page = mmap(NULL, SLATE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return fail_errno(errno, "a page to be shared with a backend cannot be mapped");
	*ret = (struct slate){.words = page, .used = {1}};
	return BATON_OK;
}

enum baton_err slate_new(struct slate *ret)
{
	AUTO(fd_closep) int fd = memfd_create("baton-slate", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, SLATE_BYTES) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0)
		return fail_errno(errno, "no page to be shared with a backend");
	enum baton_err e = map(fd, ret);
	if (e != BATON_OK)
		return e;
	atomic_store(&ret->words[0], HEAD);
	ret->fd = fd_take(&fd);
	return BATON_OK;
}

enum baton_err slate_map(int *fd, struct slate *ret)
{
	struct stat s;
	struct slate slate;
	/* Whoever touches a page that its file does not have any more is killed. */
	if (fstat(*fd, &s) != 0 || s.st_size != SLATE_BYTES ||
	    (fcntl(*fd, F_GET_SEALS) & SEALS) != SEALS)
		return fail(BATON_INVALID, "a page to be shared that is not of %d bytes for ever",
		            SLATE_BYTES);
	enum baton_err e = map(*fd, &slate);
	if (e != BATON_OK)
		return e;
	if (atomic_load(&slate.words[0]) != HEAD) {
		slate.fd = -1;
		slate_done(&slate);
		return fail(BATON_INVALID, "a page to be shared that is of another version");
	}
	slate.fd = fd_take(fd);
	*ret = slate;
	return BATON_OK;
}

void slate_done(struct slate *slate)
{
	if (!slate->words)
		return;
	munmap((void *)slate->words, SLATE_BYTES);
	fd_closep(&slate->fd);
	*slate = SLATE_NONE;
}

uint32_t slate_offer(struct slate *slate, uint64_t connection)
{
	for (uint32_t i = 0; slate->words && i < SLATE_WORDS / 64; i++) {
		if (slate->used[i] == UINT64_MAX)
			continue;
		uint32_t bit = (uint32_t)__builtin_ctzll(~slate->used[i]);
		slate->used[i] |= UINT64_C(1) << bit;
		/* The offer that names it is sent after this, and is read before it is taken. */
		atomic_store(&slate->words[i * 64 + bit], word_of(connection, STATE_OFFERED));
		return i * 64 + bit;
	}
	return 0;
}

bool slate_adopt(struct slate *slate, uint32_t word)
{
	if (!slate->words || word >= SLATE_WORDS ||
	    (slate->used[word / 64] & UINT64_C(1) << word % 64) != 0)
		return false;
	slate->used[word / 64] |= UINT64_C(1) << word % 64;
	return true;
}

static bool is_taken(uint64_t value, struct baton_mono *ret_when)
{
	if ((value & 3) != STATE_TAKEN)
		return false;
	ret_when->ns = (int64_t)(value >> 2);
	return true;
}

bool slate_is_taken(const struct slate *slate, uint32_t word, struct baton_mono *ret_when)
{
	return is_taken(atomic_load(&slate->words[word]), ret_when);
}

bool slate_revoke(struct slate *slate, uint32_t word, uint64_t connection,
                  struct baton_mono *ret_when)
{
	uint64_t was = word_of(connection, STATE_OFFERED);
	/* Of the same word as slate_take(): one of the two finds it as it was offered. */
	return atomic_compare_exchange_strong(&slate->words[word], &was,
	                                      word_of(connection, STATE_REVOKED)) ||
	       !is_taken(was, ret_when);
}

void slate_clear(struct slate *slate, uint32_t word)
{
	atomic_store(&slate->words[word], STATE_FREE);
	slate->used[word / 64] &= ~(UINT64_C(1) << word % 64);
}

bool slate_take(const struct slate *slate, uint32_t word, uint64_t connection,
                struct baton_mono now)
{
	uint64_t was = word_of(connection, STATE_OFFERED);
	/* Of the same word as slate_revoke(). */
	return slate->words && word > 0 && word < SLATE_WORDS &&
	       atomic_compare_exchange_strong(&slate->words[word], &was,
	                                      word_of((uint64_t)now.ns, STATE_TAKEN));
}

bool slate_is_unseen(const struct slate *slate, uint32_t word, struct baton_mono when)
{
	return slate->words && word < SLATE_WORDS &&
	       atomic_load(&slate->words[word]) == word_of((uint64_t)when.ns, STATE_TAKEN);
}
