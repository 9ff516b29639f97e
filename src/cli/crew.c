/* The processes of the demo. */
#include "crew.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "out.h"
#include "witness.h"

#define NAME_ROOM 64
#define LINE_VARIABLE "BATON_DEMO_LINE"

const char *const crew_names[CREW_RUNNERS] = {"ada", "ben", "cleo"};

/* What is executed for each job: it tells the witness that it begins, is busy until the witness
 * answers, and sends the effect of its work down its runner's line. It has done its job when the
 * witness says so. */
static const char handler[] =
	"read -r job\n"
	"exec 3< " WITNESS_ANSWERS "/$BATON_LANE\n"
	"answer() {\n"
	"	while read -r pid status <&3; do [ $pid != $$ ] || return $status; done\n"
	"	return 75\n"
	"}\n"
	"echo begin $BATON_LANE $job $BATON_FENCE $$ > " WITNESS_INBOX "\n"
	"answer || exit\n"
	"echo effect $BATON_LANE $job $BATON_FENCE $$ > $" LINE_VARIABLE "\n"
	"answer\n";

void crew_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void crew_follow(pid_t parent, int signal)
{
	prctl(PR_SET_PDEATHSIG, signal);
	if (getppid() != parent)
		raise(signal);
}

static const char *line_name(size_t runner, char name[NAME_ROOM])
{
	snprintf(name, NAME_ROOM, "line.%s", crew_names[runner]);
	return name;
}

static const char *log_name(size_t runner, char name[NAME_ROOM])
{
	snprintf(name, NAME_ROOM, "log.%s", crew_names[runner]);
	return name;
}

/* A process that dies with this one, and that the terminal does not signal. 0: this is it. */
static pid_t part(void)
{
	static const int heard[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	pid_t parent = getpid();
	pid_t child = fork();
	if (child != 0)
		return child;
	for (size_t i = 0; i < sizeof heard / sizeof heard[0]; i++)
		signal(heard[i], SIG_DFL);
	setpgid(0, 0);
	crew_follow(parent, SIGKILL);
	return 0;
}

static int no_process(void)
{
	complain("no process for the demo: %s", strerror(errno));
	return EX_OSERR;
}

static int gather_line(struct crew *crew, size_t runner)
{
	char name[NAME_ROOM];
	if (mkfifo(line_name(runner, name), 0600) != 0)
		return no_process();
	pid_t child = part();
	if (child < 0)
		return no_process();
	if (child == 0) {
		close(crew->socket);
		witness_line(name);
		_exit(CREW_LACKS);
	}
	crew->lines[runner] = child;
	return EX_OK;
}

int crew_gather(struct crew *crew)
{
	int ends[2];
	ssize_t len = readlink("/proc/self/exe", crew->program, sizeof crew->program - 1);
	if (len < 0 || !witness_prepare() ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return no_process();
	crew->program[len] = '\0';
	crew->socket = ends[0];
	pid_t child = part();
	if (child == 0) {
		close(ends[0]);
		witness_be(ends[1]);
		_exit(CREW_LACKS);
	}
	close(ends[1]);
	if (child < 0)
		return no_process();
	crew->witness = child;
	int status = EX_OK;
	for (size_t i = 0; status == EX_OK && i < CREW_RUNNERS; i++)
		status = gather_line(crew, i);
	return status;
}

/* Becomes the runner. There may be threads in the process that this is a copy of, so it calls only
 * what a signal handler may. */
static void become(const char *program, char *const *argv, const char *log)
{
	int nothing = open("/dev/null", O_RDONLY);
	int said = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (dup2(nothing, STDIN_FILENO) < 0 || dup2(said, STDOUT_FILENO) < 0 ||
	    dup2(said, STDERR_FILENO) < 0)
		return;
	close(nothing);
	close(said);
	execv(program, argv);
}

int crew_hire(struct crew *crew, size_t runner)
{
	char line[NAME_ROOM], log[NAME_ROOM];
	const char *const argv[] = {
		crew->program, "work", CREW_QUEUE, "--name", crew_names[runner], "-j", "50",
		"--ttl",       "3s",   "--beat",   "500ms",  "--margin",         "1s", "--",
		"sh",          "-c",   handler,    NULL,
	};
	setenv(LINE_VARIABLE, line_name(runner, line), 1);
	log_name(runner, log);
	pid_t child = part();
	if (child < 0)
		return no_process();
	if (child == 0) {
		become(crew->program, (char *const *)argv, log);
		_exit(CREW_LACKS);
	}
	crew->runners[runner] = child;
	return EX_OK;
}

void crew_kill(struct crew *crew, size_t runner)
{
	if (crew->runners[runner] > 0)
		kill(crew->runners[runner], SIGKILL);
	crew->runners[runner] = 0;
}

static void signal_both(const struct crew *crew, size_t runner, int number)
{
	if (crew->runners[runner] > 0)
		kill(crew->runners[runner], number);
	if (crew->lines[runner] > 0)
		kill(crew->lines[runner], number);
}

void crew_freeze(const struct crew *crew, size_t runner)
{
	siginfo_t info;
	id_t id = (id_t)crew->runners[runner];
	signal_both(crew, runner, SIGSTOP);
	/* What it finds, an end too, is left for others to find. */
	while (waitid(P_PID, id, &info, WSTOPPED | WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
}

void crew_thaw(const struct crew *crew, size_t runner)
{
	signal_both(crew, runner, SIGCONT);
}

/* The last line that the runner has written, which may be cut. */
static void last_words(size_t runner, char *text, size_t room)
{
	char name[NAME_ROOM];
	FILE *log = fopen(log_name(runner, name), "re");
	while (log && fgets(text, (int)room, log))
		;
	if (log)
		fclose(log);
	text[strcspn(text, "\n")] = '\0';
}

/* Whether that process is missed, and if so what its end is like. */
static bool is_missed(const struct crew *crew, pid_t pid, char *text, size_t room)
{
	for (size_t i = 0; i < CREW_RUNNERS; i++) {
		if (pid != crew->runners[i] && pid != crew->lines[i])
			continue;
		size_t used = (size_t)snprintf(text, room, "%s has ended: ", crew_names[i]);
		if (pid == crew->runners[i])
			last_words(i, text + used, room - used);
		return true;
	}
	snprintf(text, room, "the witness has ended");
	return pid == crew->witness;
}

bool crew_missed(const struct crew *crew, char *text, size_t room)
{
	pid_t pid;
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		if (is_missed(crew, pid, text, room))
			return true;
	}
	return false;
}

static void end(pid_t *pid)
{
	if (*pid > 0)
		kill(*pid, SIGKILL);
	*pid = 0;
}

void crew_end(struct crew *crew)
{
	for (size_t i = 0; i < CREW_RUNNERS; i++) {
		end(&crew->runners[i]);
		end(&crew->lines[i]);
	}
	end(&crew->witness);
	if (crew->socket >= 0)
		close(crew->socket);
	crew->socket = -1;
}

void crew_await(void)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}
