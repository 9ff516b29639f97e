/* The program baton-guardian, which the library starts beside a runner. Nobody else has a use for
 * it. */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "guardian/warden.h"

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--beside-runner") == 0)
		/* At once: all that it had is the kernel's to take back, and whoever still has a
		 * thread or a process of a library at work at the end may wait for what it has
		 * killed. */
		_exit(warden_live());
	fputs("baton-guardian: this program is started by runners, and does nothing by itself\n",
	      stderr);
	return EX_USAGE;
}
