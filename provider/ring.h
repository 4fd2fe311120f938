/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The user's end of a shared queue: one mapping, two free-running indices.
 *
 * The caller holds the queue's lock. The other end is the kernel, on another
 * CPU: what orders us against it is written here and nowhere else.
 */
#ifndef SOFTRNIC_RING_H
#define SOFTRNIC_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softrnic-abi.h"

/**
 * struct srn_ring - one mapped queue
 * @ctl: the mapping, NULL when there is no such queue
 * @count: entries, a power of two
 * @stride: bytes of an entry
 * @limit: entries that may be in use at once; what was granted, at most @count
 * @idx: the index we own: prod of SQ, RQ and SRQ, cons of a CQ. Not yet
 *       published while a batch is being built
 * @seen: last value read of the index the kernel owns
 * @bytes: length of the mapping
 */
struct srn_ring {
	struct srn_ring_ctl *ctl;
	uint32_t count;
	uint32_t stride;
	uint32_t limit;
	uint32_t idx;
	uint32_t seen;
	size_t bytes;
};

static inline void *srn_ring_entry(const struct srn_ring *ring, uint32_t index)
{
	return (uint8_t *)ring->ctl + SRN_RING_ENTRIES +
	       (size_t)(index & (ring->count - 1)) * ring->stride;
}

/*
 * Producer: is there no room for the entry at idx? The kernel's index is read
 * only when the last value seen leaves none, to keep off its cache line.
 * Acquire: the kernel has read an entry before it gives it back.
 */
static inline bool srn_ring_full(struct srn_ring *ring)
{
	if (ring->idx - ring->seen < ring->limit)
		return false;
	if (!ring->ctl)
		return true;
	ring->seen = __atomic_load_n(&ring->ctl->cons, __ATOMIC_ACQUIRE);
	return ring->idx - ring->seen >= ring->limit;
}

/* Producer: hand everything before idx to the kernel. */
static inline void srn_ring_publish_prod(struct srn_ring *ring)
{
	__atomic_store_n(&ring->ctl->prod, ring->idx, __ATOMIC_RELEASE);
}

/*
 * Producer, after publishing: the kernel's advice. The full barrier pairs with
 * the one between the kernel's clearing of a flag and its last look at prod:
 * either it sees our entries or we see the flag clear.
 */
static inline uint32_t srn_ring_kflags(const struct srn_ring *ring)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&ring->ctl->kflags, __ATOMIC_RELAXED);
}

/*
 * Consumer: entries that may be read from idx on. More than the ring holds
 * means that the device is gone and the page is no longer ours.
 */
static inline uint32_t srn_ring_avail(struct srn_ring *ring)
{
	uint32_t prod = __atomic_load_n(&ring->ctl->prod, __ATOMIC_ACQUIRE);

	if (prod - ring->idx > ring->count)
		return 0;
	ring->seen = prod;
	return prod - ring->idx;
}

/* Consumer: give everything before idx back to the kernel. */
static inline void srn_ring_publish_cons(struct srn_ring *ring)
{
	__atomic_store_n(&ring->ctl->cons, ring->idx, __ATOMIC_RELEASE);
}

/* ring.c */
/**
 * srn_ring_map_producer() - map a queue that the user produces into
 * @fd: command fd of the context
 * @info: the queue, as the kernel described it
 * @limit: entries granted; the ring may be larger
 * @min_stride: bytes of the largest entry that will be written
 *
 * Return: 0, or an errno with nothing mapped.
 */
int srn_ring_map_producer(struct srn_ring *ring, int fd,
			  const struct srn_ring_info *info, uint32_t limit,
			  size_t min_stride);
/** srn_ring_map_consumer() - the same for a queue that the user consumes from. */
int srn_ring_map_consumer(struct srn_ring *ring, int fd,
			  const struct srn_ring_info *info, size_t min_stride);
/** srn_ring_unmap() - nothing when there is no mapping. */
void srn_ring_unmap(struct srn_ring *ring);

#endif /* SOFTRNIC_RING_H */
