/* Which store a command is about, and what to say when it cannot be had. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "denied.h"
#include "out.h"
#include "reading.h"
#include "status.h"
#include "store.h"

#define SQLITE "sqlite:"
#define POSTGRES "postgres:"
#define POSTGRES_URI "postgresql://"
#define ROOT_FOLDER "/var/lib/baton"
#define FILE_NAME "baton.db"

bool store_option(struct store *s, int option, const char *value)
{
	if (option == STORE_WHERE)
		s->given = value;
	else if (option == 'v')
		s->verbose = true;
	else if (option == STORE_JSON)
		s->json = true;
	else
		return false;
	return true;
}

static bool take(void *arg, int option, const char *value)
{
	return store_option(arg, option, value);
}

bool store_reading(struct store *s, struct operands *operands, struct out *out, int argc,
                   char **argv, int *ret_status)
{
	static const struct option options[] = {STORE_OPTIONS, {0}};
	const struct reading reading = {options, operands, take, s};
	return reading_do(&reading, out, argc, argv, ret_status);
}

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool store_is_file(const struct store *s)
{
	return begins_with(s->where, SQLITE);
}

const char *store_path(const struct store *s)
{
	return s->where + strlen(SQLITE);
}

/* Others can read the arguments of a process, but no secret in them. */
static void blank(char *from, size_t len)
{
	memset(from, '*', len);
}

static void hide_secrets(char *where)
{
	char *user = strstr(where, "://");
	char *at = user ? strchr(user, '@') : NULL;
	char *colon = at ? memchr(user + 3, ':', (size_t)(at - user - 3)) : NULL;
	if (colon)
		blank(colon + 1, (size_t)(at - colon - 1));
	for (char *key = strstr(where, "password="); key; key = strstr(key + 1, "password=")) {
		char *value = key + strlen("password=");
		blank(value, *value == '\'' ? strlen(value) : strcspn(value, " &"));
	}
}

/* Only the part of a name that cannot have a password is shown, unless it is the path of a file. */
static int unknown_kind(const char *where)
{
	char shown[SHOWN_MAX];
	show(where, shown);
	size_t kind = strcspn(shown, ":/");
	if (shown[kind] != ':')
		complain("'%s' is no store: a file is given as '" SQLITE "%s'", shown,
		         shown[0] != '\0' ? shown : "PATH");
	else if (strcmp(where, "memory:") == 0)
		complain("a store in memory ends with the command: use " SQLITE "PATH");
	else
		complain("'%.*s:' is no kind of store that is known: use " SQLITE
		         "PATH or " POSTGRES_URI "HOST/DATABASE",
		         (int)kind, shown);
	return EX_USAGE;
}

static int take_given(struct store *s, const char *where)
{
	size_t len = strlen(where);
	bool server = begins_with(where, POSTGRES) || begins_with(where, POSTGRES_URI);
	if (!server && !begins_with(where, SQLITE))
		return unknown_kind(where);
	if (server && len > BATON_STORE_PATH_MAX) {
		complain("the connection string of the store has %zu bytes: at most %d are allowed",
		         len, BATON_STORE_PATH_MAX);
		return EX_USAGE;
	}
	size_t path = len - strlen(SQLITE);
	if (!server && (path == 0 || path > BATON_STORE_PATH_MAX)) {
		complain("the path of the store has %zu bytes: 1 to %d are allowed", path,
		         BATON_STORE_PATH_MAX);
		return EX_USAGE;
	}
	memcpy(s->where, where, len + 1);
	return EX_OK;
}

/* The folder in which this user's store lies. False: there is none to be found, or its name is too
 * long. */
static bool state_folder(char *folder, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	int len;
	if (state && state[0] == '/')
		len = snprintf(folder, size, "%s/baton", state);
	else if (geteuid() == 0)
		len = snprintf(folder, size, "%s", ROOT_FOLDER);
	else if (home && home[0] == '/')
		len = snprintf(folder, size, "%s/.local/state/baton", home);
	else
		return false;
	return len >= 0 && (size_t)len < size;
}

/* Makes the folder, and those above it that are not there. */
static int make_folder(char *folder)
{
	for (char *slash = folder + 1; slash;) {
		slash = strchr(slash, '/');
		if (slash)
			*slash = '\0';
		int made = mkdir(folder, 0700);
		int errnum = errno;
		if (made != 0 && errnum != EEXIST) {
			complain("cannot make the folder '%s' for the store: %s", folder,
			         strerror(errnum));
			return errnum == EACCES || errnum == EPERM ? EX_NOPERM : EX_OSERR;
		}
		if (slash)
			*slash++ = '/';
	}
	return EX_OK;
}

int store_folder(char *folder, size_t size)
{
	if (state_folder(folder, size))
		return make_folder(folder);
	complain("there is no folder for locked files: set HOME or XDG_STATE_HOME");
	return EX_USAGE;
}

static int take_default(struct store *s, enum store_need need)
{
	char folder[BATON_STORE_PATH_MAX - sizeof FILE_NAME];
	if (!state_folder(folder, sizeof folder)) {
		complain("there is no folder for a store: set HOME, or give --store " SQLITE
		         "PATH");
		return EX_USAGE;
	}
	int status = need == STORE_MADE ? make_folder(folder) : EX_OK;
	snprintf(s->where, sizeof s->where, SQLITE "%s/" FILE_NAME, folder);
	return status;
}

int store_find(struct store *s, enum store_need need)
{
	const char *set = getenv("BATON_STORE");
	int status;
	if (s->given) {
		status = take_given(s, s->given);
		hide_secrets((char *)s->given);
	} else if (set && set[0] != '\0') {
		status = take_given(s, set);
	} else {
		status = take_default(s, need);
	}
	if (status == EX_OK && s->verbose && store_is_file(s))
		complain("the store is '%s'", s->where);
	return status;
}

int store_open(struct store *s, enum store_need need)
{
	int status = store_find(s, need);
	if (status != EX_OK)
		return status;
	s->bell.verbose = s->verbose;
	const struct baton_store_options options = {
		.where = baton_str_z(s->where),
		.existing = need == STORE_EXISTING,
		.hook = bell_hook(&s->bell),
	};
	enum baton_err e = baton_store_open(&options, &s->handle);
	if (e == BATON_OK && s->verbose && !store_is_file(s))
		complain("the store is '%s'", baton_store_where(s->handle));
	if (e == BATON_OK)
		return EX_OK;
	if (e != BATON_NOT_FOUND)
		return store_fail(s, e);
	if (store_is_file(s))
		complain("there is no store '%s'; 'baton put' makes one", s->where);
	else
		complain("%s; 'baton migrate' makes one", baton_err_detail());
	return EX_UNAVAILABLE;
}

void store_close(struct store *s)
{
	bell_done(&s->bell);
	baton_store_close(s->handle);
	s->handle = NULL;
}

/* A file of SQLite's own is beside it, or has to be made there. */
static bool may_not_use(const char *path)
{
	char beside[BATON_STORE_PATH_MAX + 8];
	snprintf(beside, sizeof beside, "%s-shm", path);
	return denied(path) || denied(beside);
}

int store_fail(const struct store *s, enum baton_err e)
{
	const char *detail = baton_err_detail();
	bool lacks = e == BATON_STORAGE && store_is_file(s) && may_not_use(store_path(s));
	complain("%s%s", detail[0] != '\0' ? detail : baton_strerror(e),
	         lacks ? "; this user may not use it" : "");
	return lacks ? EX_NOPERM : status_of(e);
}
