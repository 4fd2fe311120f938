/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Per-CPU counters of a device, one list for the enum, the names that
 * `rdma statistic` and sysfs show, and the tests.
 */
#ifndef SRN_COUNTERS_H
#define SRN_COUNTERS_H

#include <linux/percpu.h>
#include <linux/types.h>

/* Names follow mlx5 where the meaning is the same. */
#define SRN_COUNTERS(X)							\
	X(TX_PACKETS, "tx_packets")					\
	X(TX_BYTES, "tx_bytes")						\
	X(RX_PACKETS, "rx_packets")					\
	X(RX_BYTES, "rx_bytes")						\
	X(TX_ACKS, "tx_acks")						\
	X(RX_ACKS, "rx_acks")						\
	X(TX_NAKS, "tx_naks")						\
	X(RX_NAKS, "rx_naks")						\
	X(TX_RNR, "tx_rnr_nak")						\
	X(RX_RNR, "rnr_nak_retry")					\
	X(TX_PAUSE, "tx_pause")						\
	X(RETRANS, "packets_retransmitted")				\
	X(TIMEOUT, "local_ack_timeout_err")				\
	X(RETRY_EXC, "retry_exceeded_err")				\
	X(RNR_EXC, "rnr_nak_retry_err")					\
	X(PSN_SEQ, "packet_seq_err")					\
	X(OUT_OF_SEQ, "out_of_sequence")				\
	X(DUPLICATE, "duplicate_request")				\
	X(IMPLIED_NAK, "implied_nak_seq_err")				\
	X(OUT_OF_BUFFER, "out_of_buffer")				\
	X(RX_WRITES, "rx_write_requests")				\
	X(RX_READS, "rx_read_requests")					\
	X(RX_ATOMICS, "rx_atomic_requests")				\
	X(CQ_OVERFLOW, "cq_overflow")					\
	X(REQ_CQE_ERROR, "req_cqe_error")				\
	X(RESP_CQE_ERROR, "resp_cqe_error")				\
	X(DROP_MALFORMED, "rx_drop_malformed")				\
	X(DROP_ICRC, "rx_icrc_encapsulated")				\
	X(DROP_QPN, "rx_drop_unknown_qp")				\
	X(DROP_STATE, "rx_drop_qp_state")				\
	X(DROP_TYPE, "rx_drop_qp_type")					\
	X(DROP_ADDR, "rx_drop_address")					\
	X(DROP_PKEY, "rx_drop_pkey")					\
	X(DROP_QKEY, "rx_drop_qkey")					\
	X(DROP_RESPONSE, "rx_drop_stale_response")			\
	X(DROP_DUPLICATE, "rx_drop_unanswerable_duplicate")		\
	X(DROP_NO_WQE, "rx_drop_no_wqe")				\
	X(DROP_UD_LENGTH, "rx_drop_ud_length")				\
	X(DROP_MCAST, "rx_drop_mcast")

enum srn_counter {
#define X(id, name) SRN_CNT_##id,
	SRN_COUNTERS(X)
#undef X
	SRN_CNT_COUNT
};

struct srn_counters {
	u64 v[SRN_CNT_COUNT];
};

struct ib_device;
struct rdma_hw_stats;
struct srn_dev;

/** srn_counter_read() - sum of one counter over all CPUs. */
u64 srn_counter_read(const struct srn_dev *dev, enum srn_counter id);

/* counters.c: verbs operations alloc_hw_port_stats and get_hw_stats. */
struct rdma_hw_stats *srn_alloc_hw_port_stats(struct ib_device *ibdev,
					      u32 port);
int srn_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		     u32 port, int index);

#define srn_count_add(dev, id, n) \
	this_cpu_add((dev)->counters->v[SRN_CNT_##id], (n))
#define srn_count(dev, id) srn_count_add(dev, id, 1)

#endif /* SRN_COUNTERS_H */
