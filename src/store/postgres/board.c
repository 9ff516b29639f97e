/* Who of a host's processes listens for them all, and what it has heard. */
#include "store/postgres/board.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"

#define KIND "listen"
#define VERSION 1
#define PLACES 64
#define RING 32          /* entries */
#define FORGOTTEN_S 3600 /* after which a place nobody cares for is anybody's */
#define SYSTEM_FOLDER "/run/baton"
#define USER_FOLDER "/dev/shm/baton-%u"
#define HEARS (UINT64_C(1) << 32)
#define SEAT_SHIFT 33

/* `seat`: what its owner is known by, whether he hears, and until when it is his, in milliseconds
 * that are counted round. */
struct board_place {
	_Alignas(64) _Atomic uint64_t key; /* 0: free                                     */
	_Atomic uint64_t seat;             /* 0: nobody has it                            */
	_Atomic uint64_t used_s;           /* when somebody last cared, by CLOCK_MONOTONIC */
	_Atomic uint32_t bell;             /* a futex                                     */
	_Alignas(64) _Atomic uint64_t head;
	_Alignas(64) struct ring_entry entries[RING];
};
static_assert(sizeof(struct board_place) == 128 + RING * sizeof(struct ring_entry), "shared");
static_assert(offsetof(struct board_place, entries) - offsetof(struct board_place, head) ==
                      offsetof(struct ring, entries),
              "head and entries are a struct ring");

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct ring *ring_of(struct board_place *p)
{
	return (struct ring *)(void *)&p->head;
}

static size_t size_of(const uint32_t *params)
{
	if (params[0] == PLACES && params[1] == RING)
		return PLACES * sizeof(struct board_place);
	fail(BATON_INVALID, "the board has %u places of %u entries: %d of %d are expected",
	     params[0], params[1], PLACES, RING);
	return 0;
}

static enum baton_err init(void *data, const uint32_t *params, void *arg)
{
	(void)data;
	(void)params;
	(void)arg;
	return BATON_OK;
}

/* Beside the fleet's file, wherever that is. */
static mode_t find_path(char path[SEGMENT_PATH_MAX + 1])
{
	const char *named = getenv("BATON_FLEET");
	char folder[64];
	if (named && named[0] == '/' && strlen(named) < SEGMENT_PATH_MAX - 8) {
		snprintf(path, SEGMENT_PATH_MAX + 1, "%s." KIND, named);
		return 0600;
	}
	if (faccessat(AT_FDCWD, SYSTEM_FOLDER, W_OK | X_OK, AT_EACCESS) == 0) {
		snprintf(path, SEGMENT_PATH_MAX + 1, SYSTEM_FOLDER "/" KIND);
		return 0660;
	}
	snprintf(folder, sizeof folder, USER_FOLDER, (unsigned)geteuid());
	mkdir(folder, 0700); /* one that is there is looked at by segment_open() */
	snprintf(path, SEGMENT_PATH_MAX + 1, "%s/" KIND, folder);
	return 0600;
}

static struct board_place *find(const struct board *b, uint64_t key)
{
	struct board_place *all = b->segment.data;
	for (int i = 0; i < PLACES; i++) {
		if (atomic_load(&all[i].key) == key)
			return &all[i];
	}
	return NULL;
}

static bool is_forgotten(const struct board_place *p)
{
	int64_t used_s = (int64_t)atomic_load(&p->used_s);
	return now_ms() / 1000 - used_s > FORGOTTEN_S;
}

static void care(struct board_place *p)
{
	atomic_store_explicit(&p->used_s, (uint64_t)now_ms() / 1000, memory_order_relaxed);
}

static bool occupy(struct board_place *p, uint64_t key)
{
	uint64_t before = atomic_load(&p->key);
	if (before != 0 && !is_forgotten(p))
		return false;
	care(p);
	return atomic_compare_exchange_strong(&p->key, &before, key);
}

/* Of several who look for a place for the same database the first place counts. */
static struct board_place *find_or_make(const struct board *b, uint64_t key)
{
	struct board_place *all = b->segment.data, *found = find(b, key);
	for (int i = 0; i < PLACES && !found; i++) {
		if (!occupy(&all[i], key))
			continue;
		found = find(b, key);
		if (found != &all[i])
			atomic_store(&all[i].key, 0);
	}
	return found;
}

static bool open_segment(struct board *b, bool alone)
{
	char path[SEGMENT_PATH_MAX + 1];
	struct segment_spec spec = {
		.path = path,
		.kind = KIND,
		.kind_version = VERSION,
		.params = {PLACES, RING},
		.param_count = 2,
		.size = size_of,
		.init = init,
	};
	if (alone)
		return segment_make_private(&spec, &b->segment) == BATON_OK;
	spec.mode = find_path(path);
	return segment_open(&spec, &b->segment) == BATON_OK;
}

bool board_open(struct board *b, uint64_t key)
{
	*b = (struct board){.seat = 0};
	key = key ? key : 1;
	for (int alone = 0; alone < 2 && !b->at; alone++) {
		segment_close(&b->segment);
		b->at = open_segment(b, alone == 1) ? find_or_make(b, key) : NULL;
	}
	if (b->at)
		b->reader.next = ring_now(ring_of(b->at));
	return b->at != NULL;
}

void board_close(struct board *b)
{
	segment_close(&b->segment);
	b->at = NULL;
}

static void wake_all(struct board_place *p)
{
	atomic_fetch_add(&p->bell, 1);
	syscall(SYS_futex, &p->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Milliseconds for which the seat is somebody's; 0: it is nobody's. What lies too far ahead is what
 * somebody left long ago. */
static uint32_t left_of(uint64_t seat)
{
	uint32_t left = (uint32_t)seat - (uint32_t)now_ms();
	return seat >> SEAT_SHIFT != 0 && left <= BOARD_TTL_MS ? left : 0;
}

static uint64_t seat_word(uint32_t seat, bool hears)
{
	return (uint64_t)seat << SEAT_SHIFT | (hears ? HEARS : 0) |
	       (uint32_t)(now_ms() + BOARD_TTL_MS);
}

bool board_sit(struct board *b)
{
	struct baton_id random;
	uint64_t before = atomic_load(&b->at->seat);
	if (left_of(before) > 0 || baton_id_random(&random) != BATON_OK)
		return false;
	memcpy(&b->seat, random.bytes, sizeof b->seat);
	b->seat = (b->seat & INT32_MAX) | 1;
	care(b->at);
	if (atomic_compare_exchange_strong(&b->at->seat, &before, seat_word(b->seat, false)))
		return true;
	b->seat = 0;
	return false;
}

bool board_keep(struct board *b, bool hears)
{
	uint64_t before = atomic_load(&b->at->seat);
	if (b->seat == 0 || before >> SEAT_SHIFT != b->seat ||
	    !atomic_compare_exchange_strong(&b->at->seat, &before, seat_word(b->seat, hears))) {
		b->seat = 0;
		return false;
	}
	care(b->at);
	if (hears != ((before & HEARS) != 0))
		wake_all(b->at);
	return true;
}

void board_rise(struct board *b)
{
	uint64_t before = atomic_load(&b->at->seat);
	if (b->seat != 0 && before >> SEAT_SHIFT == b->seat &&
	    atomic_compare_exchange_strong(&b->at->seat, &before, 0))
		wake_all(b->at);
	b->seat = 0;
}

bool board_is_taken(const struct board *b, uint32_t *ret_left_ms)
{
	*ret_left_ms = left_of(atomic_load(&b->at->seat));
	return *ret_left_ms > 0;
}

uint32_t board_hearer(const struct board *b)
{
	uint64_t seat = atomic_load(&b->at->seat);
	return left_of(seat) > 0 && (seat & HEARS) ? (uint32_t)(seat >> SEAT_SHIFT) : 0;
}

void board_ring(struct board *b, const struct baton_id *who)
{
	struct ring_item item = {.c = 0};
	memcpy(&item.a, who->bytes, sizeof item.a);
	memcpy(&item.b, who->bytes + sizeof item.a, sizeof item.b);
	ring_put(ring_of(b->at), RING, item);
	wake_all(b->at);
}

/* One that somebody has begun, and died, is passed by as soon as there is another. */
static enum ring_look next_of(struct board *b, struct ring_item *ret)
{
	const struct ring *r = ring_of(b->at);
	enum ring_look look = ring_get(r, RING, &b->reader, ret);
	while (look == RING_PENDING && ring_now(r) - b->reader.next > 1) {
		ring_skip(&b->reader);
		look = ring_get(r, RING, &b->reader, ret);
	}
	return look;
}

bool board_heard(struct board *b, const struct baton_id *self, bool *ret_others)
{
	struct ring_item item;
	bool any = false;
	*ret_others = false;
	while (next_of(b, &item) == RING_ITEM) {
		any = true;
		if (memcmp(&item.a, self->bytes, sizeof item.a) != 0 ||
		    memcmp(&item.b, self->bytes + sizeof item.a, sizeof item.b) != 0)
			*ret_others = true;
	}
	*ret_others = *ret_others || b->reader.lost > 0;
	any = any || b->reader.lost > 0;
	b->reader.lost = 0;
	return any;
}

uint32_t board_bell(const struct board *b)
{
	return atomic_load(&b->at->bell);
}

void board_wait(struct board *b, uint32_t bell, uint32_t timeout_ms)
{
	const struct timespec t = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
	care(b->at);
	syscall(SYS_futex, &b->at->bell, FUTEX_WAIT, bell, &t, NULL, 0);
}

void board_nudge(struct board *b)
{
	wake_all(b->at);
}
