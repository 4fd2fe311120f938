// SPDX-License-Identifier: GPL-2.0
/*
 * Counters: per-CPU on the data path, summed when somebody asks.
 *
 * Seen with `rdma statistic` and below hw_counters in sysfs. Task context.
 */
#include <rdma/ib_verbs.h>

#include "softrnic.h"

static const struct rdma_stat_desc srn_counter_descs[SRN_CNT_COUNT] = {
#define X(id, label) { .name = label },
	SRN_COUNTERS(X)
#undef X
};

u64 srn_counter_read(const struct srn_dev *dev, enum srn_counter id)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->counters, cpu)->v[id]);
	return sum;
}

struct rdma_hw_stats *srn_alloc_hw_port_stats(struct ib_device *ibdev,
					      u32 port)
{
	return rdma_alloc_hw_stats_struct(srn_counter_descs,
					  ARRAY_SIZE(srn_counter_descs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int srn_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		     u32 port, int index)
{
	struct srn_dev *dev = to_sdev(ibdev);
	int i;

	if (port != 1)
		return -EINVAL;

	for (i = 0; i < SRN_CNT_COUNT; i++)
		stats->value[i] = srn_counter_read(dev, i);
	return SRN_CNT_COUNT;
}
