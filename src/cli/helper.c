/* Where the guardian's helper is. */
#include "helper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define HELPER "baton-guardian"

const char *helper_beside(char path[PATH_MAX])
{
	/* From bin of what is installed, and from where the program is built. */
	static const char *const places[] = {"../libexec/" HELPER, "../guardian/" HELPER};
	char program[PATH_MAX];
	/* Who runs with more rights than its caller has does not look where the caller put it. */
	if (getauxval(AT_SECURE) != 0 || getenv("BATON_GUARDIAN"))
		return NULL;
	ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
	if (len <= 0)
		return NULL;
	program[len] = '\0';
	*strrchr(program, '/') = '\0';
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		int room = snprintf(path, PATH_MAX, "%s/%s", program, places[i]);
		if (room < PATH_MAX && access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}
