/* A disk that may lose what was not synced. */
#include "disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#define FILES_MAX 8
#define NAME_MAX_BYTES 200

/* A write, or a truncation to `offset` when there are no bytes. */
struct change {
	struct change *next;
	int64_t offset;
	size_t len;
	uint8_t bytes[];
};

struct kept {
	char suffix[32]; /* of the name, after the watched path */
	bool there;
	uint8_t *synced;
	size_t size;
	struct change *first, **last; /* since the last sync */
};

struct picture {
	struct kept files[FILES_MAX];
	size_t count;
};

struct handle {
	sqlite3_file base;
	struct kept *kept; /* NULL: not watched */
	sqlite3_file *real;
};

static sqlite3_vfs *real_vfs;
static const char *watched;
static struct picture live, taken;
static unsigned armed;
static bool fired;
static unsigned breaks; /* how many calls it takes until one fails; 0: none will */
static bool broken;

static void need(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	abort();
}

static void kept_clear(struct kept *k)
{
	while (k->first) {
		struct change *c = k->first;
		k->first = c->next;
		free(c);
	}
	k->last = &k->first;
}

static void picture_clear(struct picture *p)
{
	for (size_t i = 0; i < p->count; i++) {
		kept_clear(&p->files[i]);
		free(p->files[i].synced);
	}
	p->count = 0;
}

static void change_add(struct kept *k, int64_t offset, const void *bytes, size_t len)
{
	struct change *c = calloc(1, sizeof *c + len);
	need(c, "calloc");
	c->offset = offset;
	c->len = len;
	if (len > 0)
		memcpy(c->bytes, bytes, len);
	*k->last = c;
	k->last = &c->next;
}

static void resize(struct kept *k, size_t size)
{
	k->synced = realloc(k->synced, size + 1);
	need(k->synced, "realloc");
	if (size > k->size)
		memset(k->synced + k->size, 0, size - k->size);
	k->size = size;
}

/* As if the first `len` bytes of it had been written. */
static void apply(struct kept *k, const struct change *c, size_t len)
{
	size_t offset = (size_t)c->offset;
	if (c->len == 0) {
		resize(k, offset < k->size ? offset : k->size);
		return;
	}
	if (offset + len > k->size)
		resize(k, offset + len);
	memcpy(k->synced + offset, c->bytes, len);
}

static void kept_sync(struct kept *k)
{
	for (const struct change *c = k->first; c; c = c->next)
		apply(k, c, c->len);
	kept_clear(k);
}

static void kept_copy(const struct kept *from, struct kept *to)
{
	*to = (struct kept){.there = from->there, .last = &to->first};
	memcpy(to->suffix, from->suffix, sizeof to->suffix);
	resize(to, from->size);
	if (from->size > 0)
		memcpy(to->synced, from->synced, from->size);
	for (const struct change *c = from->first; c; c = c->next)
		change_add(to, c->offset, c->bytes, c->len);
}

static void picture_copy(const struct picture *from, struct picture *to)
{
	picture_clear(to);
	for (size_t i = 0; i < from->count; i++)
		kept_copy(&from->files[i], &to->files[i]);
	to->count = from->count;
}

static struct kept *find(const char *name)
{
	size_t len = watched ? strlen(watched) : 0;
	if (!name || len == 0 || strncmp(name, watched, len) != 0)
		return NULL;
	for (size_t i = 0; i < live.count; i++) {
		if (strcmp(live.files[i].suffix, name + len) == 0)
			return &live.files[i];
	}
	need(live.count < FILES_MAX, "too many files");
	struct kept *k = &live.files[live.count++];
	*k = (struct kept){.last = &k->first};
	snprintf(k->suffix, sizeof k->suffix, "%s", name + len);
	return k;
}

static void event(void)
{
	if (armed == 0 || --armed > 0)
		return;
	picture_copy(&live, &taken);
	fired = true;
}

/* Whether this call is the one that fails. */
static bool is_refused(const struct kept *k)
{
	if (!k || breaks == 0 || --breaks > 0)
		return false;
	broken = true;
	return true;
}

static struct handle *of(sqlite3_file *file)
{
	return (struct handle *)(void *)file;
}

static int on_close(sqlite3_file *file)
{
	struct handle *h = of(file);
	return h->real->pMethods ? h->real->pMethods->xClose(h->real) : SQLITE_OK;
}

static int on_read(sqlite3_file *file, void *to, int len, sqlite3_int64 offset)
{
	struct handle *h = of(file);
	if (is_refused(h->kept))
		return SQLITE_IOERR_READ;
	return h->real->pMethods->xRead(h->real, to, len, offset);
}

static int on_write(sqlite3_file *file, const void *from, int len, sqlite3_int64 offset)
{
	struct handle *h = of(file);
	if (is_refused(h->kept))
		return SQLITE_IOERR_WRITE;
	if (h->kept)
		event();
	int code = h->real->pMethods->xWrite(h->real, from, len, offset);
	if (code == SQLITE_OK && h->kept)
		change_add(h->kept, offset, from, (size_t)len);
	return code;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	struct handle *h = of(file);
	if (is_refused(h->kept))
		return SQLITE_IOERR_TRUNCATE;
	if (h->kept)
		event();
	int code = h->real->pMethods->xTruncate(h->real, size);
	if (code == SQLITE_OK && h->kept)
		change_add(h->kept, size, NULL, 0);
	return code;
}

static int on_sync(sqlite3_file *file, int flags)
{
	struct handle *h = of(file);
	if (is_refused(h->kept))
		return SQLITE_IOERR_FSYNC;
	if (h->kept)
		event();
	int code = h->real->pMethods->xSync(h->real, flags);
	if (code == SQLITE_OK && h->kept)
		kept_sync(h->kept);
	return code;
}

static int on_size(sqlite3_file *file, sqlite3_int64 *size)
{
	if (is_refused(of(file)->kept))
		return SQLITE_IOERR_FSTAT;
	return of(file)->real->pMethods->xFileSize(of(file)->real, size);
}

static int on_lock(sqlite3_file *file, int lock)
{
	return of(file)->real->pMethods->xLock(of(file)->real, lock);
}

static int on_unlock(sqlite3_file *file, int lock)
{
	return of(file)->real->pMethods->xUnlock(of(file)->real, lock);
}

static int on_check_lock(sqlite3_file *file, int *out)
{
	return of(file)->real->pMethods->xCheckReservedLock(of(file)->real, out);
}

static int on_control(sqlite3_file *file, int op, void *arg)
{
	return of(file)->real->pMethods->xFileControl(of(file)->real, op, arg);
}

static int on_sector(sqlite3_file *file)
{
	return of(file)->real->pMethods->xSectorSize(of(file)->real);
}

static int on_device(sqlite3_file *file)
{
	return of(file)->real->pMethods->xDeviceCharacteristics(of(file)->real);
}

static int on_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret)
{
	if (is_refused(of(file)->kept))
		return SQLITE_IOERR_SHMMAP;
	return of(file)->real->pMethods->xShmMap(of(file)->real, region, size, extend, ret);
}

static int on_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
	return of(file)->real->pMethods->xShmLock(of(file)->real, offset, n, flags);
}

static void on_shm_barrier(sqlite3_file *file)
{
	of(file)->real->pMethods->xShmBarrier(of(file)->real);
}

static int on_shm_unmap(sqlite3_file *file, int delete)
{
	return of(file)->real->pMethods->xShmUnmap(of(file)->real, delete);
}

/* Without the last version's mapping of files, which would pass us by. */
static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = on_close,
	.xRead = on_read,
	.xWrite = on_write,
	.xTruncate = on_truncate,
	.xSync = on_sync,
	.xFileSize = on_size,
	.xLock = on_lock,
	.xUnlock = on_unlock,
	.xCheckReservedLock = on_check_lock,
	.xFileControl = on_control,
	.xSectorSize = on_sector,
	.xDeviceCharacteristics = on_device,
	.xShmMap = on_shm_map,
	.xShmLock = on_shm_lock,
	.xShmBarrier = on_shm_barrier,
	.xShmUnmap = on_shm_unmap,
};

static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret)
{
	(void)vfs;
	struct handle *h = of(file);
	h->base.pMethods = NULL;
	h->real = (sqlite3_file *)(void *)(h + 1);
	int code = real_vfs->xOpen(real_vfs, name, h->real, flags, ret);
	if (!h->real->pMethods)
		return code;
	h->base.pMethods = &methods;
	h->kept = find(name);
	if (h->kept)
		h->kept->there = true;
	return code;
}

static int on_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	struct kept *k = find(name);
	if (k)
		event();
	int code = real_vfs->xDelete(real_vfs, name, sync);
	if (code == SQLITE_OK && k) {
		k->there = false;
		kept_clear(k);
		resize(k, 0);
	}
	return code;
}

void disk_watch(const char *path)
{
	static sqlite3_vfs vfs;
	if (!real_vfs) {
		real_vfs = sqlite3_vfs_find(NULL);
		vfs = *real_vfs;
		vfs.pNext = NULL;
		vfs.zName = "disk";
		vfs.szOsFile = (int)sizeof(struct handle) + real_vfs->szOsFile;
		vfs.xOpen = on_open;
		vfs.xDelete = on_delete;
		need(sqlite3_vfs_register(&vfs, 1) == SQLITE_OK, "sqlite3_vfs_register");
	}
	watched = path;
	picture_clear(&live);
	picture_clear(&taken);
	armed = 0;
	fired = false;
	breaks = 0;
	broken = false;
}

void disk_break(unsigned n)
{
	breaks = n;
	broken = false;
}

bool disk_broke(void)
{
	return broken;
}

void disk_arm(unsigned n)
{
	armed = n;
	fired = false;
}

bool disk_fired(void)
{
	return fired;
}

/* How much of the change is there after the failure. */
static size_t part_of(const struct change *c, enum disk_fate fate, struct rng *rng)
{
	switch (fate) {
	case DISK_LOST:
		return 0;
	case DISK_KEPT:
		return c->len;
	case DISK_SOME:
		return rng_below(rng, 2) ? c->len : 0;
	case DISK_TORN:
		return rng_below(rng, c->len + 1);
	}
	return 0;
}

static void fail_power(struct kept *k, enum disk_fate fate, struct rng *rng)
{
	size_t count = 0, torn = 0;
	for (const struct change *c = k->first; c; c = c->next)
		count++;
	if (fate == DISK_TORN && count > 0)
		torn = rng_below(rng, count);
	for (const struct change *c = k->first; c; c = c->next, count--) {
		enum disk_fate own = fate == DISK_TORN && count - 1 != torn ? DISK_SOME : fate;
		size_t part = part_of(c, own, rng);
		if (c->len == 0 ? own == DISK_KEPT || (own != DISK_LOST && rng_below(rng, 2))
		                : part > 0)
			apply(k, c, part);
	}
}

static void write_out(const struct kept *k, const char *to)
{
	char name[NAME_MAX_BYTES];
	snprintf(name, sizeof name, "%s%s", to, k->suffix);
	unlink(name);
	if (!k->there)
		return;
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	need(fd >= 0, name);
	need(k->size == 0 || write(fd, k->synced, k->size) == (ssize_t)k->size, "write");
	close(fd);
}

void disk_image(bool picture, enum disk_fate fate, struct rng *rng, const char *to)
{
	static const char *const index[] = {"-shm", "-turn"};
	struct picture image = {.count = 0};
	char name[NAME_MAX_BYTES];
	for (size_t i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "%s%s", to, index[i]);
		unlink(name);
	}
	picture_copy(picture ? &taken : &live, &image);
	for (size_t i = 0; i < image.count; i++) {
		fail_power(&image.files[i], fate, rng);
		write_out(&image.files[i], to);
	}
	picture_clear(&image);
}
