/* Joining and leaving a fleet. */
#include <baton/fleet.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <baton/alloc.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/mem.h"
#include "contest/claims.h"
#include "contest/home.h"
#include "contest/member.h"
#include "contest/roster.h"
#include "contest/step.h"

#define PAGE 4096u

/* How often a reset may come between opening a fleet and joining it. */
#define ATTEMPTS 10

/* A page that a forked child finds empty. */
static enum baton_err here_make(_Atomic uint32_t **ret)
{
	_Atomic uint32_t *page =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return fail_memory(PAGE, "a membership");
	if (madvise(page, PAGE, MADV_WIPEONFORK) != 0) {
		munmap(page, PAGE);
		return fail_errno(errno, "this kernel cannot keep memory from a forked child");
	}
	atomic_store(page, HERE_MEMBER);
	*ret = page;
	return BATON_OK;
}

static void fleet_free(struct baton_fleet *f)
{
	if (f->here != NULL)
		munmap(f->here, PAGE);
	segment_close(&f->own.segment);
	if (f->twin != NULL && atomic_fetch_sub(&f->twin->members, 1) == 1) {
		segment_close(&f->twin->view.segment);
		mem_free(baton_alloc_libc(), f->twin, 1, sizeof *f->twin);
	}
	mem_free(baton_alloc_libc(), f, 1, sizeof *f);
}

static void fleet_freep(struct baton_fleet **f)
{
	if (*f != NULL)
		fleet_free(*f);
}

static enum baton_err fleet_new(struct baton_str owner, bool plain, struct baton_fleet **ret)
{
	AUTO(fleet_freep) struct baton_fleet *f = mem_new(baton_alloc_libc(), 1, sizeof *f);
	if (f == NULL)
		return fail_memory(sizeof *f, "a membership");
	f->keeper.stop = f->keeper.notify = -1;
	f->plain = plain;
	enum baton_err e = baton_owner_self(owner, &f->self);
	if (e == BATON_OK)
		e = here_make(&f->here);
	if (e != BATON_OK)
		return e;
	f->label_max = BATON_LABEL_MAX - (uint32_t)owner.len;
	memcpy(&f->tag, f->self.incarnation.bytes, sizeof f->tag);
	f->tag |= 1;
	claims_clock_look(f);
	*ret = TAKE(f);
	return BATON_OK;
}

static enum baton_err spec_make(const struct baton_fleet_options *o, const struct home *home,
                                struct fleet_seed *seed, struct segment_spec *ret)
{
	struct segment_spec spec = layout_spec();
	enum baton_err e = layout_params(&o->limits, spec.params);
	if (e != BATON_OK)
		return e;
	spec.path = home->path;
	spec.mode = o->group ? 0660 : home->mode;
	*seed = (struct fleet_seed){.mark_path = home->mark, .mode = spec.mode};
	spec.arg = seed;
	*ret = spec;
	return BATON_OK;
}

enum baton_err baton_fleet_join(const struct baton_fleet_options *o, struct baton_fleet **ret_fleet)
{
	AUTO(fleet_freep) struct baton_fleet *f = NULL;
	struct home home;
	struct fleet_seed seed;
	struct segment_spec spec;
	enum baton_err e = fleet_new(o->owner, o->plain_futex, &f);
	if (e == BATON_OK && f->self.start == 0)
		e = fail(BATON_INVALID, "this process is in a time namespace of its own, where the "
		                        "clock of its host cannot be read: it cannot join a fleet");
	if (e == BATON_OK)
		e = home_find(o->path, o->mark, &home);
	if (e == BATON_OK)
		e = spec_make(o, &home, &seed, &spec);
	if (e == BATON_OK)
		memcpy(f->mark, home.mark, sizeof f->mark);
	for (int i = 0; e == BATON_OK && i < ATTEMPTS; i++) {
		e = segment_open(&spec, &f->own.segment);
		if (e != BATON_OK)
			break;
		view_init(&f->own);
		f->own.mark_path = f->mark;
		f->own.mark_mode = seed.mode;
		f->view = &f->own;
		e = view_floor(f->view);
		if (e == BATON_OK)
			e = keeper_start(&f->keeper, f->view, f->here);
		if (e == BATON_OK)
			e = roster_join(f->view, &f->self, &f->keeper, &f->code);
		if (e == BATON_OK)
			break;
		keeper_stop(&f->keeper);
		segment_close(&f->own.segment);
		if (e == BATON_GONE && i + 1 < ATTEMPTS)
			e = BATON_OK;
	}
	if (e != BATON_OK)
		return e;
	f->voice = voice_of(f->view, f->code);
	*ret_fleet = TAKE(f);
	return BATON_OK;
}

void baton_fleet_leave(struct baton_fleet *f)
{
	if (f == NULL)
		return;
	if (atomic_load(f->here) != HERE_CHILD) {
		claims_free_all(f);
		STEP(LEAVE_FREED);
		roster_leave(f->view, f->twin != NULL ? NULL : &f->keeper, f->code, &f->self);
	} else if (f->twin == NULL) {
		keeper_forget(&f->keeper);
	}
	fleet_free(f);
}

static enum baton_err twin_enter(struct baton_fleet *f, struct twin *twin)
{
	f->twin = twin;
	f->view = &twin->view;
	enum baton_err e = roster_join(f->view, &f->self, NULL, &f->code);
	if (e == BATON_OK)
		f->voice = voice_of(f->view, f->code);
	return e;
}

enum baton_err baton_fleet_twin(const struct baton_fleet_options *o, struct baton_fleet **ret_fleet)
{
	AUTO(fleet_freep) struct baton_fleet *f = NULL;
	struct segment_spec spec = layout_spec();
	struct fleet_seed seed = {.mark_path = ""};
	spec.arg = &seed;
	enum baton_err e = layout_params(&o->limits, spec.params);
	if (e == BATON_OK)
		e = fleet_new(o->owner, o->plain_futex, &f);
	if (e != BATON_OK)
		return e;
	struct twin *twin = mem_new(baton_alloc_libc(), 1, sizeof *twin);
	if (twin == NULL)
		return fail_memory(sizeof *twin, "a fleet");
	atomic_store(&twin->members, 1);
	f->twin = twin;
	e = segment_make_private(&spec, &twin->view.segment);
	if (e != BATON_OK)
		return e;
	view_init(&twin->view);
	e = twin_enter(f, twin);
	if (e == BATON_OK)
		*ret_fleet = TAKE(f);
	return e;
}

enum baton_err baton_fleet_twin_join(struct baton_fleet *twin, struct baton_str owner,
                                     struct baton_fleet **ret_fleet)
{
	if (twin->twin == NULL)
		return fail(BATON_INVALID, "this fleet has a file: join it by its path");
	AUTO(fleet_freep) struct baton_fleet *f = NULL;
	enum baton_err e = fleet_new(owner, twin->plain, &f);
	if (e != BATON_OK)
		return e;
	atomic_fetch_add(&twin->twin->members, 1);
	e = twin_enter(f, twin->twin);
	if (e == BATON_OK)
		*ret_fleet = TAKE(f);
	return e;
}

bool member_is_current(struct baton_fleet *f)
{
	return member_is_here(f) && (f->twin != NULL || keeper_look(&f->keeper));
}

enum baton_err member_gone(const struct baton_fleet *f)
{
	if (atomic_load(f->here) == HERE_CHILD)
		return fail(BATON_GONE,
		            "the fleet was joined by another process, from which this one "
		            "was forked; join it again");
	return fail(BATON_GONE,
	            "the fleet's file '%.200s' was removed or replaced, and all claims are lost; "
	            "join it again",
	            f->view->segment.path);
}

bool baton_fleet_is_current(const struct baton_fleet *f)
{
	return atomic_load(f->here) != HERE_CHILD && segment_is_current(&f->view->segment);
}

struct baton_id baton_fleet_incarnation(const struct baton_fleet *f)
{
	return f->self.incarnation;
}

enum baton_err baton_fleet_reset(const char *path)
{
	struct home home;
	struct baton_owner self;
	struct segment_spec spec = layout_spec();
	struct view v = {.bells = NULL};
	enum baton_err e = home_look(path, &home);
	if (e == BATON_OK)
		e = baton_owner_self(BATON_STR("reset"), &self);
	if (e != BATON_OK)
		return e;
	spec.path = home.path;
	spec.init = NULL;
	e = segment_open(&spec, &v.segment);
	if (e != BATON_OK)
		return e;
	view_init(&v);
	e = roster_close(&v, &self);
	segment_close(&v.segment);
	return e;
}
