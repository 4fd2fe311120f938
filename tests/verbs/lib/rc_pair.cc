// SPDX-License-Identifier: GPL-2.0
//
// Creating and connecting RC queue pairs.

#include "lib/rc_pair.hpp"

#include <algorithm>

namespace vt {

void rc_side::create(device &d, const side_config &c, int family)
{
	dev = &d;
	config = c;
	gid = d.find_gid(family);
	pd = d.make_pd();
	if (c.channel)
		channel = d.make_channel();
	scq_own = d.make_cq(c.cq_entries, channel.get());
	if (!c.one_cq)
		rcq_own = d.make_cq(c.cq_entries, channel.get());
	if (c.srq) {
		ibv_srq_init_attr s{};
		s.attr.max_wr = c.srq_wr;
		s.attr.max_sge = c.recv_sge;
		srq.reset(ibv_create_srq(pd.get(), &s));
		REQUIRE(srq, "ibv_create_srq: %s", strerror(errno));
	}

	ibv_qp_init_attr_ex init{};
	init.qp_type = IBV_QPT_RC;
	init.send_cq = scq();
	init.recv_cq = rcq();
	init.srq = srq.get();
	init.sq_sig_all = c.signal_all;
	init.cap.max_send_wr = c.send_wr;
	init.cap.max_recv_wr = c.srq ? 0 : c.recv_wr;
	init.cap.max_send_sge = c.send_sge;
	init.cap.max_recv_sge = c.srq ? 0 : c.recv_sge;
	init.cap.max_inline_data = c.inline_data;
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	init.pd = pd.get();
	if (c.send_ops) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = c.send_ops;
		qp.reset(ibv_create_qp_ex(d.ctx(), &init));
		if (!qp && (errno == EOPNOTSUPP || errno == ENOSYS))
			skip(text("extended QP with operations %#llx: %s",
				  static_cast<unsigned long long>(c.send_ops), strerror(errno)));
		REQUIRE(qp, "ibv_create_qp_ex: %s", strerror(errno));
		qpx = ibv_qp_to_qp_ex(qp.get());
		REQUIRE(qpx, "ibv_qp_to_qp_ex");
	} else {
		ibv_qp_init_attr plain{};
		plain.qp_type = init.qp_type;
		plain.send_cq = init.send_cq;
		plain.recv_cq = init.recv_cq;
		plain.srq = init.srq;
		plain.sq_sig_all = init.sq_sig_all;
		plain.cap = init.cap;
		qp.reset(ibv_create_qp(pd.get(), &plain));
		REQUIRE(qp, "ibv_create_qp: %s", strerror(errno));
		init.cap = plain.cap;
	}
	CHECK(init.cap.max_send_wr >= c.send_wr && init.cap.max_inline_data >= c.inline_data &&
		      init.cap.max_send_sge >= c.send_sge,
	      "QP has less than asked for: send_wr %u inline %u send_sge %u", init.cap.max_send_wr,
	      init.cap.max_inline_data, init.cap.max_send_sge);
}

int rc_side::to_init() const
{
	ibv_qp_attr at{};
	at.qp_state = IBV_QPS_INIT;
	at.port_num = 1;
	at.qp_access_flags = config.access;
	return ibv_modify_qp(qp.get(), &at,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int rc_side::to_rtr(const rc_side &peer, ibv_mtu mtu) const
{
	ibv_qp_attr at{};
	at.qp_state = IBV_QPS_RTR;
	at.path_mtu = mtu;
	at.dest_qp_num = peer.qp->qp_num;
	at.rq_psn = peer.config.sq_psn;
	at.max_dest_rd_atomic = config.max_dest_rd_atomic;
	at.min_rnr_timer = config.min_rnr_timer;
	at.ah_attr.port_num = 1;
	at.ah_attr.is_global = 1;
	at.ah_attr.grh.dgid = peer.gid.raw;
	at.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid.index);
	at.ah_attr.grh.hop_limit = config.hop_limit;
	at.ah_attr.grh.traffic_class = config.traffic_class;
	at.ah_attr.grh.flow_label = config.flow_label;
	return ibv_modify_qp(qp.get(), &at,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

int rc_side::to_rts() const
{
	ibv_qp_attr at{};
	at.qp_state = IBV_QPS_RTS;
	at.timeout = config.timeout;
	at.retry_cnt = config.retry_cnt;
	at.rnr_retry = config.rnr_retry;
	at.sq_psn = config.sq_psn;
	at.max_rd_atomic = config.max_rd_atomic;
	return ibv_modify_qp(qp.get(), &at,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int rc_side::to_state(ibv_qp_state state) const
{
	ibv_qp_attr at{};
	at.qp_state = state;
	return ibv_modify_qp(qp.get(), &at, IBV_QP_STATE);
}

ibv_qp_attr rc_side::query(ibv_qp_init_attr *init) const
{
	ibv_qp_attr at{};
	ibv_qp_init_attr own{};
	const int rc = ibv_query_qp(qp.get(), &at,
				    IBV_QP_STATE | IBV_QP_CAP | IBV_QP_ACCESS_FLAGS | IBV_QP_AV |
					    IBV_QP_PATH_MTU | IBV_QP_TIMEOUT,
				    init ? init : &own);
	REQUIRE(!rc, "ibv_query_qp: %s", strerror(rc));
	return at;
}

ibv_qp_state rc_side::state() const
{
	return query().qp_state;
}

uint32_t rc_side::max_inline() const
{
	ibv_qp_init_attr init{};
	query(&init);
	return init.cap.max_inline_data;
}

int rc_side::post(ibv_send_wr &wr) const
{
	ibv_send_wr *bad = nullptr;
	return ibv_post_send(qp.get(), &wr, &bad);
}

void rc_side::must_post(ibv_send_wr &wr) const
{
	const int rc = post(wr);
	REQUIRE(!rc, "ibv_post_send(opcode %d): %s", wr.opcode, error_text(rc).c_str());
}

int rc_side::post_recv(uint64_t wr_id, std::span<ibv_sge> sges) const
{
	ibv_recv_wr wr{}, *bad = nullptr;
	wr.wr_id = wr_id;
	wr.sg_list = sges.data();
	wr.num_sge = static_cast<int>(sges.size());
	return srq ? ibv_post_srq_recv(srq.get(), &wr, &bad) : ibv_post_recv(qp.get(), &wr, &bad);
}

void rc_side::must_post_recv(uint64_t wr_id, const ibv_sge &sge) const
{
	ibv_sge one = sge;
	const int rc = post_recv(wr_id, { &one, 1 });
	REQUIRE(!rc, "ibv_post_recv: %s", error_text(rc).c_str());
}

void rc_side::must_post_recv(uint64_t wr_id) const
{
	const int rc = post_recv(wr_id, {});
	REQUIRE(!rc, "ibv_post_recv without memory: %s", error_text(rc).c_str());
}

rc_pair::rc_pair(env &e, const rc_config &c) : world(e), config(c)
{
	if (!config.family)
		config.family = e.opt.family;
	const auto limit = [](side_config &s, const device &mine) {
		s.max_rd_atomic = std::min<int>(s.max_rd_atomic, mine.attr().max_qp_init_rd_atom);
		s.max_dest_rd_atomic = std::min<int>(s.max_dest_rd_atomic, mine.attr().max_qp_rd_atom);
	};
	limit(config.a, e.a());
	limit(config.b, e.b());
	a.create(e.a(), config.a, config.family);
	b.create(e.b(), config.b, config.family);
	if (config.connect)
		connect();
}

void rc_pair::connect()
{
	for (const auto &[mine, peer] : { std::pair(&a, &b), std::pair(&b, &a) }) {
		const uint32_t active = mine->dev->port().active_mtu;
		if (active < static_cast<uint32_t>(config.mtu))
			skip(text("path MTU %u above the port's %u", mtu_bytes(config.mtu),
				  mtu_bytes(static_cast<ibv_mtu>(active))));
		int rc = mine->to_init();
		REQUIRE(!rc, "to INIT: %s", error_text(rc).c_str());
		rc = mine->to_rtr(*peer, config.mtu);
		REQUIRE(!rc, "to RTR: %s", error_text(rc).c_str());
	}
	for (const rc_side *s : { &a, &b }) {
		const int rc = s->to_rts();
		REQUIRE(!rc, "to RTS: %s", error_text(rc).c_str());
	}
}

void rc_pair::reconnect()
{
	for (const rc_side *s : { &a, &b }) {
		const int rc = s->to_state(IBV_QPS_RESET);
		REQUIRE(!rc, "to RESET: %s", error_text(rc).c_str());
	}
	for (const rc_side *s : { &a, &b }) {
		drain_cq(s->scq());
		drain_cq(s->rcq());
	}
	connect();
}

ibv_send_wr send_wr(uint64_t wr_id, ibv_wr_opcode op, ibv_sge *sge, int count, unsigned int flags)
{
	ibv_send_wr wr{};
	wr.wr_id = wr_id;
	wr.opcode = op;
	wr.sg_list = sge;
	wr.num_sge = count;
	wr.send_flags = flags;
	return wr;
}

ibv_send_wr rdma_wr(uint64_t wr_id, ibv_wr_opcode op, ibv_sge *sge, uint64_t addr, uint32_t rkey,
		    int count, unsigned int flags)
{
	ibv_send_wr wr = send_wr(wr_id, op, sge, count, flags);
	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	return wr;
}

ibv_send_wr atomic_wr(uint64_t wr_id, ibv_wr_opcode op, ibv_sge *sge, uint64_t addr, uint32_t rkey,
		      uint64_t compare_add, uint64_t swap)
{
	ibv_send_wr wr = send_wr(wr_id, op, sge);
	wr.wr.atomic.remote_addr = addr;
	wr.wr.atomic.rkey = rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	return wr;
}

void check_alive(rc_pair &p, const std::string &what)
{
	for (const auto &[from, to] : { std::pair(&p.a, &p.b), std::pair(&p.b, &p.a) }) {
		buffer src(from->pd.get(), 100), dst(to->pd.get(), 128);
		fill_pattern(src.bytes(0, 100), 77);
		dst.clear();
		to->must_post_recv(0xa11fe, dst.sge());
		ibv_sge sge = src.sge();
		ibv_send_wr wr = send_wr(0xa11fe, IBV_WR_SEND, &sge);
		from->must_post(wr);
		// with one CQ for all, either side's completion comes first
		if (from->scq() == to->rcq()) {
			expect_wc(to->rcq(), p.ms(5000), 0xa11fe, IBV_WC_SUCCESS, -1, what);
			expect_wc(to->rcq(), p.ms(5000), 0xa11fe, IBV_WC_SUCCESS, -1, what);
		} else {
			expect_wc(to->rcq(), p.ms(5000), 0xa11fe, IBV_WC_SUCCESS, IBV_WC_RECV, what);
			expect_wc(from->scq(), p.ms(5000), 0xa11fe, IBV_WC_SUCCESS, IBV_WC_SEND, what);
		}
		check_pattern(dst.bytes(0, 100), 77, what);
		dst.check_clear(100, 28, what);
	}
}

} // namespace vt
