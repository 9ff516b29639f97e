/* A search through every state that a model can reach. */
#include "walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define ROOM 1024u
#define PACKED_MAX (WALK_SIZE_MAX / 2)
#define LENGTH_MAX 256

/* How a state was reached first. */
struct origin {
	uint32_t from;
	uint32_t action;
};

/* States are numbered in the order in which they were found, which is also the order in which they
 * are looked at. */
struct walk {
	struct walk_model model;
	size_t stride;
	size_t room;
	size_t count;
	size_t moves;
	unsigned char *packed;
	struct origin *origins;
	uint64_t *index; /* open addressing, 2 * room: a number + 1 and half a hash; 0: none */
	const char *wrong;
	struct origin last; /* the action that led to what was wrong */
	bool cut;
};

static void *grown(void *old, size_t count, size_t size)
{
	void *block = realloc(old, count * size);
	CHECK(block != NULL);
	return block;
}

static void pack(const struct walk *walk, const unsigned char *state, unsigned char *packed)
{
	unsigned all = 0;
	for (size_t i = 0; i < walk->stride; i++) {
		all |= state[2 * i] | state[2 * i + 1];
		packed[i] = (unsigned char)(state[2 * i] | state[2 * i + 1] << 4);
	}
	CHECK(all < 16);
}

static void unpack(const struct walk *walk, size_t number, unsigned char *state)
{
	const unsigned char *packed = walk->packed + number * walk->stride;
	for (size_t i = 0; i < walk->stride; i++) {
		state[2 * i] = packed[i] & 15;
		state[2 * i + 1] = packed[i] >> 4;
	}
}

static uint64_t hash(const struct walk *walk, const unsigned char *packed)
{
	uint64_t h = 0;
	for (size_t i = 0; i < walk->stride; i += sizeof h) {
		uint64_t part;
		memcpy(&part, packed + i, sizeof part);
		h = (h ^ part) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h;
}

/* Where the state's number stands in the index, or would; *ret_high stands there with it. */
static uint64_t *find(const struct walk *walk, const unsigned char *packed, uint64_t *ret_high)
{
	uint64_t h = hash(walk, packed);
	size_t mask = walk->room * 2 - 1;
	size_t i = h & mask;
	*ret_high = h >> 32 << 32;
	for (; walk->index[i] != 0; i = (i + 1) & mask) {
		size_t number = (uint32_t)walk->index[i] - 1u;
		if (walk->index[i] >> 32 == h >> 32 &&
		    memcmp(walk->packed + number * walk->stride, packed, walk->stride) == 0)
			break;
	}
	return &walk->index[i];
}

static void grow(struct walk *walk)
{
	walk->room = walk->room ? walk->room * 2 : ROOM;
	CHECK(walk->room < UINT32_MAX / 2);
	walk->packed = grown(walk->packed, walk->room, walk->stride);
	walk->origins = grown(walk->origins, walk->room, sizeof *walk->origins);
	free(walk->index);
	walk->index = calloc(walk->room * 2, sizeof *walk->index);
	CHECK(walk->index != NULL);
	for (size_t i = 0; i < walk->count; i++) {
		uint64_t high;
		uint64_t *entry = find(walk, walk->packed + i * walk->stride, &high);
		*entry = high | (i + 1);
	}
}

/* Adds the state unless it is known, and judges it if it is not. */
static void reach(struct walk *walk, const unsigned char *state, struct origin origin)
{
	unsigned char packed[PACKED_MAX];
	pack(walk, state, packed);
	if (walk->count == walk->room)
		grow(walk);
	uint64_t high;
	uint64_t *entry = find(walk, packed, &high);
	if (*entry != 0)
		return;
	memcpy(walk->packed + walk->count * walk->stride, packed, walk->stride);
	walk->origins[walk->count] = origin;
	*entry = high | ++walk->count;
	walk->wrong = walk->model.judge(walk->model.arg, state);
	walk->last = origin;
}

static void look_around(struct walk *walk, size_t number)
{
	unsigned char here[WALK_SIZE_MAX] = {0};
	unsigned char there[WALK_SIZE_MAX] = {0};
	unpack(walk, number, here);
	for (unsigned action = 0; action < walk->model.actions && !walk->wrong; action++) {
		struct origin origin = {(uint32_t)number, action};
		memcpy(there, here, sizeof there);
		const char *wrong = NULL;
		if (!walk->model.act(walk->model.arg, there, action, &wrong))
			continue;
		walk->moves++;
		if (wrong) {
			walk->wrong = wrong;
			walk->last = origin;
		} else {
			reach(walk, there, origin);
		}
	}
}

struct walk *walk_run(const struct walk_model *model, size_t states_max)
{
	unsigned char first[WALK_SIZE_MAX] = {0};
	struct walk *walk = calloc(1, sizeof *walk);
	CHECK(walk != NULL && model->size <= WALK_SIZE_MAX);
	walk->model = *model;
	walk->stride = (model->size + 15) / 16 * sizeof(uint64_t);
	model->init(model->arg, first);
	reach(walk, first, (struct origin){0, 0});
	for (size_t i = 0; i < walk->count && !walk->wrong && !walk->cut; i++) {
		look_around(walk, i);
		walk->cut = walk->count > states_max;
	}
	return walk;
}

void walk_free(struct walk *walk)
{
	if (!walk)
		return;
	free(walk->packed);
	free(walk->origins);
	free(walk->index);
	free(walk);
}

size_t walk_states(const struct walk *walk)
{
	return walk->count;
}

size_t walk_moves(const struct walk *walk)
{
	return walk->moves;
}

const char *walk_wrong(const struct walk *walk)
{
	return walk->wrong;
}

bool walk_was_cut(const struct walk *walk)
{
	return walk->cut;
}

/* The actions that led to what was wrong, the first one last. */
static size_t way(const struct walk *walk, struct origin origins[LENGTH_MAX])
{
	size_t length = 0;
	if (!walk->wrong || walk->moves == 0)
		return 0;
	origins[length++] = walk->last;
	for (uint32_t i = walk->last.from; i != 0; i = walk->origins[i].from) {
		CHECK(length < LENGTH_MAX);
		origins[length++] = walk->origins[i];
	}
	return length;
}

size_t walk_length(const struct walk *walk)
{
	struct origin origins[LENGTH_MAX];
	return way(walk, origins);
}

void walk_print(const struct walk *walk)
{
	struct origin origins[LENGTH_MAX];
	unsigned char before[WALK_SIZE_MAX] = {0};
	unsigned char after[WALK_SIZE_MAX] = {0};
	char text[WALK_TEXT_MAX];
	size_t length = way(walk, origins);
	for (size_t i = 0; i < length; i++) {
		const struct origin *o = &origins[length - 1 - i];
		const char *wrong = NULL;
		unpack(walk, o->from, before);
		memcpy(after, before, sizeof after);
		(void)walk->model.act(walk->model.arg, after, o->action, &wrong);
		walk->model.tell(walk->model.arg, before, o->action, after, text);
		printf("# %3zu. %s\n", i + 1, text);
	}
	if (walk->wrong)
		printf("#      wrong: %s\n", walk->wrong);
	fflush(stdout);
}
