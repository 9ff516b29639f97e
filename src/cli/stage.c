/* The folder of its own in which the demo is played. */
#include "stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "out.h"

#define FOLDER "/baton-demo-XXXXXX"

int stage_make(char path[PATH_MAX])
{
	const char *set = getenv("TMPDIR");
	const char *base = set && set[0] != '\0' ? set : "/tmp";
	if (!realpath(base, path) || strlen(path) + sizeof FOLDER > PATH_MAX) {
		complain("there is no folder '%s' for temporary files; TMPDIR names another one",
		         base);
		return EX_CANTCREAT;
	}
	memcpy(path + strlen(path), FOLDER, sizeof FOLDER);
	if (mkdtemp(path))
		return EX_OK;
	complain("cannot make a folder in '%s': %s; TMPDIR names another place", base,
	         strerror(errno));
	return EX_CANTCREAT;
}

/* Removes what is in the folder, and in its folders, which have none. */
static void clear(int folder, int depth)
{
	DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
	const struct dirent *entry;
	if (!dir)
		return;
	/* cppcheck-suppress readdirCalled */
	while ((entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    unlinkat(folder, name, 0) == 0 || depth == 0)
			continue;
		clear(openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), 0);
		unlinkat(folder, name, AT_REMOVEDIR);
	}
	closedir(dir);
}

void stage_remove(const char *path)
{
	clear(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), 1);
	rmdir(path);
}
