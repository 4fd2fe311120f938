// SPDX-License-Identifier: GPL-2.0
//
// What must not happen does not, and both sides learn of it as the standard
// says: access rights and bounds, lengths, local faults, receiver not ready,
// no answer at all. After each fault the memory around is looked at and the
// queue pairs are used again.

#include <endian.h>

#include "lib/rc_pair.hpp"

using namespace vt;

const char *const program_suite = "errors";

namespace {

// Both queue pairs are in ERR, the responder told its owner why (unless it is
// of a driver that does not: --set events=no), and a fresh connection of the
// same two carries data.
void check_aftermath(rc_pair &p, ibv_event_type event, const std::string &what)
{
	CHECK_EQ(p.a.state(), IBV_QPS_ERR, what + " (requester)");
	CHECK_EQ(p.b.state(), IBV_QPS_ERR, what + " (responder)");
	ibv_async_event e{};
	if (p.world.opt.setting("events") != "no" &&
	    CHECK(p.b.dev->wait_event(event, p.ms(3000), &e), "%s: no event %s", what.c_str(),
		  ibv_event_type_str(event)))
		CHECK(e.element.qp == p.b.qp.get(), "%s: the event is of another queue pair", what.c_str());
	p.reconnect();
	check_alive(p, what + ", connected again");
}

// --- remote access ------------------------------------------------------------

struct access_op {
	const char *name;
	ibv_wr_opcode opcode;
	int right;
};

constexpr access_op access_ops[] = {
	{ "write", IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
	{ "read", IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
	{ "fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
	{ "cmp_swap", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_ATOMIC },
};

bool is_atomic(const access_op &o)
{
	return o.right == IBV_ACCESS_REMOTE_ATOMIC;
}

// One request that the responder has to refuse with this status.
void try_access(rc_pair &p, const access_op &o, const buffer &target, uint64_t addr, uint32_t rkey,
		uint32_t length, ibv_wc_status status, const std::string &what)
{
	buffer local(p.a.pd.get(), 8192);
	local.clear(0x77);
	ibv_sge sge = local.sge(0, is_atomic(o) ? 8 : length);
	ibv_send_wr wr = is_atomic(o) ? atomic_wr(7, o.opcode, &sge, addr, rkey, 0, 1) :
					rdma_wr(7, o.opcode, &sge, addr, rkey);
	p.a.must_post(wr);
	expect_wc(p.a.scq(), p.ms(5000), 7, status, -1, what);
	target.check_clear(0, target.size(), what);
	target.check_canaries(what);
	local.check_clear(0, local.size(), what + " (sink)", 0x77);
}

void access_refused(env &e, const access_op &o)
{
	rc_pair p(e);
	constexpr size_t size = 4000;
	const pd_handle other_pd = e.b().make_pd();
	buffer target(p.b.pd.get(), size), foreign(other_pd.get(), size);
	buffer plain(p.b.pd.get(), size, access_all & ~o.right);
	target.clear();
	foreign.clear();
	plain.clear();
	const uint64_t addr = target.addr(); // 8-aligned
	const uint32_t key = target.rkey();
	uint32_t dead_key;
	{
		buffer gone(p.b.pd.get(), size);
		dead_key = gone.rkey();
	}

	struct {
		const char *what;
		const buffer *target;
		uint64_t addr;
		uint32_t key, length;
	} const cases[] = {
		{ "unknown key", &target, addr, key ^ 0x5a5a5a00, 64 },
		{ "key of a neighbour index", &target, addr, key + 0x100, 64 },
		{ "key with another low byte", &target, addr, key ^ 1, 64 },
		{ "key 0", &target, addr, 0, 64 },
		{ "key of a gone MR", &target, addr, dead_key, 64 },
		{ "key of another PD", &foreign, foreign.addr(), foreign.rkey(), 64 },
		{ "MR without the right", &plain, plain.addr(), plain.rkey(), 64 },
		{ "from a byte before", &target, is_atomic(o) ? addr - 8 : addr - 1, key, 64 },
		{ "to a byte behind", &target, is_atomic(o) ? addr + size : addr + size - 63, key, 64 },
		{ "far behind", &target, addr + (1ull << 40), key, 64 },
		{ "all of it and a byte", &target, is_atomic(o) ? addr + size : addr, key, size + 1 },
		{ "several packets, the last one out", &target, is_atomic(o) ? addr + size : addr + 8, key,
		  size },
		{ "wrap around the address space", &target, ~0ull - 7, key, 64 },
	};
	for (const auto &c : cases) {
		const std::string what = std::string(o.name) + ", " + c.what;
		try_access(p, o, *c.target, c.addr, c.key, c.length, IBV_WC_REM_ACCESS_ERR, what);
		check_aftermath(p, IBV_EVENT_QP_ACCESS_ERR, what);
	}
}

void access_refused_by_qp(env &e, const access_op &o)
{
	rc_config c;
	c.b.access = qp_access_all & ~o.right;
	rc_pair p(e, c);
	buffer target(p.b.pd.get(), 4000);
	target.clear();
	const std::string what = std::string(o.name) + ", right missing on the queue pair";
	try_access(p, o, target, target.addr(), target.rkey(), 64, IBV_WC_REM_INV_REQ_ERR, what);
	check_aftermath(p, IBV_EVENT_QP_REQ_ERR, what);
	// the right of the queue pair is looked at before the key
	try_access(p, o, target, target.addr(), target.rkey() ^ 0x5a5a5a00, 64, IBV_WC_REM_INV_REQ_ERR,
		   what + ", wrong key");
}

void write_imm_refused(env &e)
{
	rc_pair p(e);
	buffer target(p.b.pd.get(), 4000), local(p.a.pd.get(), 4000);
	target.clear();
	p.b.must_post_recv(1);
	p.b.must_post_recv(2);
	ibv_sge sge = local.sge(0, 64);
	ibv_send_wr wr = rdma_wr(7, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, target.addr(), target.rkey() ^ 0x5a5a5a00);
	p.a.must_post(wr);
	expect_wc(p.a.scq(), p.ms(5000), 7, IBV_WC_REM_ACCESS_ERR, -1, "requester");
	expect_wc(p.b.rcq(), p.ms(5000), 1, IBV_WC_LOC_ACCESS_ERR, -1, "receive that was taken");
	expect_wc(p.b.rcq(), p.ms(5000), 2, IBV_WC_WR_FLUSH_ERR, -1, "receive behind it");
	target.check_clear(0, 4000, "write_imm");
}

// The last byte and the first one are within.
void access_granted_at_the_edges(env &e)
{
	rc_pair p(e);
	buffer target(p.b.pd.get(), 4000, access_all, 13), local(p.a.pd.get(), 4000, access_all, 5);
	uint64_t id = 1;
	for (const auto &[at, len] : { std::pair(0u, 1u), std::pair(3999u, 1u), std::pair(0u, 4000u),
				       std::pair(2000u, 2000u) })
		for (const ibv_wr_opcode opcode : { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ }) {
			ibv_sge sge = local.sge(0, len);
			ibv_send_wr wr = rdma_wr(++id, opcode, &sge, target.addr() + at, target.rkey());
			p.a.must_post(wr);
			expect_wc(p.a.scq(), p.ms(5000), id, IBV_WC_SUCCESS, -1, text("%u+%u", at, len));
		}
	target.check_canaries("edges");
	local.check_canaries("edges");
}

// --- lengths ----------------------------------------------------------------------

void send_too_long(env &e)
{
	rc_pair p(e);
	for (const auto &[room, size] : { std::pair(100u, 101u), std::pair(0u, 1u), std::pair(1000u, 1024u),
					  std::pair(1024u, 1025u), std::pair(3000u, 5000u),
					  std::pair(1500u, 100000u) }) {
		const std::string what = text("%u bytes into %u", size, room);
		buffer source(p.a.pd.get(), size), target(p.b.pd.get(), room);
		p.b.must_post_recv(1, target.sge(0, room));
		p.b.must_post_recv(2, target.sge(0, room));
		ibv_sge sge = source.sge();
		ibv_send_wr wr = send_wr(7, IBV_WR_SEND, &sge);
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 7, IBV_WC_REM_INV_REQ_ERR, -1, what);
		expect_wc(p.b.rcq(), p.ms(5000), 1, IBV_WC_LOC_LEN_ERR, -1, what);
		expect_wc(p.b.rcq(), p.ms(5000), 2, IBV_WC_WR_FLUSH_ERR, -1, what);
		target.check_canaries(what);
		CHECK_EQ(p.a.state(), IBV_QPS_ERR, what);
		CHECK_EQ(p.b.state(), IBV_QPS_ERR, what);
		p.reconnect();
	}
	check_alive(p, "afterwards");
}

// --- local faults -------------------------------------------------------------------

void local_fault(env &e)
{
	rc_config c;
	c.a.send_sge = 2;
	rc_pair p(e, c);
	const pd_handle other_pd = e.a().make_pd();
	buffer good(p.a.pd.get(), 4000), foreign(other_pd.get(), 4000), target(p.b.pd.get(), 8000);
	buffer read_only(p.a.pd.get(), 4000, 0);
	target.clear();
	fill_pattern(read_only.bytes(0, 4000), 1);
	uint32_t dead_key;
	{
		buffer gone(p.a.pd.get(), 4000);
		dead_key = gone.lkey();
	}
	struct {
		const char *what;
		ibv_wr_opcode opcode;
		ibv_sge sge;
		bool fault;
	} const cases[] = {
		{ "write, unknown key", IBV_WR_RDMA_WRITE, { good.addr(), 64, good.lkey() ^ 0x5a5a5a00 }, true },
		{ "write, key of a gone MR", IBV_WR_RDMA_WRITE, { good.addr(), 64, dead_key }, true },
		{ "write, key of another PD", IBV_WR_RDMA_WRITE, { foreign.addr(), 64, foreign.lkey() }, true },
		{ "write, from a byte before", IBV_WR_RDMA_WRITE, { good.addr() - 1, 64, good.lkey() }, true },
		{ "write, to a byte behind", IBV_WR_RDMA_WRITE, { good.addr() + 3937, 64, good.lkey() }, true },
		{ "send, unknown key", IBV_WR_SEND, { good.addr(), 64, 0x12345600 }, true },
		{ "send, to a byte behind", IBV_WR_SEND, { good.addr(), 4001, good.lkey() }, true },
		{ "read, unknown key", IBV_WR_RDMA_READ, { good.addr(), 64, 0x12345600 }, true },
		{ "read, sink may not be written", IBV_WR_RDMA_READ, { read_only.addr(), 64, read_only.lkey() },
		  true },
		{ "read, to a byte behind", IBV_WR_RDMA_READ, { good.addr(), 4001, good.lkey() }, true },
		{ "atomic, unknown key", IBV_WR_ATOMIC_FETCH_AND_ADD, { good.addr(), 8, 0x12345600 }, true },
		{ "atomic, sink may not be written", IBV_WR_ATOMIC_FETCH_AND_ADD,
		  { read_only.addr(), 8, read_only.lkey() }, true },
		{ "write from memory that may only be read", IBV_WR_RDMA_WRITE,
		  { read_only.addr(), 64, read_only.lkey() }, false },
	};
	for (const auto &k : cases) {
		const std::string what = k.what;
		good.clear(0x44);
		ibv_sge sge = k.sge;
		ibv_send_wr wr = k.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ?
					 atomic_wr(7, k.opcode, &sge, target.addr(), target.rkey(), 0, 0) :
					 rdma_wr(7, k.opcode, &sge, target.addr(), target.rkey());
		if (k.opcode == IBV_WR_SEND) {
			wr.wr = {};
			p.b.must_post_recv(1, target.sge());
		}
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 7, k.fault ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS, -1, what);
		if (!k.fault) {
			target.check_canaries(what);
			continue;
		}
		CHECK_EQ(p.a.state(), IBV_QPS_ERR, what);
		// the peer sees nothing of it
		CHECK_EQ(p.b.state(), IBV_QPS_RTS, what);
		target.check_clear(0, target.size(), what);
		check_pattern(read_only.bytes(0, 4000), 1, what);
		good.check_canaries(what);
		read_only.check_canaries(what);
		p.reconnect();
	}
	check_alive(p, "afterwards");
}

// A fault in the second element: whatever of the message is on its way by then.
void local_fault_later(env &e)
{
	rc_config c;
	c.a.send_sge = 2;
	rc_pair p(e, c);
	buffer good(p.a.pd.get(), 100000), target(p.b.pd.get(), 200000);
	ibv_sge sges[2] = { good.sge(), { good.addr(), 100, 0x12345600 } };
	ibv_send_wr wr = rdma_wr(7, IBV_WR_RDMA_WRITE, sges, target.addr(), target.rkey(), 2);
	p.a.must_post(wr);
	expect_wc(p.a.scq(), p.ms(5000), 7, IBV_WC_LOC_PROT_ERR, -1, "second element");
	target.check_canaries("second element");
	p.reconnect();
	check_alive(p, "afterwards");
}

void receive_fault(env &e)
{
	rc_pair p(e);
	buffer source(p.a.pd.get(), 5000), target(p.b.pd.get(), 5000);
	buffer read_only(p.b.pd.get(), 5000, 0);
	target.clear();
	read_only.clear();
	struct {
		const char *what;
		ibv_sge sge;
	} const cases[] = {
		{ "unknown key", { target.addr(), 5000, 0x12345600 } },
		{ "to a byte behind", { target.addr() + 1, 5000, target.lkey() } },
		{ "memory that may not be written", { read_only.addr(), 5000, read_only.lkey() } },
	};
	for (const auto &k : cases) {
		const std::string what = k.what;
		p.b.must_post_recv(1, k.sge);
		p.b.must_post_recv(2, target.sge());
		ibv_sge sge = source.sge();
		ibv_send_wr wr = send_wr(7, IBV_WR_SEND, &sge);
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 7, IBV_WC_REM_OP_ERR, -1, what);
		expect_wc(p.b.rcq(), p.ms(5000), 1, IBV_WC_LOC_PROT_ERR, -1, what);
		expect_wc(p.b.rcq(), p.ms(5000), 2, IBV_WC_WR_FLUSH_ERR, -1, what);
		read_only.check_clear(0, 5000, what);
		target.check_canaries(what);
		p.reconnect();
	}
	check_alive(p, "afterwards");
}

// Keys that a peer may not invalidate: those of plain MRs, those that are none.
void invalidate_refused(env &e)
{
	rc_pair p(e);
	buffer source(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
	fill_pattern(source.bytes(0, 64), 6);
	for (const uint32_t key : { target.rkey(), target.rkey() ^ 0x5a5a5a00, 0u }) {
		const std::string what = text("key %#x", key);
		p.b.must_post_recv(1, target.sge());
		p.b.must_post_recv(2, target.sge());
		ibv_sge sge = source.sge();
		ibv_send_wr wr = send_wr(7, IBV_WR_SEND_WITH_INV, &sge);
		wr.invalidate_rkey = key;
		const int rc = p.a.post(wr);
		if (rc == EOPNOTSUPP || rc == EINVAL)
			skip("no SEND_WITH_INV");
		REQUIRE(!rc, "post: %s", error_text(rc).c_str());
		const auto wc = next_wc(p.b.rcq(), p.ms(5000));
		REQUIRE(wc && wc->wr_id == 1 && wc->status != IBV_WC_SUCCESS, "%s: %s", what.c_str(),
			wc ? describe(*wc).c_str() : "no completion");
		expect_wc(p.b.rcq(), p.ms(5000), 2, IBV_WC_WR_FLUSH_ERR, -1, what);
		CHECK_EQ(p.b.state(), IBV_QPS_ERR, what);
		REQUIRE(next_wc(p.a.scq(), p.ms(5000)), "%s: the requester hears nothing", what.c_str());
		p.reconnect();
		// the MR is as before
		sge = source.sge();
		wr = rdma_wr(8, IBV_WR_RDMA_WRITE, &sge, target.addr(), target.rkey());
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 8, IBV_WC_SUCCESS, -1, what + ", used afterwards");
		check_pattern(target.bytes(0, 64), 6, what);
	}
}

// --- atomics and reads that may not be ------------------------------------------------

// Refused by the post, or by the responder as an invalid request.
void expect_invalid(rc_pair &p, ibv_send_wr &wr, const buffer &target, const std::string &what)
{
	const int rc = p.a.post(wr);
	if (rc) {
		CHECK_EQ(rc, EINVAL, what);
	} else {
		const auto wc = next_wc(p.a.scq(), p.ms(5000));
		REQUIRE(wc, "%s: no completion", what.c_str());
		CHECK(wc->status == IBV_WC_REM_INV_REQ_ERR || wc->status == IBV_WC_LOC_QP_OP_ERR ||
			      wc->status == IBV_WC_LOC_LEN_ERR,
		      "%s: %s", what.c_str(), describe(*wc).c_str());
		p.reconnect();
	}
	target.check_clear(0, target.size(), what);
}

void bad_atomic(env &e)
{
	rc_config c;
	c.a.send_sge = 2;
	rc_pair p(e, c);
	buffer target(p.b.pd.get(), 64), sink(p.a.pd.get(), 64);
	target.clear();
	for (const unsigned int off : { 1u, 2u, 4u, 7u })
		for (const ibv_wr_opcode opcode :
		     { IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP }) {
			ibv_sge sge = sink.sge(0, 8);
			ibv_send_wr wr = atomic_wr(7, opcode, &sge, target.addr() + off, target.rkey(),
						   0xeeeeeeeeeeeeeeee, 1);
			expect_invalid(p, wr, target, text("atomic at offset %u", off));
		}
	for (const uint32_t len : { 0u, 4u, 16u }) {
		ibv_sge sge = sink.sge(0, len);
		ibv_send_wr wr =
			atomic_wr(7, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, target.addr(), target.rkey(), 1, 0);
		expect_invalid(p, wr, target, text("atomic with a sink of %u bytes", len));
	}
	check_alive(p, "afterwards");
}

void no_responder_resources(env &e)
{
	rc_config c;
	c.b.max_dest_rd_atomic = 0;
	rc_pair p(e, c);
	buffer target(p.b.pd.get(), 64), local(p.a.pd.get(), 64);
	for (const ibv_wr_opcode opcode :
	     { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP }) {
		const std::string what = text("opcode %d", opcode);
		local.clear(0x33);
		target.clear();
		ibv_sge sge = local.sge(0, 8);
		ibv_send_wr wr = opcode == IBV_WR_RDMA_READ ?
					 rdma_wr(7, opcode, &sge, target.addr(), target.rkey()) :
					 atomic_wr(7, opcode, &sge, target.addr(), target.rkey(), 0, 1);
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 7, IBV_WC_REM_INV_REQ_ERR, -1, what);
		local.check_clear(0, 64, what, 0x33);
		target.check_clear(0, 64, what);
		check_aftermath(p, IBV_EVENT_QP_REQ_ERR, what);
	}
}

// As requester with max_rd_atomic 0: an error or a refusal, never silence.
void no_initiator_resources(env &e)
{
	rc_config c;
	c.a.max_rd_atomic = 0;
	rc_pair p(e, c);
	buffer target(p.b.pd.get(), 64), local(p.a.pd.get(), 64);
	ibv_sge sge = local.sge(0, 8);
	ibv_send_wr wr = rdma_wr(7, IBV_WR_RDMA_READ, &sge, target.addr(), target.rkey());
	if (p.a.post(wr))
		return;
	const auto wc = next_wc(p.a.scq(), p.ms(1000));
	if (!wc) {
		note("a READ with max_rd_atomic 0 just waits");
		return;
	}
	CHECK(wc->status == IBV_WC_LOC_QP_OP_ERR, "%s", describe(*wc).c_str());
}

// --- receiver not ready ------------------------------------------------------------

void rnr_exhausted(env &e)
{
	constexpr double timer = 10.24; // code 20
	for (const int retries : { 0, 1, 4, 6 })
		for (const bool imm : { false, true }) {
			const std::string what = text("rnr_retry %d%s", retries, imm ? ", write_imm" : "");
			rc_config c;
			c.a.rnr_retry = static_cast<uint8_t>(retries);
			c.b.min_rnr_timer = 20;
			rc_pair p(e, c);
			buffer source(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
			ibv_sge sge = source.sge();
			ibv_send_wr wr = imm ? rdma_wr(7, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, target.addr(),
						       target.rkey()) :
					       send_wr(7, IBV_WR_SEND, &sge);
			const stopwatch watch;
			p.a.must_post(wr);
			expect_wc(p.a.scq(), p.ms(5000), 7, IBV_WC_RNR_RETRY_EXC_ERR, -1, what);
			CHECK(watch.ms() >= retries * timer, "%s: gave up after %.1f ms, before %.1f", what.c_str(),
			      watch.ms(), retries * timer);
			CHECK(watch.ms() < 200 + retries * timer * 4 * e.opt.scale, "%s: took %.1f ms",
			      what.c_str(), watch.ms());
			CHECK_EQ(p.a.state(), IBV_QPS_ERR, what);
			CHECK_EQ(p.b.state(), IBV_QPS_RTS, what + " (responder)");
		}
}

void rnr_for_ever(env &e)
{
	rc_config c;
	c.a.rnr_retry = 7;
	c.b.min_rnr_timer = 14; // 1.28 ms
	rc_pair p(e, c);
	buffer source(p.a.pd.get(), 3000), target(p.b.pd.get(), 3000);
	fill_pattern(source.bytes(0, 3000), 9);
	ibv_sge sge = source.sge();
	for (int i = 0; i < 3; i++) {
		ibv_send_wr wr = send_wr(i, IBV_WR_SEND, &sge);
		p.a.must_post(wr);
	}
	// some hundred times the timer
	expect_no_wc(p.a.scq(), 400, "while there is no receive");
	for (int i = 0; i < 3; i++) {
		target.clear();
		p.b.must_post_recv(100 + i, target.sge());
		expect_wc(p.b.rcq(), p.ms(5000), 100 + i, IBV_WC_SUCCESS, IBV_WC_RECV, "late receive");
		expect_wc(p.a.scq(), p.ms(5000), i, IBV_WC_SUCCESS, IBV_WC_SEND, "late receive");
		check_pattern(target.bytes(0, 3000), 9, "late receive");
	}
}

void rnr_srq(env &e)
{
	rc_config c;
	c.b.srq = true;
	c.b.min_rnr_timer = 14;
	rc_pair p(e, c);
	buffer source(p.a.pd.get(), 100), target(p.b.pd.get(), 100);
	fill_pattern(source.bytes(0, 100), 5);
	ibv_sge sge = source.sge();
	ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);
	p.a.must_post(wr);
	expect_no_wc(p.a.scq(), 100, "SRQ is empty");
	p.b.must_post_recv(2, target.sge());
	expect_wc(p.b.rcq(), p.ms(5000), 2, IBV_WC_SUCCESS, IBV_WC_RECV, "late receive");
	expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, IBV_WC_SEND, "late receive");
	check_pattern(target.bytes(0, 100), 5, "late receive");
}

// The longest and some other times of the table are waited for, not less.
void rnr_times(env &e)
{
	for (const auto &[code, wait] : { std::pair(0, 655.36), std::pair(22, 20.48), std::pair(26, 81.92) }) {
		const std::string what = text("timer code %d", code);
		rc_config c;
		c.b.min_rnr_timer = static_cast<uint8_t>(code);
		rc_pair p(e, c);
		buffer source(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
		ibv_sge sge = source.sge();
		ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);
		const stopwatch watch;
		p.a.must_post(wr);
		usleep(3000); // the RNR NAK is there by now, on any guest
		p.b.must_post_recv(2, target.sge());
		expect_wc(p.b.rcq(), p.ms(5000), 2, IBV_WC_SUCCESS, IBV_WC_RECV, what);
		const double took = watch.ms();
		expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, IBV_WC_SEND, what);
		// the NAK may also have been later than the receive
		if (took < wait && took > 3 + 2 * e.opt.scale)
			FAIL("%s: sent again after %.2f ms, not %.2f", what.c_str(), took, wait);
		else if (took < wait)
			FAIL("%s: no RNR NAK within %.2f ms, or no wait", what.c_str(), took);
		CHECK(took < 2 * wait + 100 * e.opt.scale, "%s: sent again only after %.2f ms", what.c_str(), took);
	}
}

// --- no answer --------------------------------------------------------------------

void timeout_exhausted(env &e)
{
	rc_pair other(e); // unaffected by all this
	for (const auto &[code, retries] : { std::pair(12, 0), std::pair(12, 3), std::pair(14, 1),
					     std::pair(14, 7), std::pair(16, 1), std::pair(5, 2) }) {
		const std::string what = text("timeout %d, retry_cnt %d", code, retries);
		const double once = 4.096e-3 * (1 << code);
		rc_config c;
		c.a.timeout = static_cast<uint8_t>(code);
		c.a.retry_cnt = static_cast<uint8_t>(retries);
		rc_pair p(e, c);
		// a queue pair in RESET says nothing
		REQUIRE(!p.b.to_state(IBV_QPS_RESET), "to RESET");
		buffer source(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
		ibv_sge sge = source.sge();
		ibv_send_wr wr = rdma_wr(7, IBV_WR_RDMA_WRITE, &sge, target.addr(), target.rkey());
		const stopwatch watch;
		p.a.must_post(wr);
		const ibv_wc wc = expect_wc(p.a.scq(), p.ms(8000), 7, IBV_WC_RETRY_EXC_ERR, -1, what);
		const double took = watch.ms();
		CHECK(took >= (retries + 1) * once, "%s: gave up after %.1f ms, before %.1f", what.c_str(), took,
		      (retries + 1) * once);
		CHECK(took <= (retries + 1) * once * 4 + 100 * e.opt.scale, "%s: gave up only after %.1f ms",
		      what.c_str(), took);
		CHECK(wc.vendor_err != 0, "%s: vendor_err is 0 [B82]", what.c_str());
		CHECK_EQ(p.a.state(), IBV_QPS_ERR, what);
	}
	check_alive(other, "a queue pair beside them");
}

void timeout_read(env &e)
{
	rc_config c;
	c.a.timeout = 12;
	c.a.retry_cnt = 2;
	for (const ibv_wr_opcode opcode : { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND }) {
		rc_pair p(e, c);
		REQUIRE(!p.b.to_state(IBV_QPS_RESET), "to RESET");
		buffer local(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
		ibv_sge sge = local.sge(0, 8);
		ibv_send_wr wr = opcode == IBV_WR_RDMA_READ ?
					 rdma_wr(7, opcode, &sge, target.addr(), target.rkey()) :
				 opcode == IBV_WR_SEND ?
					 send_wr(7, opcode, &sge) :
					 atomic_wr(7, opcode, &sge, target.addr(), target.rkey(), 0, 1);
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 7, IBV_WC_RETRY_EXC_ERR, -1, text("opcode %d", opcode));
	}
}

void timeout_never(env &e)
{
	rc_config c;
	c.a.timeout = 0;
	c.a.retry_cnt = 0;
	rc_pair p(e, c);
	REQUIRE(!p.b.to_state(IBV_QPS_RESET), "to RESET");
	buffer source(p.a.pd.get(), 64), target(p.b.pd.get(), 64);
	ibv_sge sge = source.sge();
	ibv_send_wr wr = rdma_wr(7, IBV_WR_RDMA_WRITE, &sge, target.addr(), target.rkey());
	p.a.must_post(wr);
	expect_no_wc(p.a.scq(), 1500, "timeout 0");
	CHECK_EQ(p.a.state(), IBV_QPS_RTS);
	p.reconnect();
	check_alive(p, "afterwards");
}

// The peer's answers come late: the first attempts are lost, then it is there.
void peer_comes_late(env &e)
{
	rc_config c;
	c.a.timeout = 12;
	c.a.retry_cnt = 7;
	rc_pair p(e, c);
	REQUIRE(!p.b.to_state(IBV_QPS_RESET), "to RESET");
	buffer source(p.a.pd.get(), 5000), target(p.b.pd.get(), 5000);
	fill_pattern(source.bytes(0, 5000), 4);
	target.clear();
	ibv_sge sge = source.sge();
	ibv_send_wr wr = rdma_wr(7, IBV_WR_RDMA_WRITE, &sge, target.addr(), target.rkey());
	p.a.must_post(wr);
	usleep(30000);
	int rc = p.b.to_init();
	REQUIRE(!rc, "to INIT");
	rc = p.b.to_rtr(p.a, p.config.mtu);
	REQUIRE(!rc, "to RTR");
	rc = p.b.to_rts();
	REQUIRE(!rc, "to RTS");
	expect_wc(p.a.scq(), p.ms(5000), 7, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, "late peer");
	check_pattern(target.bytes(0, 5000), 4, "late peer");
	check_alive(p, "late peer");
}

} // namespace

void add_tests(registry &r, const options &)
{
	for (const access_op &o : access_ops) {
		r.add(text("remote access, %s: REM_ACCESS_ERR [R041,R042,B58]", o.name),
		      [&o](env &e) { access_refused(e, o); }, 30);
		r.add(text("remote access by queue pair, %s: REM_INV_REQ_ERR [R041,R042]", o.name),
		      [&o](env &e) { access_refused_by_qp(e, o); });
	}
	r.add("remote access, write_imm: LOC_ACCESS_ERR at the receiver [R042]", write_imm_refused);
	r.add("remote access up to the edges [B58]", access_granted_at_the_edges);
	r.add("send longer than the receive: LOC_LEN_ERR, REM_INV_REQ_ERR [R041]", send_too_long);
	r.add("local fault: LOC_PROT_ERR [B58]", local_fault, 30);
	r.add("local fault in the second element", local_fault_later);
	r.add("fault of the receive: REM_OP_ERR, LOC_PROT_ERR [R041]", receive_fault);
	r.add("SEND_INV of a key that may not be invalidated [B57]", invalidate_refused);
	r.add("misaligned atomic [R043,B62]", bad_atomic);
	r.add("max_dest_rd_atomic 0 [R045]", no_responder_resources);
	r.add("max_rd_atomic 0 [R044]", no_initiator_resources);
	r.add("RNR retries exhausted [R034,R036,B81]", rnr_exhausted);
	r.add("rnr_retry 7 is for ever [R036,B81]", rnr_for_ever);
	r.add("RNR of an empty SRQ [R034,B81]", rnr_srq);
	r.add("RNR times, 0 the longest [R035,B81]", rnr_times);
	r.add("retries exhausted [R037,R038,B82]", timeout_exhausted, 40);
	r.add("retries exhausted, other operations [R038]", timeout_read);
	r.add("timeout 0 never fires [R037,B82]", timeout_never);
	r.add("peer comes late [R038,R039]", peer_comes_late);
}
