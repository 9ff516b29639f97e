/* The service manager that has started this process, if one has. */
#include "manager.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "out.h"

static struct baton_mono now(void)
{
	const struct baton_clock *clock = baton_clock_awake();
	return clock->now(clock);
}

#ifdef HAVE_SYSTEMD

static void tell(const char *what)
{
	sd_notify(0, what);
}

/* At half of the time after which it would take this process for hung. */
static struct baton_duration watched(void)
{
	uint64_t us = 0;
	if (sd_watchdog_enabled(0, &us) <= 0 || us > INT64_MAX / 1000)
		return (struct baton_duration){0};
	return (struct baton_duration){(int64_t)us * 1000 / 2};
}

/* Whether it is one that a broker before this one had kept. */
static bool safe_take(struct manager_sockets *s, const char *name, int fd)
{
	if (strncmp(name, BATON_SAFE_PREFIX, strlen(BATON_SAFE_PREFIX)) != 0)
		return false;
	if (s->safe_count < MANAGER_SAFE_MAX)
		s->safe[s->safe_count++] = (struct baton_broker_safe){name, fd};
	else
		close(fd);
	return true;
}

bool manager_sockets(struct manager_sockets *ret)
{
	*ret = (struct manager_sockets){0};
	int count = sd_listen_fds_with_names(1, &ret->names);
	for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; fd++) {
		if (safe_take(ret, ret->names[fd - SD_LISTEN_FDS_START], fd))
			continue;
		bool clients = sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) > 0;
		bool backends = sd_is_socket_unix(fd, SOCK_SEQPACKET, 1, NULL, 0) > 0;
		if ((clients && ret->clients > 0) || (backends && ret->backends > 0) ||
		    (!clients && !backends)) {
			complain("descriptor %d was passed; a broker takes one listening socket of "
			         "type stream for clients, and one of seqpacket for backends",
			         fd);
			return false;
		}
		if (clients)
			ret->clients = fd;
		else
			ret->backends = fd;
	}
	return true;
}

void manager_keep(const char *name, int fd)
{
	char text[BATON_SAFE_NAME_MAX + 64];
	if (fd < 0) {
		sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
		return;
	}
	snprintf(text, sizeof text, "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
	sd_pid_notify_with_fds(0, 0, text, &fd, 1);
}

#else

static void tell(const char *what)
{
	(void)what;
}

void manager_keep(const char *name, int fd)
{
	(void)name;
	(void)fd;
}

static struct baton_duration watched(void)
{
	return (struct baton_duration){0};
}

bool manager_sockets(struct manager_sockets *ret)
{
	*ret = (struct manager_sockets){0};
	return true;
}

#endif

void manager_sockets_done(struct manager_sockets *s)
{
	for (char **name = s->names; name && *name; name++)
		free(*name);
	free(s->names);
	s->names = NULL;
}

bool manager_is_there(void)
{
	const char *notify = getenv("NOTIFY_SOCKET");
	return notify && *notify != '\0';
}

static bool groups_read(const char *path, char text[4096])
{
	FILE *file = fopen(path, "re");
	size_t len = file ? fread(text, 1, 4095, file) : 0;
	text[len] = '\0';
	if (file)
		fclose(file);
	return len > 0;
}

/* It knows the processes of its services by their control group. */
bool manager_knows(int32_t pid)
{
	char path[64], mine[4096], other[4096];
	snprintf(path, sizeof path, "/proc/%" PRId32 "/cgroup", pid);
	return groups_read("/proc/self/cgroup", mine) && groups_read(path, other) &&
	       strcmp(mine, other) == 0;
}

void manager_succeeded(int32_t pid)
{
	char text[32];
	snprintf(text, sizeof text, "MAINPID=%" PRId32, pid);
	tell(text);
}

struct baton_str manager_will(char will[MANAGER_WILL])
{
	const char *notify = getenv("NOTIFY_SOCKET");
	const char *watchdog = getenv("WATCHDOG_USEC");
	int len = manager_is_there()
	                  ? snprintf(will, MANAGER_WILL, "%s\n%s", notify, watchdog ? watchdog : "")
	                  : 0;
	return (struct baton_str){will, len < MANAGER_WILL ? (size_t)len : 0};
}

void manager_succeed(struct manager *m, struct baton_str will)
{
	char text[MANAGER_WILL], pid[16];
	if (will.len == 0 || will.len >= sizeof text)
		return;
	snprintf(text, sizeof text, "%.*s", (int)will.len, will.ptr);
	char *watchdog = strchr(text, '\n');
	if (!watchdog)
		return;
	*watchdog++ = '\0';
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	setenv("NOTIFY_SOCKET", text, 1);
	if (*watchdog != '\0') {
		setenv("WATCHDOG_USEC", watchdog, 1);
		setenv("WATCHDOG_PID", pid, 1);
	}
	manager_init(m);
	m->ready = true;
}

void manager_init(struct manager *m)
{
	*m = (struct manager){.every = watched(), .next = now()};
}

void manager_ready(struct manager *m)
{
	if (!m->ready)
		tell("READY=1");
	m->ready = true;
}

void manager_stopping(struct manager *m)
{
	if (!m->stopping)
		tell("STOPPING=1");
	m->stopping = true;
}

void manager_alive(struct manager *m)
{
	struct baton_mono at = now();
	if (m->every.ns == 0 || baton_mono_live(m->next, at))
		return;
	tell("WATCHDOG=1");
	m->next = baton_mono_add(at, m->every);
}

int manager_patience_ms(const struct manager *m)
{
	if (m->every.ns == 0)
		return -1;
	int64_t left = baton_mono_sub(m->next, now()).ns;
	int64_t ms = left <= 0 ? 0 : (left - 1) / 1000000 + 1;
	return ms < 60000 ? (int)ms : 60000;
}
