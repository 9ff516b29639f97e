/* What the kernel tells about processes. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <baton/id.h>
#include <baton/str.h>

/* Each returns false when the kernel does not tell, with errno set and *ret untouched, and leaves
 * the error detail alone. Any thread. */

/* The id of this boot. */
bool process_boot(struct baton_id *ret);

/* The inode of the pid namespace in which this process counts pids. */
bool process_pid_ns(uint64_t *ret);

/* When this process started, in clock ticks since boot; 0 when the times that it reads are not
 * those that others read. */
bool process_start(uint64_t *ret);

/* A descriptor of the process `pid`; ESRCH: there is none. The caller closes it. */
bool process_open(int32_t pid, int *ret_pidfd);

/* Whether the process has ended, all of its threads, reaped or not. */
bool process_has_ended(int pidfd);

/* The pid under which the process stands in /proc, which may count in another pid namespace than
 * this process does. */
bool process_shown(int pidfd, int32_t *ret);

/* When the process started, as process_start(). False too while no comparison would be fair. */
bool process_start_of(int pidfd, uint64_t *ret);

/* Whether the thread has something to do and is not stopped; false too when nobody can tell. */
bool process_is_runnable(int32_t tid);

/* Whether the process is stopped by a signal or a debugger; false too when nobody can tell. */
bool process_is_stopped(int32_t pid);

/* Which process has that byte of the file locked for writing; a number of this pid namespace. The
 * file is not opened: who closes it would lose what he has locked himself. */
bool process_of_lock(const char *path, int64_t at, int32_t *ret);

/* The process that has a lock for writing of that byte of the file, in a line of /proc/locks. */
struct process_lock {
	uint64_t device, inode, at;
};
bool process_parse_lock(const char *line, const struct process_lock *lock, int32_t *ret);

/* The start time in a line of /proc/PID/stat. */
bool process_parse_start(struct baton_str stat, uint64_t *ret);

/* Whether a text of /proc/PID/timens_offsets says that times since boot are shown as they are. */
bool process_parse_unshifted(struct baton_str offsets);

/* The pid in a text of /proc/PID/fdinfo/PIDFD; false when the process is gone or out of sight. */
bool process_parse_pid(struct baton_str fdinfo, int32_t *ret);

#endif
