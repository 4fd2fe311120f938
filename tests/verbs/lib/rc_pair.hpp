// SPDX-License-Identifier: GPL-2.0
//
// Two connected RC queue pairs in one process: on one device to itself, or on
// two devices of two network namespaces. What they have to know of each other
// is exchanged in memory. Every attribute can be set per side.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/memory.hpp"
#include "lib/runner.hpp"
#include "lib/wait.hpp"

namespace vt {

constexpr int qp_access_all = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;

struct side_config {
	uint32_t sq_psn = 0x123456;
	uint8_t timeout = 14; // 67 ms
	uint8_t retry_cnt = 7;
	uint8_t rnr_retry = 7;
	uint8_t min_rnr_timer = 12; // 640 us
	uint8_t max_rd_atomic = 16;
	uint8_t max_dest_rd_atomic = 16;
	int access = qp_access_all;
	uint8_t traffic_class = 0;
	uint8_t hop_limit = 64;
	uint32_t flow_label = 0;

	uint32_t send_wr = 64, recv_wr = 64;
	uint32_t send_sge = 1, recv_sge = 1;
	uint32_t inline_data = 0;
	int cq_entries = 256;
	bool signal_all = true;
	bool channel = false;	  // completion channel on both CQs
	bool one_cq = false;	  // send and receive completions in one CQ
	bool srq = false;
	uint32_t srq_wr = 64;
	uint64_t send_ops = 0;	  // IBV_QP_EX_*: extended QP when not 0
};

struct rc_config {
	int family = 0; // 0: what the command line says
	ibv_mtu mtu = IBV_MTU_1024;
	bool connect = true; // to RTS; otherwise both stay in RESET
	side_config a, b;

	// Applies a change to both sides.
	template <typename F> rc_config &both(F &&change)
	{
		change(a);
		change(b);
		return *this;
	}
};

// One queue pair and what belongs to it.
struct rc_side {
	device *dev = nullptr;
	side_config config;
	device::gid gid{};
	pd_handle pd;
	channel_handle channel;
	cq_handle scq_own, rcq_own;
	srq_handle srq;
	qp_handle qp;
	ibv_qp_ex *qpx = nullptr; // with send_ops

	ibv_cq *scq() const { return scq_own.get(); }
	ibv_cq *rcq() const { return rcq_own ? rcq_own.get() : scq_own.get(); }

	void create(device &d, const side_config &c, int family);
	// The three steps, each returning what ibv_modify_qp does.
	int to_init() const;
	int to_rtr(const rc_side &peer, ibv_mtu mtu) const;
	int to_rts() const;
	int to_state(ibv_qp_state state) const;
	ibv_qp_state state() const;
	ibv_qp_attr query(ibv_qp_init_attr *init = nullptr) const;
	uint32_t max_inline() const;

	int post(ibv_send_wr &wr) const;
	// Posts; a refusal ends the test.
	void must_post(ibv_send_wr &wr) const;
	int post_recv(uint64_t wr_id, std::span<ibv_sge> sges) const;
	void must_post_recv(uint64_t wr_id, const ibv_sge &sge) const;
	void must_post_recv(uint64_t wr_id) const; // without memory
};

class rc_pair {
public:
	rc_pair(env &e, const rc_config &c = {});

	env &world;
	rc_config config;
	rc_side a, b;

	void connect();
	// Both queue pairs through RESET to RTS again, CQs emptied.
	void reconnect();
	int ms(int n) const { return world.patience(n); }
};

// Work requests. The sge must outlive the post.
ibv_send_wr send_wr(uint64_t wr_id, ibv_wr_opcode op, ibv_sge *sge, int count = 1,
		    unsigned int flags = IBV_SEND_SIGNALED);
ibv_send_wr rdma_wr(uint64_t wr_id, ibv_wr_opcode op, ibv_sge *sge, uint64_t addr, uint32_t rkey,
		    int count = 1, unsigned int flags = IBV_SEND_SIGNALED);
ibv_send_wr atomic_wr(uint64_t wr_id, ibv_wr_opcode op, ibv_sge *sge, uint64_t addr, uint32_t rkey,
		      uint64_t compare_add, uint64_t swap);

// Both queue pairs carry a SEND in each direction, data compared.
void check_alive(rc_pair &p, const std::string &what);

} // namespace vt
