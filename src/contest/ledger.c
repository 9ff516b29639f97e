/* The highest fence of each subject, in a file that processes share.
 *
 * The file is a hash table with open addressing, at most half full, of slots that never move and
 * are never removed. It is read with pread() and not mapped: if somebody cuts it off, that is an
 * error and no SIGBUS. Whoever has the lock only reads and writes what the kernel has in memory;
 * waiting for the disk is done without it, so that a slow disk keeps nobody else waiting. */
#include "contest/ledger.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <baton/admit.h>
#include <baton/clock.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/hash.h"
#include "contest/ledger_slot.h"

#define MAGIC "BATONADM"
#define VERSION 1u
#define COUNT_OFFSET 512  /* a sector of its own */
#define SLOTS_OFFSET 4096 /* a page of their own */
#define SLOTS_MIN 64u

/* How many slots are read at once: a sector. Half full, more than two are rarely needed. */
#define CHUNK 8u

/* In a table that is half full, and whose places nobody can choose, so long a run does not exist.
 */
#define RUN_MAX 4096u

/* How often another process may change a mark between two of our steps. */
#define ATTEMPTS 100

/* How the file begins; it never changes. */
struct header {
	char magic[8];
	uint32_t version;
	uint32_t subjects;
	uint32_t slots;
	uint32_t unused;
	struct baton_id seed;
	uint64_t check; /* the hash of all this */
};

/* How many subjects there are. It is written before the slot is, and names it: if that slot is free
 * all the same, its writer died between the two, and there is one less. After a power failure it
 * may be wrong by as many as were being added; it is a bound, and nothing else depends on it. */
struct count {
	uint64_t count;
	uint64_t last;
	uint64_t check; /* the hash of both */
};

static_assert(sizeof(struct header) == 48, "part of the file format");
static_assert(sizeof(struct count) == 24, "part of the file format");
static_assert(CHUNK <= SLOTS_MIN, "a chunk goes round once at most");

/* What was found for a subject: its slot, or the free one where it would be. */
struct found {
	struct baton_id subject;
	uint64_t index;
	struct slot_view view;
};

static uint64_t header_hash(const struct header *h)
{
	return hash_bytes(&h->seed, h, offsetof(struct header, check));
}

static uint64_t count_hash(const struct baton_id *seed, const struct count *c)
{
	return hash_bytes(seed, c, offsetof(struct count, check));
}

static uint32_t slots_for(uint32_t subjects)
{
	uint32_t slots = SLOTS_MIN;
	while (slots < 2 * subjects)
		slots *= 2;
	return slots;
}

static off_t slot_offset(uint64_t index)
{
	return SLOTS_OFFSET + (off_t)(index * sizeof(struct ledger_slot));
}

/* Gives the file all its room, so that a full file system is an error now, and writes what is not
 * zero. */
static enum baton_err ledger_fill(int fd, void *arg)
{
	struct ledger *l = arg;
	const struct keep file = {.fd = fd, .folder = -1, .path = l->keep.path};
	struct header h = {.version = VERSION, .subjects = l->subjects, .slots = l->slots};
	struct count c = {.count = 0};
	memcpy(h.magic, MAGIC, sizeof h.magic);
	enum baton_err e = baton_id_random(&h.seed);
	if (e != BATON_OK)
		return e;
	h.check = header_hash(&h);
	c.check = count_hash(&h.seed, &c);
	int err = posix_fallocate(fd, 0, slot_offset(l->slots));
	if (err == ENOSPC || err == EDQUOT || err == EFBIG)
		return fail(BATON_FULL,
		            "there is no room for %lld bytes at '%.200s'; make room, or choose "
		            "fewer subjects than %u",
		            (long long)slot_offset(l->slots), l->keep.path, l->subjects);
	if (err != 0)
		return fail_errno(err, "a file of %lld bytes cannot be made at '%.200s'",
		                  (long long)slot_offset(l->slots), l->keep.path);
	e = keep_write(&file, &c, sizeof c, COUNT_OFFSET);
	return e == BATON_OK ? keep_write(&file, &h, sizeof h, 0) : e;
}

/* Believes nothing that the file says before it fits what the file is. */
static enum baton_err header_check(const struct keep *k, const struct header *h)
{
	if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
		return keep_refuse(k->path, "is no file of admitted fences");
	if (h->version != VERSION)
		return fail(BATON_INVALID,
		            "'%.200s' has version %u, and this program speaks %u; it was left as "
		            "it is",
		            k->path, h->version, VERSION);
	if (h->check != header_hash(h) || h->subjects == 0 ||
	    h->subjects > BATON_ADMIT_SUBJECTS_MAX || h->slots != slots_for(h->subjects))
		return keep_refuse(k->path, "is damaged: its header does not fit");
	if (k->size != slot_offset(h->slots))
		return keep_refuse(k->path, "is damaged: its size does not fit what it says");
	return BATON_OK;
}

static enum baton_err count_read(const struct ledger *l, struct count *ret)
{
	enum baton_err e = keep_read(&l->keep, ret, sizeof *ret, COUNT_OFFSET);
	if (e != BATON_OK)
		return e;
	if (ret->check != count_hash(&l->seed, ret) || ret->count > l->slots ||
	    ret->last >= l->slots)
		return keep_refuse(l->keep.path, "is damaged: its count of subjects does not fit");
	return BATON_OK;
}

/* Takes what the header says, once it is believed. */
static enum baton_err ledger_read(struct ledger *l)
{
	struct header h;
	if (l->keep.size < SLOTS_OFFSET)
		return keep_refuse(l->keep.path, "is no file of admitted fences: it is too short");
	enum baton_err e = keep_read(&l->keep, &h, sizeof h, 0);
	if (e == BATON_OK)
		e = header_check(&l->keep, &h);
	if (e != BATON_OK)
		return e;
	l->seed = h.seed;
	l->subjects = h.subjects;
	l->slots = h.slots;
	return BATON_OK;
}

static void turns_init(struct ledger *l)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* that of baton_clock_awake() */
	pthread_mutex_init(&l->mu, NULL);
	pthread_cond_init(&l->left, &attr);
	pthread_condattr_destroy(&attr);
}

enum baton_err ledger_init(struct ledger *l, const char *path, uint32_t subjects)
{
	struct ledger new = {.subjects = subjects, .slots = slots_for(subjects)};
	const struct keep_spec spec = {
		.path = path,
		.what = "file of admitted fences",
		.mode = 0600,
		.group = true,
		.make = true,
		.fill = ledger_fill,
		.arg = &new,
	};
	new.keep.path = path;
	enum baton_err e = keep_open(&spec, &new.keep);
	if (e != BATON_OK)
		return e;
	e = ledger_read(&new);
	if (e != BATON_OK) {
		keep_close(&new.keep);
		return e;
	}
	*l = new;
	turns_init(l);
	return BATON_OK;
}

void ledger_done(struct ledger *l)
{
	pthread_cond_destroy(&l->left);
	pthread_mutex_destroy(&l->mu);
	ledger_drop(l);
}

void ledger_drop(struct ledger *l)
{
	keep_close(&l->keep);
}

/* Waits for this thread's turn. The one who has it may be waiting for a process that is stopped. */
static enum baton_err turn_take(struct ledger *l, struct baton_duration *patience)
{
	const struct baton_clock *clock = baton_clock_awake();
	struct baton_mono until = baton_mono_add(clock->now(clock), *patience);
	struct timespec t = {.tv_sec = until.ns / 1000000000, .tv_nsec = until.ns % 1000000000};
	pthread_mutex_lock(&l->mu);
	for (int err = 0; l->taken && err == 0;)
		err = pthread_cond_timedwait(&l->left, &l->mu, &t);
	bool mine = !l->taken;
	l->taken = true;
	pthread_mutex_unlock(&l->mu);
	struct baton_duration left = baton_mono_sub(until, clock->now(clock));
	*patience = left.ns > 0 ? left : (struct baton_duration){0};
	if (!mine)
		return fail(BATON_BUSY,
		            "'%.200s' has been in use for %lld ms by threads that do not go on",
		            l->keep.path, (long long)(KEEP_PATIENCE.ns / 1000000));
	return BATON_OK;
}

static void turn_leave(struct ledger *l)
{
	pthread_mutex_lock(&l->mu);
	l->taken = false;
	pthread_mutex_unlock(&l->mu);
	pthread_cond_signal(&l->left);
}

/* Locks out everybody else, if it is still the file of that name. */
static enum baton_err ledger_lock(struct ledger *l, struct baton_duration *patience)
{
	enum baton_err e = turn_take(l, patience);
	if (e != BATON_OK)
		return e;
	e = keep_lock(&l->keep, patience);
	if (e == BATON_OK && !keep_is_current(&l->keep)) {
		keep_unlock(&l->keep);
		e = fail(BATON_GONE, "'%.200s' was removed or replaced; open it again",
		         l->keep.path);
	}
	if (e != BATON_OK)
		turn_leave(l);
	return e;
}

static void ledger_unlock(struct ledger *l)
{
	keep_unlock(&l->keep);
	turn_leave(l);
}

static struct slot_place place_of(const struct ledger *l, uint64_t index)
{
	return (struct slot_place){.seed = &l->seed, .index = index};
}

/* Looks at `n` slots from `first` on. BATON_NOT_HELD: all of them are other subjects'. A damaged
 * one may have been this subject's, so nothing behind it counts. */
static enum baton_err chunk_search(const struct ledger *l, uint64_t first, uint64_t n,
                                   struct found *f)
{
	struct ledger_slot slots[CHUNK];
	enum baton_err e = keep_read(&l->keep, slots, n * sizeof *slots, slot_offset(first));
	if (e != BATON_OK)
		return e;
	for (uint64_t i = 0; i < n; i++) {
		struct slot_view view = slot_look(place_of(l, first + i), &slots[i]);
		if (view.kind == SLOT_DAMAGED)
			return fail(BATON_INVALID,
			            "'%.200s' is damaged in its slot %llu; it was left as it is",
			            l->keep.path, (unsigned long long)(first + i));
		if (view.kind == SLOT_FREE || baton_id_equal(&slots[i].subject, &f->subject)) {
			f->index = first + i;
			f->view = view;
			return BATON_OK;
		}
	}
	return BATON_NOT_HELD;
}

/* Finds the slot of f->subject, or the one where it would be. */
static enum baton_err slot_find(const struct ledger *l, struct found *f)
{
	uint64_t at;
	memcpy(&at, f->subject.bytes, sizeof at);
	at &= l->slots - 1;
	uint64_t run = l->slots < RUN_MAX ? l->slots : RUN_MAX;
	while (run > 0) {
		/* To the end of the sector, so that the next chunk is a whole one. */
		uint64_t n = CHUNK - at % CHUNK;
		n = n < run ? n : run;
		enum baton_err e = chunk_search(l, at, n, f);
		if (e != BATON_NOT_HELD)
			return e;
		at = (at + n) & (l->slots - 1);
		run -= n;
	}
	return keep_refuse(l->keep.path, "is damaged: it has more subjects than there can be");
}

static enum baton_err copy_write(const struct ledger *l, const struct found *f, unsigned which,
                                 struct slot_copy copy)
{
	off_t at = slot_offset(f->index) + (off_t)offsetof(struct ledger_slot, copies) +
	           (off_t)(which * sizeof copy);
	return keep_write(&l->keep, &copy, sizeof copy, at);
}

/* Puts the subject into the free slot that was found for it. */
static enum baton_err slot_add(const struct ledger *l, const struct found *f, uint64_t fence)
{
	struct count c;
	struct ledger_slot last;
	enum baton_err e = count_read(l, &c);
	if (e == BATON_OK)
		e = keep_read(&l->keep, &last, sizeof last, slot_offset(c.last));
	if (e != BATON_OK)
		return e;
	if (c.count > 0 && slot_look(place_of(l, c.last), &last).kind == SLOT_FREE)
		c.count--;
	if (c.count >= l->subjects)
		return fail(BATON_FULL, "'%.200s' has %u subjects, as many as there can be",
		            l->keep.path, l->subjects);
	c = (struct count){.count = c.count + 1, .last = f->index};
	c.check = count_hash(&l->seed, &c);
	e = keep_write(&l->keep, &c, sizeof c, COUNT_OFFSET);
	if (e != BATON_OK)
		return e;
	struct ledger_slot slot = {.subject = f->subject};
	slot.copies[0] = slot_copy_make(place_of(l, f->index), &f->subject, fence, false);
	return keep_write(&l->keep, &slot, sizeof slot, slot_offset(f->index));
}

/* One step towards the mark: writes what has to be on the disk next, and tells in *ret_written
 * which mark that is; 0: `fence` is the mark, and on the disk. */
static enum baton_err step_write(struct ledger *l, struct found *f, uint64_t fence,
                                 uint64_t *ret_written, uint64_t *ret_highest)
{
	enum baton_err e = slot_find(l, f);
	if (e != BATON_OK)
		return e;
	if (fence < f->view.highest) {
		*ret_highest = f->view.highest;
		return BATON_STALE;
	}
	*ret_written = 0;
	if (f->view.settled && fence == f->view.highest)
		return BATON_OK;
	*ret_written = f->view.kind == SLOT_FREE || f->view.settled ? fence : f->view.highest;
	if (f->view.kind == SLOT_FREE)
		return slot_add(l, f, fence);
	struct slot_copy copy =
		slot_copy_make(place_of(l, f->index), &f->subject, *ret_written, false);
	return copy_write(l, f, f->view.next, copy);
}

/* The step after it, once the mark `written` is on the disk: says so in the other copy, unless
 * somebody else has done that, or more, in the meantime. */
static enum baton_err step_settle(struct ledger *l, struct found *f, uint64_t written)
{
	enum baton_err e = slot_find(l, f);
	if (e != BATON_OK || !slot_can_settle(&f->view, written))
		return e;
	struct slot_copy copy = slot_copy_make(place_of(l, f->index), &f->subject, written, true);
	return copy_write(l, f, 1 - f->view.next, copy);
}

/* Usually twice round: once to write and settle, once to see that it is so. One time more if what
 * is there was left unsettled by somebody who died or is at it right now. */
enum baton_err ledger_admit(struct ledger *l, struct baton_str subject, uint64_t fence,
                            uint64_t *ret_highest)
{
	struct baton_duration patience = KEEP_PATIENCE;
	struct found f = {.subject = hash_id(&l->seed, subject.ptr, subject.len)};
	for (int i = 0; i < ATTEMPTS; i++) {
		uint64_t written = 0;
		enum baton_err e = ledger_lock(l, &patience);
		if (e != BATON_OK)
			return e;
		e = step_write(l, &f, fence, &written, ret_highest);
		ledger_unlock(l);
		if (e != BATON_OK || written == 0)
			return e;
		e = keep_sync(&l->keep);
		if (e == BATON_OK)
			e = ledger_lock(l, &patience);
		if (e != BATON_OK)
			return e;
		e = step_settle(l, &f, written);
		ledger_unlock(l);
		if (e != BATON_OK)
			return e;
	}
	return fail(BATON_BUSY, "others changed the mark of this subject in '%.200s' %d times",
	            l->keep.path, ATTEMPTS);
}
