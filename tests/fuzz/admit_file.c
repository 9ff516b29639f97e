/* Whatever stands in a file of admitted fences, it is refused, or keeps its promise: what was
 * admitted stays admitted, and nobody lower is. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <baton/admit.h>

#include "base/hash.h"
#include "contest/ledger_slot.h"
#include "fuzz/fuzz.h"

#define SUBJECTS 32
#define SLOTS 64
#define HEADER_BYTES 48
#define COUNT_OFFSET 512
#define COUNT_BYTES 24
#define SLOTS_OFFSET 4096
#define FILE_BYTES (SLOTS_OFFSET + SLOTS * sizeof(struct ledger_slot))

static char folder[] = "/dev/shm/baton-fuzz-XXXXXX";
static char path[sizeof folder + 8];
static const struct baton_id seed = {{7}};

static void clean_up(void)
{
	unlink(path);
	rmdir(folder);
}

static void set_up(void)
{
	if (path[0] != '\0')
		return;
	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/file", folder);
	atexit(clean_up);
}

/* Makes the hashes of the header and of the count fit what stands before them. */
static void seal(unsigned char *image)
{
	struct baton_id key;
	uint64_t check = 0;
	memcpy(&key, image + 24, sizeof key);
	check = hash_bytes(&key, image, HEADER_BYTES - 8);
	memcpy(image + HEADER_BYTES - 8, &check, 8);
	check = hash_bytes(&key, image + COUNT_OFFSET, COUNT_BYTES - 8);
	memcpy(image + COUNT_OFFSET + COUNT_BYTES - 8, &check, 8);
}

/* A file in which "s" was admitted with 5. Returns where its slot is. */
static size_t image_make(unsigned char *image)
{
	const uint32_t numbers[] = {1, SUBJECTS, SLOTS};
	struct ledger_slot slot = {.subject = hash_id(&seed, "s", 1)};
	uint64_t count[] = {1, 0};
	memcpy(&count[1], slot.subject.bytes, 8);
	count[1] %= SLOTS;
	struct slot_place at = {.seed = &seed, .index = count[1]};
	slot.copies[0] = slot_copy_make(at, &slot.subject, 5, false);
	slot.copies[1] = slot_copy_make(at, &slot.subject, 5, true);
	memset(image, 0, FILE_BYTES);
	memcpy(image, "BATONADM", 8);
	memcpy(image + 8, numbers, sizeof numbers);
	memcpy(image + 24, &seed, sizeof seed);
	memcpy(image + COUNT_OFFSET, count, sizeof count);
	seal(image);
	memcpy(image + SLOTS_OFFSET + count[1] * sizeof slot, &slot, sizeof slot);
	return SLOTS_OFFSET + count[1] * sizeof slot;
}

/* Makes the hashes of the slot fit its marks, whatever they are. */
static void slot_seal(unsigned char *image, size_t offset)
{
	struct ledger_slot slot;
	struct slot_place at = {.seed = &seed, .index = (offset - SLOTS_OFFSET) / sizeof slot};
	memcpy(&slot, image + offset, sizeof slot);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t mark = slot.copies[i].mark;
		slot.copies[i] = slot_copy_make(at, &slot.subject, mark << 1 >> 1, mark >> 63);
	}
	memcpy(image + offset, &slot, sizeof slot);
}

/* Each five bytes of the input change one byte: where it lies, and what it is. */
static void image_change(unsigned char *image, size_t slot, const uint8_t *data, size_t size)
{
	for (; size >= 5; data += 5, size -= 5) {
		size_t offset = (size_t)data[1] | (size_t)data[2] << 8;
		switch (data[0] % 6) {
		case 0:
			image[offset % HEADER_BYTES] = data[3];
			break;
		case 1:
			image[COUNT_OFFSET + offset % COUNT_BYTES] = data[3];
			break;
		case 2:
			image[slot + offset % sizeof(struct ledger_slot)] = data[3];
			break;
		case 3:
			image[offset % FILE_BYTES] = data[3];
			break;
		case 4:
			seal(image);
			break;
		case 5:
			slot_seal(image, slot);
			break;
		}
	}
}

static void file_write(const unsigned char *image)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK(pwrite(fd, image, FILE_BYTES, 0) == (ssize_t)FILE_BYTES);
	close(fd);
}

static void use(struct baton_admit *a, struct baton_str subject, uint64_t fence)
{
	baton_fence highest = {0};
	enum baton_err e = baton_admit(a, subject, (baton_fence){fence}, &highest);
	CHECK(e == BATON_OK || e == BATON_STALE || e == BATON_INVALID || e == BATON_FULL);
	if (e == BATON_STALE) {
		CHECK(highest.v > fence && highest.v <= SLOT_FENCE_MAX);
		fence = highest.v;
	}
	if (e == BATON_INVALID || e == BATON_FULL)
		return;
	CHECK(baton_admit(a, subject, (baton_fence){fence}, NULL) == BATON_OK);
	CHECK(baton_admit(a, subject, (baton_fence){fence - 1}, &highest) ==
	      (fence == 1 ? BATON_INVALID : BATON_STALE));
	CHECK(fence == 1 || highest.v == fence);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char image[FILE_BYTES];
	struct baton_admit *a = NULL;
	struct stat st;
	set_up();
	size_t slot = image_make(image);
	image_change(image, slot, data, size);
	file_write(image);
	const struct baton_admit_options options = {.path = path};
	enum baton_err e = baton_admit_open(&options, &a);
	CHECK(e == BATON_OK || e == BATON_INVALID);
	if (size < 5)
		CHECK(e == BATON_OK);
	if (e == BATON_OK) {
		use(a, BATON_STR("s"), 4);
		use(a, BATON_STR("another"), 1);
		use(a, BATON_STR("s"), SLOT_FENCE_MAX);
	}
	baton_admit_close(a);
	CHECK(stat(path, &st) == 0 && st.st_size == (off_t)FILE_BYTES);
	return 0;
}
