// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: registration, fast registration, keys, and the only code that
 * touches registered memory.
 *
 * The device has no DMA engine, so the DMA address of a page is its kernel
 * address and access is memcpy(). All of an MR that an access depends on
 * changes under the write side of mr->lock only; an access checks it under the
 * read side. Verbs run in task context, access in softirq or with BH off,
 * REG_MR and invalidation in either. A reader with BH on would be correct as
 * well: softirq readers do not wait for a queued writer.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/iter.h>

#include "softrnic.h"

#define SRN_KEY_VARIANT 0xffu	/* low byte: the consumer's */

/* The access bits that a later access may ask for. */
#define SRN_MR_RIGHTS							\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

static struct srn_mr *mr_alloc(struct srn_dev *dev, struct ib_pd *pd,
			       enum srn_mr_kind kind, int access)
{
	struct srn_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return NULL;
	kref_init(&mr->ref);
	rwlock_init(&mr->lock);
	mr->dev = dev;
	mr->pd = pd;
	mr->kind = kind;
	mr->access = access & SRN_MR_RIGHTS;
	mr->state = SRN_MR_FREE;
	mr->page_shift = PAGE_SHIFT;
	return mr;
}

/*
 * Give @mr a key and make it visible. Indices go round, and the low byte of a
 * new key is random, so that a key of a deregistered MR stays useless for long.
 * Until the key is set the MR is found by nobody: its state is FREE.
 */
static int mr_publish(struct srn_mr *mr, enum srn_mr_state state)
{
	struct srn_dev *dev = mr->dev;
	u32 key;
	int ret;

	ret = xa_alloc_cyclic(&dev->mrs, &mr->index, mr,
			      XA_LIMIT(1, SRN_MAX_MR), &dev->mr_next,
			      GFP_KERNEL);
	if (ret < 0)
		return ret == -EBUSY ? -ENOMEM : ret;

	key = mr->index << 8 | (get_random_u32() & SRN_KEY_VARIANT);
	write_lock_bh(&mr->lock);
	mr->key = key;
	mr->state = state;
	write_unlock_bh(&mr->lock);
	mr->ibmr.lkey = key;
	mr->ibmr.rkey = key;
	return 0;
}

struct ib_mr *srn_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct srn_mr *mr;
	int ret;

	mr = mr_alloc(to_sdev(ibpd->device), ibpd, SRN_MR_DMA, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->length = U64_MAX;
	ret = mr_publish(mr, SRN_MR_VALID);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	return &mr->ibmr;
}

/* Pinned user memory and its page table, on the way into an MR. */
struct mr_mem {
	struct ib_umem *umem;
	u64 *pages;
	u32 npages;
	u32 first_off;
	u8 page_shift;
};

static void mr_mem_free(struct mr_mem *mem)
{
	kvfree(mem->pages);
	if (mem->umem)
		ib_umem_release(mem->umem);
}

static int mr_mem_get(struct mr_mem *mem, struct ib_device *ibdev, u64 start,
		      u64 length, int access)
{
	struct ib_block_iter biter;
	unsigned long pgsz;
	size_t count;
	int ret;

	memset(mem, 0, sizeof(*mem));
	if (access & IB_ACCESS_ON_DEMAND)
		return -EOPNOTSUPP;
	if (!length || start > ULONG_MAX || length > SIZE_MAX)
		return -EINVAL;

	mem->umem = ib_umem_get_va(ibdev, start, length, access);
	if (IS_ERR(mem->umem)) {
		ret = PTR_ERR(mem->umem);
		mem->umem = NULL;
		return ret;
	}

	/*
	 * Asked about the user's address, not the iova: only offsets from the
	 * start count here. Huge pages and lucky neighbours shrink the table.
	 */
	ret = -EINVAL;
	pgsz = ib_umem_find_best_pgsz(mem->umem, GENMASK(30, PAGE_SHIFT), start);
	if (!pgsz)
		goto err_free_mem;
	count = ib_umem_num_dma_blocks(mem->umem, pgsz);
	if (count > U32_MAX)
		goto err_free_mem;

	ret = -ENOMEM;
	mem->pages = kvmalloc_array(count, sizeof(*mem->pages),
				    GFP_KERNEL_ACCOUNT);
	if (!mem->pages)
		goto err_free_mem;
	rdma_umem_for_each_dma_block(mem->umem, &biter, pgsz) {
		if (mem->npages == count)
			break;
		mem->pages[mem->npages++] = rdma_block_iter_dma_address(&biter);
	}
	mem->page_shift = ilog2(pgsz);
	mem->first_off = start & (pgsz - 1);
	return 0;

err_free_mem:
	mr_mem_free(mem);
	return ret;
}

/* Exchange the memory of @mr with @mem; the write lock is held or nobody looks. */
static void mr_mem_swap(struct srn_mr *mr, struct mr_mem *mem)
{
	swap(mr->umem, mem->umem);
	swap(mr->pages, mem->pages);
	swap(mr->npages, mem->npages);
	swap(mr->first_off, mem->first_off);
	swap(mr->page_shift, mem->page_shift);
}

struct ib_mr *srn_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 iova, int access, struct ib_udata *udata)
{
	struct srn_dev *dev = to_sdev(ibpd->device);
	struct mr_mem mem;
	struct srn_mr *mr;
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ERR_PTR(ret);
	if (access & IB_ZERO_BASED)
		iova = 0;
	if (iova + length < iova)
		return ERR_PTR(-EINVAL);

	ret = mr_mem_get(&mem, ibpd->device, start, length, access);
	if (ret)
		return ERR_PTR(ret);

	mr = mr_alloc(dev, ibpd, SRN_MR_USER, access);
	if (!mr) {
		ret = -ENOMEM;
		goto err_free_mem;
	}
	mr_mem_swap(mr, &mem);
	mr->iova = iova;
	mr->length = length;
	ret = mr_publish(mr, SRN_MR_VALID);
	if (ret)
		goto err_free_mr;
	return &mr->ibmr;

err_free_mr:
	mr_mem_swap(mr, &mem);
	kfree(mr);
err_free_mem:
	mr_mem_free(&mem);
	return ERR_PTR(ret);
}

/*
 * New memory is pinned first and everything changes at once, so a failure
 * leaves the MR as it was. The keys stay, so the MR stays the same object.
 */
struct ib_mr *srn_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				u64 length, u64 iova, int access,
				struct ib_pd *pd, struct ib_udata *udata)
{
	struct srn_mr *mr = to_smr(ibmr);
	struct mr_mem mem = {};
	bool replace = flags & IB_MR_REREG_TRANS;
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ERR_PTR(ret);
	if (mr->kind != SRN_MR_USER)
		return ERR_PTR(-EINVAL);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	else if (access & IB_ACCESS_ON_DEMAND)
		return ERR_PTR(-EOPNOTSUPP);

	if (replace) {
		if ((flags & IB_MR_REREG_ACCESS) && (access & IB_ZERO_BASED))
			iova = 0;
		if (iova + length < iova)
			return ERR_PTR(-EINVAL);
	} else {
		iova = mr->iova;
		length = mr->length;
		/* Pages that were pinned for reading must not be written. */
		if (ib_access_writable(access) && !mr->umem->writable) {
			if (mr->umem->owning_mm != current->mm)
				return ERR_PTR(-EPERM);
			start = mr->umem->address;
			replace = true;
		}
	}
	if (replace) {
		ret = mr_mem_get(&mem, ibmr->device, start, length, access);
		if (ret)
			return ERR_PTR(ret);
	}

	write_lock_bh(&mr->lock);
	if (replace) {
		mr_mem_swap(mr, &mem);
		mr->iova = iova;
		mr->length = length;
	}
	if (flags & IB_MR_REREG_PD)
		mr->pd = pd;
	mr->access = access & SRN_MR_RIGHTS;
	write_unlock_bh(&mr->lock);

	mr_mem_free(&mem);
	return NULL;
}

int srn_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct srn_mr *mr = to_smr(ibmr);
	struct mr_mem mem = {};

	xa_erase(&mr->dev->mrs, mr->index);

	/* After this no copy is running and none starts: the pages can go. */
	write_lock_bh(&mr->lock);
	mr->state = SRN_MR_DEAD;
	mr->pd = NULL;
	mr_mem_swap(mr, &mem);
	write_unlock_bh(&mr->lock);

	mr_mem_free(&mem);
	srn_mr_put(mr);
	return 0;
}

struct ib_mr *srn_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			   u32 max_num_sg)
{
	struct srn_mr *mr;
	int ret;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > SRN_MAX_FRWR_PAGES)
		return ERR_PTR(-EINVAL);

	mr = mr_alloc(to_sdev(ibpd->device), ibpd, SRN_MR_FRWR, 0);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->pages = kvcalloc(2 * max_num_sg, sizeof(*mr->pages), GFP_KERNEL);
	if (!mr->pages) {
		ret = -ENOMEM;
		goto err_free_mr;
	}
	mr->staged = mr->pages + max_num_sg;
	mr->max_pages = max_num_sg;
	ret = mr_publish(mr, SRN_MR_FREE);
	if (ret)
		goto err_free_pages;
	return &mr->ibmr;

err_free_pages:
	kvfree(mr->pages);
err_free_mr:
	kfree(mr);
	return ERR_PTR(ret);
}

static int mr_stage_page(struct ib_mr *ibmr, u64 addr)
{
	struct srn_mr *mr = to_smr(ibmr);

	if (mr->nstaged == mr->max_pages)
		return -ENOMEM;
	mr->staged[mr->nstaged++] = addr;
	return 0;
}

/*
 * The consumer maps before it posts REG_MR and leaves the result alone until
 * that has completed, hence no lock; the registration in force is not touched.
 */
int srn_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		  unsigned int *offset)
{
	struct srn_mr *mr = to_smr(ibmr);

	if (!is_power_of_2(ibmr->page_size))
		return -EINVAL;
	mr->nstaged = 0;
	return ib_sg_to_pages(ibmr, sg, nents, offset, mr_stage_page);
}

static void mr_release(struct kref *ref)
{
	struct srn_mr *mr = container_of(ref, struct srn_mr, ref);

	kfree_rcu(mr, rcu);
}

void srn_mr_put(struct srn_mr *mr)
{
	kref_put(&mr->ref, mr_release);
}

/* May @key be used now for @access to [va, va + len)? mr->lock is held. */
static bool mr_grants(const struct srn_mr *mr, u32 key, int access, u64 va,
		      u64 len)
{
	return mr->state == SRN_MR_VALID && mr->key == key &&
	       (mr->access & access) == access && va >= mr->iova &&
	       len <= mr->length && va - mr->iova <= mr->length - len;
}

struct srn_mr *srn_mr_get(struct srn_dev *dev, struct ib_pd *pd, u32 key,
			  int access, u64 va, u64 len)
{
	struct srn_mr *mr;
	bool ok;

	rcu_read_lock();
	mr = xa_load(&dev->mrs, key >> 8);
	if (mr && !kref_get_unless_zero(&mr->ref))
		mr = NULL;
	rcu_read_unlock();
	if (!mr)
		return NULL;

	read_lock(&mr->lock);
	ok = mr->pd == pd && mr_grants(mr, key, access, va, len);
	read_unlock(&mr->lock);
	if (ok)
		return mr;
	srn_mr_put(mr);
	return NULL;
}

/*
 * Kernel address of @va, and in *@len no more than lies behind it in one piece.
 * mr->lock is held and the access was granted. The pages of an FRWR cover its
 * length, which was checked when it was registered.
 */
static void *mr_address(const struct srn_mr *mr, u64 va, size_t *len)
{
	u64 off, in_page;

	if (mr->kind == SRN_MR_DMA)
		return (void *)(uintptr_t)va;
	off = va - mr->iova + mr->first_off;
	in_page = off & (BIT_ULL(mr->page_shift) - 1);
	*len = min_t(u64, *len, BIT_ULL(mr->page_shift) - in_page);
	return (void *)(uintptr_t)(mr->pages[off >> mr->page_shift] + in_page);
}

int srn_mr_read(struct srn_mr *mr, u32 key, int access, u64 va, void *dst,
		size_t len)
{
	int ret = -EFAULT;

	read_lock(&mr->lock);
	if (likely(mr_grants(mr, key, access, va, len))) {
		while (len) {
			size_t step = len;
			const void *src = mr_address(mr, va, &step);

			memcpy(dst, src, step);
			dst += step;
			va += step;
			len -= step;
		}
		ret = 0;
	}
	read_unlock(&mr->lock);
	return ret;
}

int srn_mr_write(struct srn_mr *mr, u32 key, int access, u64 va,
		 const void *src, size_t len)
{
	int ret = -EFAULT;

	read_lock(&mr->lock);
	if (likely(mr_grants(mr, key, access, va, len))) {
		while (len) {
			size_t step = len;
			void *dst = mr_address(mr, va, &step);

			memcpy(dst, src, step);
			src += step;
			va += step;
			len -= step;
		}
		ret = 0;
	}
	read_unlock(&mr->lock);
	return ret;
}

/*
 * The CPU's own atomic instructions, so that the word may be shared with
 * software on this host as well, not only with other RDMA atomics.
 */
int srn_mr_atomic(struct srn_mr *mr, u32 key, u64 va, bool cas, u64 compare,
		  u64 swap_add, u64 *orig)
{
	size_t len = sizeof(u64);
	int ret = -EFAULT;
	void *p;

	if (!IS_ALIGNED(va, sizeof(u64)))
		return -EFAULT;

	read_lock(&mr->lock);
	if (!mr_grants(mr, key, IB_ACCESS_REMOTE_ATOMIC, va, len))
		goto out_unlock;
	/* An iova may be aligned otherwise than the memory behind it. */
	p = mr_address(mr, va, &len);
	if (!IS_ALIGNED((uintptr_t)p, sizeof(u64)))
		goto out_unlock;
	if (cas)
		*orig = cmpxchg64((u64 *)p, compare, swap_add);
	else
		*orig = atomic64_fetch_add(swap_add, p);
	ret = 0;
out_unlock:
	read_unlock(&mr->lock);
	return ret;
}

/* The FRWR of @pd that @key belongs to; under RCU, its state may change. */
static struct srn_mr *mr_find_frwr(struct srn_dev *dev, u32 key)
{
	struct srn_mr *mr = xa_load(&dev->mrs, key >> 8);

	return mr && mr->kind == SRN_MR_FRWR ? mr : NULL;
}

int srn_mr_reg(struct srn_dev *dev, struct ib_pd *pd, const struct srn_sqe *sqe)
{
	u64 iova = sqe->reg.iova, length = sqe->reg.length;
	struct srn_mr *mr;
	int ret = -EINVAL;
	u32 first_off;
	u8 shift;

	rcu_read_lock();
	mr = mr_find_frwr(dev, sqe->reg.key);
	if (!mr || mr->index != sqe->reg.mr_index)
		goto out_rcu;

	write_lock_bh(&mr->lock);
	if (mr->state != SRN_MR_FREE || mr->pd != pd || !mr->nstaged)
		goto out_unlock;
	shift = ilog2(mr->ibmr.page_size);
	first_off = iova & (BIT_ULL(shift) - 1);
	if (iova + length < iova ||
	    length > ((u64)mr->nstaged << shift) - first_off)
		goto out_unlock;

	memcpy(mr->pages, mr->staged, mr->nstaged * sizeof(*mr->pages));
	mr->npages = mr->nstaged;
	mr->page_shift = shift;
	mr->first_off = first_off;
	mr->iova = iova;
	mr->length = length;
	mr->access = sqe->reg.access & SRN_MR_RIGHTS;
	mr->key = sqe->reg.key;
	mr->state = SRN_MR_VALID;
	ret = 0;
out_unlock:
	write_unlock_bh(&mr->lock);
out_rcu:
	rcu_read_unlock();
	return ret;
}

int srn_mr_invalidate(struct srn_dev *dev, struct ib_pd *pd, u32 key)
{
	struct srn_mr *mr;
	int ret = -EINVAL;

	rcu_read_lock();
	mr = mr_find_frwr(dev, key);
	if (mr) {
		write_lock_bh(&mr->lock);
		if (mr->state == SRN_MR_VALID && mr->pd == pd &&
		    mr->key == key) {
			mr->state = SRN_MR_FREE;
			ret = 0;
		}
		write_unlock_bh(&mr->lock);
	}
	rcu_read_unlock();
	return ret;
}
