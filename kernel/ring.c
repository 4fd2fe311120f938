// SPDX-License-Identifier: GPL-2.0
/*
 * Queue memory: a control block and a power of two of entries.
 *
 * The queue of a user context is mapped by an mmap entry, which owns the
 * memory; the queue of a kernel consumer is plain kernel memory of the same
 * layout. Who may touch which index is said in uapi/softrnic-abi.h. Task context.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "softrnic.h"

static void srn_ring_mem_free(struct srn_ring_mem *mem)
{
	kvfree(mem->ctl);
	kfree(mem);
}

int srn_ring_init(struct srn_ring *ring, struct ib_ucontext *ibuc, u32 count,
		  u32 stride, struct srn_ring_info *info)
{
	struct srn_ring_mem *mem;
	size_t bytes;
	int ret;

	count = roundup_pow_of_two(max(count, 1U));
	bytes = PAGE_ALIGN(size_add(SRN_RING_ENTRIES,
				    size_mul(count, stride)));
	if (!bytes || bytes > U32_MAX)
		return -ENOMEM;

	mem = kzalloc(sizeof(*mem), GFP_KERNEL);
	if (!mem)
		return -ENOMEM;
	mem->bytes = bytes;
	/* A user's queues count against the memory limit of its cgroup. */
	mem->ctl = ibuc ? __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO |
					   __GFP_NOWARN) :
			  kvzalloc(bytes, GFP_KERNEL);
	if (!mem->ctl) {
		ret = -ENOMEM;
		goto err_free;
	}

	if (ibuc) {
		ret = rdma_user_mmap_entry_insert(ibuc, &mem->entry, bytes);
		if (ret)
			goto err_free;
		*info = (struct srn_ring_info){
			.mmap_off = rdma_user_mmap_get_offset(&mem->entry),
			.mmap_len = bytes,
			.count = count,
			.stride = stride,
		};
	}

	*ring = (struct srn_ring){
		.mem = mem,
		.count = count,
		.stride = stride,
		.user = ibuc,
	};
	return 0;

err_free:
	srn_ring_mem_free(mem);
	return ret;
}

void srn_ring_fini(struct srn_ring *ring)
{
	struct srn_ring_mem *mem = ring->mem;

	if (!mem)
		return;
	ring->mem = NULL;

	/* An mmap() that is under way may hold the entry a moment longer. */
	if (ring->user)
		rdma_user_mmap_entry_remove(&mem->entry);
	else
		srn_ring_mem_free(mem);
}

/* The last reference of the entry is gone; what is mapped keeps its pages. */
void srn_mmap_free(struct rdma_user_mmap_entry *entry)
{
	srn_ring_mem_free(container_of(entry, struct srn_ring_mem, entry));
}
