// SPDX-License-Identifier: GPL-2.0
//
// Data arrives as it was sent, and nothing else changes: every operation with
// every size and path MTU over IPv4 and IPv6, scatter/gather lists, inline
// data, odd alignments, the extended post and poll interfaces.

#include <algorithm>
#include <array>
#include <endian.h>
#include <numeric>
#include <sys/sysinfo.h>

#include "lib/rc_pair.hpp"
#include "lib/ud_pair.hpp"

using namespace vt;

const char *const program_suite = "data";

namespace {

// --- the matrix -------------------------------------------------------------

enum class op { send, send_imm, send_inv, write, write_imm, read, cmp_swap, fetch_add };

struct op_info {
	op o;
	const char *name;
	const char *rules;
	ibv_wr_opcode wr;
	ibv_wc_opcode wc;
};

constexpr op_info ops[] = {
	{ op::send, "send", "R020,R021,R022,R025,B61", IBV_WR_SEND, IBV_WC_SEND },
	{ op::send_imm, "send_imm", "R022,B61", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND },
	{ op::send_inv, "send_inv", "R060,B57", IBV_WR_SEND_WITH_INV, IBV_WC_SEND },
	{ op::write, "write", "R020,R022,R025,B61", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE },
	{ op::write_imm, "write_imm", "R022,R025", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE },
	{ op::read, "read", "R025,R032,B61", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ },
	{ op::cmp_swap, "cmp_swap", "R062,B62", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP },
	{ op::fetch_add, "fetch_add", "R062,B62", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD },
};

constexpr std::array<size_t, 9> sizes = { 0, 1, 63, 64, 1023, 1024, 1025, 64 << 10, 8 << 20 };
constexpr ibv_mtu mtus[] = { IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096 };
constexpr size_t tail = 100; // bytes behind the message that must not change
constexpr uint32_t imm_value = 0x12345678;

// A memory window of type 2 on the whole of a buffer: the one thing of a user
// process that a peer may invalidate.
struct window {
	mw_handle mw;
	uint32_t rkey = 0;

	window(rc_pair &p, rc_side &owner, buffer &mem)
	{
		mw.reset(ibv_alloc_mw(owner.pd.get(), IBV_MW_TYPE_2));
		if (!mw)
			skip(text("no memory window of type 2, so no key that a peer may invalidate: %s",
				  strerror(errno)));
		ibv_send_wr wr{};
		wr.wr_id = 0xb1d;
		wr.opcode = IBV_WR_BIND_MW;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.bind_mw.mw = mw.get();
		wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
		wr.bind_mw.bind_info.mr = mem.mr();
		wr.bind_mw.bind_info.addr = mem.addr();
		wr.bind_mw.bind_info.length = mem.size();
		wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
		owner.must_post(wr);
		expect_wc(owner.scq(), p.ms(5000), 0xb1d, IBV_WC_SUCCESS, IBV_WC_BIND_MW, "bind");
		rkey = wr.bind_mw.rkey;
	}
};

void transfer(rc_pair &p, rc_side &from, rc_side &to, const op_info &o, size_t size, uint64_t seed)
{
	const std::string what =
		text("%s of %zu bytes, %s", o.name, size, &from == &p.a ? "a to b" : "b to a");
	const bool read = o.o == op::read;
	// the two ends of the data, wherever they are
	rc_side &source_side = read ? to : from, &target_side = read ? from : to;
	buffer source(source_side.pd.get(), size, access_all, 3);
	buffer target(target_side.pd.get(), size + tail, access_all | IBV_ACCESS_MW_BIND, 1);
	fill_pattern(source.bytes(0, size), seed);
	target.clear();

	const bool consumes = o.o == op::send || o.o == op::send_imm || o.o == op::send_inv;
	const bool notifies = consumes || o.o == op::write_imm;
	std::optional<window> w;
	if (o.o == op::send_inv)
		w.emplace(p, to, target);
	if (consumes)
		to.must_post_recv(seed + 1, target.sge());
	else if (o.o == op::write_imm)
		to.must_post_recv(seed + 1);

	ibv_sge sge = read ? target.sge(0, size) : source.sge(0, size);
	ibv_send_wr wr = rdma_wr(seed, o.wr, &sge, 0, 0, size ? 1 : 0);
	if (consumes) {
		wr.wr = {};
	} else if (size) {
		const buffer &remote = read ? source : target;
		wr.wr.rdma.remote_addr = remote.addr();
		wr.wr.rdma.rkey = remote.rkey();
	} else {
		// without data neither key nor address may matter
		wr.wr.rdma.remote_addr = 0xdead0000dead0001ull;
		wr.wr.rdma.rkey = 0xdeadbeef;
	}
	if (o.o == op::send_inv)
		wr.invalidate_rkey = w->rkey;
	else
		wr.imm_data = htobe32(imm_value);
	from.must_post(wr);

	if (notifies) {
		const ibv_wc wc = expect_wc(to.rcq(), p.ms(15000), seed + 1, IBV_WC_SUCCESS,
					    consumes ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM, what);
		CHECK_EQ(wc.byte_len, size, what);
		CHECK_EQ(wc.qp_num, to.qp->qp_num, what);
		const bool imm = o.o == op::send_imm || o.o == op::write_imm;
		CHECK_EQ(!!(wc.wc_flags & IBV_WC_WITH_IMM), imm, what);
		CHECK_EQ(!!(wc.wc_flags & IBV_WC_WITH_INV), o.o == op::send_inv, what);
		if (imm)
			CHECK_EQ(be32toh(wc.imm_data), imm_value, what);
		if (o.o == op::send_inv)
			CHECK_EQ(wc.invalidated_rkey, w->rkey, what);
	}
	const ibv_wc wc = expect_wc(from.scq(), p.ms(15000), seed, IBV_WC_SUCCESS, o.wc, what);
	CHECK_EQ(wc.qp_num, from.qp->qp_num, what);
	if (read)
		CHECK_EQ(wc.byte_len, size, what);

	check_pattern(target.bytes(0, size), seed, what);
	target.check_clear(size, tail, what);
	target.check_canaries(what);
	check_pattern(source.bytes(0, size), seed, what + " (source)");
	source.check_canaries(what);
}

void atomics(rc_pair &p, rc_side &from, rc_side &to, const op_info &o)
{
	buffer remote(to.pd.get(), 24), sink(from.pd.get(), 24);
	const auto word = [](buffer &b) { return reinterpret_cast<uint64_t *>(b.data() + 8); };
	const auto run = [&](uint64_t before, uint64_t compare_add, uint64_t swap, uint64_t after) {
		const std::string what = text("%s of %#llx with %#llx", o.name,
					      static_cast<unsigned long long>(before),
					      static_cast<unsigned long long>(compare_add));
		remote.clear();
		sink.clear();
		*word(remote) = before;
		ibv_sge sge = sink.sge(8, 8);
		ibv_send_wr wr = atomic_wr(before, o.wr, &sge, remote.addr() + 8, remote.rkey(),
					   compare_add, swap);
		from.must_post(wr);
		const ibv_wc wc = expect_wc(from.scq(), p.ms(5000), before, IBV_WC_SUCCESS, o.wc, what);
		CHECK_EQ(wc.byte_len, 8, what);
		CHECK_EQ(*word(sink), before, what + " (returned)");
		CHECK_EQ(*word(remote), after, what + " (memory)");
		for (const buffer *b : { &remote, &sink }) {
			b->check_clear(0, 8, what);
			b->check_clear(16, 8, what);
			b->check_canaries(what);
		}
	};
	constexpr uint64_t x = 0x0123456789abcdef, y = 0xfedcba9876543210;
	if (o.o == op::cmp_swap) {
		run(x, x, y, y);
		run(x, y, 1, x);
		run(0, 0, x, x);
		run(x, x ^ 1ull << 63, y, x);
		run(x, x ^ 1, y, x);
	} else {
		run(x, 1, 0, x + 1);
		run(~0ull, 1, 0, 0);
		run(5, ~0ull, 0, 4);
		run(0xffffffff, 1, 0, 0x100000000);
		run(x, y, 0, x + y);
	}
}

void matrix(env &e, const op_info &o, ibv_mtu mtu, int family, size_t largest)
{
	rc_config c;
	c.mtu = mtu;
	c.family = family;
	// a guest that emulates its CPU may need longer than 67 ms for an answer
	c.both([](side_config &s) { s.timeout = 17; });
	rc_pair p(e, c);
	const bool atomic = o.o == op::cmp_swap || o.o == op::fetch_add;
	if (atomic) {
		if (e.a().attr().atomic_cap == IBV_ATOMIC_NONE || e.b().attr().atomic_cap == IBV_ATOMIC_NONE)
			skip("the device has no atomics");
		atomics(p, p.a, p.b, o);
		atomics(p, p.b, p.a, o);
		return;
	}
	uint64_t seed = 1000 * mtu + 17;
	for (const size_t size : sizes) {
		if (size > largest)
			continue;
		transfer(p, p.a, p.b, o, size, seed += 2);
		if (size <= 64 << 10 || e.full())
			transfer(p, p.b, p.a, o, size, seed += 2);
	}
	// around the path MTU itself
	for (const size_t size : { mtu_bytes(mtu) - 1, mtu_bytes(mtu), mtu_bytes(mtu) + 1,
				   3 * mtu_bytes(mtu) }) {
		transfer(p, p.a, p.b, o, size, seed += 2);
		transfer(p, p.b, p.a, o, size, seed += 2);
	}
}

void ud_matrix(env &e, bool imm, int family)
{
	ud_config c;
	c.family = family;
	ud_pair p(e, c);
	const uint32_t mtu = std::min(mtu_bytes(p.a.dev->port().active_mtu),
				      mtu_bytes(p.b.dev->port().active_mtu));
	uint64_t seed = 1;
	for (const size_t size : { 0u, 1u, 63u, 64u, 1023u, 1024u, 1025u, mtu - 1, mtu })
		for (const auto &[from, to] : { std::pair(&p.a, &p.b), std::pair(&p.b, &p.a) }) {
			if (size > mtu)
				continue;
			const std::string what = text("UD send of %zu bytes", size);
			seed += 2;
			buffer source(from->pd.get(), size);
			buffer target(to->pd.get(), ud_header + size + tail);
			fill_pattern(source.bytes(0, size), seed);
			target.clear();
			to->must_post_recv(seed + 1, target.sge());
			ibv_sge sge = source.sge();
			const int rc = from->post_send(seed, &sge, size ? 1 : 0, *to, to->qkey, imm, imm_value);
			REQUIRE(!rc, "post: %s", error_text(rc).c_str());
			expect_wc(from->scq.get(), p.ms(5000), seed, IBV_WC_SUCCESS, IBV_WC_SEND, what);
			const ibv_wc wc = expect_wc(to->rcq.get(), p.ms(5000), seed + 1, IBV_WC_SUCCESS,
						    IBV_WC_RECV, what);
			CHECK_EQ(wc.byte_len, ud_header + size, what);
			CHECK_EQ(wc.src_qp, from->qp->qp_num, what);
			CHECK(wc.wc_flags & IBV_WC_GRH, "%s: no GRH flag", what.c_str());
			CHECK_EQ(!!(wc.wc_flags & IBV_WC_WITH_IMM), imm, what);
			if (imm)
				CHECK_EQ(be32toh(wc.imm_data), imm_value, what);
			check_pattern(target.bytes(ud_header, size), seed, what);
			target.check_clear(ud_header + size, tail, what);
			target.check_canaries(what);
		}
}

// --- scatter/gather -----------------------------------------------------------

// Splits size bytes into count parts of odd lengths, some of them empty.
std::vector<size_t> odd_parts(size_t size, size_t count)
{
	std::vector<size_t> parts(count, 0);
	size_t left = size;
	for (size_t i = 0; i + 1 < count; i++) {
		if (i % 5 == 2)
			continue;
		parts[i] = std::min(left, (i * 37 + 1) % 301);
		left -= parts[i];
	}
	parts[count - 1] = left;
	return parts;
}

// The elements lie in one buffer with gaps between, in descending order.
std::vector<ibv_sge> scatter(const buffer &mem, const std::vector<size_t> &parts)
{
	std::vector<ibv_sge> sges;
	size_t at = mem.size();
	for (const size_t part : parts) {
		at -= part + 5;
		sges.push_back(mem.sge(at, part));
	}
	return sges;
}

void write_through(const std::vector<ibv_sge> &sges, uint64_t seed)
{
	size_t done = 0;
	for (const ibv_sge &s : sges) {
		fill_pattern({ reinterpret_cast<uint8_t *>(s.addr), s.length }, seed, done);
		done += s.length;
	}
}

void check_through(const std::vector<ibv_sge> &sges, size_t size, uint64_t seed, const std::string &what)
{
	size_t done = 0;
	for (const ibv_sge &s : sges) {
		const size_t n = std::min<size_t>(s.length, size - done);
		check_pattern({ reinterpret_cast<uint8_t *>(s.addr), n }, seed, what, done);
		done += n;
	}
}

void multi_sge(env &e, ibv_wr_opcode opcode, int family)
{
	rc_config c;
	c.family = family;
	const uint32_t count =
		std::min({ 32u, static_cast<uint32_t>(e.a().attr().max_sge),
			   static_cast<uint32_t>(e.b().attr().max_sge),
			   static_cast<uint32_t>(opcode == IBV_WR_RDMA_READ ? e.a().attr().max_sge_rd : 32) });
	c.both([&](side_config &s) {
		s.send_sge = count;
		s.recv_sge = count;
	});
	rc_pair p(e, c);
	if (count < 32)
		note(text("only %u elements", count));

	uint64_t seed = 99;
	for (const size_t size : { size_t{ 0 }, size_t{ 1 }, size_t{ 700 }, size_t{ 3000 }, size_t{ 20000 } }) {
		const std::string what = text("opcode %d, %u elements, %zu bytes", opcode, count, size);
		const size_t room = size + 32 * 8 + 1024;
		buffer local(p.a.pd.get(), room), remote(p.b.pd.get(), room);
		local.clear();
		remote.clear();
		seed += 3;
		const std::vector<size_t> parts = odd_parts(size, count);
		std::vector<ibv_sge> lsges = scatter(local, parts);
		ibv_send_wr wr = rdma_wr(seed, opcode, lsges.data(), remote.addr() + 16, remote.rkey(),
					 static_cast<int>(count));
		if (opcode == IBV_WR_RDMA_READ)
			fill_pattern(remote.bytes(16, size), seed);
		else
			write_through(lsges, seed);

		std::vector<ibv_sge> rsges;
		if (opcode == IBV_WR_SEND) {
			// the receiver cuts the message elsewhere
			std::vector<size_t> other = parts;
			std::rotate(other.begin(), other.begin() + count / 3, other.end());
			other.back() += 9;
			rsges = scatter(remote, other);
			const int rc = p.b.post_recv(seed + 1, rsges);
			REQUIRE(!rc, "post_recv: %s", error_text(rc).c_str());
			wr.wr = {};
		}
		p.a.must_post(wr);
		if (opcode == IBV_WR_SEND) {
			const ibv_wc wc = expect_wc(p.b.rcq(), p.ms(5000), seed + 1, IBV_WC_SUCCESS,
						    IBV_WC_RECV, what);
			CHECK_EQ(wc.byte_len, size, what);
		}
		expect_wc(p.a.scq(), p.ms(5000), seed, IBV_WC_SUCCESS, -1, what);
		if (opcode == IBV_WR_SEND) {
			check_through(rsges, size, seed, what);
		} else if (opcode == IBV_WR_RDMA_READ) {
			check_through(lsges, size, seed, what);
		} else {
			check_pattern(remote.bytes(16, size), seed, what);
			remote.check_clear(16 + size, room - 16 - size, what);
		}
		// the five bytes behind every element
		for (const auto *list : { opcode == IBV_WR_SEND ? &rsges : nullptr, &lsges })
			if (list)
				for (const ibv_sge &s : *list)
					for (int i = 0; i < 5; i++)
						CHECK_EQ(reinterpret_cast<uint8_t *>(s.addr)[s.length + i], 0xee,
							 what);
		local.check_canaries(what);
		remote.check_canaries(what);
	}
}

void unaligned(env &e)
{
	rc_pair p(e);
	uint64_t seed = 5;
	const size_t step = e.full() ? 1 : 3;
	// every pad count with every misalignment of both ends
	for (size_t size = 1; size <= 63; size += step)
		for (const size_t offset : { size_t{ 0 }, size_t{ 1 }, size_t{ 2 }, size_t{ 3 }, size_t{ 4093 } }) {
			const std::string what = text("%zu bytes at offset %zu", size, offset);
			seed += 2;
			buffer source(p.a.pd.get(), size, access_all, offset);
			buffer target(p.b.pd.get(), size, access_all, offset + size % 5);
			fill_pattern(source.bytes(0, size), seed);
			target.clear();
			ibv_sge sge = source.sge();
			ibv_send_wr wr =
				rdma_wr(seed, IBV_WR_RDMA_WRITE, &sge, target.addr(), target.rkey());
			p.a.must_post(wr);
			expect_wc(p.a.scq(), p.ms(5000), seed, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, what);
			check_pattern(target.bytes(0, size), seed, what);
			target.check_canaries(what);
			source.clear(0xaa);
			sge = source.sge();
			wr = rdma_wr(seed + 1, IBV_WR_RDMA_READ, &sge, target.addr(), target.rkey());
			p.a.must_post(wr);
			expect_wc(p.a.scq(), p.ms(5000), seed + 1, IBV_WC_SUCCESS, IBV_WC_RDMA_READ, what);
			check_pattern(source.bytes(0, size), seed, what);
			source.check_canaries(what);
		}
}

// --- inline data ----------------------------------------------------------------

void inline_data(env &e, bool overflow)
{
	rc_config c;
	const uint32_t want = std::stoul(e.opt.setting("inline", "512"));
	c.a.inline_data = want;
	c.a.send_sge = std::min(32, e.a().attr().max_sge);
	rc_pair p(e, c);
	const uint32_t most = p.a.max_inline();
	CHECK(most >= want, "asked for %u bytes inline, got %u", want, most);
	note(text("%u bytes inline", most));

	buffer target(p.b.pd.get(), most + 64);
	std::vector<uint8_t> plain(most + 64); // not registered
	uint64_t seed = 3;
	const auto run = [&](ibv_wr_opcode opcode, const std::vector<size_t> &parts) {
		const size_t size = std::accumulate(parts.begin(), parts.end(), size_t{ 0 });
		const std::string what = text("inline opcode %d, %zu bytes in %zu parts", opcode, size,
					      parts.size());
		seed += 2;
		target.clear();
		fill_pattern({ plain.data(), size }, seed);
		std::vector<ibv_sge> sges;
		size_t at = 0;
		for (const size_t part : parts) {
			// the key of inline data is not looked at
			sges.push_back({ reinterpret_cast<uintptr_t>(plain.data()) + at,
					 static_cast<uint32_t>(part), 0xdeadbeef });
			at += part;
		}
		ibv_send_wr wr = rdma_wr(seed, opcode, sges.data(), target.addr(), target.rkey(),
					 static_cast<int>(sges.size()), IBV_SEND_SIGNALED | IBV_SEND_INLINE);
		if (opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			p.b.must_post_recv(seed + 1, target.sge());
		p.a.must_post(wr);
		// the data was taken at the time of the post
		std::fill(plain.begin(), plain.end(), 0x55);
		if (opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			expect_wc(p.b.rcq(), p.ms(5000), seed + 1, IBV_WC_SUCCESS, -1, what);
		expect_wc(p.a.scq(), p.ms(5000), seed, IBV_WC_SUCCESS, -1, what);
		check_pattern(target.bytes(0, size), seed, what);
		target.check_clear(size, target.size() - size, what);
	};
	for (const ibv_wr_opcode opcode : { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM }) {
		if (overflow)
			break;
		for (const size_t size : { size_t{ 0 }, size_t{ 1 }, size_t{ 3 }, size_t{ 63 }, size_t{ 64 },
					   size_t{ 220 }, size_t{ most } - 1, size_t{ most } })
			run(opcode, { size });
		run(opcode, odd_parts(most, c.a.send_sge));
		run(opcode, odd_parts(7, c.a.send_sge));
		run(opcode, {});
	}

	// too much: refused at once, and the queue pair goes on
	const auto refused = [&](std::vector<uint32_t> lengths, const char *what) {
		std::vector<ibv_sge> sges;
		for (const uint32_t n : lengths)
			sges.push_back({ reinterpret_cast<uintptr_t>(plain.data()), n, 0 });
		ibv_send_wr wr = rdma_wr(1, IBV_WR_RDMA_WRITE, sges.data(), target.addr(), target.rkey(),
					 static_cast<int>(sges.size()), IBV_SEND_SIGNALED | IBV_SEND_INLINE);
		const int rc = p.a.post(wr);
		CHECK(rc == EINVAL || rc == ENOMEM, "%s: post returned %s", what, error_text(rc).c_str());
		return rc != 0;
	};
	bool all = refused({ most + 1 }, "one byte too many");
	all &= refused({ most, 1 }, "one byte too many in two parts");
	if (overflow) {
		all &= refused({ 0xffffffff, 2 }, "a sum that wraps around");
		all &= refused({ 0x80000000, 0x80000000 }, "a sum that wraps to 0");
	}
	if (all)
		check_alive(p, "after refused inline posts");
}

void inline_limit(env &e)
{
	rc_config c;
	c.connect = false;
	ibv_qp_init_attr init{};
	rc_pair p(e, c);
	init.qp_type = IBV_QPT_RC;
	init.send_cq = init.recv_cq = p.a.scq();
	init.cap.max_send_wr = init.cap.max_recv_wr = init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	uint32_t granted = 0;
	for (uint32_t ask = 1; ask < 1 << 20; ask *= 2) {
		init.cap.max_inline_data = ask;
		qp_handle qp(ibv_create_qp(p.a.pd.get(), &init));
		if (!qp) {
			CHECK(errno == EINVAL || errno == ENOMEM, "inline %u: %s", ask, strerror(errno));
			break;
		}
		CHECK(init.cap.max_inline_data >= ask, "asked for %u inline, got %u", ask,
		      init.cap.max_inline_data);
		granted = ask;
	}
	CHECK(granted >= 220, "inline limit %u is below what ib_write_lat asks for", granted);
	CHECK(granted < 1 << 19, "inline has no limit");
	init.cap.max_inline_data = UINT32_MAX;
	qp_handle qp(ibv_create_qp(p.a.pd.get(), &init));
	CHECK(!qp, "4 GiB inline granted");
}

// --- extended interfaces ------------------------------------------------------------

constexpr uint64_t ext_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			     IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			     IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

void extended_post(env &e)
{
	rc_config c;
	c.a.send_ops = ext_ops;
	c.a.inline_data = 256;
	c.a.send_sge = 4;
	rc_pair p(e, c);
	ibv_qp_ex *q = p.a.qpx;
	buffer local(p.a.pd.get(), 4096), remote(p.b.pd.get(), 4096);
	uint64_t seed = 40;

	const auto begin = [&](const char *what) {
		seed++;
		local.clear();
		remote.clear();
		fill_pattern(local.bytes(0, 1000), seed);
		ibv_wr_start(q);
		q->wr_id = seed;
		q->wr_flags = IBV_SEND_SIGNALED;
		return std::string(what);
	};
	const auto finish = [&](const std::string &what, int opcode) {
		const int rc = ibv_wr_complete(q);
		REQUIRE(!rc, "%s: ibv_wr_complete: %s", what.c_str(), error_text(rc).c_str());
		expect_wc(p.a.scq(), p.ms(5000), seed, IBV_WC_SUCCESS, opcode, what);
	};

	std::string what = begin("write");
	ibv_wr_rdma_write(q, remote.rkey(), remote.addr());
	ibv_wr_set_sge(q, local.lkey(), local.addr(), 1000);
	finish(what, IBV_WC_RDMA_WRITE);
	check_pattern(remote.bytes(0, 1000), seed, what);

	what = begin("write with a list");
	const ibv_sge list[3] = { local.sge(0, 1), local.sge(1, 500), local.sge(501, 499) };
	ibv_wr_rdma_write(q, remote.rkey(), remote.addr() + 7);
	ibv_wr_set_sge_list(q, 3, list);
	finish(what, IBV_WC_RDMA_WRITE);
	check_pattern(remote.bytes(7, 1000), seed, what);

	what = begin("inline send");
	p.b.must_post_recv(seed, remote.sge());
	ibv_wr_send(q);
	ibv_wr_set_inline_data(q, local.data(), 256);
	std::fill(local.data() + 512, local.data() + 1024, 0x11);
	finish(what, IBV_WC_SEND);
	expect_wc(p.b.rcq(), p.ms(5000), seed, IBV_WC_SUCCESS, IBV_WC_RECV, what);
	check_pattern(remote.bytes(0, 256), seed, what);

	what = begin("inline list, send with immediate");
	p.b.must_post_recv(seed, remote.sge());
	const ibv_data_buf parts[2] = { { local.data(), 100 }, { local.data() + 100, 33 } };
	ibv_wr_send_imm(q, htobe32(imm_value));
	ibv_wr_set_inline_data_list(q, 2, parts);
	finish(what, IBV_WC_SEND);
	ibv_wc wc = expect_wc(p.b.rcq(), p.ms(5000), seed, IBV_WC_SUCCESS, IBV_WC_RECV, what);
	CHECK_EQ(be32toh(wc.imm_data), imm_value);
	CHECK_EQ(wc.byte_len, 133);
	check_pattern(remote.bytes(0, 133), seed, what);

	what = begin("write with immediate");
	p.b.must_post_recv(seed);
	ibv_wr_rdma_write_imm(q, remote.rkey(), remote.addr(), htobe32(77));
	ibv_wr_set_sge(q, local.lkey(), local.addr(), 10);
	finish(what, IBV_WC_RDMA_WRITE);
	wc = expect_wc(p.b.rcq(), p.ms(5000), seed, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, what);
	CHECK_EQ(be32toh(wc.imm_data), 77);
	CHECK_EQ(wc.byte_len, 10);

	what = begin("read");
	fill_pattern(remote.bytes(0, 900), seed + 1000);
	ibv_wr_rdma_read(q, remote.rkey(), remote.addr());
	ibv_wr_set_sge(q, local.lkey(), local.addr() + 1024, 900);
	finish(what, IBV_WC_RDMA_READ);
	check_pattern(local.bytes(1024, 900), seed + 1000, what);

	what = begin("fetch and add");
	memset(remote.data(), 0, 8);
	ibv_wr_atomic_fetch_add(q, remote.rkey(), remote.addr(), 5);
	ibv_wr_set_sge(q, local.lkey(), local.addr(), 8);
	finish(what, IBV_WC_FETCH_ADD);
	CHECK_EQ(*reinterpret_cast<uint64_t *>(remote.data()), 5);

	what = begin("compare and swap");
	memset(remote.data(), 0, 8);
	ibv_wr_atomic_cmp_swp(q, remote.rkey(), remote.addr(), 0, 9);
	ibv_wr_set_sge(q, local.lkey(), local.addr(), 8);
	finish(what, IBV_WC_COMP_SWAP);
	CHECK_EQ(*reinterpret_cast<uint64_t *>(remote.data()), 9);

	// several in one go
	what = begin("batch");
	for (int i = 0; i < 8; i++) {
		q->wr_id = 9000 + i;
		q->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(q, remote.rkey(), remote.addr() + 100 * i);
		ibv_wr_set_sge(q, local.lkey(), local.addr() + 100 * i, 100);
	}
	int rc = ibv_wr_complete(q);
	REQUIRE(!rc, "batch: %s", error_text(rc).c_str());
	for (int i = 0; i < 8; i++)
		expect_wc(p.a.scq(), p.ms(5000), 9000 + i, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, what);
	check_pattern(remote.bytes(0, 800), seed, what);

	// an abandoned batch leaves no trace
	what = begin("abort");
	ibv_wr_rdma_write(q, remote.rkey(), remote.addr());
	ibv_wr_set_sge(q, local.lkey(), local.addr(), 1000);
	ibv_wr_abort(q);
	expect_no_wc(p.a.scq(), 50, what);
	remote.check_clear(0, 4096, what);

	// a fault in the batch: all of it is refused
	what = begin("too much inline");
	ibv_wr_rdma_write(q, remote.rkey(), remote.addr());
	ibv_wr_set_sge(q, local.lkey(), local.addr(), 1000);
	ibv_wr_send(q);
	std::vector<uint8_t> much(1 << 20);
	ibv_wr_set_inline_data(q, much.data(), much.size());
	rc = ibv_wr_complete(q);
	CHECK(rc == EINVAL || rc == ENOMEM, "%s: %s", what.c_str(), error_text(rc).c_str());
	expect_no_wc(p.a.scq(), 50, what);
	remote.check_clear(0, 4096, what);
	check_alive(p, "after extended posts");
}

void extended_cq(env &e)
{
	// whatever of these it offers has to be right
	constexpr uint64_t all = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
				 IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
				 IBV_WC_EX_WITH_DLID_PATH_BITS;
	rc_config c;
	c.connect = false;
	rc_pair p(e, c);
	ibv_cq_init_attr_ex at{};
	at.cqe = 64;
	at.wc_flags = all;
	ibv_cq_ex *cq = ibv_create_cq_ex(e.b().ctx(), &at);
	if (!cq && (errno == EOPNOTSUPP || errno == ENOSYS))
		skip("no extended CQ");
	REQUIRE(cq, "ibv_create_cq_ex: %s", strerror(errno));
	p.b.qp.reset();
	p.b.rcq_own.reset(ibv_cq_ex_to_cq(cq));
	ibv_qp_init_attr init{};
	init.qp_type = IBV_QPT_RC;
	init.send_cq = p.b.scq();
	init.recv_cq = p.b.rcq();
	init.cap = { .max_send_wr = 8, .max_recv_wr = 32, .max_send_sge = 1, .max_recv_sge = 1,
		     .max_inline_data = 0 };
	p.b.qp.reset(ibv_create_qp(p.b.pd.get(), &init));
	REQUIRE(p.b.qp, "ibv_create_qp: %s", strerror(errno));
	p.connect();

	constexpr int count = 5;
	buffer local(p.a.pd.get(), 1000), remote(p.b.pd.get(), 1000);
	for (int i = 0; i < count; i++) {
		p.b.must_post_recv(100 + i, remote.sge(100 * i, 100));
		ibv_sge sge = local.sge(0, 10 + i);
		ibv_send_wr wr = send_wr(i, IBV_WR_SEND_WITH_IMM, &sge);
		wr.imm_data = htobe32(7000 + i);
		p.a.must_post(wr);
	}
	for (int i = 0; i < count; i++)
		expect_wc(p.a.scq(), p.ms(5000), i, IBV_WC_SUCCESS, IBV_WC_SEND);

	ibv_poll_cq_attr poll{};
	const deadline end(p.ms(5000));
	int rc;
	while ((rc = ibv_start_poll(cq, &poll)) == ENOENT && !end.passed())
		usleep(1000);
	REQUIRE(!rc, "ibv_start_poll: %s", error_text(rc).c_str());
	int seen = 0;
	do {
		const std::string what = text("completion %d", seen);
		CHECK_EQ(cq->status, IBV_WC_SUCCESS, what);
		CHECK_EQ(cq->wr_id, 100 + seen, what);
		CHECK_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV, what);
		CHECK_EQ(ibv_wc_read_byte_len(cq), 10 + seen, what);
		CHECK_EQ(be32toh(ibv_wc_read_imm_data(cq)), 7000 + seen, what);
		CHECK_EQ(ibv_wc_read_qp_num(cq), p.b.qp->qp_num, what);
		CHECK(ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM, "%s: no immediate", what.c_str());
		CHECK_EQ(ibv_wc_read_vendor_err(cq), 0, what);
		CHECK_EQ(ibv_wc_read_slid(cq), 0, what);
		CHECK_EQ(ibv_wc_read_sl(cq), 0, what);
		CHECK_EQ(ibv_wc_read_dlid_path_bits(cq), 0, what);
		seen++;
		rc = ibv_next_poll(cq);
	} while (!rc && seen < count + 1);
	CHECK_EQ(rc, ENOENT);
	ibv_end_poll(cq);
	CHECK_EQ(seen, count);

	// the plain interface of the same CQ goes on where that stopped
	p.b.must_post_recv(200, remote.sge(0, 100));
	ibv_sge sge = local.sge(0, 4);
	ibv_send_wr wr = send_wr(50, IBV_WR_SEND, &sge);
	p.a.must_post(wr);
	expect_wc(p.b.rcq(), p.ms(5000), 200, IBV_WC_SUCCESS, IBV_WC_RECV, "plain poll");
}

// --- volume -------------------------------------------------------------------------

// Many messages of mixed kinds in flight at once; all arrive, in order.
void pipeline(env &e, int family, int messages)
{
	constexpr int depth = 32;
	constexpr size_t slot = 6000;
	rc_config c;
	c.family = family;
	c.mtu = static_cast<ibv_mtu>(std::min(e.a().port().active_mtu, e.b().port().active_mtu));
	c.both([](side_config &s) {
		s.timeout = 17;
		s.send_wr = s.recv_wr = 2 * depth;
	});
	rc_pair p(e, c);
	buffer src(p.a.pd.get(), depth * slot), dst(p.b.pd.get(), depth * slot);
	const auto length = [](int i) { return static_cast<size_t>(i * 2654435761u % (slot + 1)); };
	int posted = 0, received = 0, sent = 0;
	const deadline end(p.ms(60000));
	deadline progress(p.ms(15000));
	while (received < messages || sent < messages) {
		while (posted < messages && posted < received + depth && posted < sent + depth) {
			const int s = posted % depth;
			p.b.must_post_recv(posted, dst.sge(s * slot, slot));
			fill_pattern(src.bytes(s * slot, length(posted)), posted);
			ibv_sge sge = src.sge(s * slot, length(posted));
			ibv_send_wr wr = send_wr(posted, IBV_WR_SEND, &sge);
			p.a.must_post(wr);
			posted++;
		}
		ibv_wc wc{};
		bool any = false;
		while (ibv_poll_cq(p.b.rcq(), 1, &wc) > 0) {
			REQUIRE(wc.status == IBV_WC_SUCCESS && wc.wr_id == static_cast<uint64_t>(received),
				"receive %d: %s", received, describe(wc).c_str());
			REQUIRE_EQ(wc.byte_len, length(received));
			check_pattern(dst.bytes(received % depth * slot, wc.byte_len), received, "pipeline");
			received++;
			any = true;
		}
		while (ibv_poll_cq(p.a.scq(), 1, &wc) > 0) {
			REQUIRE(wc.status == IBV_WC_SUCCESS && wc.wr_id == static_cast<uint64_t>(sent),
				"send %d: %s", sent, describe(wc).c_str());
			sent++;
			any = true;
		}
		if (any)
			progress = deadline(p.ms(15000));
		else
			sched_yield();
		REQUIRE(!progress.passed() && !end.passed(), "stuck: %d posted, %d sent, %d received of %d",
			posted, sent, received, messages);
	}
}

void huge_message(env &e)
{
	struct sysinfo si{};
	sysinfo(&si);
	// two buffers of 2 GiB unless both ends are the same memory
	if (static_cast<uint64_t>(si.totalram) * si.mem_unit < 6ull << 30)
		skip("a message of 2 GiB needs a guest of 6 GiB");
	rc_config c;
	c.mtu = IBV_MTU_4096;
	c.both([](side_config &s) { s.timeout = 18; });
	rc_pair p(e, c);
	const size_t size = 1ull << 31;
	buffer src(p.a.pd.get(), size), dst(p.b.pd.get(), size);
	fill_pattern(src.bytes(0, size), 1);
	ibv_sge sge = src.sge();
	ibv_send_wr wr = rdma_wr(1, IBV_WR_RDMA_WRITE, &sge, dst.addr(), dst.rkey());
	p.a.must_post(wr);
	expect_wc(p.a.scq(), p.ms(150000), 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE, "2^31 bytes");
	check_pattern(dst.bytes(0, size), 1, "2^31 bytes");
}

void too_huge_message(env &e)
{
	rc_config c;
	c.a.send_sge = 2;
	rc_pair p(e, c);
	const uint32_t max = p.a.dev->port().max_msg_sz;
	CHECK_EQ(max, 1u << 31);
	buffer src(p.a.pd.get(), 4096), dst(p.b.pd.get(), 4096);
	// the key covers less; the length is refused first, by post or completion
	ibv_sge sges[2] = { { src.addr(), 1u << 31, src.lkey() }, { src.addr(), 1, src.lkey() } };
	ibv_send_wr wr = rdma_wr(1, IBV_WR_RDMA_WRITE, sges, dst.addr(), dst.rkey(), 2);
	const int rc = p.a.post(wr);
	if (rc) {
		CHECK_EQ(rc, EINVAL);
		check_alive(p, "after the refused post");
		return;
	}
	const auto wc = next_wc(p.a.scq(), p.ms(5000));
	REQUIRE(wc, "no completion");
	CHECK(wc->status == IBV_WC_LOC_LEN_ERR || wc->status == IBV_WC_LOC_QP_OP_ERR ||
		      wc->status == IBV_WC_LOC_PROT_ERR,
	      "%s", describe(*wc).c_str());
}

} // namespace

void add_tests(registry &r, const options &o)
{
	for (const int family : o.families) {
		for (const op_info &i : ops)
			for (const ibv_mtu mtu : mtus) {
				// quick: every operation at 1024; every MTU with SEND over IPv4,
				// WRITE over IPv6 and READ at the extremes; 8 MiB once each
				const bool extreme = mtu == IBV_MTU_256 || mtu == IBV_MTU_4096;
				const bool quick =
					mtu == IBV_MTU_1024 || (i.o == op::send && family == 4) ||
					(i.o == op::write && family == 6) || (i.o == op::read && extreme);
				const bool big = o.full || (mtu == IBV_MTU_4096 && i.o != op::send_imm);
				test_case t;
				t.name = text("%s v%d mtu %u [%s]", i.name, family, mtu_bytes(mtu), i.rules);
				t.body = [=, &i](env &e) {
					matrix(e, i, mtu, family, big ? sizes.back() : 64 << 10);
				};
				t.seconds = 60;
				t.only_full = !quick;
				r.add(t);
			}
		r.add(text("ud send v%d [R009,R053]", family), [=](env &e) { ud_matrix(e, false, family); });
		r.add(text("ud send_imm v%d [R009,R053]", family), [=](env &e) { ud_matrix(e, true, family); });
		r.add(text("32 elements, send, v%d [B61]", family),
		      [=](env &e) { multi_sge(e, IBV_WR_SEND, family); });
		r.add(text("32 elements, write, v%d [B61]", family),
		      [=](env &e) { multi_sge(e, IBV_WR_RDMA_WRITE, family); });
		r.add(text("32 elements, read, v%d [B61]", family),
		      [=](env &e) { multi_sge(e, IBV_WR_RDMA_READ, family); });
		r.add(text("pipeline of sends v%d [B52]", family),
		      [=](env &e) { pipeline(e, family, e.full() ? 5000 : 300); }, 70);
	}
	r.add("every pad and alignment [R022,B61,B69]", unaligned, 60);
	r.add("inline data [B48]", [](env &e) { inline_data(e, false); });
	r.add("inline sums that overflow [B48]", [](env &e) { inline_data(e, true); });
	r.add("inline limit [B48,B60]", inline_limit);
	r.add("ibv_wr_* [B47]", extended_post);
	r.add("ibv_create_cq_ex", extended_cq);
	r.add("2^31+1 bytes refused [R026,B61]", too_huge_message);
	r.add_full("2^31 bytes [R026,B61]", huge_message, 170);
}
