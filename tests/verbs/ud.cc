// SPDX-License-Identifier: GPL-2.0
//
// Unreliable datagrams: the header in front of the data, keys, buffers that
// are too small, faults of the sender, address handles, multicast.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <sys/socket.h>
#include <thread>

#include "lib/rc_pair.hpp"
#include "lib/ud_pair.hpp"

using namespace vt;

const char *const program_suite = "ud";

namespace {

uint16_t ip_checksum(const uint8_t *header, size_t len)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < len; i += 2)
		sum += header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return static_cast<uint16_t>(~sum);
}

// One message from a to b that has to arrive.
void deliver(ud_pair &p, size_t size, const std::string &what, uint32_t qkey)
{
	buffer source(p.a.pd.get(), size), target(p.b.pd.get(), ud_header + size);
	fill_pattern(source.bytes(0, size), size);
	target.clear();
	p.b.must_post_recv(2, target.sge());
	ibv_sge sge = source.sge();
	const int rc = p.a.post_send(1, &sge, size ? 1 : 0, p.b, qkey);
	REQUIRE(!rc, "%s: post: %s", what.c_str(), error_text(rc).c_str());
	expect_wc(p.a.scq.get(), p.ms(5000), 1, IBV_WC_SUCCESS, IBV_WC_SEND, what);
	const ibv_wc wc = expect_wc(p.b.rcq.get(), p.ms(5000), 2, IBV_WC_SUCCESS, IBV_WC_RECV, what);
	CHECK_EQ(wc.byte_len, ud_header + size, what);
	check_pattern(target.bytes(ud_header, size), size, what);
	target.check_canaries(what);
}

void header_in_front(env &e)
{
	ud_pair p(e);
	constexpr uint8_t traffic_class = 0x28;
	p.a.ah = p.a.make_ah(p.b.gid.raw, traffic_class, 33);
	constexpr size_t size = 100;
	buffer source(p.a.pd.get(), size), target(p.b.pd.get(), ud_header + size);
	target.clear();
	p.b.must_post_recv(2, target.sge());
	ibv_sge sge = source.sge();
	REQUIRE(!p.a.post_send(1, &sge, 1, p.b, p.b.qkey), "post");
	const ibv_wc wc = expect_wc(p.b.rcq.get(), p.ms(5000), 2, IBV_WC_SUCCESS, IBV_WC_RECV, "header");
	CHECK_EQ(wc.byte_len, ud_header + size);
	CHECK_EQ(wc.src_qp, p.a.qp->qp_num);
	CHECK_EQ(wc.qp_num, p.b.qp->qp_num);
	CHECK_EQ(wc.pkey_index, 0);
	CHECK_EQ(wc.slid, 0);
	// BTH and DETH, the data with its pad, ICRC
	constexpr size_t udp = 8 + 12 + 8 + size + 4;
	const uint8_t *h = target.data();
	if (e.opt.family == 4) {
		h += 20;
		CHECK_EQ(h[0], 0x45, "version and header length");
		CHECK_EQ(h[1] & ~3, traffic_class & ~3, "ToS");
		CHECK_EQ(h[2] << 8 | h[3], 20 + udp, "total length");
		CHECK_EQ((h[6] << 8 | h[7]) & 0x7fff, 0x4000, "DF, no fragment");
		CHECK_EQ(h[9], IPPROTO_UDP, "protocol");
		CHECK_EQ(ip_checksum(h, 20), 0, "header checksum");
		CHECK(!memcmp(h + 12, p.a.gid.raw.raw + 12, 4), "source address");
		CHECK(!memcmp(h + 16, p.b.gid.raw.raw + 12, 4), "destination address");
	} else {
		CHECK_EQ(h[0] >> 4, 6, "version");
		CHECK_EQ(((h[0] & 15) << 4 | h[1] >> 4) & ~3, traffic_class & ~3, "traffic class");
		CHECK_EQ(h[4] << 8 | h[5], udp, "payload length");
		CHECK_EQ(h[6], IPPROTO_UDP, "next header");
		CHECK(!memcmp(h + 8, p.a.gid.raw.raw, 16), "source address");
		CHECK(!memcmp(h + 24, p.b.gid.raw.raw, 16), "destination address");
	}
	// which libibverbs makes an address of the answer from
	ibv_ah_attr back{};
	const int rc = ibv_init_ah_from_wc(p.b.dev->ctx(), 1, const_cast<ibv_wc *>(&wc),
					   reinterpret_cast<ibv_grh *>(target.data()), &back);
	REQUIRE(!rc, "ibv_init_ah_from_wc: %d", rc);
	CHECK(!memcmp(&back.grh.dgid, &p.a.gid.raw, 16), "the answer goes elsewhere");
	CHECK_EQ(back.grh.sgid_index, p.b.gid.index);
	ah_handle ah(ibv_create_ah(p.b.pd.get(), &back));
	REQUIRE(ah, "ibv_create_ah: %s", strerror(errno));
	p.b.ah = std::move(ah);
	buffer answer(p.a.pd.get(), ud_header + 8), word(p.b.pd.get(), 8);
	p.a.must_post_recv(3, answer.sge());
	sge = word.sge();
	REQUIRE(!p.b.post_send(4, &sge, 1, p.a, p.a.qkey), "post");
	expect_wc(p.a.rcq.get(), p.ms(5000), 3, IBV_WC_SUCCESS, IBV_WC_RECV, "answer");
	expect_wc(p.b.scq.get(), p.ms(5000), 4, IBV_WC_SUCCESS, IBV_WC_SEND, "answer");
}

void small_buffer(env &e)
{
	for (const auto &[room, size] : { std::pair(ud_header + 99, 100u), std::pair(ud_header, 1u),
					  std::pair(39u, 0u), std::pair(1u, 100u), std::pair(100u, 1000u) }) {
		const std::string what = text("%u bytes into %u", size, room);
		ud_pair p(e);
		buffer source(p.a.pd.get(), size), target(p.b.pd.get(), room);
		p.b.must_post_recv(2, target.sge());
		ibv_sge sge = source.sge();
		REQUIRE(!p.a.post_send(1, &sge, size ? 1 : 0, p.b, p.b.qkey), "post");
		expect_wc(p.a.scq.get(), p.ms(5000), 1, IBV_WC_SUCCESS, IBV_WC_SEND, what);
		const auto wc = next_wc(p.b.rcq.get(), 100);
		CHECK(!wc || wc->status == IBV_WC_LOC_LEN_ERR, "%s: %s", what.c_str(),
		      wc ? describe(*wc).c_str() : "");
		target.check_canaries(what);
		if (!wc && room >= ud_header) {
			// dropped: the buffer waits for one that fits
			REQUIRE(!p.a.post_send(3, &sge, 0, p.b, p.b.qkey), "post");
			expect_wc(p.b.rcq.get(), p.ms(5000), 2, IBV_WC_SUCCESS, IBV_WC_RECV, what + ", next one fits");
		}
	}
}

void keys(env &e)
{
	ud_config c;
	c.qkey_a = 0x11111111;
	c.qkey_b = 0x22222222;
	ud_pair p(e, c);
	buffer source(p.a.pd.get(), 8), target(p.b.pd.get(), ud_header + 8);
	ibv_sge sge = source.sge();
	p.b.must_post_recv(2, target.sge());
	for (const uint32_t wrong : { 0u, 0x11111111u, 0x22222223u, 0x80000000u, 0xa2222222u }) {
		REQUIRE(!p.a.post_send(1, &sge, 1, p.b, wrong), "post");
		expect_wc(p.a.scq.get(), p.ms(5000), 1, IBV_WC_SUCCESS, IBV_WC_SEND, "wrong key");
		expect_no_wc(p.b.rcq.get(), 30, text("Q_Key %#x", wrong));
	}
	REQUIRE(!p.a.post_send(1, &sge, 1, p.b, 0x22222222), "post");
	expect_wc(p.b.rcq.get(), p.ms(5000), 2, IBV_WC_SUCCESS, IBV_WC_RECV, "right key");
	expect_wc(p.a.scq.get(), p.ms(5000), 1, IBV_WC_SUCCESS, IBV_WC_SEND, "right key");
	// with bit 31 set it is the sender's own key
	ibv_qp_attr at{};
	at.qkey = 0x22222222;
	REQUIRE(!ibv_modify_qp(p.a.qp.get(), &at, IBV_QP_QKEY), "change Q_Key");
	p.b.must_post_recv(3, target.sge());
	REQUIRE(!p.a.post_send(4, &sge, 1, p.b, 0x80000000), "post");
	expect_wc(p.b.rcq.get(), p.ms(5000), 3, IBV_WC_SUCCESS, IBV_WC_RECV, "Q_Key of the sender's queue pair");
}

void nobody_there(env &e)
{
	ud_pair p(e);
	buffer source(p.a.pd.get(), 8);
	ibv_sge sge = source.sge();
	// no receive posted, then a queue pair that is not there
	for (int i = 0; i < 20; i++) {
		REQUIRE(!p.a.post_send(i, &sge, 1, p.b, p.b.qkey), "post");
		expect_wc(p.a.scq.get(), p.ms(5000), i, IBV_WC_SUCCESS, IBV_WC_SEND, "no receive");
	}
	ibv_send_wr wr{}, *bad;
	wr.wr_id = 99;
	wr.opcode = IBV_WR_SEND;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.ud.ah = p.a.ah.get();
	wr.wr.ud.remote_qpn = 0xfffff0;
	wr.wr.ud.remote_qkey = 1;
	REQUIRE(!ibv_post_send(p.a.qp.get(), &wr, &bad), "post");
	expect_wc(p.a.scq.get(), p.ms(5000), 99, IBV_WC_SUCCESS, IBV_WC_SEND, "no queue pair");
	expect_no_wc(p.b.rcq.get(), 20, "none was kept");
	deliver(p, 50, "afterwards", p.b.qkey);
}

void too_long(env &e)
{
	ud_pair p(e);
	const uint32_t mtu = mtu_bytes(p.a.dev->port().active_mtu);
	buffer source(p.a.pd.get(), mtu + 1), target(p.b.pd.get(), ud_header + mtu + 1);
	target.clear();
	p.b.must_post_recv(2, target.sge());
	ibv_sge sge = source.sge();
	const int rc = p.a.post_send(1, &sge, 1, p.b, p.b.qkey);
	if (!rc) {
		const auto wc = next_wc(p.a.scq.get(), p.ms(5000));
		REQUIRE(wc, "no completion");
		note(text("completes with %s", ibv_wc_status_str(wc->status)));
	}
	expect_no_wc(p.b.rcq.get(), 50, "longer than the MTU");
	target.check_clear(0, target.size(), "longer than the MTU");
}

// A fault of the sender stops sending alone.
void sender_fault(env &e)
{
	ud_pair p(e);
	buffer source(p.a.pd.get(), 64), target(p.a.pd.get(), ud_header + 64);
	ibv_sge sge = source.sge();
	sge.lkey ^= 0x5a5a5a00;
	REQUIRE(!p.a.post_send(1, &sge, 1, p.b, p.b.qkey), "post");
	REQUIRE(!p.a.post_send(2, &sge, 1, p.b, p.b.qkey), "post");
	expect_wc(p.a.scq.get(), p.ms(5000), 1, IBV_WC_LOC_PROT_ERR, -1, "L_Key fault");
	expect_wc(p.a.scq.get(), p.ms(5000), 2, IBV_WC_WR_FLUSH_ERR, -1, "behind it");
	ibv_qp_attr at{};
	ibv_qp_init_attr init{};
	REQUIRE(!ibv_query_qp(p.a.qp.get(), &at, IBV_QP_STATE, &init), "ibv_query_qp");
	REQUIRE_EQ(at.qp_state, IBV_QPS_SQE);
	p.a.must_post_recv(3, target.sge());
	buffer there(p.b.pd.get(), 64);
	ibv_sge tsge = there.sge();
	REQUIRE(!p.b.post_send(4, &tsge, 1, p.a, p.a.qkey), "post");
	expect_wc(p.a.rcq.get(), p.ms(5000), 3, IBV_WC_SUCCESS, IBV_WC_RECV, "receive in SQE");
	at = {};
	at.qp_state = IBV_QPS_RTS;
	REQUIRE(!ibv_modify_qp(p.a.qp.get(), &at, IBV_QP_STATE), "SQE to RTS");
	deliver(p, 64, "after SQE", p.b.qkey);
}

void receive_fault(env &e)
{
	ud_pair p(e);
	buffer source(p.a.pd.get(), 64), target(p.b.pd.get(), ud_header + 64);
	ibv_sge rsge = target.sge();
	rsge.lkey ^= 0x5a5a5a00;
	target.clear();
	p.b.must_post_recv(2, rsge);
	ibv_sge sge = source.sge();
	REQUIRE(!p.a.post_send(1, &sge, 1, p.b, p.b.qkey), "post");
	expect_wc(p.a.scq.get(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, "sender knows nothing");
	const auto wc = next_wc(p.b.rcq.get(), 200);
	CHECK(!wc || wc->status != IBV_WC_SUCCESS, "delivered into memory with a wrong key");
	target.check_clear(0, target.size(), "wrong L_Key");
}

void address_handles(env &e)
{
	ud_pair p(e);
	ibv_ah_attr good{};
	good.port_num = 1;
	good.is_global = 1;
	good.grh.dgid = p.b.gid.raw;
	good.grh.sgid_index = static_cast<uint8_t>(p.a.gid.index);
	good.grh.hop_limit = 1;
	const auto refused = [&](const char *what, const ibv_ah_attr &at) {
		ibv_ah_attr copy = at;
		ah_handle ah(ibv_create_ah(p.a.pd.get(), &copy));
		CHECK(!ah, "%s was accepted", what);
	};
	ibv_ah_attr at = good;
	at.port_num = 2;
	refused("port 2", at);
	at = good;
	at.grh.sgid_index = 250;
	refused("a GID index without a GID", at);
	at = good;
	at.is_global = 0;
	refused("no GRH", at);
	// many, and the queue pair of another PD may not use them
	std::vector<ah_handle> many;
	for (int i = 0; i < (e.full() ? 5000 : 200); i++) {
		many.emplace_back(ibv_create_ah(p.a.pd.get(), &good));
		REQUIRE(many.back(), "AH %d: %s", i, strerror(errno));
	}
	const pd_handle other = p.a.dev->make_pd();
	ah_handle foreign(ibv_create_ah(other.get(), &good));
	REQUIRE(foreign, "AH of another PD: %s", strerror(errno));
	std::swap(p.a.ah, foreign);
	buffer source(p.a.pd.get(), 8), target(p.b.pd.get(), ud_header + 8);
	p.b.must_post_recv(2, target.sge());
	ibv_sge sge = source.sge();
	const int rc = p.a.post_send(1, &sge, 1, p.b, p.b.qkey);
	if (!rc) {
		const auto wc = next_wc(p.a.scq.get(), p.ms(5000));
		CHECK(wc && wc->status != IBV_WC_SUCCESS, "an AH of another PD was used: %s",
		      wc ? describe(*wc).c_str() : "nothing");
	}
	expect_no_wc(p.b.rcq.get(), 50, "AH of another PD");
	std::swap(p.a.ah, foreign);
}

// Handles that are gone by the time their requests are sent.
void address_handle_gone(env &e)
{
	ud_pair p(e);
	buffer source(p.a.pd.get(), 8);
	for (int round = 0; round < 50; round++) {
		p.a.ah = p.a.make_ah(p.b.gid.raw);
		ibv_sge sge = source.sge();
		for (int i = 0; i < 16; i++)
			REQUIRE(!p.a.post_send(i, &sge, 1, p.b, p.b.qkey), "post");
		p.a.ah.reset();
		for (int i = 0; i < 16; i++) {
			const auto wc = next_wc(p.a.scq.get(), p.ms(5000));
			REQUIRE(wc, "round %d: only %d completions", round, i);
			if (wc->status != IBV_WC_SUCCESS) {
				// an error is a right answer; the queue pair starts over
				ibv_qp_attr at{};
				at.qp_state = IBV_QPS_RTS;
				while (++i < 16)
					REQUIRE(next_wc(p.a.scq.get(), p.ms(5000)), "round %d: no flush", round);
				if (ibv_modify_qp(p.a.qp.get(), &at, IBV_QP_STATE))
					return;
			}
		}
	}
}

// --- multicast --------------------------------------------------------------------

// Membership of the host in a group, as rdma_cm takes it.
class membership {
public:
	membership(const ud_side &side, const ibv_gid &group)
	{
		const netns_scope scope(side.dev->netns());
		const bool v4 = is_v4_mapped(group);
		fd_.reset(socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
		int rc;
		if (v4) {
			ip_mreqn m{};
			memcpy(&m.imr_multiaddr, group.raw + 12, 4);
			m.imr_ifindex = static_cast<int>(side.gid.ifindex);
			rc = setsockopt(fd_.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m));
		} else {
			ipv6_mreq m{};
			memcpy(&m.ipv6mr_multiaddr, group.raw, 16);
			m.ipv6mr_interface = side.gid.ifindex;
			rc = setsockopt(fd_.get(), IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m));
		}
		REQUIRE(!rc, "join group on interface %u: %s", side.gid.ifindex, strerror(errno));
	}

private:
	fd_handle fd_;
};

ibv_gid group_gid(int family, uint8_t last)
{
	ibv_gid g{};
	if (family == 4) {
		const uint8_t v4[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, last };
		memcpy(g.raw, v4, 16);
	} else {
		const uint8_t v6[] = { 0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, last };
		memcpy(g.raw, v6, 16);
	}
	return g;
}

void multicast(env &e)
{
	const ibv_gid group = group_gid(e.opt.family, 1), other = group_gid(e.opt.family, 2);
	ud_pair p(e), q(e); // q.b is a second receiver on the same device
	ud_config wrong_key;
	wrong_key.qkey_b = 0x33333333;
	ud_pair w(e, wrong_key);
	const membership member(p.b, group);
	p.a.ah = p.a.make_ah(group);

	buffer source(p.a.pd.get(), 500), tp(p.b.pd.get(), 1000), tq(q.b.pd.get(), 1000), tw(w.b.pd.get(), 1000);
	fill_pattern(source.bytes(0, 500), 3);
	p.b.must_post_recv(10, tp.sge());
	q.b.must_post_recv(20, tq.sge());
	w.b.must_post_recv(30, tw.sge());
	const auto send = [&] {
		ibv_sge sge = source.sge();
		ibv_send_wr wr{}, *bad;
		wr.wr_id = 1;
		wr.opcode = IBV_WR_SEND;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr.ud.ah = p.a.ah.get();
		wr.wr.ud.remote_qpn = 0xffffff;
		wr.wr.ud.remote_qkey = p.b.qkey;
		REQUIRE(!ibv_post_send(p.a.qp.get(), &wr, &bad), "post");
		expect_wc(p.a.scq.get(), p.ms(5000), 1, IBV_WC_SUCCESS, IBV_WC_SEND, "multicast");
	};
	const auto attach = [&](const ud_side &s, const ibv_gid &g) { return ibv_attach_mcast(s.qp.get(), &g, 0); };
	const auto detach = [&](const ud_side &s, const ibv_gid &g) { return ibv_detach_mcast(s.qp.get(), &g, 0); };

	send();
	expect_no_wc(p.b.rcq.get(), 50, "nobody is attached");
	int rc = attach(p.b, group);
	REQUIRE(!rc, "attach: %s", error_text(rc).c_str());
	CHECK_EQ(attach(w.b, group), 0, "attach with another Q_Key");
	CHECK_EQ(attach(q.b, other), 0, "attach to another group");
	send();
	const ibv_wc wc = expect_wc(p.b.rcq.get(), p.ms(5000), 10, IBV_WC_SUCCESS, IBV_WC_RECV, "attached");
	CHECK_EQ(wc.byte_len, ud_header + 500);
	CHECK_EQ(wc.src_qp, p.a.qp->qp_num);
	check_pattern(tp.bytes(ud_header, 500), 3, "multicast");
	expect_no_wc(q.b.rcq.get(), 30, "attached to another group");
	expect_no_wc(w.b.rcq.get(), 0, "another Q_Key");

	CHECK_EQ(attach(q.b, group), 0, "second queue pair");
	p.b.must_post_recv(11, tp.sge());
	send();
	expect_wc(p.b.rcq.get(), p.ms(5000), 11, IBV_WC_SUCCESS, IBV_WC_RECV, "first of two");
	expect_wc(q.b.rcq.get(), p.ms(5000), 20, IBV_WC_SUCCESS, IBV_WC_RECV, "second of two");
	check_pattern(tq.bytes(ud_header, 500), 3, "multicast");
	expect_no_wc(p.b.rcq.get(), 20, "one copy each");

	CHECK_EQ(detach(p.b, group), 0, "detach");
	p.b.must_post_recv(12, tp.sge());
	q.b.must_post_recv(21, tq.sge());
	send();
	expect_wc(q.b.rcq.get(), p.ms(5000), 21, IBV_WC_SUCCESS, IBV_WC_RECV, "still attached");
	expect_no_wc(p.b.rcq.get(), 30, "detached");
	CHECK(detach(p.b, group) != 0, "detached twice");
	CHECK_EQ(detach(q.b, group), 0, "detach");
	CHECK_EQ(detach(q.b, other), 0, "detach");
	CHECK_EQ(detach(w.b, group), 0, "detach");
}

void multicast_rules(env &e)
{
	const ibv_gid group = group_gid(e.opt.family, 3);
	ud_pair p(e);
	CHECK(ibv_attach_mcast(p.b.qp.get(), &p.b.gid.raw, 0) != 0, "attached to a unicast GID");
	CHECK(ibv_detach_mcast(p.b.qp.get(), &group, 0) != 0, "detached without being attached");
	{
		rc_pair rc(e);
		CHECK(ibv_attach_mcast(rc.b.qp.get(), &group, 0) != 0, "attached an RC queue pair");
	}
	int error = ibv_attach_mcast(p.b.qp.get(), &group, 0);
	REQUIRE(!error, "attach: %s", error_text(error).c_str());
	error = ibv_destroy_qp(p.b.qp.get());
	CHECK(error == EBUSY, "destroyed while attached: %s", error_text(error).c_str());
	CHECK_EQ(ibv_detach_mcast(p.b.qp.get(), &group, 0), 0);
	// as many groups as it says, per queue pair at least some hundred
	const int count = e.full() ? 255 : 60;
	for (int i = 0; i < count; i++) {
		const ibv_gid g = group_gid(e.opt.family, static_cast<uint8_t>(i));
		error = ibv_attach_mcast(p.b.qp.get(), &g, 0);
		REQUIRE(!error, "attach to group %d: %s", i, error_text(error).c_str());
	}
	for (int i = 0; i < count; i++) {
		const ibv_gid g = group_gid(e.opt.family, static_cast<uint8_t>(i));
		CHECK_EQ(ibv_detach_mcast(p.b.qp.get(), &g, 0), 0);
	}
	// as many queue pairs as it says, and no more
	std::vector<std::unique_ptr<ud_pair>> all;
	const int most = p.b.dev->attr().max_mcast_qp_attach;
	if (most > (e.full() ? 256 : 64))
		return;
	for (int i = 0; i < most; i++) {
		all.push_back(std::make_unique<ud_pair>(e));
		error = ibv_attach_mcast(all.back()->b.qp.get(), &group, 0);
		REQUIRE(!error, "queue pair %d of %d: %s", i, most, error_text(error).c_str());
	}
	CHECK(ibv_attach_mcast(p.b.qp.get(), &group, 0) != 0, "one queue pair more than max_mcast_qp_attach");
	for (auto &u : all)
		CHECK_EQ(ibv_detach_mcast(u->b.qp.get(), &group, 0), 0);
}

// Attaching and detaching while datagrams come in.
void multicast_race(env &e)
{
	const ibv_gid group = group_gid(e.opt.family, 5);
	ud_pair p(e), q(e);
	const membership member(p.b, group);
	p.a.ah = p.a.make_ah(group);
	buffer source(p.a.pd.get(), 64);
	std::atomic<bool> stop = false;
	std::thread churn([&] {
		while (!stop) {
			if (ibv_attach_mcast(q.b.qp.get(), &group, 0) || ibv_detach_mcast(q.b.qp.get(), &group, 0)) {
				FAIL("attach or detach");
				break;
			}
		}
	});
	const int rounds = e.full() ? 5000 : 300;
	for (int i = 0; i < rounds && !has_failed(); i++) {
		ibv_sge sge = source.sge();
		ibv_send_wr wr{}, *bad;
		wr.opcode = IBV_WR_SEND;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr.ud.ah = p.a.ah.get();
		wr.wr.ud.remote_qpn = 0xffffff;
		wr.wr.ud.remote_qkey = p.b.qkey;
		if (ibv_post_send(p.a.qp.get(), &wr, &bad) || !next_wc(p.a.scq.get(), p.ms(5000))) {
			FAIL("send %d", i);
			break;
		}
	}
	stop = true;
	churn.join();
}

void state_masks(env &e)
{
	ud_pair p(e);
	const auto modify = [&](ibv_qp_state to, int mask) {
		ibv_qp_attr at{};
		at.qp_state = to;
		at.port_num = 1;
		at.qkey = 5;
		return ibv_modify_qp(p.a.qp.get(), &at, mask);
	};
	constexpr int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	CHECK_EQ(modify(IBV_QPS_RESET, IBV_QP_STATE), 0);
	CHECK_EQ(modify(IBV_QPS_INIT, init & ~IBV_QP_QKEY), EINVAL, "INIT without QKEY");
	CHECK_EQ(modify(IBV_QPS_INIT, init & ~IBV_QP_PORT), EINVAL, "INIT without PORT");
	CHECK_EQ(modify(IBV_QPS_INIT, init | IBV_QP_ACCESS_FLAGS), EINVAL, "INIT with ACCESS_FLAGS");
	CHECK_EQ(modify(IBV_QPS_INIT, init), 0);
	CHECK_EQ(modify(IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_PATH_MTU), EINVAL, "RTR with PATH_MTU");
	CHECK_EQ(modify(IBV_QPS_RTR, IBV_QP_STATE), 0);
	CHECK_EQ(modify(IBV_QPS_RTS, IBV_QP_STATE), EINVAL, "RTS without SQ_PSN");
	CHECK_EQ(modify(IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT), EINVAL, "RTS with TIMEOUT");
	CHECK_EQ(modify(IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	CHECK_EQ(modify(IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_QKEY), 0);
	CHECK_EQ(modify(IBV_QPS_SQD, IBV_QP_STATE), 0);
	CHECK_EQ(modify(IBV_QPS_RTS, IBV_QP_STATE), 0);
}

} // namespace

void add_tests(registry &r, const options &o)
{
	const auto add = [&](const char *name, void (*body)(env &), int seconds = 20) {
		r.add(text("%s, v%d", name, o.family), body, seconds);
	};
	add("40 bytes in front [R053,R008]", header_in_front);
	add("buffer too small [R054]", small_buffer);
	add("Q_Key [R017]", keys);
	add("nobody there [R015]", nobody_there);
	add("longer than the MTU", too_long);
	add("sender's fault: SQE", sender_fault);
	add("receiver's fault", receive_fault);
	add("address handles", address_handles, 40);
	add("address handle gone under traffic", address_handle_gone);
	add("multicast [R056]", multicast);
	add("multicast rules and limits [R056,B65]", multicast_rules, 40);
	add("multicast attach under traffic [B65]", multicast_race, 40);
	add("modify_qp masks [R049]", state_masks);
}
