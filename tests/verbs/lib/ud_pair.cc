// SPDX-License-Identifier: GPL-2.0
//
// Creating UD queue pairs and their address handles.

#include "lib/ud_pair.hpp"

namespace vt {

void ud_side::create(device &d, const ud_config &c, int family, uint32_t key)
{
	dev = &d;
	qkey = key;
	gid = d.find_gid(family);
	pd = d.make_pd();
	scq = d.make_cq(256);
	rcq = d.make_cq(256);

	ibv_qp_init_attr init{};
	init.qp_type = IBV_QPT_UD;
	init.send_cq = scq.get();
	init.recv_cq = rcq.get();
	init.cap.max_send_wr = c.wr;
	init.cap.max_recv_wr = c.wr;
	init.cap.max_send_sge = c.sge;
	init.cap.max_recv_sge = c.sge;
	init.cap.max_inline_data = c.inline_data;
	qp.reset(ibv_create_qp(pd.get(), &init));
	REQUIRE(qp, "ibv_create_qp UD: %s", strerror(errno));

	ibv_qp_attr at{};
	at.qp_state = IBV_QPS_INIT;
	at.port_num = 1;
	at.qkey = key;
	int rc = ibv_modify_qp(qp.get(), &at,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	REQUIRE(!rc, "UD to INIT: %s", error_text(rc).c_str());
	at = {};
	at.qp_state = IBV_QPS_RTR;
	rc = ibv_modify_qp(qp.get(), &at, IBV_QP_STATE);
	REQUIRE(!rc, "UD to RTR: %s", error_text(rc).c_str());
	at = {};
	at.qp_state = IBV_QPS_RTS;
	at.sq_psn = c.sq_psn;
	rc = ibv_modify_qp(qp.get(), &at, IBV_QP_STATE | IBV_QP_SQ_PSN);
	REQUIRE(!rc, "UD to RTS: %s", error_text(rc).c_str());
}

ah_handle ud_side::make_ah(const ibv_gid &to, uint8_t traffic_class, uint8_t hop_limit) const
{
	ibv_ah_attr at{};
	at.port_num = 1;
	at.is_global = 1;
	at.grh.dgid = to;
	at.grh.sgid_index = static_cast<uint8_t>(gid.index);
	at.grh.hop_limit = hop_limit;
	at.grh.traffic_class = traffic_class;
	ah_handle made(ibv_create_ah(pd.get(), &at));
	REQUIRE(made, "ibv_create_ah: %s", strerror(errno));
	return made;
}

int ud_side::post_send(uint64_t wr_id, ibv_sge *sge, int count, const ud_side &peer,
		       uint32_t remote_qkey, bool imm, uint32_t imm_data, unsigned int flags) const
{
	ibv_send_wr wr{}, *bad = nullptr;
	wr.wr_id = wr_id;
	wr.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	wr.imm_data = htobe32(imm_data);
	wr.sg_list = sge;
	wr.num_sge = count;
	wr.send_flags = flags;
	wr.wr.ud.ah = ah.get();
	wr.wr.ud.remote_qpn = peer.qp->qp_num;
	wr.wr.ud.remote_qkey = remote_qkey;
	return ibv_post_send(qp.get(), &wr, &bad);
}

void ud_side::must_post_recv(uint64_t wr_id, const ibv_sge &sge) const
{
	ibv_sge one = sge;
	ibv_recv_wr wr{}, *bad = nullptr;
	wr.wr_id = wr_id;
	wr.sg_list = &one;
	wr.num_sge = 1;
	const int rc = ibv_post_recv(qp.get(), &wr, &bad);
	REQUIRE(!rc, "ibv_post_recv: %s", error_text(rc).c_str());
}

ud_pair::ud_pair(env &e, const ud_config &c) : world(e), config(c)
{
	const int family = config.family ? config.family : e.opt.family;
	a.create(e.a(), config, family, config.qkey_a);
	b.create(e.b(), config, family, config.qkey_b);
	a.ah = a.make_ah(b.gid.raw);
	b.ah = b.make_ah(a.gid.raw);
}

} // namespace vt
