/* A PostgreSQL server of a test's own. */
#include "cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIND "postgres:"
#define PROXY "/usr/sbin/pgbouncer"
#define STEP_MS 5
#define START_MS 60000

/* The newest of the servers that are installed. */
static bool find_tools(char *ret, size_t size)
{
	glob_t found;
	bool any = glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0;
	if (any) {
		snprintf(ret, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
		*strrchr(ret, '/') = '\0';
		globfree(&found);
	}
	return any;
}

/* The server refuses to run as root. */
static void become_nobody(void)
{
	const struct passwd *user = getuid() == 0 ? getpwnam("nobody") : NULL;
	if (user &&
	    (setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
		_exit(126);
}

static void quiet(const char *directory)
{
	char path[200];
	snprintf(path, sizeof path, "%s/log", directory);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	dup2(null, 0);
	dup2(fd, 1);
	dup2(fd, 2);
}

/* Starts a program as nobody. It ends with the helper. */
static pid_t spawn(const char *directory, const char *const *argv)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	become_nobody();
	prctl(PR_SET_PDEATHSIG, SIGQUIT);
	quiet(directory);
	if (chdir(directory) == 0)
		execv(argv[0], (char *const *)argv);
	_exit(127);
}

static bool await(pid_t pid)
{
	int status = 0;
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Runs a program as who we are. */
static bool run(const char *const *argv)
{
	pid_t pid = fork();
	if (pid == 0) {
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	return await(pid);
}

static void remove_tree(const char *directory)
{
	const char *const argv[] = {"/bin/rm", "-rf", directory, NULL};
	run(argv);
}

static bool copy_tree(const char *from, const char *to)
{
	const char *const argv[] = {"/bin/cp", "-a", from, to, NULL};
	return run(argv);
}

static bool make_new_files(const char *tools, const char *directory, const char *data)
{
	char program[200];
	snprintf(program, sizeof program, "%s/initdb", tools);
	const char *const argv[] = {program, "-D",    data,        "-A",
	                            "trust", "-E",    "UTF8",      "--locale=C",
	                            "-U",    "baton", "--no-sync", "--no-instructions",
	                            NULL};
	return await(spawn(directory, argv));
}

/* What the first test of a build made is kept beside it, for the others to copy. */
static bool copy_or_make(const char *tools, const char *directory, const char *data,
                         const char *model)
{
	char part[420];
	if (access(model, F_OK) == 0 && copy_tree(model, data))
		return true;
	remove_tree(data);
	if (!make_new_files(tools, directory, data))
		return false;
	snprintf(part, sizeof part, "%s.part", model);
	if (!copy_tree(data, part) || rename(part, model) != 0)
		remove_tree(part);
	return true;
}

static bool make_files(const char *tools, const char *directory)
{
	char data[200], model[400], lock[420];
	const char *models = getenv("BATON_TEST_CLUSTERS");
	const char *version = tools + strlen("/usr/lib/postgresql/");
	snprintf(data, sizeof data, "%s/data", directory);
	if (!models)
		return make_new_files(tools, directory, data);
	snprintf(model, sizeof model, "%s/cluster-%.*s", models, (int)strcspn(version, "/"),
	         version);
	snprintf(lock, sizeof lock, "%s.lock", model);
	int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	bool made = fd >= 0 && flock(fd, LOCK_EX) == 0 ? copy_or_make(tools, directory, data, model)
	                                               : make_new_files(tools, directory, data);
	if (fd >= 0)
		close(fd);
	return made;
}

static pid_t start_server(const char *tools, const char *directory, bool safe)
{
	char program[200], data[200], socket_option[200];
	snprintf(program, sizeof program, "%s/postgres", tools);
	snprintf(data, sizeof data, "%s/data", directory);
	snprintf(socket_option, sizeof socket_option, "unix_socket_directories=%s", directory);
	const char *const argv[] = {program,
	                            "-D",
	                            data,
	                            "-c",
	                            "listen_addresses=",
	                            "-c",
	                            socket_option,
	                            "-c",
	                            safe ? "fsync=on" : "fsync=off",
	                            "-c",
	                            "shared_buffers=32MB",
	                            "-c",
	                            "max_connections=60",
	                            "-c",
	                            "autovacuum_naptime=5",
	                            NULL};
	return spawn(directory, argv);
}

static void end_server(pid_t server)
{
	if (server <= 0)
		return;
	kill(server, SIGQUIT);
	waitpid(server, NULL, 0);
}

/* A server that finds this file follows another, which there is not, until it is promoted. */
static void make_standby(const char *directory)
{
	char path[200];
	snprintf(path, sizeof path, "%s/data/standby.signal", directory);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
}

/* Says "y" once the server was started, and does what it is told: "c" is to crash it, "s" to make
 * a standby of it. */
static void help(int channel, const char *directory, bool safe)
{
	char tools[160], word = 'n';
	pid_t server = -1;
	setsid();
	signal(SIGPIPE, SIG_IGN);
	if (find_tools(tools, sizeof tools) && make_files(tools, directory)) {
		server = start_server(tools, directory, safe);
		word = 'y';
	}
	char told;
	while (write(channel, &word, 1) == 1 && read(channel, &told, 1) == 1) {
		end_server(server);
		if (told == 's')
			make_standby(directory);
		server = start_server(tools, directory, safe);
	}
	end_server(server);
	remove_tree(directory);
	_exit(0);
}

static bool is_up(const struct cluster *c, const char *more)
{
	char info[200];
	snprintf(info, sizeof info, "host=%s dbname=postgres user=baton%s", c->directory, more);
	for (int waited = 0; waited < START_MS; waited += STEP_MS) {
		if (PQping(info) == PQPING_OK)
			return true;
		poll(NULL, 0, STEP_MS);
	}
	return false;
}

static bool await_word(const struct cluster *c)
{
	char word = 'n';
	return read(c->channel, &word, 1) == 1 && word == 'y';
}

bool cluster_start(struct cluster *c, bool safe)
{
	const char *tmp = getenv("TMPDIR");
	int channels[2];
	memset(c, 0, sizeof *c);
	snprintf(c->directory, sizeof c->directory, "%s/baton-pg-XXXXXX", tmp ? tmp : "/tmp");
	if (strlen(c->directory) > 80 || !mkdtemp(c->directory) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channels) != 0) {
		c->directory[0] = '\0';
		return false;
	}
	const struct passwd *user = getuid() == 0 ? getpwnam("nobody") : NULL;
	if (user && chown(c->directory, user->pw_uid, user->pw_gid) != 0)
		perror("chown");
	c->helper = fork();
	if (c->helper == 0) {
		close(channels[0]);
		help(channels[1], c->directory, safe);
	}
	close(channels[1]);
	c->channel = channels[0];
	if (await_word(c) && is_up(c, ""))
		return true;
	cluster_stop(c);
	return false;
}

static bool write_settings(const struct cluster *c, const char *path, int connections)
{
	FILE *f = fopen(path, "we");
	if (!f)
		return false;
	fprintf(f,
	        "[databases]\n* = host=%s user=baton\n[pgbouncer]\nlisten_addr =\n"
	        "listen_port = 6432\nunix_socket_dir = %s\nauth_type = any\n"
	        "pool_mode = transaction\ndefault_pool_size = %d\nserver_round_robin = 1\n"
	        "log_connections = 0\nlog_disconnections = 0\n",
	        c->directory, c->directory, connections);
	return fclose(f) == 0;
}

bool cluster_proxy(struct cluster *c, int connections)
{
	char settings[200];
	const char *const argv[] = {PROXY, settings, NULL};
	snprintf(settings, sizeof settings, "%s/proxy.ini", c->directory);
	if (access(PROXY, X_OK) != 0 || !write_settings(c, settings, connections))
		return false;
	c->proxy = spawn(c->directory, argv);
	return c->proxy > 0 && is_up(c, CLUSTER_THROUGH);
}

static void end_proxy(struct cluster *c)
{
	if (c->proxy <= 0)
		return;
	kill(c->proxy, SIGTERM);
	waitpid(c->proxy, NULL, 0);
	c->proxy = 0;
}

void cluster_stop(struct cluster *c)
{
	if (!c->directory[0])
		return;
	end_proxy(c);
	/* A child of ours may have the channel too, and live longer. */
	shutdown(c->channel, SHUT_RDWR);
	close(c->channel);
	waitpid(c->helper, NULL, 0);
	c->directory[0] = '\0';
}

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	abort();
}

static PGresult *query(const char *where, const char *sql, PGconn **ret)
{
	PGconn *pg = PQconnectdb(where + strlen(KIND));
	if (PQstatus(pg) != CONNECTION_OK)
		die(where, PQerrorMessage(pg));
	PGresult *r = PQexec(pg, sql);
	ExecStatusType status = PQresultStatus(r);
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		die(sql, PQerrorMessage(pg));
	*ret = pg;
	return r;
}

void cluster_run(const char *where, const char *sql)
{
	PGconn *pg;
	PQclear(query(where, sql, &pg));
	PQfinish(pg);
}

long long cluster_number(const char *where, const char *sql)
{
	PGconn *pg;
	PGresult *r = query(where, sql, &pg);
	long long number = PQntuples(r) > 0 ? atoll(PQgetvalue(r, 0, 0)) : 0;
	PQclear(r);
	PQfinish(pg);
	return number;
}

static void in_postgres(const struct cluster *c, const char *sql)
{
	char where[200];
	snprintf(where, sizeof where, KIND "host=%s dbname=postgres user=baton", c->directory);
	cluster_run(where, sql);
}

/* One that was given back is emptied, which is faster than making another. Deleting few rows takes
 * less time than making new files for the tables. */
void cluster_database(struct cluster *c, char *where, size_t size)
{
	char sql[64];
	unsigned number = c->free_count > 0 ? c->free[--c->free_count] : 0;
	if (number == 0) {
		number = ++c->databases;
		snprintf(sql, sizeof sql, "CREATE DATABASE t%u", number);
		in_postgres(c, sql);
	}
	snprintf(where, size, KIND "host=%s dbname=t%u user=baton", c->directory, number);
	cluster_run(where, "DO $$ DECLARE t text; BEGIN "
	                   "IF to_regclass('baton.state') IS NULL THEN RETURN; END IF; "
	                   "FOR t IN SELECT c.relname FROM pg_class c WHERE c.relkind = 'r' AND "
	                   "c.relnamespace = 'baton'::regnamespace AND c.relname <> 'state' LOOP "
	                   "IF pg_relation_size('baton.' || t) > 1000000 "
	                   "THEN EXECUTE 'TRUNCATE baton.' || t || ' CASCADE'; "
	                   "ELSE EXECUTE 'DELETE FROM baton.' || t; END IF; END LOOP; "
	                   "PERFORM setval(pg_get_serial_sequence('baton.queue', 'id'), 1, false); "
	                   "PERFORM setval('baton.seq', 1, false); "
	                   "UPDATE baton.state SET runner = 0; END $$");
}

void cluster_drop(struct cluster *c, const char *where)
{
	unsigned number = 0;
	const char *name = strstr(where, "dbname=t");
	if (name && sscanf(name, "dbname=t%u", &number) == 1 && c->free_count < CLUSTER_FREE)
		c->free[c->free_count++] = number;
}

static void restart(struct cluster *c, char how)
{
	if (write(c->channel, &how, 1) != 1 || !await_word(c) || !is_up(c, ""))
		die("cluster", "the server did not come back");
}

void cluster_crash(struct cluster *c)
{
	restart(c, 'c');
}

void cluster_standby(struct cluster *c)
{
	restart(c, 's');
}
