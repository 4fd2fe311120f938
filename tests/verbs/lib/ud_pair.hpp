// SPDX-License-Identifier: GPL-2.0
//
// Two UD queue pairs that can reach each other, on one device or on two.
#pragma once

#include "lib/memory.hpp"
#include "lib/runner.hpp"
#include "lib/wait.hpp"

namespace vt {

constexpr uint32_t ud_header = 40; // what comes before the data in a UD receive

struct ud_config {
	int family = 0;
	uint32_t qkey_a = 0x11111111, qkey_b = 0x11111111;
	uint32_t sq_psn = 0x777;
	uint32_t wr = 64, sge = 2;
	uint32_t inline_data = 0;
};

struct ud_side {
	device *dev = nullptr;
	device::gid gid{};
	uint32_t qkey = 0;
	pd_handle pd;
	cq_handle scq, rcq;
	qp_handle qp;
	ah_handle ah; // towards the peer

	void create(device &d, const ud_config &c, int family, uint32_t key);
	ah_handle make_ah(const ibv_gid &to, uint8_t traffic_class = 0, uint8_t hop_limit = 64) const;
	int post_send(uint64_t wr_id, ibv_sge *sge, int count, const ud_side &peer, uint32_t remote_qkey,
		      bool imm = false, uint32_t imm_data = 0, unsigned int flags = IBV_SEND_SIGNALED) const;
	void must_post_recv(uint64_t wr_id, const ibv_sge &sge) const;
};

class ud_pair {
public:
	ud_pair(env &e, const ud_config &c = {});

	env &world;
	ud_config config;
	ud_side a, b;
	int ms(int n) const { return world.patience(n); }
};

} // namespace vt
