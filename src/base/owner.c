/* Who asks for something, and how anyone can tell whether that one is dead. */
#include <baton/owner.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/number.h"
#include "base/process.h"
#include "base/quote.h"

static enum baton_err set_id(struct baton_owner *owner, struct baton_str id)
{
	struct baton_str name;
	enum baton_err e = baton_str_name("owner id", id.ptr, id.len, BATON_NAME_MAX, &name);
	if (e != BATON_OK)
		return e;
	memcpy(owner->id, name.ptr, name.len);
	owner->id[name.len] = '\0';
	return BATON_OK;
}

enum baton_err baton_owner_opaque(struct baton_str id, struct baton_owner *ret)
{
	struct baton_owner owner = {.pid = 0};
	enum baton_err e = set_id(&owner, id);
	if (e == BATON_OK)
		e = baton_id_random(&owner.incarnation);
	if (e == BATON_OK)
		*ret = owner;
	return e;
}

enum baton_err baton_owner_self(struct baton_str id, struct baton_owner *ret)
{
	struct baton_owner owner;
	enum baton_err e = baton_owner_opaque(id, &owner);
	if (e != BATON_OK)
		return e;
	if (!process_boot(&owner.boot))
		return fail_errno(errno, "the kernel's boot id cannot be read from /proc");
	if (!process_pid_ns(&owner.pid_ns))
		return fail_errno(errno, "this process's pid namespace cannot be read from /proc");
	if (!process_start(&owner.start))
		return fail_errno(errno, "this process's start time cannot be read from /proc");
	owner.pid = getpid();
	*ret = owner;
	return BATON_OK;
}

/* Whether the process that had `pid` in this process's namespace, and started at `start` (0: nobody
 * knows when), is definitely dead. */
static bool process_is_dead(int32_t pid, uint64_t start)
{
	AUTO(fd_closep) int pidfd = -1;
	if (!process_open(pid, &pidfd))
		return errno == ESRCH;
	if (process_has_ended(pidfd))
		return true;
	uint64_t now_there;
	if (start != 0 && process_start_of(pidfd, &now_there))
		return now_there != start;
	/* What could not be read may have been hidden, or it ended meanwhile. */
	return process_has_ended(pidfd);
}

bool baton_owner_is_dead(const struct baton_owner *self, const struct baton_owner *other,
                         enum baton_reach reach)
{
	if (self->pid <= 0 || other->pid <= 0)
		return false;
	if (!baton_id_equal(&self->boot, &other->boot))
		return reach == BATON_REACH_HOST;
	/* `self` may have been made before a fork into another namespace, where pids mean other
	 * processes. */
	uint64_t pid_ns;
	if (self->pid_ns != other->pid_ns || !process_pid_ns(&pid_ns) || pid_ns != other->pid_ns)
		return false;
	return process_is_dead(other->pid, self->start != 0 ? other->start : 0);
}

char *baton_owner_print(const struct baton_owner *owner, char text[BATON_OWNER_TEXT])
{
	char incarnation[BATON_ID_TEXT], boot[BATON_ID_TEXT];
	baton_id_print(&owner->incarnation, incarnation);
	if (owner->pid == 0) {
		snprintf(text, BATON_OWNER_TEXT, "%s:::::%.*s", incarnation, BATON_NAME_MAX,
		         owner->id);
		return text;
	}
	snprintf(text, BATON_OWNER_TEXT, "%s:%s:%" PRIu64 ":%" PRId32 ":%" PRIu64 ":%.*s",
	         incarnation, baton_id_print(&owner->boot, boot), owner->pid_ns, owner->pid,
	         owner->start, BATON_NAME_MAX, owner->id);
	return text;
}

/* The parts of the text form, in their order. */
enum part {
	INCARNATION,
	BOOT,
	NAMESPACE,
	PID,
	START,
	ID,
	PARTS
};

static enum baton_err split(struct baton_str text, struct baton_str parts[PARTS])
{
	struct baton_str rest = text;
	for (int i = 0; i < ID; i++) {
		const char *colon = rest.len > 0 ? memchr(rest.ptr, ':', rest.len) : NULL;
		if (colon == NULL) {
			char shown[QUOTE_TEXT];
			return fail(BATON_INVALID,
			            "%s is no owner: it has %d colons instead of at least %d",
			            quote(text, shown), i, ID);
		}
		parts[i] = (struct baton_str){rest.ptr, (size_t)(colon - rest.ptr)};
		rest = (struct baton_str){colon + 1, rest.len - parts[i].len - 1};
	}
	parts[ID] = rest;
	return BATON_OK;
}

/* As baton_owner_print() writes it, so that one owner has one text: no capital letters. */
static enum baton_err parse_id(struct baton_str part, const char *name, struct baton_id *ret)
{
	struct baton_id id;
	char text[BATON_ID_TEXT], shown[QUOTE_TEXT];
	if (baton_id_parse(part, &id) != BATON_OK ||
	    memcmp(baton_id_print(&id, text), part.ptr, part.len) != 0)
		return fail(BATON_INVALID,
		            "%s is no %s of an owner: 32 small hexadecimal digits are needed",
		            quote(part, shown), name);
	*ret = id;
	return BATON_OK;
}

static enum baton_err parse_number(struct baton_str part, const char *name, uint64_t min,
                                   uint64_t max, uint64_t *ret)
{
	uint64_t n;
	if (number_parse(part, max, &n) && n >= min) {
		*ret = n;
		return BATON_OK;
	}
	char shown[QUOTE_TEXT];
	return fail(BATON_INVALID,
	            "%s is no %s of an owner: a number from %" PRIu64 " to %" PRIu64 " is needed",
	            quote(part, shown), name, min, max);
}

static enum baton_err parse_process(const struct baton_str parts[PARTS], struct baton_owner *owner)
{
	uint64_t pid = 0;
	enum baton_err e = parse_id(parts[BOOT], "boot id", &owner->boot);
	if (e == BATON_OK)
		e = parse_number(parts[NAMESPACE], "pid namespace", 0, UINT64_MAX, &owner->pid_ns);
	if (e == BATON_OK)
		e = parse_number(parts[PID], "pid", 1, INT32_MAX, &pid);
	if (e == BATON_OK)
		e = parse_number(parts[START], "start time", 0, UINT64_MAX, &owner->start);
	owner->pid = (int32_t)pid;
	return e;
}

enum baton_err baton_owner_parse(struct baton_str text, struct baton_owner *ret)
{
	struct baton_owner owner = {.pid = 0};
	struct baton_str parts[PARTS];
	enum baton_err e = split(text, parts);
	if (e == BATON_OK)
		e = parse_id(parts[INCARNATION], "incarnation", &owner.incarnation);
	if (e == BATON_OK)
		e = set_id(&owner, parts[ID]);
	if (e != BATON_OK)
		return e;
	size_t about_process = 0;
	for (int i = BOOT; i <= START; i++)
		about_process += parts[i].len;
	if (about_process > 0)
		e = parse_process(parts, &owner);
	if (e == BATON_OK)
		*ret = owner;
	return e;
}
