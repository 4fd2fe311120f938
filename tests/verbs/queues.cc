// SPDX-License-Identifier: GPL-2.0
//
// How queues behave: states and their masks, order, signalling, flushing,
// draining, fences, sequence numbers that wrap, completion and shared receive
// queues with their events, limits, memory registration.

#include <algorithm>
#include <atomic>
#include <endian.h>
#include <functional>
#include <memory>
#include <set>
#include <sys/mman.h>
#include <thread>

#include "lib/rc_pair.hpp"

using namespace vt;

const char *const program_suite = "queues";

namespace {

// --- order and flushing ----------------------------------------------------------

void flush_order(env &e)
{
	rc_config c;
	c.both([](side_config &s) { s.send_wr = s.recv_wr = 32; });
	rc_pair p(e, c);
	buffer local(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
	ibv_sge sge = local.sge();
	for (int i = 0; i < 5; i++)
		p.b.must_post_recv(200 + i, target.sge());
	for (int i = 0; i < 5; i++)
		p.a.must_post_recv(300 + i, local.sge());
	// two good ones, a bad one, then what has to be flushed
	for (int i = 0; i < 8; i++) {
		ibv_send_wr wr = rdma_wr(i, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, target.addr(),
					 i == 2 ? 0x12345600 : target.rkey());
		p.a.must_post(wr);
	}
	for (int i = 0; i < 8; i++)
		expect_wc(p.a.scq(), p.ms(5000), i,
			  i < 2	 ? IBV_WC_SUCCESS :
			  i == 2 ? IBV_WC_REM_ACCESS_ERR :
				   IBV_WC_WR_FLUSH_ERR,
			  -1, text("send %d", i));
	for (int i = 0; i < 5; i++) {
		expect_wc(p.b.rcq(), p.ms(5000), 200 + i, IBV_WC_WR_FLUSH_ERR, -1, "responder's receives");
		expect_wc(p.a.rcq(), p.ms(5000), 300 + i, IBV_WC_WR_FLUSH_ERR, -1, "requester's receives");
	}
	// what is posted to a queue pair in error comes back flushed as well
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++) {
			ibv_send_wr wr = send_wr(400 + i, IBV_WR_SEND, &sge);
			p.a.must_post(wr);
			p.a.must_post_recv(500 + i, local.sge());
		}
		for (int i = 0; i < 4; i++) {
			const ibv_wc s = expect_wc(p.a.scq(), p.ms(5000), 400 + i, IBV_WC_WR_FLUSH_ERR, -1, "late send");
			CHECK_EQ(s.qp_num, p.a.qp->qp_num);
			expect_wc(p.a.rcq(), p.ms(5000), 500 + i, IBV_WC_WR_FLUSH_ERR, -1, "late receive");
		}
	}
	expect_no_wc(p.a.scq(), 20, "everything was reported");
	p.reconnect();
	check_alive(p, "afterwards");
}

// Moving to ERR by hand, in the middle of traffic.
void flush_by_hand(env &e)
{
	rc_config c;
	c.both([](side_config &s) { s.send_wr = s.recv_wr = 64; });
	rc_pair p(e, c);
	buffer local(p.a.pd.get(), 100000), target(p.b.pd.get(), 100000);
	for (int round = 0; round < 10; round++) {
		const std::string what = text("round %d", round);
		ibv_sge sge = local.sge();
		for (int i = 0; i < 40; i++) {
			p.a.must_post_recv(1000 + i, local.sge(0, 64));
			ibv_send_wr wr = rdma_wr(i, i % 3 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, &sge, target.addr(),
						 target.rkey());
			p.a.must_post(wr);
		}
		usleep(round * 300);
		REQUIRE(!p.a.to_state(IBV_QPS_ERR), "to ERR");
		bool flushing = false;
		for (int i = 0; i < 40; i++) {
			const auto wc = next_wc(p.a.scq(), p.ms(5000));
			REQUIRE(wc, "%s: only %d completions", what.c_str(), i);
			CHECK_EQ(wc->wr_id, i, what);
			CHECK(wc->status == IBV_WC_WR_FLUSH_ERR || (!flushing && wc->status == IBV_WC_SUCCESS),
			      "%s: %s", what.c_str(), describe(*wc).c_str());
			flushing |= wc->status != IBV_WC_SUCCESS;
		}
		for (int i = 0; i < 40; i++)
			expect_wc(p.a.rcq(), p.ms(5000), 1000 + i, IBV_WC_WR_FLUSH_ERR, -1, what);
		expect_no_wc(p.a.scq(), 5, what);
		p.reconnect();
	}
	check_alive(p, "afterwards");
}

void unsignalled(env &e)
{
	rc_config c;
	c.a.signal_all = false;
	c.a.send_wr = 16;
	rc_pair p(e, c);
	buffer local(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
	ibv_sge sge = local.sge();
	ibv_qp_init_attr init{};
	p.a.query(&init);
	const int depth = static_cast<int>(init.cap.max_send_wr);
	CHECK_EQ(init.sq_sig_all, 0);
	// many times around the queue; only the signalled ones report
	uint64_t id = 0;
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < depth; i++) {
			ibv_send_wr wr = rdma_wr(++id, IBV_WR_RDMA_WRITE, &sge, target.addr(), target.rkey(), 1,
						 i == depth - 1 ? IBV_SEND_SIGNALED : 0);
			const int rc = p.a.post(wr);
			REQUIRE(!rc, "round %d, request %d of %d: %s", round, i, depth, error_text(rc).c_str());
		}
		expect_wc(p.a.scq(), p.ms(5000), id, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, "signalled one");
		expect_no_wc(p.a.scq(), 0, "unsignalled ones");
	}
	// an unsignalled one that fails does report, and so do all behind it
	for (int i = 0; i < 4; i++) {
		ibv_send_wr wr = rdma_wr(1000 + i, IBV_WR_RDMA_WRITE, &sge, target.addr(),
					 i == 1 ? 0x12345600 : target.rkey(), 1, 0);
		p.a.must_post(wr);
	}
	expect_wc(p.a.scq(), p.ms(5000), 1001, IBV_WC_REM_ACCESS_ERR, -1, "failed one");
	expect_wc(p.a.scq(), p.ms(5000), 1002, IBV_WC_WR_FLUSH_ERR, -1, "flushed one");
	expect_wc(p.a.scq(), p.ms(5000), 1003, IBV_WC_WR_FLUSH_ERR, -1, "flushed one");
	expect_no_wc(p.a.scq(), 20, "nothing more");
}

// Queues of every small depth, filled and emptied until the indices wrapped.
void small_rings(env &e)
{
	const int rounds = e.full() ? 3000 : 300;
	for (const uint32_t depth : { 1u, 2u, 3u, 5u }) {
		rc_config c;
		c.both([=](side_config &s) {
			s.send_wr = s.recv_wr = depth;
			s.cq_entries = static_cast<int>(depth);
		});
		rc_pair p(e, c);
		buffer local(p.a.pd.get(), 8), target(p.b.pd.get(), 8 * depth);
		uint64_t id = 0;
		for (int round = 0; round < rounds; round++) {
			*reinterpret_cast<uint64_t *>(local.data()) = round;
			ibv_sge sge = local.sge();
			for (uint32_t i = 0; i < depth; i++)
				p.b.must_post_recv(id + i, target.sge(8 * i, 8));
			for (uint32_t i = 0; i < depth; i++) {
				ibv_send_wr wr = send_wr(id + i, IBV_WR_SEND, &sge);
				p.a.must_post(wr);
			}
			for (uint32_t i = 0; i < depth; i++) {
				expect_wc(p.b.rcq(), p.ms(5000), id + i, IBV_WC_SUCCESS, IBV_WC_RECV,
					  text("depth %u round %d", depth, round));
				expect_wc(p.a.scq(), p.ms(5000), id + i, IBV_WC_SUCCESS, IBV_WC_SEND,
					  text("depth %u round %d", depth, round));
				REQUIRE_EQ(*reinterpret_cast<uint64_t *>(target.data() + 8 * i), round);
			}
			id += depth;
		}
	}
}

void full_queues(env &e)
{
	rc_config c;
	c.connect = false;
	c.both([](side_config &s) { s.send_wr = s.recv_wr = 8; });
	rc_pair p(e, c);
	buffer local(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
	ibv_qp_init_attr init{};
	p.a.query(&init);
	REQUIRE(!p.a.to_init(), "to INIT");
	uint32_t posted = 0;
	int rc = 0;
	ibv_sge sge = local.sge();
	while (posted < 4096 && !(rc = p.a.post_recv(posted, { &sge, 1 })))
		posted++;
	CHECK_EQ(rc, ENOMEM, "receive queue full");
	CHECK(posted >= init.cap.max_recv_wr, "%u receives fit, promised %u", posted, init.cap.max_recv_wr);

	p.connect();
	// nothing completes while the peer is silent
	REQUIRE(!p.b.to_state(IBV_QPS_RESET), "to RESET");
	ibv_send_wr list[64]{};
	for (int i = 0; i < 64; i++) {
		list[i] = rdma_wr(i, IBV_WR_RDMA_WRITE, &sge, target.addr(), target.rkey());
		list[i].next = i < 63 ? &list[i + 1] : nullptr;
	}
	ibv_send_wr *bad = nullptr;
	rc = ibv_post_send(p.a.qp.get(), list, &bad);
	CHECK_EQ(rc, ENOMEM, "send queue full");
	REQUIRE(bad && bad > list && bad < list + 64, "bad_wr is not the one that did not fit");
	const long fit = bad - list;
	CHECK(fit >= static_cast<long>(init.cap.max_send_wr), "%ld sends fit, promised %u", fit,
	      init.cap.max_send_wr);
	REQUIRE(!p.a.to_state(IBV_QPS_ERR), "to ERR");
	// those before bad_wr were posted, those from it on were not
	for (long i = 0; i < fit; i++)
		expect_wc(p.a.scq(), p.ms(5000), i, IBV_WC_WR_FLUSH_ERR, -1, "posted part of the list");
	expect_no_wc(p.a.scq(), 20, "refused part of the list");
}

void bad_posts(env &e)
{
	rc_config c;
	c.both([](side_config &s) { s.send_sge = s.recv_sge = 2; });
	rc_pair p(e, c);
	buffer local(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
	ibv_qp_init_attr init{};
	p.a.query(&init);
	std::vector<ibv_sge> many(init.cap.max_send_sge + 1, local.sge(0, 1));
	ibv_send_wr good = rdma_wr(1, IBV_WR_RDMA_WRITE, many.data(), target.addr(), target.rkey());
	ibv_send_wr wrong = rdma_wr(2, IBV_WR_RDMA_WRITE, many.data(), target.addr(), target.rkey(),
				    static_cast<int>(many.size()));
	ibv_send_wr after = rdma_wr(3, IBV_WR_RDMA_WRITE, many.data(), target.addr(), target.rkey());
	good.next = &wrong;
	wrong.next = &after;
	ibv_send_wr *bad = nullptr;
	int rc = ibv_post_send(p.a.qp.get(), &good, &bad);
	CHECK(rc == EINVAL || rc == ENOMEM, "too many elements: %s", error_text(rc).c_str());
	CHECK(bad == &wrong, "bad_wr does not name the wrong one");
	expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, "the good one before");
	expect_no_wc(p.a.scq(), 20, "the ones behind");
	wrong.num_sge = -1;
	wrong.next = nullptr;
	rc = p.a.post(wrong);
	CHECK(rc == EINVAL || rc == ENOMEM, "num_sge -1: %s", error_text(rc).c_str());

	many.assign(init.cap.max_recv_sge + 1, local.sge(0, 1));
	rc = p.a.post_recv(1, many);
	CHECK(rc == EINVAL || rc == ENOMEM, "too many receive elements: %s", error_text(rc).c_str());
	check_alive(p, "afterwards");
}

// For every opcode either an error at once or a completion, never nothing.
void every_opcode(env &e)
{
	rc_pair p(e);
	buffer local(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
	for (int opcode = 0; opcode < 40; opcode++) {
		const std::string what = text("opcode %d", opcode);
		ibv_sge sge = local.sge(0, 8);
		ibv_send_wr wr{};
		wr.wr_id = 7;
		wr.opcode = static_cast<ibv_wr_opcode>(opcode);
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.send_flags = IBV_SEND_SIGNALED;
		if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr.wr.atomic.remote_addr = target.addr();
			wr.wr.atomic.rkey = target.rkey();
		} else {
			wr.wr.rdma.remote_addr = target.addr();
			wr.wr.rdma.rkey = target.rkey();
		}
		for (int i = 0; i < 2; i++)
			p.b.must_post_recv(i, target.sge());
		const int rc = p.a.post(wr);
		if (rc) {
			CHECK(rc > 0, "%s: %s", what.c_str(), error_text(rc).c_str());
		} else {
			const auto wc = next_wc(p.a.scq(), p.ms(3000));
			REQUIRE(wc, "%s: neither an error nor a completion", what.c_str());
			CHECK_EQ(wc->wr_id, 7, what);
			if (opcode > IBV_WR_ATOMIC_FETCH_AND_ADD && opcode != IBV_WR_SEND_WITH_INV)
				note(text("%s: %s", what.c_str(), ibv_wc_status_str(wc->status)));
		}
		p.reconnect();
	}
	check_alive(p, "afterwards");
}

// --- states ----------------------------------------------------------------------------

void posts_by_state(env &e)
{
	rc_config c;
	c.connect = false;
	rc_pair p(e, c);
	buffer local(p.a.pd.get(), 64);
	ibv_sge sge = local.sge();
	const auto send = [&] {
		ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);
		return p.a.post(wr);
	};
	const auto recv = [&] { return p.a.post_recv(2, { &sge, 1 }); };
	CHECK_EQ(send(), EINVAL, "send in RESET");
	CHECK_EQ(recv(), EINVAL, "receive in RESET");
	REQUIRE(!p.a.to_init() && !p.b.to_init(), "to INIT");
	CHECK_EQ(send(), EINVAL, "send in INIT");
	CHECK_EQ(recv(), 0, "receive in INIT");
	REQUIRE(!p.a.to_rtr(p.b, p.config.mtu) && !p.b.to_rtr(p.a, p.config.mtu), "to RTR");
	CHECK_EQ(send(), EINVAL, "send in RTR");
	CHECK_EQ(recv(), 0, "receive in RTR");
	REQUIRE(!p.a.to_rts() && !p.b.to_rts(), "to RTS");
	CHECK_EQ(recv(), 0, "receive in RTS");
	expect_no_wc(p.a.scq(), 10, "refused sends");
	// the receives of INIT, RTR and RTS are all there
	for (int i = 0; i < 3; i++) {
		ibv_send_wr wr = send_wr(9, IBV_WR_SEND, &sge);
		buffer far(p.b.pd.get(), 64);
		ibv_sge fsge = far.sge();
		wr.sg_list = &fsge;
		p.b.must_post(wr);
		expect_wc(p.b.scq(), p.ms(5000), 9, IBV_WC_SUCCESS, -1, "send to it");
		expect_wc(p.a.rcq(), p.ms(5000), 2, IBV_WC_SUCCESS, -1, "receive");
	}
	REQUIRE(!p.a.to_state(IBV_QPS_ERR), "to ERR");
	CHECK_EQ(send(), 0, "send in ERR");
	CHECK_EQ(recv(), 0, "receive in ERR");
	expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_WR_FLUSH_ERR, -1, "send in ERR");
	expect_wc(p.a.rcq(), p.ms(5000), 2, IBV_WC_WR_FLUSH_ERR, -1, "receive in ERR");
	REQUIRE(!p.a.to_state(IBV_QPS_RESET), "to RESET");
	CHECK_EQ(send(), EINVAL, "send in RESET again");
	CHECK_EQ(recv(), EINVAL, "receive in RESET again");
}

// Attributes that are right for every transition; the mask is what is tried.
ibv_qp_attr good_attr(const rc_side &mine, const rc_side &peer, ibv_qp_state to)
{
	ibv_qp_attr at{};
	at.qp_state = to;
	at.cur_qp_state = IBV_QPS_RTS;
	at.port_num = 1;
	at.qp_access_flags = qp_access_all;
	at.qkey = 1;
	at.path_mtu = IBV_MTU_1024;
	at.dest_qp_num = peer.qp->qp_num;
	at.max_dest_rd_atomic = 1;
	at.max_rd_atomic = 1;
	at.min_rnr_timer = 12;
	at.timeout = 14;
	at.retry_cnt = 7;
	at.rnr_retry = 7;
	at.ah_attr.port_num = 1;
	at.ah_attr.is_global = 1;
	at.ah_attr.grh.dgid = peer.gid.raw;
	at.ah_attr.grh.sgid_index = static_cast<uint8_t>(mine.gid.index);
	at.ah_attr.grh.hop_limit = 64;
	return at;
}

struct mask_name {
	int bit;
	const char *name;
};

constexpr mask_name mask_names[] = {
	{ IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS" },
	{ IBV_QP_PKEY_INDEX, "PKEY_INDEX" },
	{ IBV_QP_PORT, "PORT" },
	{ IBV_QP_QKEY, "QKEY" },
	{ IBV_QP_AV, "AV" },
	{ IBV_QP_PATH_MTU, "PATH_MTU" },
	{ IBV_QP_TIMEOUT, "TIMEOUT" },
	{ IBV_QP_RETRY_CNT, "RETRY_CNT" },
	{ IBV_QP_RNR_RETRY, "RNR_RETRY" },
	{ IBV_QP_RQ_PSN, "RQ_PSN" },
	{ IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC" },
	{ IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER" },
	{ IBV_QP_SQ_PSN, "SQ_PSN" },
	{ IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC" },
	{ IBV_QP_DEST_QPN, "DEST_QPN" },
};

constexpr int init_required = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int rtr_required = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int rts_required = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

void modify_masks(env &e)
{
	rc_config c;
	c.connect = false;
	rc_pair p(e, c);

	const auto walk_to = [&](ibv_qp_state s) {
		// a queue that drains can only go to ERR
		if (p.a.state() == IBV_QPS_SQD)
			REQUIRE(!p.a.to_state(IBV_QPS_ERR), "SQD to ERR");
		REQUIRE(!p.a.to_state(IBV_QPS_RESET), "to RESET");
		if (s == IBV_QPS_RESET)
			return;
		if (s == IBV_QPS_ERR) {
			REQUIRE(!p.a.to_init() && !p.a.to_state(IBV_QPS_ERR), "to ERR");
			return;
		}
		REQUIRE(!p.a.to_init(), "to INIT");
		if (s == IBV_QPS_INIT)
			return;
		REQUIRE(!p.a.to_rtr(p.b, p.config.mtu), "to RTR");
		if (s == IBV_QPS_RTR)
			return;
		REQUIRE(!p.a.to_rts(), "to RTS");
		if (s == IBV_QPS_SQD)
			REQUIRE(!p.a.to_state(IBV_QPS_SQD), "to SQD");
	};
	const auto modify = [&](ibv_qp_state to, int mask) {
		ibv_qp_attr at = good_attr(p.a, p.b, to);
		return ibv_modify_qp(p.a.qp.get(), &at, mask);
	};

	struct {
		const char *what;
		ibv_qp_state from, to;
		int required, optional;
	} const table[] = {
		{ "RESET to INIT", IBV_QPS_RESET, IBV_QPS_INIT, init_required, 0 },
		{ "INIT to INIT", IBV_QPS_INIT, IBV_QPS_INIT, IBV_QP_STATE,
		  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
		{ "INIT to RTR", IBV_QPS_INIT, IBV_QPS_RTR, rtr_required,
		  IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
		{ "RTR to RTS", IBV_QPS_RTR, IBV_QPS_RTS, rts_required,
		  IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER },
		{ "RTS to RTS", IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_STATE,
		  IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER },
		{ "RTS to SQD", IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_STATE, IBV_QP_EN_SQD_ASYNC_NOTIFY },
		{ "SQD to RTS", IBV_QPS_SQD, IBV_QPS_RTS, IBV_QP_STATE,
		  IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER },
		{ "SQD to SQD", IBV_QPS_SQD, IBV_QPS_SQD, IBV_QP_STATE,
		  IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |
			  IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER },
	};
	for (const auto &t : table) {
		const std::string base = t.what;
		walk_to(t.from);
		for (const mask_name &m : mask_names) {
			if (t.required & m.bit) {
				CHECK_EQ(modify(t.to, t.required & ~m.bit), EINVAL, base + " without " + m.name);
				CHECK_EQ(p.a.state(), t.from, base + " without " + m.name);
			} else if (!(t.optional & m.bit)) {
				CHECK_EQ(modify(t.to, t.required | m.bit), EINVAL, base + " with " + m.name);
				CHECK_EQ(p.a.state(), t.from, base + " with " + m.name);
			}
		}
		for (const mask_name &m : mask_names)
			if (t.optional & m.bit) {
				CHECK_EQ(modify(t.to, t.required | m.bit), 0, base + " with optional " + m.name);
				walk_to(t.from);
			}
		CHECK_EQ(modify(t.to, t.required), 0, base);
		CHECK_EQ(p.a.state(), t.to, base);
	}

	// transitions that do not exist
	constexpr std::pair<ibv_qp_state, ibv_qp_state> none[] = {
		{ IBV_QPS_RESET, IBV_QPS_RTR }, { IBV_QPS_RESET, IBV_QPS_RTS }, { IBV_QPS_RESET, IBV_QPS_SQD },
		{ IBV_QPS_RESET, IBV_QPS_ERR }, { IBV_QPS_INIT, IBV_QPS_RTS },	{ IBV_QPS_INIT, IBV_QPS_SQD },
		{ IBV_QPS_RTR, IBV_QPS_INIT },	{ IBV_QPS_RTR, IBV_QPS_SQD },	{ IBV_QPS_RTR, IBV_QPS_RTR },
		{ IBV_QPS_RTS, IBV_QPS_INIT },	{ IBV_QPS_RTS, IBV_QPS_RTR },	{ IBV_QPS_SQD, IBV_QPS_RTR },
		{ IBV_QPS_SQD, IBV_QPS_INIT },	{ IBV_QPS_ERR, IBV_QPS_INIT },	{ IBV_QPS_ERR, IBV_QPS_RTR },
		{ IBV_QPS_ERR, IBV_QPS_RTS },	{ IBV_QPS_ERR, IBV_QPS_SQD },	{ IBV_QPS_RTS, IBV_QPS_SQE },
	};
	for (const auto &[from, to] : none) {
		const int required = to == IBV_QPS_INIT ? init_required :
				     to == IBV_QPS_RTR	? rtr_required :
				     to == IBV_QPS_RTS	? rts_required :
							  IBV_QP_STATE;
		walk_to(from);
		CHECK_EQ(modify(to, required), EINVAL, text("state %d to %d", from, to));
		CHECK_EQ(modify(to, IBV_QP_STATE), EINVAL, text("state %d to %d, no attributes", from, to));
		CHECK_EQ(p.a.state(), from, text("state %d to %d", from, to));
	}
	// and those that always do
	for (const ibv_qp_state from : { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR }) {
		walk_to(from);
		CHECK_EQ(modify(IBV_QPS_ERR, IBV_QP_STATE), 0, text("state %d to ERR", from));
		walk_to(from);
		// there is nothing to drain
		const deadline end(p.ms(500));
		int rc;
		while ((rc = modify(IBV_QPS_RESET, IBV_QP_STATE)) && !end.passed())
			usleep(1000);
		CHECK_EQ(rc, 0, text("state %d to RESET", from));
	}
	CHECK_EQ(modify(IBV_QPS_RESET, IBV_QP_STATE), 0, "RESET to RESET");
}

void modify_values(env &e)
{
	rc_config c;
	c.connect = false;
	rc_pair p(e, c);
	const ibv_device_attr &dev = e.a().attr();
	const auto refused = [&](const std::string &what, ibv_qp_state to, int mask,
				 const std::function<void(ibv_qp_attr &)> &change) {
		ibv_qp_attr at = good_attr(p.a, p.b, to);
		change(at);
		const int rc = ibv_modify_qp(p.a.qp.get(), &at, mask);
		CHECK(rc == EINVAL || rc == ENODATA || rc == ENODEV, "%s: %s", what.c_str(), error_text(rc).c_str());
		if (!rc)
			p.a.to_state(IBV_QPS_RESET);
	};
	refused("port 2", IBV_QPS_INIT, init_required, [](ibv_qp_attr &a) { a.port_num = 2; });
	refused("port 0", IBV_QPS_INIT, init_required, [](ibv_qp_attr &a) { a.port_num = 0; });
	refused("P_Key index 60000", IBV_QPS_INIT, init_required, [](ibv_qp_attr &a) { a.pkey_index = 60000; });
	REQUIRE(!p.a.to_init(), "to INIT");
	const uint32_t active = e.a().port().active_mtu;
	if (active < IBV_MTU_4096)
		refused("path MTU above the port's", IBV_QPS_RTR, rtr_required,
			[&](ibv_qp_attr &a) { a.path_mtu = static_cast<ibv_mtu>(active + 1); });
	refused("path MTU 6", IBV_QPS_RTR, rtr_required,
		[](ibv_qp_attr &a) { a.path_mtu = static_cast<ibv_mtu>(6); });
	refused("path MTU 0", IBV_QPS_RTR, rtr_required,
		[](ibv_qp_attr &a) { a.path_mtu = static_cast<ibv_mtu>(0); });
	refused("GID index without a GID", IBV_QPS_RTR, rtr_required,
		[](ibv_qp_attr &a) { a.ah_attr.grh.sgid_index = 200; });
	refused("no GRH", IBV_QPS_RTR, rtr_required, [](ibv_qp_attr &a) { a.ah_attr.is_global = 0; });
	if (dev.max_qp_rd_atom < 255)
		refused("max_dest_rd_atomic + 1", IBV_QPS_RTR, rtr_required,
			[&](ibv_qp_attr &a) { a.max_dest_rd_atomic = static_cast<uint8_t>(dev.max_qp_rd_atom + 1); });
	REQUIRE(!p.a.to_init() || !p.a.to_state(IBV_QPS_RESET), "to INIT");
	if (p.a.state() == IBV_QPS_RESET)
		REQUIRE(!p.a.to_init(), "to INIT");
	REQUIRE(!p.a.to_rtr(p.b, p.config.mtu), "to RTR");
	if (dev.max_qp_init_rd_atom < 255)
		refused("max_rd_atomic + 1", IBV_QPS_RTS, rts_required,
			[&](ibv_qp_attr &a) { a.max_rd_atomic = static_cast<uint8_t>(dev.max_qp_init_rd_atom + 1); });
}

void query_returns_what_was_set(env &e)
{
	rc_config c;
	c.both([](side_config &s) {
		s.traffic_class = 0x68;
		s.flow_label = 0x12345;
		s.timeout = 13;
		s.retry_cnt = 5;
		s.rnr_retry = 3;
		s.min_rnr_timer = 9;
		s.max_rd_atomic = 3;
		s.max_dest_rd_atomic = 5;
		s.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
		s.send_sge = 3;
		s.recv_sge = 4;
	});
	rc_pair p(e, c);
	ibv_qp_init_attr init{};
	const ibv_qp_attr at = p.a.query(&init);
	CHECK_EQ(at.qp_state, IBV_QPS_RTS);
	CHECK_EQ(at.cur_qp_state, IBV_QPS_RTS);
	CHECK_EQ(at.path_mtu, IBV_MTU_1024);
	CHECK_EQ(at.dest_qp_num, p.b.qp->qp_num);
	CHECK_EQ(at.qp_access_flags & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC),
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	CHECK_EQ(at.timeout, 13);
	CHECK_EQ(at.retry_cnt, 5);
	CHECK_EQ(at.rnr_retry, 3);
	CHECK_EQ(at.min_rnr_timer, 9);
	CHECK_EQ(at.max_rd_atomic, 3);
	CHECK_EQ(at.max_dest_rd_atomic, 5);
	CHECK_EQ(at.port_num, 1);
	CHECK_EQ(at.pkey_index, 0);
	CHECK_EQ(at.rq_psn, p.b.config.sq_psn);
	CHECK_EQ(at.sq_psn, p.a.config.sq_psn);
	CHECK_EQ(at.ah_attr.is_global, 1);
	CHECK(!memcmp(&at.ah_attr.grh.dgid, &p.b.gid.raw, 16), "DGID differs");
	CHECK_EQ(at.ah_attr.grh.sgid_index, p.a.gid.index);
	CHECK_EQ(at.ah_attr.grh.traffic_class, 0x68);
	// the hop limit is the route's
	CHECK_EQ(at.ah_attr.grh.flow_label, 0x12345);
	CHECK(init.cap.max_send_wr >= 64 && init.cap.max_recv_wr >= 64 && init.cap.max_send_sge >= 3 &&
		      init.cap.max_recv_sge >= 4,
	      "cap is %u %u %u %u", init.cap.max_send_wr, init.cap.max_recv_wr, init.cap.max_send_sge,
	      init.cap.max_recv_sge);
	CHECK_EQ(init.qp_type, IBV_QPT_RC);
	CHECK(init.send_cq == p.a.scq() && init.recv_cq == p.a.rcq(), "CQs differ");
	check_alive(p, "with these attributes");
}

// Traffic while attributes change that may change in RTS.
void modify_under_traffic(env &e)
{
	rc_config c;
	c.both([](side_config &s) { s.send_wr = 32; });
	rc_pair p(e, c);
	buffer local(p.a.pd.get(), 4096), target(p.b.pd.get(), 4096);
	for (int round = 0; round < 50; round++) {
		ibv_sge sge = local.sge();
		for (int i = 0; i < 16; i++) {
			ibv_send_wr wr = rdma_wr(i, i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, target.addr(),
						 target.rkey());
			p.a.must_post(wr);
		}
		for (rc_side *s : { &p.a, &p.b }) {
			ibv_qp_attr at{};
			at.qp_access_flags = qp_access_all;
			at.min_rnr_timer = static_cast<uint8_t>(round % 32);
			const int rc = ibv_modify_qp(s->qp.get(), &at, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER);
			CHECK_EQ(rc, 0);
		}
		for (int i = 0; i < 16; i++)
			expect_wc(p.a.scq(), p.ms(5000), i, IBV_WC_SUCCESS, -1, text("round %d", round));
	}
}

void sqd_drain(env &e)
{
	rc_config c;
	c.a.send_wr = 64;
	rc_pair p(e, c);
	constexpr int before = 24, after = 5;
	buffer local(p.a.pd.get(), 65536), target(p.b.pd.get(), 65536);
	for (int round = 0; round < 5; round++) {
		const std::string what = text("round %d", round);
		ibv_sge sge = local.sge();
		for (int i = 0; i < before; i++) {
			ibv_send_wr wr = rdma_wr(i, i % 4 == 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge,
						 target.addr(), target.rkey());
			p.a.must_post(wr);
		}
		ibv_qp_attr at{};
		at.qp_state = IBV_QPS_SQD;
		at.en_sqd_async_notify = 1;
		const int rc = ibv_modify_qp(p.a.qp.get(), &at, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
		REQUIRE(!rc, "%s: to SQD: %s", what.c_str(), error_text(rc).c_str());
		ibv_async_event ev{};
		REQUIRE(p.a.dev->wait_event(IBV_EVENT_SQ_DRAINED, p.ms(5000), &ev), "%s: no SQ_DRAINED", what.c_str());
		CHECK(ev.element.qp == p.a.qp.get(), "event of another queue pair");
		// what had started is complete, in order; what had not is still there
		int done = 0;
		while (const auto wc = next_wc(p.a.scq(), 20)) {
			CHECK(wc->status == IBV_WC_SUCCESS && wc->wr_id == static_cast<uint64_t>(done), "%s: %s",
			      what.c_str(), describe(*wc).c_str());
			done++;
		}
		for (int i = 0; i < after; i++) {
			ibv_send_wr wr = rdma_wr(before + i, IBV_WR_RDMA_WRITE, &sge, target.addr(), target.rkey());
			p.a.must_post(wr);
		}
		expect_no_wc(p.a.scq(), 50, what + ": nothing starts in SQD");
		ibv_qp_attr q = p.a.query();
		CHECK_EQ(q.qp_state, IBV_QPS_SQD, what);
		CHECK_EQ(q.sq_draining, 0, what);
		// the receiving half goes on
		buffer there(p.b.pd.get(), 64);
		p.a.must_post_recv(77, local.sge(0, 64));
		ibv_sge tsge = there.sge();
		ibv_send_wr wr = send_wr(78, IBV_WR_SEND, &tsge);
		p.b.must_post(wr);
		expect_wc(p.a.rcq(), p.ms(5000), 77, IBV_WC_SUCCESS, IBV_WC_RECV, what + ": receive in SQD");
		expect_wc(p.b.scq(), p.ms(5000), 78, IBV_WC_SUCCESS, IBV_WC_SEND, what + ": receive in SQD");
		REQUIRE(!p.a.to_state(IBV_QPS_RTS), "back to RTS");
		for (int i = done; i < before + after; i++)
			expect_wc(p.a.scq(), p.ms(5000), i, IBV_WC_SUCCESS, -1, what + ": resumed");
		CHECK(!p.a.dev->wait_event(IBV_EVENT_SQ_DRAINED, 20), "%s: drained twice", what.c_str());
	}
}

void reset_and_reuse(env &e)
{
	rc_config c;
	c.both([](side_config &s) { s.send_wr = s.recv_wr = 32; });
	rc_pair p(e, c);
	buffer local(p.a.pd.get(), 10000), target(p.b.pd.get(), 10000);
	const int rounds = e.full() ? 300 : 40;
	for (int round = 0; round < rounds; round++) {
		ibv_sge sge = local.sge();
		for (int i = 0; i < 20; i++) {
			p.a.must_post_recv(500 + i, local.sge(0, 64));
			ibv_send_wr wr = rdma_wr(i, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, target.addr(),
						 target.rkey());
			p.a.must_post(wr);
		}
		if (round % 3)
			usleep(round * 20 % 700);
		for (const rc_side *s : { &p.a, &p.b })
			REQUIRE(!s->to_state(IBV_QPS_RESET), "to RESET");
		// those completed before stay; none comes any more
		drain_cq(p.a.scq());
		drain_cq(p.a.rcq());
		expect_no_wc(p.a.scq(), 2, "after RESET");
		expect_no_wc(p.a.rcq(), 0, "after RESET");
		for (rc_side *s : { &p.a, &p.b })
			s->config.sq_psn = (s->config.sq_psn * 31 + 12345) & 0xffffff;
		p.connect();
		check_alive(p, text("round %d", round));
	}
}

// A queue pair that was reset has left no completion that could be taken for one
// of its new life; those of another one in the same CQ stay, in order. The CQ
// is small, so that its ring comes round.
void reset_unread(env &e)
{
	device &d = e.a();
	const pd_handle pd(ibv_alloc_pd(d.ctx()));
	const cq_handle cq(ibv_create_cq(d.ctx(), 8, nullptr, nullptr, 0));
	REQUIRE(pd && cq, "PD or CQ: %s", strerror(errno));
	ibv_qp_init_attr init{};
	init.qp_type = IBV_QPT_RC;
	init.send_cq = init.recv_cq = cq.get();
	init.cap = { .max_send_wr = 1, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1,
		     .max_inline_data = 0 };
	const qp_handle one(ibv_create_qp(pd.get(), &init)), other(ibv_create_qp(pd.get(), &init));
	REQUIRE(one && other, "ibv_create_qp: %s", strerror(errno));

	auto to_state = [](const qp_handle &qp, ibv_qp_state state) {
		ibv_qp_attr attr{};
		attr.qp_state = state;
		attr.port_num = 1;
		const int mask = IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
		const int rc = ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? mask : 0));
		REQUIRE(!rc, "to state %d: %s", state, strerror(rc));
	};
	// in error it is flushed at once
	auto complete = [](const qp_handle &qp, uint64_t wr_id) {
		ibv_recv_wr wr{}, *bad = nullptr;
		wr.wr_id = wr_id;
		REQUIRE(!ibv_post_recv(qp.get(), &wr, &bad), "post to a queue pair in error");
	};

	to_state(other, IBV_QPS_INIT);
	to_state(other, IBV_QPS_ERR);
	for (int round = 0; round < 9; round++) {
		to_state(one, IBV_QPS_INIT);
		to_state(one, IBV_QPS_ERR);
		// both, mixed in another way each time
		for (int i = 0; i < 7; i++)
			complete((round * 37 + 5) >> i & 1 ? one : other, i);
		to_state(one, IBV_QPS_RESET);
		for (int i = 0; i < 7; i++) {
			if (!((round * 37 + 5) >> i & 1))
				expect_wc(cq.get(), e.patience(5000), i, IBV_WC_WR_FLUSH_ERR, -1,
					  text("round %d, the other queue pair", round));
		}
		expect_no_wc(cq.get(), 2, text("round %d, of the one that was reset", round));
	}
}

// --- fence, limits of outstanding requests, sequence numbers ------------------------------

void fence(env &e)
{
	rc_config c;
	c.a.send_wr = 8;
	rc_pair p(e, c);
	constexpr size_t size = 40000;
	buffer far(p.b.pd.get(), 2 * size), near(p.a.pd.get(), size);
	const int rounds = e.full() ? 500 : 60;
	for (int round = 0; round < rounds; round++) {
		const std::string what = text("round %d", round);
		fill_pattern(far.bytes(0, size), round);
		near.clear();
		// read there, then write from here what was read
		ibv_sge sge = near.sge();
		ibv_send_wr read = rdma_wr(1, IBV_WR_RDMA_READ, &sge, far.addr(), far.rkey());
		ibv_send_wr write = rdma_wr(2, IBV_WR_RDMA_WRITE, &sge, far.addr() + size, far.rkey(), 1,
					    IBV_SEND_SIGNALED | IBV_SEND_FENCE);
		read.next = &write;
		p.a.must_post(read);
		expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, IBV_WC_RDMA_READ, what);
		expect_wc(p.a.scq(), p.ms(5000), 2, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, what);
		if (!check_pattern(far.bytes(size, size), round, what))
			break;
		// an atomic's result likewise
		uint64_t *word = reinterpret_cast<uint64_t *>(far.data());
		*word = 1000 + round;
		sge = near.sge(0, 8);
		ibv_send_wr add = atomic_wr(3, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, far.addr(), far.rkey(), 1, 0);
		write.wr_id = 4;
		add.next = &write;
		p.a.must_post(add);
		expect_wc(p.a.scq(), p.ms(5000), 3, IBV_WC_SUCCESS, IBV_WC_FETCH_ADD, what);
		expect_wc(p.a.scq(), p.ms(5000), 4, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, what);
		REQUIRE_EQ(*reinterpret_cast<uint64_t *>(far.data() + size), 1000 + round, what);
	}
}

void few_outstanding(env &e)
{
	for (const int limit : { 1, 2, 3, 16 }) {
		rc_config c;
		c.a.max_rd_atomic = static_cast<uint8_t>(limit);
		c.b.max_dest_rd_atomic = static_cast<uint8_t>(limit);
		c.a.send_wr = 64;
		rc_pair p(e, c);
		buffer near(p.a.pd.get(), 64 * 3000), far(p.b.pd.get(), 64 * 3000);
		fill_pattern(far.bytes(8, 64 * 3000 - 8), 6, 8);
		*reinterpret_cast<uint64_t *>(far.data()) = 0;
		near.clear();
		int adds = 0;
		for (int i = 0; i < 60; i++) {
			ibv_sge sge = near.sge(3000 * i + (i ? 0 : 8), i ? 3000 : 2992);
			if (i % 3 == 2) {
				sge.length = 8;
				ibv_send_wr wr = atomic_wr(i, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, far.addr(),
							   far.rkey(), 1, 0);
				p.a.must_post(wr);
				continue;
			}
			ibv_send_wr wr = rdma_wr(i, IBV_WR_RDMA_READ, &sge, far.addr() + 3000 * i + (i ? 0 : 8),
						 far.rkey());
			p.a.must_post(wr);
		}
		for (int i = 0; i < 60; i++) {
			const std::string what = text("limit %d, request %d", limit, i);
			expect_wc(p.a.scq(), p.ms(8000), i, IBV_WC_SUCCESS, -1, what);
			if (i % 3 == 2)
				CHECK_EQ(*reinterpret_cast<uint64_t *>(near.data() + 3000 * i), adds++, what);
			else if (i)
				check_pattern(near.bytes(3000 * i, 3000), 6, what, 3000 * i);
		}
		CHECK_EQ(*reinterpret_cast<uint64_t *>(far.data()), 20);
	}
}

void psn_wrap(env &e)
{
	for (const uint32_t psn : { 0xfffffeu, 0xffffffu, 0xfffff0u, 0u, 0x7ffffeu, 0x800000u }) {
		const std::string what = text("PSN %#x", psn);
		rc_config c;
		c.both([=](side_config &s) { s.sq_psn = psn; });
		c.mtu = IBV_MTU_256;
		rc_pair p(e, c);
		buffer near(p.a.pd.get(), 5000), far(p.b.pd.get(), 5000);
		// each kind crosses the border in the middle of its packets
		for (const ibv_wr_opcode opcode : { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ }) {
			for (int i = 0; i < 3; i++) {
				near.clear();
				far.clear();
				fill_pattern(opcode == IBV_WR_RDMA_READ ? far.bytes(0, 5000) : near.bytes(0, 5000), psn + i);
				if (opcode == IBV_WR_SEND)
					p.b.must_post_recv(2, far.sge());
				ibv_sge sge = near.sge();
				ibv_send_wr wr = rdma_wr(1, opcode, &sge, far.addr(), far.rkey());
				p.a.must_post(wr);
				expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, what);
				if (opcode == IBV_WR_SEND)
					expect_wc(p.b.rcq(), p.ms(5000), 2, IBV_WC_SUCCESS, -1, what);
				check_pattern(opcode == IBV_WR_RDMA_READ ? near.bytes(0, 5000) : far.bytes(0, 5000), psn + i,
					      what);
			}
			p.reconnect();
		}
		*reinterpret_cast<uint64_t *>(far.data()) = 0;
		for (int i = 0; i < 6; i++) {
			ibv_sge sge = near.sge(0, 8);
			ibv_send_wr wr = atomic_wr(1, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, far.addr(), far.rkey(), 1, 0);
			p.a.must_post(wr);
			expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, IBV_WC_FETCH_ADD, what);
			CHECK_EQ(*reinterpret_cast<uint64_t *>(near.data()), i, what);
		}
	}
}

// Several queue pairs of both devices add to one word; none gets lost.
void atomic_sum(env &e)
{
	constexpr int pairs = 4;
	const int rounds = e.full() ? 2000 : 100;
	rc_config c;
	std::vector<std::unique_ptr<rc_pair>> all;
	for (int i = 0; i < pairs; i++)
		all.push_back(std::make_unique<rc_pair>(e, c));
	// every pair has a PD of its own: the word is registered in each
	mapping memory(4096);
	std::vector<mr_handle> mrs;
	for (auto &p : all) {
		mrs.emplace_back(ibv_reg_mr(p->b.pd.get(), memory.data(), 4096, access_all));
		REQUIRE(mrs.back(), "ibv_reg_mr: %s", strerror(errno));
	}
	auto *word = reinterpret_cast<uint64_t *>(memory.data() + 64);
	std::vector<std::unique_ptr<buffer>> sinks;
	for (auto &p : all)
		sinks.push_back(std::make_unique<buffer>(p->a.pd.get(), 8 * 8));
	std::set<uint64_t> seen;
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < pairs; i++)
			for (int k = 0; k < 8; k++) {
				ibv_sge sge = sinks[i]->sge(8 * k, 8);
				ibv_send_wr wr = atomic_wr(k, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge,
							   reinterpret_cast<uintptr_t>(word), mrs[i]->rkey, 1, 0);
				all[i]->a.must_post(wr);
			}
		for (int i = 0; i < pairs; i++)
			for (int k = 0; k < 8; k++) {
				expect_wc(all[i]->a.scq(), all[i]->ms(5000), k, IBV_WC_SUCCESS, IBV_WC_FETCH_ADD, "sum");
				const uint64_t v = reinterpret_cast<uint64_t *>(sinks[i]->data())[k];
				CHECK(seen.insert(v).second, "value %llu was returned twice",
				      static_cast<unsigned long long>(v));
			}
	}
	CHECK_EQ(*word, static_cast<uint64_t>(rounds) * pairs * 8);
	mrs.clear();
}

// A WRITE is there when the SEND behind it is received; a READ sees the WRITE.
void ordering(env &e)
{
	rc_pair p(e);
	buffer near(p.a.pd.get(), 20000), far(p.b.pd.get(), 20000), back(p.a.pd.get(), 20000);
	for (int i = 0; i < 50; i++) {
		const std::string what = text("round %d", i);
		fill_pattern(near.bytes(0, 20000), i);
		back.clear();
		p.b.must_post_recv(9);
		ibv_sge sge = near.sge(), none{}, bsge = back.sge();
		ibv_send_wr w = rdma_wr(1, IBV_WR_RDMA_WRITE, &sge, far.addr(), far.rkey());
		ibv_send_wr s = send_wr(2, IBV_WR_SEND, &none, 0);
		ibv_send_wr r = rdma_wr(3, IBV_WR_RDMA_READ, &bsge, far.addr(), far.rkey());
		w.next = &s;
		s.next = &r;
		p.a.must_post(w);
		expect_wc(p.b.rcq(), p.ms(5000), 9, IBV_WC_SUCCESS, IBV_WC_RECV, what);
		check_pattern(far.bytes(0, 20000), i, what + ": write before send");
		for (int k = 1; k <= 3; k++)
			expect_wc(p.a.scq(), p.ms(5000), k, IBV_WC_SUCCESS, -1, what);
		check_pattern(back.bytes(0, 20000), i, what + ": read after write");
	}
}

void many_pairs(env &e)
{
	const int count = e.full() ? 128 : 24;
	std::vector<std::unique_ptr<rc_pair>> all;
	for (int i = 0; i < count; i++) {
		rc_config c;
		c.both([](side_config &s) { s.send_wr = s.recv_wr = s.cq_entries = 8; });
		all.push_back(std::make_unique<rc_pair>(e, c));
	}
	for (int i = 0; i < count; i++)
		for (int k = 0; k < i; k++)
			CHECK(all[i]->a.qp->qp_num != all[k]->a.qp->qp_num || all[i]->a.dev != all[k]->a.dev,
			      "two queue pairs have number %#x", all[i]->a.qp->qp_num);
	for (auto &p : all)
		check_alive(*p, "one of many");
	std::reverse(all.begin(), all.end());
	all.resize(count / 2);
	for (auto &p : all)
		check_alive(*p, "one of half as many");
}

// --- completion queues ------------------------------------------------------------------

void solicited(env &e)
{
	rc_config c;
	c.b.channel = true;
	rc_pair p(e, c);
	buffer near(p.a.pd.get(), 5000), far(p.b.pd.get(), 5000);
	ibv_sge sge = near.sge();
	const auto arm = [&](int only) {
		const int rc = ibv_req_notify_cq(p.b.rcq(), only);
		REQUIRE(!rc, "ibv_req_notify_cq: %s", error_text(rc).c_str());
	};
	const auto send = [&](ibv_wr_opcode opcode, unsigned int flags, const char *what) {
		p.b.must_post_recv(2, far.sge());
		ibv_send_wr wr = rdma_wr(1, opcode, &sge, far.addr(), far.rkey(), 1, IBV_SEND_SIGNALED | flags);
		if (opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
			wr.wr = {};
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, what);
		expect_wc(p.b.rcq(), p.ms(5000), 2, IBV_WC_SUCCESS, -1, what);
	};
	const auto event = [&](int ms) { return next_cq_event(p.b.channel.get(), ms) == p.b.rcq(); };

	CHECK(!event(0), "an event of a CQ that was never armed");
	send(IBV_WR_SEND, IBV_SEND_SOLICITED, "unarmed");
	CHECK(!event(30), "an event of a CQ that was never armed");
	for (const ibv_wr_opcode opcode : { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM }) {
		const std::string what = text("opcode %d", opcode);
		arm(1);
		send(opcode, 0, "unsolicited");
		CHECK(!event(30), "%s: event though unsolicited", what.c_str());
		send(opcode, IBV_SEND_SOLICITED, "solicited");
		CHECK(event(p.ms(2000)), "%s: no event though solicited", what.c_str());
		send(opcode, IBV_SEND_SOLICITED, "solicited again");
		CHECK(!event(30), "%s: two events for one arming", what.c_str());
		arm(0);
		send(opcode, 0, "armed for any");
		CHECK(event(p.ms(2000)), "%s: no event though armed for any", what.c_str());
	}
	// armed for solicited, then for any: the wider one holds; not the other way round
	arm(1);
	arm(0);
	send(IBV_WR_SEND, 0, "armed twice");
	CHECK(event(p.ms(2000)), "no event though armed for any last");
	arm(0);
	arm(1);
	send(IBV_WR_SEND, 0, "armed for any, then solicited");
	CHECK(event(p.ms(2000)), "arming for solicited took back the arming for any");
	// an error counts as solicited
	arm(1);
	p.b.must_post_recv(5, far.sge());
	REQUIRE(!p.b.to_state(IBV_QPS_ERR), "to ERR");
	CHECK(event(p.ms(2000)), "no event for an error completion");
}

// One thread produces, the other arms, empties and sleeps: no wakeup is lost.
void arm_race(env &e)
{
	rc_config c;
	c.b.channel = true;
	c.both([](side_config &s) {
		s.send_wr = s.recv_wr = 64;
		s.timeout = 17;
	});
	rc_pair p(e, c);
	const int messages = e.full() ? 30000 : 5000;
	buffer near(p.a.pd.get(), 8), far(p.b.pd.get(), 64 * 8);
	for (int i = 0; i < 64; i++)
		p.b.must_post_recv(i, far.sge(8 * i, 8));
	std::atomic<int> received = 0;
	std::atomic<bool> stop = false;
	std::thread producer([&] {
		int posted = 0, completed = 0;
		while (completed < messages && !stop) {
			ibv_wc wc[8];
			const int n = ibv_poll_cq(p.a.scq(), 8, wc);
			for (int i = 0; i < n; i++)
				if (wc[i].status != IBV_WC_SUCCESS) {
					FAIL("%s", describe(wc[i]).c_str());
					stop = true;
				}
			completed += std::max(n, 0);
			if (posted < messages && posted - completed < 32 && posted - received < 60) {
				ibv_sge sge = near.sge();
				ibv_send_wr wr = send_wr(posted, IBV_WR_SEND, &sge);
				if (p.a.post(wr)) {
					FAIL("post");
					stop = true;
				}
				posted++;
				// bursts and pauses of changing length
				if (posted % 7 == 0)
					usleep(posted % 50);
			} else if (!n) {
				sched_yield();
			}
		}
	});
	int events = 0, empty = 0;
	while (received < messages && !stop) {
		const int rc = ibv_req_notify_cq(p.b.rcq(), 0);
		if (rc) {
			FAIL("ibv_req_notify_cq: %s", error_text(rc).c_str());
			break;
		}
		// what came before the arming
		ibv_wc wc{};
		int n = 0;
		while (ibv_poll_cq(p.b.rcq(), 1, &wc) > 0) {
			if (wc.status != IBV_WC_SUCCESS) {
				FAIL("%s", describe(wc).c_str());
				stop = true;
				break;
			}
			ibv_sge sge = far.sge(8 * wc.wr_id, 8);
			p.b.post_recv(wc.wr_id, { &sge, 1 });
			received++;
			n++;
		}
		if (events && !n)
			empty++;
		if (received >= messages)
			break;
		if (!next_cq_event(p.b.channel.get(), p.ms(5000))) {
			FAIL("no event for 5 s after %d of %d messages and %d events; %d wait in the CQ",
			     received.load(), messages, events, drain_cq(p.b.rcq()));
			break;
		}
		events++;
	}
	stop = true;
	producer.join();
	note(text("%d messages, %d events, %d of them found nothing", received.load(), events, empty));
}

// An event already there when the owner looks may be of a completion polled
// before; but without any completion since the arming there is none.
void no_event_without_completion(env &e)
{
	rc_config c;
	c.b.channel = true;
	rc_pair p(e, c);
	REQUIRE(!ibv_req_notify_cq(p.b.rcq(), 0), "arm");
	CHECK(!next_cq_event(p.b.channel.get(), 50), "event out of nothing");
	check_alive(p, "armed"); // this gives one
	CHECK(next_cq_event(p.b.channel.get(), p.ms(2000)) != nullptr, "no event");
	// armed with completions waiting that came before: no event, but the next one gives it
	buffer near(p.a.pd.get(), 8), far(p.b.pd.get(), 8);
	ibv_sge sge = near.sge();
	p.b.must_post_recv(1, far.sge());
	p.b.must_post_recv(2, far.sge());
	ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);
	p.a.must_post(wr);
	expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, "first");
	REQUIRE(!ibv_req_notify_cq(p.b.rcq(), 0), "arm");
	p.a.must_post(wr);
	expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, "second");
	CHECK(next_cq_event(p.b.channel.get(), p.ms(2000)) != nullptr, "no event for the second");
	expect_wc(p.b.rcq(), p.ms(1000), 1, IBV_WC_SUCCESS, -1, "first");
	expect_wc(p.b.rcq(), p.ms(1000), 2, IBV_WC_SUCCESS, -1, "second");
}

void cq_overflow(env &e)
{
	rc_config c;
	c.a.cq_entries = 4;
	c.a.send_wr = 200;
	rc_pair beside(e);
	rc_pair p(e, c);
	const int room = p.a.scq()->cqe;
	if (room > 4096)
		skip(text("a CQ of 4 entries has %d", room));
	buffer near(p.a.pd.get(), 8), far(p.b.pd.get(), 8);
	ibv_sge sge = near.sge();
	for (int i = 0; i < room + 40; i++) {
		ibv_send_wr wr = rdma_wr(i, IBV_WR_RDMA_WRITE, &sge, far.addr(), far.rkey());
		const deadline end(p.ms(2000));
		int rc;
		while ((rc = p.a.post(wr)) == ENOMEM && !end.passed())
			usleep(1000);
		if (rc)
			break; // the queue pair is in error by now
	}
	ibv_async_event ev{};
	REQUIRE(p.a.dev->wait_event(IBV_EVENT_CQ_ERR, p.ms(3000), &ev), "no CQ_ERR");
	CHECK(ev.element.cq == p.a.scq(), "event of another CQ");
	CHECK_EQ(p.a.state(), IBV_QPS_ERR, "queue pair of the CQ");
	CHECK(!p.a.dev->wait_event(IBV_EVENT_CQ_ERR, 20), "CQ_ERR more than once");
	// what fitted can still be read, in order
	for (int i = 0; i < 4; i++) {
		const auto wc = next_wc(p.a.scq(), 10);
		if (!wc)
			break;
		CHECK_EQ(wc->wr_id, i);
	}
	check_alive(beside, "a queue pair beside it");
}

void cq_resize(env &e)
{
	rc_config c;
	c.a.cq_entries = 16;
	rc_pair p(e, c);
	buffer near(p.a.pd.get(), 64), far(p.b.pd.get(), 64);
	ibv_sge sge = near.sge();
	int posted = 0, polled = 0;
	const auto write = [&](int n) {
		for (int i = 0; i < n; i++) {
			ibv_send_wr wr = rdma_wr(posted++, IBV_WR_RDMA_WRITE, &sge, far.addr(), far.rkey());
			p.a.must_post(wr);
		}
		usleep(20000);
	};
	const auto poll = [&](int n) {
		while (n--) {
			expect_wc(p.a.scq(), p.ms(5000), polled, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, "resize");
			polled++;
		}
	};
	write(10);
	poll(3);
	int rc = ibv_resize_cq(p.a.scq(), 300);
	if (rc == ENOSYS || rc == EOPNOTSUPP)
		skip("no ibv_resize_cq");
	REQUIRE(!rc, "grow: %s", error_text(rc).c_str());
	CHECK(p.a.scq()->cqe >= 300, "cqe is %d", p.a.scq()->cqe);
	write(60);
	poll(20);
	// below what waits in it: refused, nothing lost
	rc = ibv_resize_cq(p.a.scq(), 2);
	CHECK_EQ(rc, EINVAL, "shrink below what waits");
	poll(47);
	CHECK_EQ(polled, posted);
	rc = ibv_resize_cq(p.a.scq(), 8);
	REQUIRE(!rc, "shrink: %s", error_text(rc).c_str());
	for (int i = 0; i < 30; i++) {
		write(4);
		poll(4);
	}
	rc = ibv_resize_cq(p.a.scq(), p.a.dev->attr().max_cqe + 1);
	CHECK_EQ(rc, EINVAL, "max_cqe + 1");
	rc = ibv_resize_cq(p.a.scq(), 0);
	CHECK_EQ(rc, EINVAL, "0");
	check_alive(p, "afterwards");
}

// Resizes while completions arrive.
void cq_resize_race(env &e)
{
	rc_config c;
	c.both([](side_config &s) { s.timeout = 17; });
	rc_pair p(e, c);
	buffer near(p.a.pd.get(), 64), far(p.b.pd.get(), 64);
	ibv_sge sge = near.sge();
	const int rounds = e.full() ? 300 : 50;
	uint64_t posted = 0, polled = 0;
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < 30; i++) {
			ibv_send_wr wr = rdma_wr(posted++, IBV_WR_RDMA_WRITE, &sge, far.addr(), far.rkey());
			p.a.must_post(wr);
		}
		const int rc = ibv_resize_cq(p.a.scq(), 64 + round * 37 % 1000);
		if (rc == ENOSYS || rc == EOPNOTSUPP)
			skip("no ibv_resize_cq");
		CHECK_EQ(rc, 0, text("round %d", round));
		for (int i = 0; i < 30; i++)
			expect_wc(p.a.scq(), p.ms(5000), polled++, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, text("round %d", round));
	}
}

// --- shared receive queues -----------------------------------------------------------------

void srq_traffic(env &e)
{
	rc_config c;
	c.b.srq = true;
	c.b.srq_wr = 16;
	c.b.recv_sge = 2;
	rc_pair p(e, c);
	// a second queue pair of the same owner takes from the same queue
	buffer near(p.a.pd.get(), 3000), far(p.b.pd.get(), 16 * 3000);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 16; i++)
			p.b.must_post_recv(i, far.sge(3000 * i, 3000));
		for (int i = 0; i < 16; i++) {
			fill_pattern(near.bytes(0, 3000), round * 16 + i);
			ibv_sge sge = near.sge(0, 3000 - i);
			ibv_send_wr wr = send_wr(i, IBV_WR_SEND, &sge);
			p.a.must_post(wr);
			expect_wc(p.a.scq(), p.ms(5000), i, IBV_WC_SUCCESS, IBV_WC_SEND, "SRQ");
			const ibv_wc wc = expect_wc(p.b.rcq(), p.ms(5000), i, IBV_WC_SUCCESS, IBV_WC_RECV, "SRQ");
			CHECK_EQ(wc.byte_len, 3000 - i);
			CHECK_EQ(wc.qp_num, p.b.qp->qp_num);
			check_pattern(far.bytes(3000 * i, 3000 - i), round * 16 + i, "SRQ");
		}
	}
	// full
	ibv_sge sge = far.sge(0, 8);
	int rc = 0, posted = 0;
	while (posted < 5000 && !(rc = p.b.post_recv(posted, { &sge, 1 })))
		posted++;
	CHECK_EQ(rc, ENOMEM, "SRQ full");
	CHECK(posted >= 16, "only %d fit", posted);
	std::vector<ibv_sge> many(200, sge);
	rc = p.b.post_recv(1, many);
	CHECK(rc == EINVAL || rc == ENOMEM, "too many elements: %s", error_text(rc).c_str());
}

void srq_limit(env &e)
{
	rc_config c;
	c.b.srq = true;
	c.b.srq_wr = 32;
	rc_pair p(e, c);
	buffer near(p.a.pd.get(), 8), far(p.b.pd.get(), 8);
	ibv_sge sge = near.sge();
	ibv_srq *srq = p.b.srq.get();
	const auto set_limit = [&](uint32_t n) {
		ibv_srq_attr at{};
		at.srq_limit = n;
		return ibv_modify_srq(srq, &at, IBV_SRQ_LIMIT);
	};
	const auto limit = [&] {
		ibv_srq_attr at{};
		REQUIRE(!ibv_query_srq(srq, &at), "ibv_query_srq");
		CHECK(at.max_wr >= 32, "max_wr %u", at.max_wr);
		return at.srq_limit;
	};
	const auto take = [&](int n) {
		for (int i = 0; i < n; i++) {
			ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);
			p.a.must_post(wr);
			expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, "take");
			expect_wc(p.b.rcq(), p.ms(5000), 2, IBV_WC_SUCCESS, -1, "take");
		}
	};
	const auto event = [&](int ms) {
		ibv_async_event ev{};
		return p.b.dev->wait_event(IBV_EVENT_SRQ_LIMIT_REACHED, ms, &ev) && ev.element.srq == srq;
	};
	for (int i = 0; i < 20; i++)
		p.b.must_post_recv(2, far.sge());
	CHECK_EQ(limit(), 0);
	take(2); // 18 left
	CHECK(!event(20), "an event that was not asked for");
	CHECK_EQ(set_limit(15), 0);
	CHECK_EQ(limit(), 15);
	take(3); // 15 left: not below yet
	CHECK(!event(20), "an event at the limit, not below it");
	take(1);
	CHECK(event(p.ms(2000)), "no event below the limit");
	CHECK_EQ(limit(), 0, "disarmed by the event");
	take(2);
	CHECK(!event(20), "a second event without arming");
	CHECK_EQ(set_limit(10), 0);
	take(3); // 9 left
	CHECK(event(p.ms(2000)), "no event after arming again");
	// armed when already below: the next take tells
	CHECK_EQ(set_limit(12), 0);
	take(1);
	CHECK(event(p.ms(2000)), "no event when armed below the limit");
	CHECK_EQ(set_limit(1 << 20), EINVAL, "limit above max_wr");
}

void srq_resize(env &e)
{
	rc_config c;
	c.b.srq = true;
	c.b.srq_wr = 8;
	rc_pair p(e, c);
	if (!(p.b.dev->attr().device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		skip("SRQ_RESIZE is not among the capabilities");
	buffer near(p.a.pd.get(), 8), far(p.b.pd.get(), 8);
	ibv_srq *srq = p.b.srq.get();
	for (int i = 0; i < 6; i++)
		p.b.must_post_recv(i, far.sge());
	ibv_srq_attr at{};
	at.max_wr = 200;
	const int rc = ibv_modify_srq(srq, &at, IBV_SRQ_MAX_WR);
	REQUIRE(!rc, "grow: %s", error_text(rc).c_str());
	REQUIRE(!ibv_query_srq(srq, &at), "ibv_query_srq");
	CHECK(at.max_wr >= 200, "max_wr %u", at.max_wr);
	for (int i = 6; i < 200; i++)
		p.b.must_post_recv(i, far.sge());
	const auto take = [&](int from, int to) {
		for (int i = from; i < to; i++) {
			ibv_sge sge = near.sge();
			ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);
			p.a.must_post(wr);
			expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, "resized");
			expect_wc(p.b.rcq(), p.ms(5000), i, IBV_WC_SUCCESS, -1, "resized");
		}
	};
	take(0, 50);
	at = {};
	at.max_wr = 4;
	CHECK(ibv_modify_srq(srq, &at, IBV_SRQ_MAX_WR) != 0, "shrunk below what is posted");
	take(50, 190);
	at.max_wr = 16;
	CHECK_EQ(ibv_modify_srq(srq, &at, IBV_SRQ_MAX_WR), 0, "shrink");
	take(190, 200);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 8; i++)
			p.b.must_post_recv(i, far.sge());
		take(0, 8);
	}
	at.max_wr = p.b.dev->attr().max_srq_wr + 1;
	CHECK(ibv_modify_srq(srq, &at, IBV_SRQ_MAX_WR) != 0, "max_srq_wr + 1");
}

void last_wqe(env &e)
{
	rc_config c;
	c.b.srq = true;
	rc_pair p(e, c);
	buffer near(p.a.pd.get(), 8), far(p.b.pd.get(), 8);
	for (int i = 0; i < 4; i++)
		p.b.must_post_recv(i, far.sge());
	REQUIRE(!p.b.to_state(IBV_QPS_ERR), "to ERR");
	ibv_async_event ev{};
	REQUIRE(p.b.dev->wait_event(IBV_EVENT_QP_LAST_WQE_REACHED, p.ms(3000), &ev), "no LAST_WQE_REACHED");
	CHECK(ev.element.qp == p.b.qp.get(), "event of another queue pair");
	expect_no_wc(p.b.rcq(), 20, "WQEs of the SRQ are not flushed");
	CHECK(!p.b.dev->wait_event(IBV_EVENT_QP_LAST_WQE_REACHED, 20), "a second event");
	p.reconnect();
	ibv_sge sge = near.sge();
	ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);
	p.a.must_post(wr);
	expect_wc(p.b.rcq(), p.ms(5000), 0, IBV_WC_SUCCESS, IBV_WC_RECV, "the SRQ goes on");
	expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, IBV_WC_SEND, "the SRQ goes on");
	// in error through a fault of the peer's
	buffer small(p.b.pd.get(), 8);
	wr = rdma_wr(2, IBV_WR_RDMA_WRITE, &sge, 0, 0x12345600);
	p.a.must_post(wr);
	expect_wc(p.a.scq(), p.ms(5000), 2, IBV_WC_REM_ACCESS_ERR, -1, "fault");
	CHECK(p.b.dev->wait_event(IBV_EVENT_QP_LAST_WQE_REACHED, p.ms(3000)), "no LAST_WQE_REACHED after a fault");
}

void communication_established(env &e)
{
	rc_config c;
	c.connect = false;
	rc_pair p(e, c);
	REQUIRE(!p.a.to_init() && !p.b.to_init(), "to INIT");
	REQUIRE(!p.a.to_rtr(p.b, p.config.mtu) && !p.b.to_rtr(p.a, p.config.mtu), "to RTR");
	REQUIRE(!p.a.to_rts(), "to RTS");
	buffer near(p.a.pd.get(), 8), far(p.b.pd.get(), 8);
	for (int i = 0; i < 2; i++)
		p.b.must_post_recv(2, far.sge());
	ibv_sge sge = near.sge();
	for (int i = 0; i < 2; i++) {
		ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, "to a peer in RTR");
		expect_wc(p.b.rcq(), p.ms(5000), 2, IBV_WC_SUCCESS, -1, "to a peer in RTR");
	}
	ibv_async_event ev{};
	REQUIRE(p.b.dev->wait_event(IBV_EVENT_COMM_EST, p.ms(2000), &ev), "no COMM_EST");
	CHECK(ev.element.qp == p.b.qp.get(), "event of another queue pair");
	CHECK(!p.b.dev->wait_event(IBV_EVENT_COMM_EST, 20), "COMM_EST twice");
	REQUIRE(!p.b.to_rts(), "to RTS");
	check_alive(p, "afterwards");
}

// --- attributes, limits, objects --------------------------------------------------------------

void attributes(env &e)
{
	const ibv_device_attr &d = e.a().attr();
	const ibv_port_attr port = e.a().port();
	CHECK(d.node_guid, "node_guid is 0");
	CHECK(d.sys_image_guid, "sys_image_guid is 0");
	CHECK(d.vendor_id, "vendor_id is 0");
	CHECK(d.fw_ver[0], "fw_ver is empty");
	CHECK_EQ(d.phys_port_cnt, 1);
	if (e.two_devices())
		CHECK(d.node_guid != e.b().attr().node_guid, "two devices have one node_guid");
	CHECK(d.max_mr_size >= 1ull << 31, "max_mr_size");
	CHECK(d.page_size_cap & 4096, "page_size_cap");
	for (const auto &[value, name] : std::initializer_list<std::pair<int64_t, const char *>>{
		     { d.max_qp, "max_qp" }, { d.max_qp_wr, "max_qp_wr" }, { d.max_sge, "max_sge" },
		     { d.max_sge_rd, "max_sge_rd" }, { d.max_cq, "max_cq" }, { d.max_cqe, "max_cqe" },
		     { d.max_mr, "max_mr" }, { d.max_pd, "max_pd" }, { d.max_qp_rd_atom, "max_qp_rd_atom" },
		     { d.max_qp_init_rd_atom, "max_qp_init_rd_atom" }, { d.max_res_rd_atom, "max_res_rd_atom" },
		     { d.max_ah, "max_ah" }, { d.max_srq, "max_srq" }, { d.max_srq_wr, "max_srq_wr" },
		     { d.max_srq_sge, "max_srq_sge" }, { d.max_mcast_grp, "max_mcast_grp" },
		     { d.max_mcast_qp_attach, "max_mcast_qp_attach" },
		     { d.max_total_mcast_qp_attach, "max_total_mcast_qp_attach" } })
		CHECK(value > 0, "%s is %lld", name, static_cast<long long>(value));
	CHECK(d.max_sge >= 32, "max_sge is %d", d.max_sge);
	CHECK(d.max_pkeys >= 1, "max_pkeys");
	CHECK(d.atomic_cap == IBV_ATOMIC_HCA || d.atomic_cap == IBV_ATOMIC_GLOB, "atomic_cap %d", d.atomic_cap);

	CHECK_EQ(port.state, IBV_PORT_ACTIVE);
	CHECK_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	CHECK_EQ(port.phys_state, 5);
	CHECK_EQ(port.max_msg_sz, 1u << 31);
	CHECK(port.gid_tbl_len > 0, "gid_tbl_len");
	CHECK_EQ(port.pkey_tbl_len, 1);
	CHECK(port.active_mtu >= IBV_MTU_256 && port.active_mtu <= port.max_mtu, "active_mtu %d of %d",
	      port.active_mtu, port.max_mtu);
	CHECK(port.active_width == 1 || port.active_width == 2 || port.active_width == 4 || port.active_width == 8 ||
		      port.active_width == 16,
	      "active_width %d", port.active_width);
	CHECK(port.active_speed && !(port.active_speed & (port.active_speed - 1)), "active_speed %d",
	      port.active_speed);
	uint16_t pkey = 0;
	CHECK_EQ(ibv_query_pkey(e.a().ctx(), 1, 0, reinterpret_cast<__be16 *>(&pkey)), 0);
	CHECK_EQ(pkey, 0xffff);
	CHECK_EQ(e.a().ctx()->device->transport_type, IBV_TRANSPORT_IB);
	CHECK_EQ(e.a().ctx()->device->node_type, IBV_NODE_CA);
	ibv_port_attr none{};
	CHECK(ibv_query_port(e.a().ctx(), 2, &none) != 0, "there is a port 2");

	// one entry per address, link-local first as roce_gid_mgmt has it
	const auto gids = e.a().gids();
	for (size_t i = 0; i < gids.size(); i++)
		for (size_t k = 0; k < i; k++)
			CHECK(memcmp(&gids[i].raw, &gids[k].raw, 16), "GID %d equals GID %d", gids[i].index, gids[k].index);
	bool link_local = false;
	for (const auto &g : gids)
		link_local |= is_link_local(g.raw);
	CHECK(link_local, "no default GID");
}

void limits(env &e)
{
	device &dev = e.a();
	const ibv_device_attr &d = dev.attr();
	const pd_handle pd = dev.make_pd();
	{
		cq_handle most(ibv_create_cq(dev.ctx(), d.max_cqe, nullptr, nullptr, 0));
		CHECK(most, "max_cqe %d: %s", d.max_cqe, strerror(errno));
	}
	{
		cq_handle more(ibv_create_cq(dev.ctx(), d.max_cqe + 1, nullptr, nullptr, 0));
		CHECK(!more && (errno == EINVAL || errno == ENOMEM), "max_cqe + 1: %s", more ? "made" : strerror(errno));
	}
	{
		cq_handle zero(ibv_create_cq(dev.ctx(), 0, nullptr, nullptr, 0));
		CHECK(!zero, "a CQ of 0 entries");
	}
	{
		cq_handle vector(ibv_create_cq(dev.ctx(), 1, nullptr, nullptr, dev.ctx()->num_comp_vectors));
		CHECK(!vector, "a completion vector that is not there");
	}
	const cq_handle cq = dev.make_cq(16);
	const auto try_qp = [&](const char *what, bool good, uint32_t swr, uint32_t rwr, uint32_t ssge, uint32_t rsge) {
		ibv_qp_init_attr init{};
		init.qp_type = IBV_QPT_RC;
		init.send_cq = init.recv_cq = cq.get();
		init.cap = { .max_send_wr = swr, .max_recv_wr = rwr, .max_send_sge = ssge, .max_recv_sge = rsge,
			     .max_inline_data = 0 };
		errno = 0;
		qp_handle qp(ibv_create_qp(pd.get(), &init));
		CHECK(!!qp == good, "%s: %s", what, qp ? "made" : strerror(errno));
		if (!qp)
			CHECK(errno == EINVAL || errno == ENOMEM, "%s: %s", what, strerror(errno));
	};
	const uint32_t wr = d.max_qp_wr, sge = d.max_sge;
	try_qp("max_qp_wr sends", true, wr, 1, 1, 1);
	try_qp("max_qp_wr receives", true, 1, wr, 1, 1);
	try_qp("max_qp_wr + 1 sends", false, wr + 1, 1, 1, 1);
	try_qp("max_qp_wr + 1 receives", false, 1, wr + 1, 1, 1);
	try_qp("max_sge", true, 1, 1, sge, sge);
	try_qp("max_sge + 1 in sends", false, 1, 1, sge + 1, 1);
	try_qp("max_sge + 1 in receives", false, 1, 1, 1, sge + 1);
	try_qp("2^32 - 1 sends", false, UINT32_MAX, 1, 1, 1);
	try_qp("2^31 receives", false, 1, 1u << 31, 1, 1);
	try_qp("2^32 - 1 elements", false, 1, 1, UINT32_MAX, 1);
	const auto try_srq = [&](const char *what, bool good, uint32_t swr, uint32_t ssge) {
		ibv_srq_init_attr init{};
		init.attr.max_wr = swr;
		init.attr.max_sge = ssge;
		errno = 0;
		srq_handle srq(ibv_create_srq(pd.get(), &init));
		CHECK(!!srq == good, "%s: %s", what, srq ? "made" : strerror(errno));
	};
	try_srq("max_srq_wr", true, d.max_srq_wr, 1);
	try_srq("max_srq_wr + 1", false, d.max_srq_wr + 1, 1);
	try_srq("max_srq_sge", true, 4, d.max_srq_sge);
	try_srq("max_srq_sge + 1", false, 4, d.max_srq_sge + 1);
	try_srq("2^32 - 1 receives", false, UINT32_MAX, 1);
	// types that are not there
	for (const ibv_qp_type type : { IBV_QPT_RAW_PACKET, static_cast<ibv_qp_type>(77) }) {
		ibv_qp_init_attr init{};
		init.qp_type = type;
		init.send_cq = init.recv_cq = cq.get();
		init.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
			     .max_inline_data = 0 };
		qp_handle qp(ibv_create_qp(pd.get(), &init));
		CHECK(!qp, "a queue pair of type %d", type);
	}
}

void in_use(env &e)
{
	rc_config c;
	c.b.srq = true;
	rc_pair p(e, c);
	const auto busy = [](int rc, const char *what) {
		const int error = rc == -1 ? errno : rc;
		CHECK(error == EBUSY, "%s: %s", what, error_text(error).c_str());
	};
	// the handles keep what could not be destroyed
	busy(ibv_destroy_cq(p.a.scq()), "CQ of a queue pair");
	busy(ibv_dealloc_pd(p.a.pd.get()), "PD of a queue pair");
	busy(ibv_destroy_srq(p.b.srq.get()), "SRQ of a queue pair");
	const pd_handle pd = e.a().make_pd();
	{
		const buffer b(pd.get(), 64);
		busy(ibv_dealloc_pd(pd.get()), "PD of an MR");
	}
	check_alive(p, "afterwards");
}

void many_objects(env &e)
{
	const int count = e.full() ? 5000 : 300;
	device &dev = e.a();
	const pd_handle pd = dev.make_pd();
	mapping memory(1 << 20);
	std::vector<mr_handle> mrs;
	std::set<uint32_t> keys;
	for (int i = 0; i < count; i++) {
		mrs.emplace_back(ibv_reg_mr(pd.get(), memory.data() + i, 4096 + i, access_all));
		REQUIRE(mrs.back(), "MR %d: %s", i, strerror(errno));
		CHECK(keys.insert(mrs.back()->rkey).second, "key %#x twice", mrs.back()->rkey);
	}
	std::vector<cq_handle> cqs;
	std::vector<qp_handle> qps;
	for (int i = 0; i < count / 4; i++) {
		cqs.push_back(dev.make_cq(1));
		ibv_qp_init_attr init{};
		init.qp_type = i % 2 ? IBV_QPT_RC : IBV_QPT_UD;
		init.send_cq = init.recv_cq = cqs.back().get();
		init.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
			     .max_inline_data = 0 };
		qps.emplace_back(ibv_create_qp(pd.get(), &init));
		REQUIRE(qps.back(), "QP %d: %s", i, strerror(errno));
	}
}

// --- memory registration --------------------------------------------------------------------

void mr_rules(env &e)
{
	const pd_handle pd = e.a().make_pd();
	mapping memory(8 * 4096);
	const auto reg = [&](void *at, size_t len, int access) {
		errno = 0;
		return mr_handle(ibv_reg_mr(pd.get(), at, len, access));
	};
	for (const int access : { IBV_ACCESS_REMOTE_WRITE + 0, IBV_ACCESS_REMOTE_ATOMIC + 0,
				  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ }) {
		const mr_handle mr = reg(memory.data(), 4096, access);
		CHECK(!mr && errno == EINVAL, "access %#x without LOCAL_WRITE: %s", access,
		      mr ? "registered" : strerror(errno));
	}
	for (const int access : { 0, IBV_ACCESS_REMOTE_READ + 0, access_all })
		CHECK(reg(memory.data(), 4096, access), "access %#x: %s", access, strerror(errno));
	CHECK(!reg(memory.data(), 4096, 1 << 17), "an access flag that is not there");
	// optional flags are to be ignored
	CHECK(reg(memory.data(), 4096, access_local | IBV_ACCESS_RELAXED_ORDERING), "RELAXED_ORDERING: %s",
	      strerror(errno));
	CHECK(!reg(memory.data(), ~0ull - 4096, access_local), "a length that wraps around");
	CHECK(!reg(nullptr, 4096, access_local), "memory that is not mapped");
	mprotect(memory.data() + 4096, 4096, PROT_NONE);
	CHECK(!reg(memory.data(), 3 * 4096, access_local), "a hole in the middle");
	mprotect(memory.data() + 4096, 4096, PROT_READ);
	CHECK(!reg(memory.data(), 3 * 4096, access_local), "read-only memory for local writes");
	CHECK(reg(memory.data() + 4096, 4096, IBV_ACCESS_REMOTE_READ), "read-only memory for reads: %s",
	      strerror(errno));
}

void mr_iova(env &e)
{
	rc_pair p(e);
	buffer near(p.a.pd.get(), 4096);
	mapping memory(3 * 4096);
	// a virtual address of the owner's choice, 0 included
	for (const uint64_t iova : { 0x123456789000ull + 0x30, 0ull + 0x30, ~0ull - 0xffff + 0x30 }) {
		const std::string what = text("iova %#llx", static_cast<unsigned long long>(iova));
		mr_handle mr(ibv_reg_mr_iova(p.b.pd.get(), memory.data() + 0x30, 5000, iova, access_all));
		REQUIRE(mr, "%s: %s", what.c_str(), strerror(errno));
		fill_pattern(near.bytes(0, 4096), iova);
		memset(memory.data(), 0, memory.size());
		ibv_sge sge = near.sge();
		ibv_send_wr wr = rdma_wr(1, IBV_WR_RDMA_WRITE, &sge, iova + 904, mr->rkey);
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, what);
		check_pattern({ memory.data() + 0x30 + 904, 4096 }, iova, what);
		CHECK_EQ(memory.data()[0x30 + 903], 0, what);
		wr = rdma_wr(2, IBV_WR_RDMA_WRITE, &sge, iova + 905, mr->rkey);
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 2, IBV_WC_REM_ACCESS_ERR, -1, what + ", a byte too far");
		CHECK_EQ(memory.data()[0x30 + 5000], 0, what);
		p.reconnect();
	}
}

void mr_rereg(env &e)
{
	rc_pair p(e);
	const pd_handle other_pd = e.b().make_pd();
	buffer near(p.a.pd.get(), 4096);
	mapping first(2 * 4096), second(2 * 4096);
	mr_handle mr(ibv_reg_mr(p.b.pd.get(), first.data(), 4096, access_all));
	REQUIRE(mr, "ibv_reg_mr");
	fill_pattern(near.bytes(0, 4096), 3);
	ibv_sge sge = near.sge();
	const auto write = [&](const mapping &where, ibv_wc_status status, const char *what) {
		ibv_send_wr wr = rdma_wr(1, IBV_WR_RDMA_WRITE, &sge, reinterpret_cast<uintptr_t>(where.data()), mr->rkey);
		memset(where.data(), 0, where.size());
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 1, status, -1, what);
		if (status == IBV_WC_SUCCESS)
			check_pattern({ where.data(), 4096 }, 3, what);
		else
			p.reconnect();
	};
	write(first, IBV_WC_SUCCESS, "before");
	int rc = ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (rc && (errno == EOPNOTSUPP || errno == ENOSYS))
		skip("no ibv_rereg_mr");
	REQUIRE(!rc, "change access: %d (%s)", rc, strerror(errno));
	write(first, IBV_WC_REM_ACCESS_ERR, "right taken away");
	rc = ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, nullptr, second.data(),
			  4096, access_all);
	REQUIRE(!rc, "change memory: %d (%s)", rc, strerror(errno));
	write(second, IBV_WC_SUCCESS, "other memory");
	write(first, IBV_WC_REM_ACCESS_ERR, "the memory of before");
	rc = ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_PD, other_pd.get(), nullptr, 0, 0);
	REQUIRE(!rc, "change PD: %d (%s)", rc, strerror(errno));
	write(second, IBV_WC_REM_ACCESS_ERR, "of another PD now");
	rc = ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_PD, p.b.pd.get(), nullptr, 0, 0);
	REQUIRE(!rc, "change PD back: %d (%s)", rc, strerror(errno));
	write(second, IBV_WC_SUCCESS, "of the first PD again");
	mr.reset();
}

void mr_kinds_of_memory(env &e)
{
	rc_pair p(e);
	struct {
		const char *what;
		int flags;
		size_t size;
		bool may_lack;
	} const kinds[] = {
		{ "shared memory", MAP_SHARED | MAP_ANONYMOUS, 1 << 20, false },
		{ "huge pages", MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, 2 << 20, true },
		{ "populated memory", MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, 4 << 20, false },
	};
	for (const auto &k : kinds) {
		void *at = mmap(nullptr, k.size, PROT_READ | PROT_WRITE, k.flags, -1, 0);
		if (at == MAP_FAILED) {
			CHECK(k.may_lack, "%s: %s", k.what, strerror(errno));
			note(text("%s: none here", k.what));
			continue;
		}
		if (k.size == 4 << 20)
			madvise(at, k.size, MADV_HUGEPAGE);
		mr_handle mr(ibv_reg_mr(p.b.pd.get(), at, k.size, access_all));
		REQUIRE(mr, "%s: %s", k.what, strerror(errno));
		buffer near(p.a.pd.get(), 300000);
		fill_pattern(near.bytes(0, 300000), 8);
		ibv_sge sge = near.sge();
		ibv_send_wr wr = rdma_wr(1, IBV_WR_RDMA_WRITE, &sge, reinterpret_cast<uintptr_t>(at) + 4001, mr->rkey);
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, k.what);
		check_pattern({ static_cast<uint8_t *>(at) + 4001, 300000 }, 8, k.what);
		mr.reset();
		munmap(at, k.size);
	}
}

// An MR goes while requests of both sides use it.
void mr_gone_under_traffic(env &e)
{
	const int rounds = e.full() ? 200 : 30;
	for (const bool remote : { false, true })
		for (int round = 0; round < rounds; round++) {
			rc_config c;
			c.a.send_wr = 32;
			rc_pair p(e, c);
			buffer near(p.a.pd.get(), 200000), far(p.b.pd.get(), 200000);
			ibv_sge sge = near.sge();
			for (int i = 0; i < 8; i++) {
				ibv_send_wr wr = rdma_wr(i, i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, far.addr(),
							 far.rkey());
				p.a.must_post(wr);
			}
			usleep(round * 50);
			(remote ? far : near).release_mr();
			for (int i = 0; i < 8; i++) {
				const auto wc = next_wc(p.a.scq(), p.ms(10000));
				REQUIRE(wc, "%s MR gone, round %d: only %d completions", remote ? "remote" : "local", round, i);
				CHECK_EQ(wc->wr_id, i);
				CHECK(wc->status == IBV_WC_SUCCESS || wc->status == IBV_WC_WR_FLUSH_ERR ||
					      wc->status == (remote ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR),
				      "%s MR gone: %s", remote ? "remote" : "local", describe(*wc).c_str());
			}
		}
}

} // namespace

void add_tests(registry &r, const options &)
{
	r.add("flush in order [R047,R048,R041]", flush_order);
	r.add("flush by hand under traffic [R048]", flush_by_hand, 30);
	r.add("unsignalled requests [R047]", unsignalled);
	r.add("queues of 1, 2, 3, 5 entries wrap [B52]", small_rings, 60);
	r.add("full queues, bad_wr [B47]", full_queues);
	r.add("too many elements, bad_wr [B47]", bad_posts);
	r.add("every opcode is answered [B46]", every_opcode, 60);
	r.add("posts by state [R050,B47]", posts_by_state);
	r.add("modify_qp masks and transitions [R049,B67]", modify_masks);
	r.add("modify_qp values [R070,B60]", modify_values);
	r.add("query_qp returns what was set [B67]", query_returns_what_was_set);
	r.add("modify_qp under traffic [B67]", modify_under_traffic);
	r.add("SQD drains, SQ_DRAINED once [R051]", sqd_drain);
	r.add("RESET and reuse [R052]", reset_and_reuse, 60);
	r.add("RESET and what is unread [R052]", reset_unread);
	r.add("fence [R046]", fence, 40);
	r.add("max_rd_atomic [R044]", few_outstanding);
	r.add("PSN wraps [R027]", psn_wrap, 30);
	r.add("atomic sum of many [R062,B62]", atomic_sum, 60);
	r.add("write before send, read after write", ordering);
	r.add("many queue pairs", many_pairs, 40);
	r.add("solicited events [R024,B50]", solicited);
	r.add("arming races with completions [B50]", arm_race, 90);
	r.add("events only for completions [B50]", no_event_without_completion);
	r.add("CQ overflow: CQ_ERR", cq_overflow);
	r.add("CQ resize", cq_resize);
	r.add("CQ resize under traffic", cq_resize_race, 40);
	r.add("SRQ traffic", srq_traffic);
	r.add("SRQ limit [R057]", srq_limit);
	r.add("SRQ resize [R057]", srq_resize);
	r.add("LAST_WQE_REACHED [R058]", last_wqe);
	r.add("COMM_EST once", communication_established);
	r.add("device and port attributes [B12]", attributes);
	r.add("limits reached and not exceeded [B60]", limits, 40);
	r.add("objects in use [B68]", in_use);
	r.add("many objects [B60]", many_objects, 60);
	r.add("MR access rules [R068,B58]", mr_rules);
	r.add("MR with an address of choice [B58]", mr_iova);
	r.add("rereg_mr", mr_rereg);
	r.add("MR on kinds of memory", mr_kinds_of_memory);
	r.add("MR gone under traffic [B58]", mr_gone_under_traffic, 60);
}
