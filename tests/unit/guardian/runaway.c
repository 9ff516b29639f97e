/* A command that is never the same process for long: each forks its successor and ends. With an
 * argument each is in a session of its own. */
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	(void)argv;
	signal(SIGTERM, SIG_IGN);
	for (;;) {
		pid_t pid = fork();
		if (pid > 0)
			_exit(0);
		if (pid == 0 && argc > 1)
			setsid();
	}
}
