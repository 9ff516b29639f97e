/* Folders that tests make and remove. */
#ifndef GUARDIAN_SCRATCH_H
#define GUARDIAN_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static int scratch_remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

/* Removes the folder with all that is in it. Returns 0, or something else if that did not work. */
static inline int scratch_remove(const char *folder)
{
	return nftw(folder, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
