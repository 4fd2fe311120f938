// SPDX-License-Identifier: GPL-2.0
/*
 * Scatter/gather lists: binding them to memory regions and copying through
 * them.
 *
 * A bound element holds the memory of its MR's struct, not its pages; each copy
 * goes through mr.c, which checks anew that the MR still grants it. Runs
 * wherever WQEs are fetched and packets built or placed: BH off.
 */
#include <linux/string.h>

#include "softrnic.h"

int srn_sge_bind(struct srn_dev *dev, struct ib_pd *pd, bool kernel,
		 const struct srn_sge *in, u32 n, int access,
		 struct srn_sge_ref *out, u64 *total)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		struct srn_sge_ref *ref = &out[i];

		ref->addr = in[i].addr;
		ref->len = in[i].length;
		ref->lkey = in[i].lkey;
		ref->mr = NULL;
		sum += ref->len;

		/* An empty element is never followed, so its key is not looked at. */
		if (!ref->len || (kernel && ref->lkey == dev->ibdev.local_dma_lkey))
			continue;

		ref->mr = srn_mr_get(dev, pd, ref->lkey, access, ref->addr,
				     ref->len);
		if (!ref->mr) {
			srn_sge_put(out, i);
			return -EFAULT;
		}
	}
	*total = sum;
	return 0;
}

void srn_sge_put(struct srn_sge_ref *sge, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (sge[i].mr)
			srn_mr_put(sge[i].mr);
		sge[i].mr = NULL;
	}
}

struct srn_cursor srn_cursor_at(const struct srn_sge_ref *sge, u32 n, u32 off)
{
	struct srn_cursor cur = {};

	while (cur.sge < n && off >= sge[cur.sge].len)
		off -= sge[cur.sge++].len;
	cur.off = off;
	return cur;
}

/* Bytes that can be copied at @cur without leaving its element; 0 at the end. */
static u32 cursor_step(const struct srn_sge_ref *sge, u32 n,
		       struct srn_cursor *cur, u32 len)
{
	while (cur->sge < n && cur->off >= sge[cur->sge].len) {
		cur->sge++;
		cur->off = 0;
	}
	return cur->sge < n ? min(len, sge[cur->sge].len - cur->off) : 0;
}

int srn_sge_gather(const struct srn_sge_ref *sge, u32 n, struct srn_cursor *cur,
		   void *dst, u32 len)
{
	while (len) {
		u32 step = cursor_step(sge, n, cur, len);
		const struct srn_sge_ref *ref = &sge[cur->sge];
		u64 va;

		if (!step)
			return -EFAULT;
		va = ref->addr + cur->off;
		if (!ref->mr)
			memcpy(dst, (const void *)(uintptr_t)va, step);
		else if (srn_mr_read(ref->mr, ref->lkey, 0, va, dst, step))
			return -EFAULT;
		dst += step;
		len -= step;
		cur->off += step;
	}
	return 0;
}

int srn_sge_scatter(const struct srn_sge_ref *sge, u32 n,
		    struct srn_cursor *cur, const void *src, u32 len)
{
	while (len) {
		u32 step = cursor_step(sge, n, cur, len);
		const struct srn_sge_ref *ref = &sge[cur->sge];
		u64 va;

		if (!step)
			return -EFAULT;
		va = ref->addr + cur->off;
		if (!ref->mr)
			memcpy((void *)(uintptr_t)va, src, step);
		else if (srn_mr_write(ref->mr, ref->lkey, IB_ACCESS_LOCAL_WRITE,
				      va, src, step))
			return -EFAULT;
		src += step;
		len -= step;
		cur->off += step;
	}
	return 0;
}
