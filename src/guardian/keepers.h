/* The processes that have a file open, as /proc shows them. */
#ifndef GUARDIAN_KEEPERS_H
#define GUARDIAN_KEEPERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Writes down who has it open, this process left out, and returns how many are written down.
 * Whoever may not be looked at is not found. */
size_t keepers_find(const struct stat *file, int32_t *pids, size_t max);

/* Kills whoever can write to the pipe of which `fd` is the end to read, except this process, those
 * who can read it too, which are copies of this process, and those of the process group `spared`;
 * 0: no such group. Each is held by a pidfd before a last look at what it has. Who forks meanwhile
 * may escape: it is called again until the other end tells that nobody is left. Where /proc is that
 * of another pid namespace nobody is killed. */
void keepers_kill(int fd, int32_t spared);

#endif
