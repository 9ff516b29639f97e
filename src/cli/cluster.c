/* A lease in a store, as what a guardian holds while a command runs.
 *
 * Its calls are made in the guardian, which opens the store for itself. Nobody is told when a lease
 * is given back, so whoever waits asks again and again; but the end of a holder on this host, which
 * comes right after it has given back what it held, is noticed at once. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

#include "cluster.h"
#include "denied.h"

/* Between two attempts, longer and longer. */
#define PAUSE_FIRST_MS 10
#define PAUSE_LAST_MS 1000

#define PATIENCE_FIRST_MS 1000
#define PATIENCE_LAST_MS 5000

/* What the store itself keeps by leases. */
static const char *const reserved[] = {"lane", "pull"};

/* Whoever waits for a lease. */
struct waiting {
	struct baton_mono until;
	int pause_ms;
	struct baton_id
		ended; /* the holder whose process has ended, and who holds it all the same */
};

static struct baton_mono now_boot(void)
{
	const struct baton_clock *clock = baton_clock_boot();
	return clock->now(clock);
}

/* Waits for the end of the holder, if that can be seen here, at most for `ms`. True: it ended. */
static bool wait_for_end(const struct baton_owner *self, const struct baton_owner *holder, int ms)
{
	bool near = holder->pid > 0 && holder->pid_ns == self->pid_ns &&
	            baton_id_equal(&holder->boot, &self->boot);
	struct pollfd end = {.fd = -1, .events = POLLIN};
	if (near)
		end.fd = (int)syscall(SYS_pidfd_open, holder->pid, 0);
	bool ended = poll(&end, 1, ms) > 0;
	if (end.fd >= 0)
		close(end.fd);
	return ended;
}

/* Waits for a while, so that it is worth to ask again. False: it is too late for that. */
static bool pause_before_next(struct waiting *w, const struct cluster *c,
                              const struct baton_lease_holder *holder)
{
	int64_t left_ms = baton_mono_sub(w->until, now_boot()).ns / 1000000;
	if (!baton_mono_live(w->until, now_boot()))
		return false;
	int ms = left_ms < w->pause_ms ? (int)left_ms + 1 : w->pause_ms;
	w->pause_ms = w->pause_ms * 2 < PAUSE_LAST_MS ? w->pause_ms * 2 : PAUSE_LAST_MS;
	if (!holder || baton_id_equal(&holder->owner.incarnation, &w->ended))
		poll(NULL, 0, ms);
	else if (wait_for_end(baton_store_owner(c->store.handle), &holder->owner, ms))
		w->ended = holder->owner.incarnation;
	return true;
}

static struct baton_mono on_boot_clock(struct baton_store_time t, struct baton_store_time now)
{
	return baton_mono_add(now_boot(), baton_store_time_sub(t, now));
}

static struct baton_claim_holder holder_of(const struct cluster *c,
                                           const struct baton_lease_holder *h)
{
	struct baton_store_time now = baton_store_now(c->store.handle);
	struct baton_claim_holder holder = {
		.why = BATON_CLAIM_HELD,
		.pid = h->owner.pid,
		.incarnation = h->owner.incarnation,
		.fence = h->fence,
		.since = on_boot_clock(h->claimed_at, now),
		.expires = on_boot_clock(h->expires_at, now),
	};
	memcpy(holder.owner, h->owner.id, sizeof holder.owner);
	return holder;
}

static enum baton_err claim(struct cluster *c, struct baton_mono until,
                            struct baton_guardian_tenure *ret_tenure,
                            struct baton_claim_holder *ret_holder)
{
	const struct baton_lease_ask ask = {.subject = baton_str_z(c->subject), .ttl = c->ttl};
	struct waiting waiting = {.until = until, .pause_ms = PAUSE_FIRST_MS};
	bool waits = baton_mono_live(until, now_boot());
	struct baton_lease_answer answer;
	enum baton_err e;
	do {
		ret_tenure->sent = now_boot();
		answer.err = BATON_BUSY;
		e = baton_lease_claim(c->store.handle, &ask, 1, &answer);
	} while ((e == BATON_BUSY || (e == BATON_OK && answer.err == BATON_YIELD)) &&
	         pause_before_next(&waiting, c, e == BATON_OK ? &answer.holder : NULL));
	if (e != BATON_OK)
		return e;
	if (answer.err == BATON_YIELD) {
		*ret_holder = holder_of(c, &answer.holder);
		return waits ? BATON_TIMEOUT : BATON_YIELD;
	}
	ret_tenure->fence = answer.lease.fence;
	c->lease = answer.lease;
	return BATON_OK;
}

/* For another process's lock on the store: not much longer than somebody wants to wait, but who
 * does not want to wait at all for the name has time for that. 0: as stores have it. */
static struct baton_duration patience_until(struct baton_mono until)
{
	struct baton_duration left = baton_mono_sub(until, now_boot());
	if (left.ns <= 0 || left.ns > baton_duration_ms(PATIENCE_LAST_MS).ns)
		return baton_duration_ms(0);
	return left.ns < baton_duration_ms(PATIENCE_FIRST_MS).ns
	               ? baton_duration_ms(PATIENCE_FIRST_MS)
	               : left;
}

/* The file beside which the locked files lie. However the store is called: those who share it share
 * its latches; if it is in a server, those of this user on this host. NULL: errno says why. */
static const char *find_beside(struct cluster *c)
{
	char id[33];
	if (c->folder[0] == '\0')
		return realpath(store_path(&c->store), c->path);
	int len = snprintf(c->path, sizeof c->path, "%s/%s", c->folder,
	                   baton_id_print(baton_store_id(c->store.handle), id));
	int fd = len < (int)sizeof c->path
	                 ? open(c->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)
	                 : -1;
	if (fd < 0)
		return NULL;
	close(fd);
	return c->path;
}

static enum baton_err take(void *arg, struct baton_mono until,
                           struct baton_guardian_tenure *ret_tenure,
                           struct baton_claim_holder *ret_holder)
{
	struct cluster *c = arg;
	const struct baton_store_options options = {
		.where = baton_str_z(c->store.where),
		.owner = c->owner,
		.patience = patience_until(until),
	};
	enum baton_err e = baton_store_open(&options, &c->store.handle);
	if (e != BATON_OK)
		return e;
	ret_tenure->beside = find_beside(c);
	e = ret_tenure->beside ? claim(c, until, ret_tenure, ret_holder) : BATON_SYSTEM;
	if (e == BATON_OK)
		return BATON_OK;
	int errnum = errno;
	store_close(&c->store);
	errno = errnum;
	return e;
}

static enum baton_err renew(void *arg)
{
	struct cluster *c = arg;
	const struct baton_lease_proof proof = {baton_str_z(c->subject), &c->lease};
	enum baton_err answer;
	enum baton_err e = baton_lease_renew(c->store.handle, &proof, 1, c->ttl, false, &answer);
	return e == BATON_OK ? answer : e;
}

static enum baton_err look(void *arg)
{
	struct cluster *c = arg;
	struct baton_lease_holder holder;
	enum baton_err e = baton_lease_inspect(c->store.handle, baton_str_z(c->subject), &holder);
	if (e == BATON_OK && (!holder.own || holder.fence.v != c->lease.fence.v))
		e = BATON_NOT_HELD;
	return e;
}

/* What cannot be given back is free when the guardian has ended, which comes next. */
static void release(void *arg)
{
	struct cluster *c = arg;
	const struct baton_lease_proof proof = {baton_str_z(c->subject), &c->lease};
	enum baton_err answer;
	(void)baton_lease_release(c->store.handle, &proof, 1, &answer);
	store_close(&c->store);
}

bool cluster_fits(bool cluster, const struct where *where, const struct store *store)
{
	if (cluster && where->given)
		complain("--cluster and --fleet cannot be together: a store is no fleet");
	else if (!cluster && store->given)
		complain("--store is for --cluster: a fleet is a file of its own");
	else
		return true;
	return false;
}

static bool space_is(struct baton_str space, const char *name)
{
	return baton_str_equal(space, baton_str_z(name));
}

/* Each by itself: what is wrong is told by its place in what was typed. */
static bool is_name(const char *what, struct baton_str part)
{
	struct baton_str name;
	if (baton_str_name(what, part.ptr, part.len, BATON_LEASE_SUBJECT_MAX, &name) == BATON_OK)
		return true;
	complain("%s", baton_err_detail());
	return false;
}

bool cluster_subject(const struct baton_subject *subject, char text[BATON_LEASE_SUBJECT_MAX + 1])
{
	size_t space = subject->space.len, label = subject->label.len;
	int max = space_is(subject->space, "lane") ? BATON_LEASE_SUBJECT_MAX : BATON_NAME_MAX;
	if (space + 1 + label > (size_t)max) {
		complain("in a store, namespace and label have %zu bytes together: at most %d are "
		         "allowed",
		         space + label, max - 1);
		return false;
	}
	memcpy(text, subject->space.ptr, space);
	text[space] = '/';
	memcpy(text + space + 1, subject->label.ptr, label);
	text[space + 1 + label] = '\0';
	return is_name("namespace", subject->space) && is_name("label", subject->label);
}

static bool is_reserved(struct baton_str space)
{
	for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
		if (space_is(space, reserved[i]))
			return true;
	}
	return false;
}

/* The guardian leaves the folder that it was started in. */
static int make_absolute(struct store *store)
{
	char relative[BATON_STORE_PATH_MAX + 1], folder[PATH_MAX];
	const char *path = store_path(store);
	size_t room = sizeof store->where - (size_t)(path - store->where);
	if (path[0] == '/')
		return EX_OK;
	snprintf(relative, sizeof relative, "%s", path);
	if (!getcwd(folder, sizeof folder)) {
		complain("the path of this folder cannot be had: %s", strerror(errno));
		return EX_OSERR;
	}
	size_t len = strlen(folder) + 1 + strlen(relative);
	if (len > BATON_STORE_PATH_MAX) {
		complain("the path of the store has %zu bytes: 1 to %d are allowed", len,
		         BATON_STORE_PATH_MAX);
		return EX_USAGE;
	}
	snprintf(store->where + (path - store->where), room, "%s/%s", folder, relative);
	return EX_OK;
}

int cluster_ready(struct cluster *c, const struct baton_subject *subject)
{
	if (is_reserved(subject->space)) {
		complain("the namespace '%.*s' is for what the store keeps itself: use another",
		         (int)subject->space.len, subject->space.ptr);
		return EX_USAGE;
	}
	if (!cluster_subject(subject, c->subject))
		return EX_USAGE;
	c->source = (struct baton_guardian_source){
		.take = take, .renew = renew, .look = look, .release = release, .arg = c};
	int status = store_find(&c->store, STORE_MADE);
	if (status != EX_OK)
		return status;
	return store_is_file(&c->store) ? make_absolute(&c->store)
	                                : store_folder(c->folder, sizeof c->folder - 64);
}

int cluster_fail(const struct cluster *c, enum baton_err e)
{
	char locks[PATH_MAX + 8];
	bool file = c->folder[0] == '\0';
	snprintf(locks, sizeof locks, "%s%s", file ? store_path(&c->store) : c->folder,
	         file ? ".locks" : "");
	if (e != BATON_SYSTEM || !denied(locks))
		return store_fail(&c->store, e);
	complain("%s; this user may not use it", baton_err_detail());
	return EX_NOPERM;
}
