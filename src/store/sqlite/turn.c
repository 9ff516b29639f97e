/* Whose turn it is to write. */
#include "store/sqlite/turn.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <baton/store.h>

#define PAUSE_US 100
#define PATIENCE_US 50000 /* with somebody in the door who may be stopped */

enum byte {
	BYTE_DOOR,
	BYTE_RENEWERS
};

static struct flock lock_of(enum byte byte, short type)
{
	return (struct flock){.l_type = type,
	                      .l_whence = SEEK_SET,
	                      .l_start = (off_t)byte,
	                      .l_len = 1};
}

void turn_open(struct turn *t, const char *path)
{
	char name[BATON_STORE_PATH_MAX + 8];
	snprintf(name, sizeof name, "%s-turn", path);
	*t = (struct turn){.fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)};
}

void turn_close(struct turn *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

static bool set(const struct turn *t, enum byte byte, short type)
{
	struct flock lock = lock_of(byte, type);
	return fcntl(t->fd, F_OFD_SETLK, &lock) == 0;
}

static bool somebody_renews(const struct turn *t)
{
	struct flock lock = lock_of(BYTE_RENEWERS, F_WRLCK);
	return fcntl(t->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static bool may_stand(struct turn *t)
{
	return (t->renews || !somebody_renews(t)) && set(t, BYTE_DOOR, F_WRLCK);
}

void turn_wait(struct turn *t, bool renews)
{
	if (t->fd < 0)
		return;
	t->renews = renews && set(t, BYTE_RENEWERS, F_RDLCK);
	for (int waited = 0; !(t->stands = may_stand(t)) && waited < PATIENCE_US;
	     waited += PAUSE_US)
		usleep(PAUSE_US);
}

void turn_pass(struct turn *t)
{
	if (t->stands)
		set(t, BYTE_DOOR, F_UNLCK);
	if (t->renews)
		set(t, BYTE_RENEWERS, F_UNLCK);
	t->stands = t->renews = false;
}
