/* Proxies in the path, as their documentation says they are fastest for streams. */
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claims/peer.h"
#include "links/links.h"

#define STREAM_MODULE "/usr/lib/nginx/modules/ngx_stream_module.so"

struct proxy {
	const char *name;
	const char *folder;
	char config[PATH_MAX];
};

static void haproxy_write(FILE *to, const char *folder)
{
	fprintf(to,
	        "global\n  maxconn 4096\n"
	        "defaults\n  mode tcp\n  timeout connect 10s\n  timeout client 1h\n"
	        "  timeout server 1h\n"
	        "listen echo\n  bind unix@%s/haproxy\n  server direct unix@%s/direct\n",
	        folder, folder);
}

static void nginx_write(FILE *to, const char *folder)
{
	if (access(STREAM_MODULE, R_OK) == 0)
		fprintf(to, "load_module " STREAM_MODULE ";\n");
	/* It would become somebody else, who may not see the folder. */
	if (geteuid() == 0)
		fprintf(to, "user root;\n");
	fprintf(to,
	        "daemon off;\nmaster_process off;\npid %s/nginx.pid;\nerror_log %s/nginx.log;\n"
	        "events { worker_connections 4096; }\n"
	        "stream { server { listen unix:%s/nginx; proxy_pass unix:%s/direct; } }\n",
	        folder, folder, folder, folder);
}

static void proxy_exec(void *arg)
{
	const struct proxy *p = arg;
	int nowhere = open("/dev/null", O_RDWR);
	dup2(nowhere, STDOUT_FILENO);
	dup2(nowhere, STDERR_FILENO);
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	if (p->name[0] == 'h')
		execlp("haproxy", "haproxy", "-db", "-f", p->config, (char *)NULL);
	else
		execlp("nginx", "nginx", "-p", p->folder, "-c", p->config, (char *)NULL);
	_exit(127);
}

bool proxy_start(const char *folder, enum link_way way)
{
	struct proxy p = {.name = way == LINK_HAPROXY ? "haproxy" : "nginx", .folder = folder};
	char socket[PATH_MAX];
	snprintf(p.config, sizeof p.config, "%s/%s.conf", folder, p.name);
	snprintf(socket, sizeof socket, "%s/%s", folder, p.name);
	FILE *to = fopen(p.config, "w");
	if (!to)
		err(1, "%s", p.config);
	if (way == LINK_HAPROXY)
		haproxy_write(to, folder);
	else
		nginx_write(to, folder);
	fclose(to);
	struct peer peer = peer_start(proxy_exec, &p);
	if (links_await(socket))
		return true;
	peer_end(&peer);
	warnx("%s is left out: it is not installed, or does not start", p.name);
	return false;
}
