/* The service manager that has started this process, if one has. */
#include "manager.h"

#include <stdint.h>
#include <sys/socket.h>

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

bool manager_sockets(struct manager_sockets *ret)
{
	int count = sd_listen_fds(1);
	*ret = (struct manager_sockets){0};
	for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; fd++) {
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

#else

static void tell(const char *what)
{
	(void)what;
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
