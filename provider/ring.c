// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * softrnic provider: mapping of queues. The kernel says where they are; what
 * it says is checked, so that a mismatch is an error here and not a fault
 * later.
 */
#include <errno.h>
#include <sys/mman.h>

#include "ring.h"

static int map_ring(struct srn_ring *ring, int fd,
		    const struct srn_ring_info *info, uint32_t limit,
		    size_t min_stride)
{
	uint64_t need = SRN_RING_ENTRIES + (uint64_t)info->count * info->stride;
	void *map;

	if (!info->count || (info->count & (info->count - 1)) ||
	    info->stride < min_stride || info->mmap_len < need)
		return EPROTO;

	map = mmap(NULL, info->mmap_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   info->mmap_off);
	if (map == MAP_FAILED)
		return errno;

	ring->ctl = map;
	ring->count = info->count;
	ring->stride = info->stride;
	ring->limit = limit < info->count ? limit : info->count;
	ring->bytes = info->mmap_len;
	return 0;
}

/*
 * The indices start where the mapping says: a ring that replaces another goes
 * on with its numbers.
 */
int srn_ring_map_producer(struct srn_ring *ring, int fd,
			  const struct srn_ring_info *info, uint32_t limit,
			  size_t min_stride)
{
	int ret = map_ring(ring, fd, info, limit, min_stride);

	if (ret)
		return ret;
	ring->idx = __atomic_load_n(&ring->ctl->prod, __ATOMIC_RELAXED);
	ring->seen = __atomic_load_n(&ring->ctl->cons, __ATOMIC_ACQUIRE);
	return 0;
}

int srn_ring_map_consumer(struct srn_ring *ring, int fd,
			  const struct srn_ring_info *info, size_t min_stride)
{
	int ret = map_ring(ring, fd, info, info->count, min_stride);

	if (ret)
		return ret;
	ring->idx = __atomic_load_n(&ring->ctl->cons, __ATOMIC_RELAXED);
	ring->seen = ring->idx;
	return 0;
}

void srn_ring_unmap(struct srn_ring *ring)
{
	if (!ring->ctl)
		return;
	munmap(ring->ctl, ring->bytes);
	ring->ctl = NULL;
}
