/* The system's time zone files. */
#include "base/zone_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fail.h"
#include "base/quote.h"

static bool is_allowed(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '+' || c == '.' || c == '/';
}

/* Whether nothing in the name can lead out of the folder. */
static bool is_name(struct baton_str name)
{
	bool begins = true; /* a part does here */
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];
		if (!is_allowed(c) || (begins && (c == '.' || c == '/')))
			return false;
		begins = c == '/';
	}
	return !begins;
}

static enum baton_err zone_open(const char *folder, struct baton_str name, int *ret_fd)
{
	char path[512];
	char shown[QUOTE_TEXT];
	int len = snprintf(path, sizeof path, "%s/%.*s", folder, (int)name.len, name.ptr);
	if (len < 0 || len >= (int)sizeof path)
		return fail(BATON_INVALID,
		            "the path of the time zone %s has %d bytes: less than %zu are allowed",
		            quote(name, shown), len, sizeof path);
	/* Not to wait for the other end, should it be a pipe. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return fail(BATON_INVALID,
		            "there is no time zone %s in %s: a name such as Europe/Berlin is "
		            "needed, and the package tzdata",
		            quote(name, shown), folder);
	if (fd < 0)
		return fail_errno(errno, "the time zone file %s cannot be opened", path);
	*ret_fd = fd;
	return BATON_OK;
}

static enum baton_err zone_check(int fd, struct baton_str name)
{
	char shown[QUOTE_TEXT];
	struct stat st;
	if (fstat(fd, &st) != 0)
		return fail_errno(errno, "the time zone file %s cannot be looked at",
		                  quote(name, shown));
	if (!S_ISREG(st.st_mode))
		return fail(BATON_INVALID,
		            "%s is no time zone but a folder or a device: a name such as "
		            "Europe/Berlin is needed",
		            quote(name, shown));
	return BATON_OK;
}

static enum baton_err zone_append(int fd, struct baton_str name, struct buf *ret)
{
	char bytes[4096];
	char shown[QUOTE_TEXT];
	for (;;) {
		ssize_t n = read(fd, bytes, sizeof bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(errno, "the time zone file %s cannot be read",
			                  quote(name, shown));
		if (n == 0)
			return BATON_OK;
		if ((size_t)n > ZONE_FILE_MAX - ret->len)
			return fail(BATON_INVALID,
			            "the time zone file %s is too large: %d bytes are allowed",
			            quote(name, shown), ZONE_FILE_MAX);
		enum baton_err e = buf_append(ret, bytes, (size_t)n);
		if (e != BATON_OK)
			return e;
	}
}

enum baton_err zone_file_read(const char *folder, struct baton_str name, struct buf *ret)
{
	buf_reset(ret);
	enum baton_err e =
		baton_str_make("name of a time zone", name.ptr, name.len, BATON_NAME_MAX, &name);
	if (e != BATON_OK)
		return e;
	char shown[QUOTE_TEXT];
	if (!is_name(name))
		return fail(BATON_INVALID,
		            "%s is no name of a time zone: letters, digits, _ - + and . are "
		            "allowed between slashes, and no part begins with a dot",
		            quote(name, shown));
	AUTO(fd_closep) int fd = -1;
	e = zone_open(folder, name, &fd);
	if (e == BATON_OK)
		e = zone_check(fd, name);
	if (e == BATON_OK)
		e = zone_append(fd, name, ret);
	if (e != BATON_OK)
		buf_reset(ret);
	return e;
}
