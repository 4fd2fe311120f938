// SPDX-License-Identifier: GPL-2.0
/*
 * User contexts, protection domains and the mapping of queues.
 *
 * A context holds nothing of its own: its queues are mmap entries that ring.c
 * makes, and the core destroys what a process leaves behind. Task context.
 */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "softrnic.h"

int srn_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct srn_uresp_ctx resp = {
		.abi_version = SRN_ABI_VERSION,
		.max_inline = SRN_MAX_INLINE,
		.max_sge = SRN_MAX_SGE,
	};
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	return ib_respond_udata(udata, resp);
}

void srn_dealloc_ucontext(struct ib_ucontext *ibuc)
{
}

/*
 * The device goes while the process lives on. Its mappings are ordinary memory
 * that stays; all that ends is that nobody serves the queues any more.
 */
void srn_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

int srn_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct srn_dev *dev = to_sdev(ibpd->device);
	struct srn_pd *pd = to_spd(ibpd);
	struct srn_uresp_pd resp = {};
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;
	if (!atomic_add_unless(&dev->num_pd, 1, SRN_MAX_PD))
		return -ENOSPC;

	pd->pdn = atomic_inc_return(&dev->pdn_next);
	if (udata) {
		resp.pdn = pd->pdn;
		ret = ib_respond_udata(udata, resp);
		if (ret) {
			atomic_dec(&dev->num_pd);
			return ret;
		}
	}
	return 0;
}

int srn_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	atomic_dec(&to_sdev(ibpd->device)->num_pd);
	return 0;
}

/* As remap_vmalloc_range(), whose kind of memory is not charged to anybody. */
static int map_ring(struct vm_area_struct *vma, const struct srn_ring_mem *mem)
{
	unsigned long addr = vma->vm_start;
	u8 *from = (u8 *)mem->ctl;
	int ret;

	if (vma->vm_end - vma->vm_start != mem->bytes)
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	for (; addr < vma->vm_end; addr += PAGE_SIZE, from += PAGE_SIZE) {
		ret = vm_insert_page(vma, addr, vmalloc_to_page(from));
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * The whole queue is mapped or nothing: the core finds an entry only by its
 * first page and exact length. The pages are mapped by reference, so munmap in
 * pieces, fork and a queue that is destroyed first are all harmless.
 */
int srn_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct srn_ring_mem *mem;
	int ret;

	entry = rdma_user_mmap_entry_get(ibuc, vma);
	if (!entry)
		return -EINVAL;

	mem = container_of(entry, struct srn_ring_mem, entry);
	ret = map_ring(vma, mem);
	rdma_user_mmap_entry_put(entry);
	return ret;
}
