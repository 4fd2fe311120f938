// SPDX-License-Identifier: GPL-2.0
//
// Packets that no peer sends, with the right ICRC and the right addresses: a
// device drops them, refuses them or gives up the queue pair they are for, and
// nothing else happens. Needs two devices; frames go past the first one:
//
//	 namespace of a                    namespace of b
//	+--------------+                  +--------------+
//	| device a     |                  |     device b |
//	| netdev  <----+--- AF_PACKET     |       netdev |
//	+-------|------+                  +-------|------+
//	        +------------- cable -------------+

#include <atomic>
#include <functional>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <random>
#include <thread>

#include "lib/frame.hpp"
#include "lib/rc_pair.hpp"
#include "lib/ud_pair.hpp"

using namespace vt;

const char *const program_suite = "inject";

namespace {

using rng = std::mt19937;

constexpr uint32_t mtu = 1024;
constexpr size_t room = 16384;

// How long a random test goes on.
int spell(const env &e)
{
	return e.full() ? 15000 : 1200;
}

template <typename T> T any_of(rng &r, std::initializer_list<T> list)
{
	return list.begin()[r() % list.size()];
}

bool one_in(rng &r, unsigned int n)
{
	return r() % n == 0;
}

void need_two(env &e)
{
	if (!e.two_devices())
		skip("needs two devices");
}

ibv_qp_attr psns(const rc_side &s)
{
	ibv_qp_attr at{};
	ibv_qp_init_attr init{};
	REQUIRE(!ibv_query_qp(s.qp.get(), &at, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init), "ibv_query_qp");
	return at;
}

uint32_t expected_psn(const rc_side &s)
{
	return psns(s).rq_psn;
}

// A pair whose end b is attacked in the name of end a.
struct victim {
	victim(env &e, rc_config c = {}) : p(e, c), memory(p.b.pd.get(), room), near(p.a.pd.get(), room), roads(e.a(), e.b(), p.config.family)
	{
		memory.clear();
		feed();
	}

	void feed() const
	{
		for (int i = 0; i < 32; i++)
			p.b.post_recv(i, { std::array{ memory.sge(0, room) }.data(), 1 });
	}
	// Back to life when an attack has put an end to it.
	void heal()
	{
		if (p.b.state() == IBV_QPS_RTS && p.a.state() == IBV_QPS_RTS)
			return;
		deaths++;
		p.reconnect();
		feed();
	}
	uint32_t qpn() const { return p.b.qp->qp_num; }

	rc_pair p;
	buffer memory, near;
	road roads;
	int deaths = 0;
};

// --- requests -------------------------------------------------------------------------

uint32_t random_psn(rng &r, uint32_t e)
{
	static constexpr int32_t near[] = { 0, 0, 0, 0, -1, 1, -2, 2, -5, 100, -100, 0x7fffff, -0x7fffff, 0x800000, 0x7ffffe, 0x400000 };
	return one_in(r, 16) ? r() & PSN_MASK : (e + static_cast<uint32_t>(near[r() % std::size(near)])) & PSN_MASK;
}

uint64_t random_va(rng &r, const buffer &m)
{
	switch (r() % 8) {
	case 0:
		return any_of<uint64_t>(r, { 0, 1, ~0ull, ~0ull - 7, 1ull << 63, 0x7ffffffff000 });
	case 1:
		return m.addr() - 1 - r() % 9;
	case 2:
		return m.addr() + m.size() - r() % 9;
	case 3:
		return m.addr() + r() % m.size();
	default:
		return m.addr() + r() % (m.size() / 2 / 8) * 8;
	}
}

uint32_t random_key(rng &r, uint32_t key)
{
	return one_in(r, 4) ? any_of<uint32_t>(r, { 0u, ~0u, key ^ 1, key ^ 0x100, key & 0xff, key | 0xffffff00, static_cast<uint32_t>(r()) }) : key;
}

uint32_t random_length(rng &r)
{
	return one_in(r, 8) ? static_cast<uint32_t>(r()) :
	       any_of<uint32_t>(r, { 0, 1, 3, 4, 8, 255, 256, 1023, 1024, 1025, 2048, 2050, 4096, 16384, 16385,
				     0x7fffffff, 0x80000000u, 0x80000001u, 0xffffffffu });
}

size_t random_payload(rng &r)
{
	return any_of<size_t>(r, { 0, 0, 1, 2, 3, 4, 8, 100, 255, 256, 1020, 1023, 1024, 1024, 1024, 1025, 1028, 2048, 4096, 4100 });
}

// The headers that an opcode calls for, mostly sensible, then mostly spoiled a little.
packet random_packet(rng &r, uint8_t op, uint32_t qpn, uint32_t psn, const buffer &m)
{
	packet p(op, qpn, psn);
	const uint8_t o = op & 31;
	const uint32_t key = random_key(r, m.rkey());
	if ((op & 0xe0) == ROCE_CLASS_UD)
		p.deth(one_in(r, 4) ? r() : 0x11111111, r() & 0xffffff);
	if (o == ROCE_OP_READ_REQUEST || o == ROCE_OP_WRITE_FIRST || o == ROCE_OP_WRITE_ONLY || o == ROCE_OP_WRITE_ONLY_IMM)
		p.reth(random_va(r, m), key, random_length(r));
	if (o == ROCE_OP_COMPARE_SWAP || o == ROCE_OP_FETCH_ADD)
		p.atomiceth(random_va(r, m), key, r(), r());
	if (o == ROCE_OP_READ_RESP_FIRST || o == ROCE_OP_READ_RESP_LAST || o == ROCE_OP_READ_RESP_ONLY || o == ROCE_OP_ACK ||
	    o == ROCE_OP_ATOMIC_ACK)
		p.aeth(one_in(r, 2) ? any_of<uint8_t>(r, { 0x1f, 0x00, 0x20, 0x60, 0x61, 0x62, 0x63 }) : static_cast<uint8_t>(r()), r());
	if (o == ROCE_OP_ATOMIC_ACK)
		p.word(r(), 8);
	if (o == ROCE_OP_SEND_LAST_IMM || o == ROCE_OP_SEND_ONLY_IMM || o == ROCE_OP_WRITE_LAST_IMM ||
	    o == ROCE_OP_WRITE_ONLY_IMM || o == ROCE_OP_SEND_LAST_INV || o == ROCE_OP_SEND_ONLY_INV)
		p.word(one_in(r, 2) ? m.rkey() : r(), 4);
	if (o != ROCE_OP_READ_REQUEST && o != ROCE_OP_ACK && o != ROCE_OP_ATOMIC_ACK && o < ROCE_OP_COMPARE_SWAP)
		p.payload(random_payload(r));
	else if (one_in(r, 16))
		p.payload(random_payload(r));
	p.ackreq = one_in(r, 2);
	p.se = one_in(r, 4);
	if (one_in(r, 16))
		p.pad = r() & 3;
	if (one_in(r, 32))
		p.tver = r() & 15;
	if (one_in(r, 32))
		p.pkey = any_of<uint16_t>(r, { 0x7fff, 0, 1, 0xfffe, 0x8000 });
	if (one_in(r, 8))
		p.migreq = false;
	if (one_in(r, 8))
		p.fecn_becn = static_cast<uint8_t>(r());
	return p;
}

uint8_t random_rc_opcode(rng &r)
{
	return one_in(r, 4) ? static_cast<uint8_t>(r()) : static_cast<uint8_t>(r() % 24);
}

// Every opcode in every place of the sequence numbers, cut at every length.
void every_opcode(env &e)
{
	need_two(e);
	victim v(e);
	rc_pair beside(e);
	rng r(1);
	for (int op = 0; op < 256; op++) {
		for (const int32_t at : { 0, -1, 1 }) {
			const uint32_t psn = (expected_psn(v.p.b) + static_cast<uint32_t>(at)) & PSN_MASK;
			v.roads.send(random_packet(r, static_cast<uint8_t>(op), v.qpn(), psn, v.memory));
			bytes b = random_packet(r, static_cast<uint8_t>(op), v.qpn(), psn, v.memory).build();
			b.resize(b.size() - r() % std::min<size_t>(b.size(), 48));
			v.roads.send_bytes(b);
		}
		v.heal();
	}
	// a BTH and what is left of a longest header, byte by byte
	for (const int op : { 0x04, 0x0a, 0x0b, 0x0c, 0x11, 0x12, 0x13, 0x14, 0x17, 0x64, 0x65, 0x81 })
		for (size_t len = 0; len < 80; len++) {
			bytes b = packet(static_cast<uint8_t>(op), v.qpn(), expected_psn(v.p.b)).build();
			b.resize(len, 0xff);
			v.roads.send_bytes(b);
			if (len % 8 == 7)
				v.heal();
		}
	v.memory.check_canaries("every opcode");
	check_alive(beside, "beside");
	v.p.reconnect();
	check_alive(v.p, "the queue pair itself, connected anew");
	note(text("%d frames, %d connections broken", v.roads.sent(), v.deaths));
}

void random_requests(env &e, bool srq)
{
	need_two(e);
	rc_config c;
	c.b.srq = srq;
	c.b.max_dest_rd_atomic = 4;
	victim v(e, c);
	rc_pair beside(e);
	rng r(2 + srq);
	const deadline end(spell(e));
	for (int round = 0; !end.passed(); round++) {
		uint32_t psn = expected_psn(v.p.b);
		for (int i = 0; i < 12; i++) {
			packet p = random_packet(r, random_rc_opcode(r), v.qpn(), random_psn(r, psn), v.memory);
			// a run in order, as far as it goes
			psn = (psn + 1) & PSN_MASK;
			below b;
			b.bad_icrc = one_in(r, 40);
			b.other_source = one_in(r, 40);
			v.roads.send(p, b);
		}
		v.heal();
		drain_cq(v.p.b.rcq());
		v.feed();
		if (round % 64 == 0)
			check_alive(beside, "beside");
	}
	v.memory.check_canaries("random requests");
	check_alive(beside, "beside");
	note(text("%d frames, %d connections broken", v.roads.sent(), v.deaths));
}

// What one packet does to a queue pair.
struct effect {
	const char *what;
	std::function<packet(const victim &, uint32_t psn)> make;
	int syndrome; // of the answer; -1: none
	bool fatal;
};

std::optional<road::heard> answer(victim &v, int ms)
{
	const deadline end(ms);
	while (!end.passed()) {
		const auto h = v.roads.hear();
		if (h && h->dqpn == v.p.a.qp->qp_num)
			return h;
		usleep(200);
	}
	return {};
}

void verdicts(env &e)
{
	need_two(e);
	rc_config c;
	c.a.timeout = 0;
	victim v(e, c);
	const auto write = [](const victim &w, uint32_t psn, int64_t off, uint32_t len, size_t data, uint32_t key = 0) {
		return packet(ROCE_OP_WRITE_ONLY, w.qpn(), psn).reth(w.memory.addr() + off, w.memory.rkey() ^ key, len).payload(data).ack();
	};
	const effect effects[] = {
		{ "a good WRITE", [&](auto &w, auto psn) { return write(w, psn, 0, 100, 100); }, 0x1f, false },
		{ "WRITE of length 0 with any key", [&](auto &w, auto psn) { return write(w, psn, 1 << 30, 0, 0, 77); }, 0x1f, false },
		{ "WRITE with less data than announced", [&](auto &w, auto psn) { return write(w, psn, 0, 100, 96); }, AETH_NAK_INV_REQ, true },
		{ "WRITE with more data than announced", [&](auto &w, auto psn) { return write(w, psn, 0, 100, 104); }, AETH_NAK_INV_REQ, true },
		{ "WRITE above 2^31", [&](auto &w, auto psn) { return write(w, psn, 0, 0x80000001u, 100); }, AETH_NAK_INV_REQ, true },
		{ "WRITE of one byte too many", [&](auto &w, auto psn) { return write(w, psn, room - 100, 101, 101); }, AETH_NAK_REM_ACCESS, true },
		{ "WRITE one byte before", [&](auto &w, auto psn) { return write(w, psn, -1, 100, 100); }, AETH_NAK_REM_ACCESS, true },
		{ "WRITE with another key", [&](auto &w, auto psn) { return write(w, psn, 0, 100, 100, 1); }, AETH_NAK_REM_ACCESS, true },
		{ "WRITE above the path MTU", [&](auto &w, auto psn) { return write(w, psn, 0, mtu + 4, mtu + 4); }, AETH_NAK_INV_REQ, true },
		{ "WRITE_LAST out of nothing", [&](auto &w, auto psn) { return packet(ROCE_OP_WRITE_LAST, w.qpn(), psn).payload(8).ack(); }, AETH_NAK_INV_REQ, true },
		{ "SEND_MIDDLE out of nothing", [&](auto &w, auto psn) { return packet(ROCE_OP_SEND_MIDDLE, w.qpn(), psn).payload(mtu).ack(); }, AETH_NAK_INV_REQ, true },
		{ "SEND_FIRST that is short", [&](auto &w, auto psn) { return packet(ROCE_OP_SEND_FIRST, w.qpn(), psn).payload(mtu - 4).ack(); }, AETH_NAK_INV_REQ, true },
		{ "SEND with invalidation of a key that cannot be", [&](auto &w, auto psn) { return packet(ROCE_OP_SEND_ONLY_INV, w.qpn(), psn).word(w.memory.rkey(), 4).payload(8).ack(); }, AETH_NAK_REM_OP, true },
		{ "READ above 2^31", [&](auto &w, auto psn) { return packet(ROCE_OP_READ_REQUEST, w.qpn(), psn).reth(w.memory.addr(), w.memory.rkey(), 0xffffffff); }, AETH_NAK_INV_REQ, true },
		{ "READ of all and a byte", [&](auto &w, auto psn) { return packet(ROCE_OP_READ_REQUEST, w.qpn(), psn).reth(w.memory.addr(), w.memory.rkey(), room + 1); }, AETH_NAK_REM_ACCESS, true },
		{ "READ that wraps", [&](auto &w, auto psn) { return packet(ROCE_OP_READ_REQUEST, w.qpn(), psn).reth(~0ull - 10, w.memory.rkey(), 100); }, AETH_NAK_REM_ACCESS, true },
		{ "READ request with payload", [&](auto &w, auto psn) { return packet(ROCE_OP_READ_REQUEST, w.qpn(), psn).reth(w.memory.addr(), w.memory.rkey(), 8).payload(8); }, AETH_NAK_INV_REQ, true },
		{ "atomic that is not aligned", [&](auto &w, auto psn) { return packet(ROCE_OP_FETCH_ADD, w.qpn(), psn).atomiceth(w.memory.addr() + 4, w.memory.rkey(), 1, 0); }, AETH_NAK_INV_REQ, true },
		{ "atomic with another key", [&](auto &w, auto psn) { return packet(ROCE_OP_FETCH_ADD, w.qpn(), psn).atomiceth(w.memory.addr(), w.memory.rkey() ^ 1, 1, 0); }, AETH_NAK_REM_ACCESS, true },
		{ "reserved operation", [&](auto &w, auto psn) { return packet(0x15, w.qpn(), psn).payload(8).ack(); }, AETH_NAK_INV_REQ, true },
		{ "operation of UC", [&](auto &w, auto psn) { return packet(0x24, w.qpn(), psn).payload(8).ack(); }, -1, false },
		{ "operation of UD", [&](auto &w, auto psn) { return packet(0x64, w.qpn(), psn).deth(1, 2).payload(8).ack(); }, -1, false },
		{ "other P_Key", [&](auto &w, auto psn) { packet p(ROCE_OP_SEND_ONLY, w.qpn(), psn); p.pkey = 0x1234; return p.payload(8).ack(); }, -1, false },
		{ "transport version 1", [&](auto &w, auto psn) { packet p(ROCE_OP_SEND_ONLY, w.qpn(), psn); p.tver = 1; return p.payload(8).ack(); }, -1, false },
		{ "duplicate from the far end of the past", [&](auto &w, auto psn) { return packet(ROCE_OP_SEND_ONLY, w.qpn(), (psn - 0x800000) & PSN_MASK).payload(8); }, -1, false },
		{ "a gap to the far end of the future", [&](auto &w, auto psn) { return packet(ROCE_OP_SEND_ONLY, w.qpn(), (psn + 0x7fffff) & PSN_MASK).payload(8); }, AETH_NAK_PSN_SEQ, false },
		{ "duplicate READ that never was", [&](auto &w, auto psn) { return packet(ROCE_OP_READ_REQUEST, w.qpn(), psn_sub(psn, 9)).reth(w.memory.addr(), w.memory.rkey(), 8); }, -1, false },
		{ "duplicate atomic that never was", [&](auto &w, auto psn) { return packet(ROCE_OP_FETCH_ADD, w.qpn(), psn_sub(psn, 9)).atomiceth(w.memory.addr(), w.memory.rkey(), 1, 0); }, -1, false },
	};
	for (const effect &f : effects) {
		v.memory.clear();
		v.p.reconnect();
		v.feed();
		v.roads.forget_heard();
		v.roads.send(f.make(v, expected_psn(v.p.b)));
		const auto h = answer(v, f.syndrome < 0 ? 20 : v.p.ms(1000));
		CHECK_EQ(h ? h->syndrome : -1, f.syndrome, f.what);
		CHECK_EQ(v.p.b.state(), f.fatal ? IBV_QPS_ERR : IBV_QPS_RTS, f.what);
		// a receive that fails may have got its data
		if (f.fatal && f.syndrome != AETH_NAK_REM_OP)
			v.memory.check_clear(0, v.memory.size(), f.what);
		v.memory.check_canaries(f.what);
	}
}

// Atomics are executed once, however often their request comes.
void duplicate_atomics(env &e)
{
	need_two(e);
	rc_config c;
	c.a.timeout = 0;
	c.b.max_dest_rd_atomic = 4;
	victim v(e, c);
	v.memory.clear(0);
	const uint32_t first = expected_psn(v.p.b);
	rng r(4);
	const auto *word = reinterpret_cast<const volatile uint64_t *>(v.memory.data());
	for (uint32_t i = 0; i < 64; i++) {
		v.roads.send(packet(ROCE_OP_FETCH_ADD, v.qpn(), psn_add(first, i)).atomiceth(v.memory.addr(), v.memory.rkey(), 1, 0));
		for (int k = 0; k < 4; k++) {
			const uint32_t back = r() % (i + 1);
			v.roads.send(packet(ROCE_OP_FETCH_ADD, v.qpn(), psn_add(first, i - back)).atomiceth(v.memory.addr(), v.memory.rkey(), 1, 0));
			v.roads.send(packet(ROCE_OP_READ_REQUEST, v.qpn(), psn_add(first, i - back)).reth(v.memory.addr(), v.memory.rkey(), 8));
		}
	}
	const deadline end(v.p.ms(1000));
	while (*word != 64 && !end.passed())
		usleep(1000);
	CHECK_EQ(static_cast<uint64_t>(*word), 64u, "FETCH_ADD with duplicates");
	CHECK_EQ(v.p.b.state(), IBV_QPS_RTS);
}

// A network may duplicate a READ request and deliver the second one late, when
// the owner of the memory has been told of the end and has taken the key back.
void late_duplicate(env &e)
{
	need_two(e);
	rc_pair p(e);
	road to_b(e.a(), e.b(), p.config.family);
	buffer near(p.a.pd.get(), room);
	for (int round = 0; round < 8; round++) {
		buffer far(p.b.pd.get(), room);
		fill_pattern(far.bytes(0, room), round);
		const uint32_t psn = expected_psn(p.b);
		const uint32_t len = round % 2 ? 5000 : 64, key = far.rkey();
		ibv_sge sge = near.sge(0, len);
		ibv_send_wr wr = rdma_wr(1, IBV_WR_RDMA_READ, &sge, far.addr(), far.rkey());
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS);
		check_pattern(near.bytes(0, len), round, "READ");
		far.release_mr();
		to_b.send(packet(ROCE_OP_READ_REQUEST, p.b.qp->qp_num, psn).reth(far.addr(), key, len));
		usleep(5000);
		CHECK_EQ(p.b.state(), IBV_QPS_RTS, "after a duplicate of a READ whose key is gone");
		check_alive(p, "after a duplicate of a READ whose key is gone");
	}
}

// READs and atomics without waiting for answers.
void flood(env &e)
{
	need_two(e);
	rc_config c;
	c.a.timeout = 0;
	c.b.max_dest_rd_atomic = 2;
	victim v(e, c);
	rc_pair beside(e);
	rng r(5);
	const deadline end(spell(e));
	while (!end.passed()) {
		uint32_t psn = expected_psn(v.p.b);
		const uint32_t first = psn;
		for (int i = 0; i < 40; i++) {
			const bool atomic = one_in(r, 3);
			const uint32_t len = any_of<uint32_t>(r, { 0, 8, 1024, 1025, 16384, 16384 });
			const uint32_t at = one_in(r, 3) ? psn_add(first, r() % 60) : psn;
			if (atomic)
				v.roads.send(packet(ROCE_OP_FETCH_ADD, v.qpn(), at).atomiceth(v.memory.addr(), v.memory.rkey(), 1, 0));
			else
				v.roads.send(packet(ROCE_OP_READ_REQUEST, v.qpn(), at).reth(v.memory.addr(), v.memory.rkey(), len));
			if (at == psn)
				psn = psn_add(psn, atomic ? 1 : std::max<uint32_t>((len + mtu - 1) / mtu, 1));
		}
		v.heal();
		check_alive(beside, "beside");
	}
	note(text("%d frames, %d connections broken", v.roads.sent(), v.deaths));
}

// --- responses --------------------------------------------------------------------------

// End a waits for answers of end b, which is silent; they come from elsewhere.
void random_responses(env &e)
{
	need_two(e);
	rc_config c;
	c.a.timeout = 0;
	rc_pair p(e, c), beside(e);
	road to_a(e.b(), e.a(), p.config.family);
	buffer near(p.a.pd.get(), room), far(p.b.pd.get(), room);
	const uint32_t qpn = p.a.qp->qp_num;
	rng r(6);
	int answered = 0, broken = 0;
	const deadline end(spell(e) * 2);
	while (!end.passed()) {
		p.reconnect();
		REQUIRE(!p.b.to_state(IBV_QPS_RESET), "to RESET");
		const uint32_t una = p.a.config.sq_psn;
		ibv_sge sge;
		const int posted = 1 + static_cast<int>(r() % 8);
		for (int i = 0; i < posted; i++) {
			sge = near.sge(i * 2048 % 14000, r() % 2100 + 1);
			ibv_send_wr wr;
			switch (r() % 4) {
			case 0:
				wr = send_wr(i, IBV_WR_SEND, &sge);
				break;
			case 1:
				sge = near.sge(i * 8, 8);
				wr = atomic_wr(i, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, far.addr(), far.rkey(), 1, 0);
				break;
			case 2:
				wr = rdma_wr(i, IBV_WR_RDMA_WRITE, &sge, far.addr(), far.rkey());
				break;
			default:
				wr = rdma_wr(i, IBV_WR_RDMA_READ, &sge, far.addr(), far.rkey());
			}
			p.a.must_post(wr);
		}
		uint32_t at = una;
		for (int i = 0; i < 40; i++) {
			const uint8_t op = one_in(r, 8) ? static_cast<uint8_t>(r()) : static_cast<uint8_t>(ROCE_OP_READ_RESP_FIRST + r() % 6);
			packet q(op, qpn, one_in(r, 6) ? random_psn(r, at) : at);
			if (op != ROCE_OP_READ_RESP_MIDDLE)
				q.aeth(one_in(r, 3) ? static_cast<uint8_t>(r()) : any_of<uint8_t>(r, { 0x1f, 0x1f, 0x00, 0x21, 0x60 }), r());
			if (op == ROCE_OP_ATOMIC_ACK)
				q.word(0x1122334455667788, 8);
			else if (op != ROCE_OP_ACK)
				q.payload(any_of<size_t>(r, { 0, 1, 4, 52, 1024, 1024, 1024, 1025, 2048, 4096 }));
			to_a.send(q);
			at = psn_add(at, r() % 2);
			ibv_wc wc;
			while (ibv_poll_cq(p.a.scq(), 1, &wc) > 0) {
				CHECK(wc.wr_id < static_cast<uint64_t>(posted), "completion of a request that was never posted");
				answered += wc.status == IBV_WC_SUCCESS;
			}
		}
		broken += p.a.state() == IBV_QPS_ERR;
		near.check_canaries("random responses");
	}
	p.reconnect();
	check_alive(p, "afterwards");
	check_alive(beside, "beside");
	note(text("%d frames, %d requests answered, %d connections broken", to_a.sent(), answered, broken));
}

// Every syndrome for the one SEND that is outstanding.
void every_syndrome(env &e)
{
	need_two(e);
	rc_config c;
	c.a.timeout = 0;
	rc_pair p(e, c);
	road to_a(e.b(), e.a(), p.config.family);
	buffer near(p.a.pd.get(), 64);
	for (int s = 0; s < 256; s++) {
		p.reconnect();
		REQUIRE(!p.b.to_state(IBV_QPS_RESET), "to RESET");
		ibv_sge sge = near.sge();
		ibv_send_wr wr = send_wr(7, IBV_WR_SEND, &sge);
		p.a.must_post(wr);
		const uint32_t psn = p.a.config.sq_psn, qpn = p.a.qp->qp_num;
		to_a.send(packet(ROCE_OP_ACK, qpn, psn_sub(psn, 1)).aeth(static_cast<uint8_t>(s), 0));
		to_a.send(packet(ROCE_OP_ACK, qpn, psn_add(psn, 1)).aeth(static_cast<uint8_t>(s), 0));
		to_a.send(packet(ROCE_OP_ACK, qpn, psn_add(psn, PSN_HALF)).aeth(static_cast<uint8_t>(s), 0));
		expect_no_wc(p.a.scq(), 0, "answer to nothing");
		to_a.send(packet(ROCE_OP_ACK, qpn, psn).aeth(static_cast<uint8_t>(s), 0));
		const auto type = aeth_type(static_cast<uint8_t>(s));
		if (type == AETH_RNR || s == AETH_NAK_PSN_SEQ) {
			expect_no_wc(p.a.scq(), 0, text("syndrome %#x", s));
			CHECK_EQ(p.a.state(), IBV_QPS_RTS, text("syndrome %#x", s));
			continue;
		}
		const auto wc = next_wc(p.a.scq(), p.ms(1000));
		CHECK(wc, "no completion after syndrome %#x", s);
		CHECK(wc && (wc->status == IBV_WC_SUCCESS) == (type == AETH_ACK), "syndrome %#x: status %d", s, wc ? wc->status : -1);
	}
	p.reconnect();
	check_alive(p, "afterwards");
}

// --- beside live traffic -----------------------------------------------------------------

// SENDs, WRITEs, READs and atomics one after the other, everything compared.
class checked_traffic {
public:
	explicit checked_traffic(rc_pair &pair) : p(pair), near_(p.a.pd.get(), room), far_(p.b.pd.get(), room), sum_(p.b.pd.get(), 8), old_(p.a.pd.get(), 8)
	{
		sum_.clear(0);
	}

	void round()
	{
		const size_t len = 1 + rounds_ * 997 % (rounds_ % 4 ? mtu : room);
		ibv_sge sge = near_.sge(0, len);
		fill_pattern(near_.bytes(0, len), rounds_ * 4);
		far_.clear();
		p.b.must_post_recv(rounds_, far_.sge());
		ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &sge);
		go(wr, "SEND");
		const ibv_wc wc = expect_wc(p.b.rcq(), p.ms(10000), rounds_, IBV_WC_SUCCESS, IBV_WC_RECV, "RECV beside injection");
		CHECK_EQ(wc.byte_len, len);
		check_pattern(far_.bytes(0, len), rounds_ * 4, "SEND");

		fill_pattern(near_.bytes(0, len), rounds_ * 4 + 1);
		wr = rdma_wr(2, IBV_WR_RDMA_WRITE, &sge, far_.addr(), far_.rkey());
		go(wr, "WRITE");
		check_pattern(far_.bytes(0, len), rounds_ * 4 + 1, "WRITE");

		fill_pattern(far_.bytes(0, len), rounds_ * 4 + 2);
		wr = rdma_wr(3, IBV_WR_RDMA_READ, &sge, far_.addr(), far_.rkey());
		go(wr, "READ");
		check_pattern(near_.bytes(0, len), rounds_ * 4 + 2, "READ");

		ibv_sge old = old_.sge();
		wr = atomic_wr(4, IBV_WR_ATOMIC_FETCH_AND_ADD, &old, sum_.addr(), sum_.rkey(), 1, 0);
		go(wr, "FETCH_ADD");
		uint64_t before;
		memcpy(&before, old_.data(), 8);
		CHECK_EQ(before, rounds_, "FETCH_ADD");
		rounds_++;
	}
	uint64_t rounds() const { return rounds_; }

private:
	void go(ibv_send_wr &wr, const char *what)
	{
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(10000), wr.wr_id, IBV_WC_SUCCESS, -1, std::string(what) + " beside injection");
	}

	rc_pair &p;
	buffer near_, far_, sum_, old_;
	uint64_t rounds_ = 0;
};

// What comes from elsewhere, is damaged, was acknowledged long ago or is for
// nobody does no harm to a connection that is in use.
void noise_beside(env &e)
{
	need_two(e);
	rc_pair p(e);
	road to_b(e.a(), e.b(), p.config.family), to_a(e.b(), e.a(), p.config.family);
	checked_traffic t(p);
	buffer decoy(p.b.pd.get(), room);
	decoy.clear();
	rng r(8);
	const deadline end(spell(e) * 2);
	while (!end.passed()) {
		const ibv_qp_attr a = psns(p.a), b = psns(p.b);
		for (int i = 0; i < 16; i++) {
			below w;
			const bool back = one_in(r, 2);
			const uint32_t base = back ? a.sq_psn : b.rq_psn;
			uint32_t psn = base;
			uint32_t qpn = back ? p.a.qp->qp_num : p.b.qp->qp_num;
			uint8_t op = random_rc_opcode(r);
			packet q;
			switch (r() % 5) {
			case 0:
				w.other_source = true;
				break;
			case 1:
				w.bad_icrc = true;
				break;
			case 2:
				// nobody
				qpn = any_of<uint32_t>(r, { 0u, 2u, 0xfffffeu, 0xffffffu, static_cast<uint32_t>(r() & 0xffffff) });
				if (qpn == p.a.qp->qp_num || qpn == p.b.qp->qp_num)
					qpn = 0;
				break;
			case 3:
				// answers to what was never asked, and long ago
				op = static_cast<uint8_t>(ROCE_OP_READ_RESP_FIRST + r() % 6);
				psn = psn_add(base, any_of<uint32_t>(r, { 50000, 0x7f0000, 0x810000, PSN_MASK - 50000 }));
				break;
			default:
				// requests of long ago
				op = static_cast<uint8_t>(r() % 13);
				psn = psn_sub(base, any_of<uint32_t>(r, { 50000, 0x7f0000, 0x123456 }));
			}
			q = random_packet(r, op, qpn, psn, decoy);
			(back ? to_a : to_b).send(q, w);
		}
		t.round();
	}
	decoy.check_clear(0, room, "memory that only noise was for");
	note(text("%d frames, %llu rounds of traffic", to_a.sent() + to_b.sent(), static_cast<unsigned long long>(t.rounds())));
}

// Every frame of both directions comes again, once or twice, now or later.
void replayed(env &e)
{
	need_two(e);
	rc_pair p(e);
	road to_b(e.a(), e.b(), p.config.family), to_a(e.b(), e.a(), p.config.family);
	checked_traffic t(p);
	rng r(9);
	std::vector<bytes> kept;
	const deadline end(spell(e) * 2);
	while (!end.passed()) {
		t.round();
		for (road *way : { &to_b, &to_a }) {
			kept.clear();
			while (const auto h = way->hear(true))
				if (kept.size() < 64)
					kept.push_back(h->frame);
			for (size_t i = 0; i < kept.size(); i++) {
				const bytes &f = kept[one_in(r, 3) ? r() % kept.size() : i];
				way->send_frame(f);
				if (one_in(r, 8))
					way->send_frame(f);
			}
			way->forget_heard();
		}
	}
	CHECK_EQ(p.a.state(), IBV_QPS_RTS);
	CHECK_EQ(p.b.state(), IBV_QPS_RTS);
	note(text("%d frames, %llu rounds of traffic", to_a.sent() + to_b.sent(), static_cast<unsigned long long>(t.rounds())));
}

// Gaps make the responder ask for what is missing; the requester must not run
// out of patience while it gets on.
void gaps_beside(env &e)
{
	need_two(e);
	rc_pair p(e);
	road to_b(e.a(), e.b(), p.config.family);
	checked_traffic t(p);
	std::atomic<bool> stop = false;
	std::thread gaps([&] {
		rng r(10);
		while (!stop) {
			const uint32_t psn = psn_add(p.a.config.sq_psn, r() & 0x3fffff);
			to_b.send(packet(ROCE_OP_SEND_ONLY, p.b.qp->qp_num, psn).payload(16).ack());
			usleep(300);
		}
	});
	try {
		const deadline end(spell(e));
		while (!end.passed() && psns(p.b).rq_psn != psn_add(p.a.config.sq_psn, 0x3fffff))
			t.round();
	} catch (...) {
		stop = true;
		gaps.join();
		throw;
	}
	stop = true;
	gaps.join();
	note(text("%d frames, %llu rounds of traffic", to_b.sent(), static_cast<unsigned long long>(t.rounds())));
}

// --- below the BTH -----------------------------------------------------------------------

// Two fragments of an IPv4 packet; the second may lie about its place.
void send_fragments(road &way, const bytes &ip, size_t cut, int overlap)
{
	cut &= ~7u;
	if (cut < 8 || 20 + cut >= ip.size())
		return;
	bytes first(ip.begin(), ip.begin() + 20 + static_cast<long>(cut)), second(ip.begin(), ip.begin() + 20);
	second.insert(second.end(), ip.begin() + 20 + static_cast<long>(cut), ip.end());
	const auto patch = [](bytes &f, uint16_t flags_off) {
		f[2] = static_cast<uint8_t>(f.size() >> 8);
		f[3] = static_cast<uint8_t>(f.size());
		f[6] = static_cast<uint8_t>(flags_off >> 8);
		f[7] = static_cast<uint8_t>(flags_off);
		road::seal4(f);
	};
	patch(first, 0x2000);
	patch(second, static_cast<uint16_t>(static_cast<int>(cut / 8) - overlap));
	way.send_ip(first);
	way.send_ip(second);
}

void odd_ip(env &e)
{
	need_two(e);
	victim v(e);
	rc_pair beside(e);
	rng r(11);
	const deadline end(spell(e));
	while (!end.passed()) {
		for (int i = 0; i < 16; i++) {
			below b;
			const uint32_t psn = random_psn(r, expected_psn(v.p.b));
			packet q = random_packet(r, random_rc_opcode(r), v.qpn(), psn, v.memory);
			if (one_in(r, 2))
				q = packet(ROCE_OP_SEND_ONLY, v.qpn(), psn).payload(random_payload(r)).ack();
			switch (r() % 8) {
			case 0:
				if (v.roads.v4())
					b.options = bytes(4 + r() % 10 * 4, 1);
				break;
			case 1:
				b.udp_len = static_cast<int>(r() % 200) - 100;
				break;
			case 2:
				b.ip_len = static_cast<int>(r() % 200) - 100;
				break;
			case 3:
				b.trailer = bytes(r() % 100, 0xa5);
				break;
			case 4:
				b.udp_checksum = true;
				break;
			case 5:
				b.multicast_mac = true;
				break;
			case 6:
				if (v.roads.v4()) {
					send_fragments(v.roads, v.roads.ip(q.build(), b), 8 + r() % 64, one_in(r, 4));
					continue;
				}
				break;
			default:
				b.ttl = static_cast<uint8_t>(r());
				b.tos = static_cast<uint8_t>(r());
				b.sport = static_cast<uint16_t>(r());
			}
			v.roads.send(q, b);
		}
		v.heal();
		drain_cq(v.p.b.rcq());
		v.feed();
	}
	v.memory.check_canaries("odd IP packets");
	check_alive(beside, "beside");
	note(text("%d frames, %d connections broken", v.roads.sent(), v.deaths));
}

// Padding of the frame is none of the packet; fragments are put together before.
void harmless_ip(env &e)
{
	need_two(e);
	rc_config c;
	c.a.timeout = 0;
	victim v(e, c);
	const auto delivered = [&](const char *what, const std::function<void(const bytes &)> &how) {
		v.p.reconnect();
		v.feed();
		how(v.roads.ip(packet(ROCE_OP_SEND_ONLY, v.qpn(), expected_psn(v.p.b)).payload(200).ack().build()));
		const auto wc = next_wc(v.p.b.rcq(), v.p.ms(1000));
		CHECK(wc && wc->status == IBV_WC_SUCCESS && wc->byte_len == 200, "%s: not delivered", what);
	};
	delivered("plain", [&](const bytes &ip) { v.roads.send_ip(ip); });
	delivered("frame with a trailer", [&](const bytes &ip) {
		below b;
		b.trailer = bytes(50, 0xff);
		v.roads.send_ip(ip, b);
	});
}

// A stream of datagrams that their sender hands over as one, and other junk
// that anybody may send to a UDP port.
void junk_datagrams(env &e)
{
	need_two(e);
	rc_pair beside(e);
	const ibv_gid to = e.b().find_gid(e.opt.family).raw;
	fd_handle s;
	{
		const netns_scope scope(e.a().netns());
		s.reset(socket(e.opt.family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	}
	REQUIRE(s, "socket: %s", strerror(errno));
	sockaddr_in in4{};
	sockaddr_in6 in6{};
	in4.sin_family = AF_INET;
	in6.sin6_family = AF_INET6;
	in4.sin_port = in6.sin6_port = htons(ROCE_UDP_PORT);
	memcpy(&in4.sin_addr, to.raw + 12, 4);
	memcpy(&in6.sin6_addr, to.raw, 16);
	const auto *at = e.opt.family == 4 ? reinterpret_cast<sockaddr *>(&in4) : reinterpret_cast<sockaddr *>(&in6);
	const socklen_t at_len = e.opt.family == 4 ? sizeof(in4) : sizeof(in6);
	REQUIRE(!connect(s.get(), at, at_len), "connect: %s", strerror(errno));
	rng r(12);
	int sent = 0;
	const deadline end(spell(e));
	while (!end.passed()) {
		for (int i = 0; i < 64; i++) {
			const int gso = one_in(r, 2) ? 0 : static_cast<int>(16 + r() % 1200);
			setsockopt(s.get(), IPPROTO_UDP, UDP_SEGMENT, &gso, sizeof(gso));
			bytes junk(gso ? r() % 60000 : r() % 4000);
			for (uint8_t &b : junk)
				b = static_cast<uint8_t>(r());
			for (size_t k = 0; gso && k + 12 < junk.size(); k += static_cast<size_t>(gso)) {
				junk[k] = static_cast<uint8_t>(r() % 24);
				junk[k + 1] = 0x40;
				junk[k + 2] = junk[k + 3] = 0xff;
				junk[k + 5] = static_cast<uint8_t>(beside.b.qp->qp_num >> 16);
				junk[k + 6] = static_cast<uint8_t>(beside.b.qp->qp_num >> 8);
				junk[k + 7] = static_cast<uint8_t>(beside.b.qp->qp_num);
			}
			sent += send(s.get(), junk.data(), junk.size(), MSG_DONTWAIT) >= 0;
		}
		check_alive(beside, "beside junk");
	}
	note(text("%d datagrams", sent));
}

// --- datagrams ---------------------------------------------------------------------------

void random_datagrams(env &e)
{
	need_two(e);
	ud_pair u(e);
	rc_pair beside(e);
	road to_b(e.a(), e.b(), e.opt.family);
	buffer memory(u.b.pd.get(), 2048);
	rng r(13);
	int received = 0;
	const deadline end(spell(e));
	while (!end.passed()) {
		for (int i = 0; i < 16; i++)
			u.b.must_post_recv(i, memory.sge(0, one_in(r, 4) ? r() % 100 : 2048));
		for (int i = 0; i < 32; i++) {
			const uint8_t op = one_in(r, 3) ? static_cast<uint8_t>(r()) : static_cast<uint8_t>(0x64 + r() % 2);
			below b;
			packet q = random_packet(r, op, u.b.qp->qp_num, r(), memory);
			if (one_in(r, 6))
				q.dqpn = any_of<uint32_t>(r, { 0u, 1u, 0xffffffu, 0xfffffeu });
			if (one_in(r, 6)) {
				b.to = ibv_gid{};
				b.to->raw[10] = b.to->raw[11] = 0xff;
				b.to->raw[12] = 224;
				b.to->raw[15] = static_cast<uint8_t>(1 + r() % 3);
				if (!to_b.v4()) {
					memset(b.to->raw, 0, 16);
					b.to->raw[0] = 0xff;
					b.to->raw[1] = 2;
					b.to->raw[15] = 1;
				}
				b.multicast_mac = true;
			}
			to_b.send(q, b);
		}
		ibv_wc wc;
		while (ibv_poll_cq(u.b.rcq.get(), 1, &wc) > 0) {
			received++;
			CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len <= 2048, "status %d, %u bytes", wc.status, wc.byte_len);
		}
		// all that is posted and was not used: the queue must not run full
		ibv_qp_attr at{};
		at.qp_state = IBV_QPS_RESET;
		REQUIRE(!ibv_modify_qp(u.b.qp.get(), &at, IBV_QP_STATE), "to RESET");
		at.qp_state = IBV_QPS_INIT;
		at.port_num = 1;
		at.qkey = 0x11111111;
		REQUIRE(!ibv_modify_qp(u.b.qp.get(), &at, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "to INIT");
		at.qp_state = IBV_QPS_RTR;
		REQUIRE(!ibv_modify_qp(u.b.qp.get(), &at, IBV_QP_STATE), "to RTR");
	}
	memory.check_canaries("random datagrams");
	check_alive(beside, "beside");
	note(text("%d frames, %d received", to_b.sent(), received));
}

// Management datagrams that nobody should understand, and some that start well.
void management(env &e)
{
	need_two(e);
	rc_pair beside(e);
	road to_b(e.a(), e.b(), e.opt.family);
	rng r(14);
	const deadline end(spell(e));
	while (!end.passed()) {
		for (int i = 0; i < 32; i++) {
			packet q(static_cast<uint8_t>(0x64 + one_in(r, 8)), 1, r());
			q.deth(one_in(r, 8) ? r() : ROCE_GSI_QKEY, one_in(r, 4) ? r() : 1);
			if (q.opcode == 0x65)
				q.word(r(), 4);
			bytes mad(one_in(r, 8) ? r() % 600 : 256);
			for (uint8_t &b : mad)
				b = one_in(r, 3) ? 0 : static_cast<uint8_t>(r());
			if (mad.size() > 24 && !one_in(r, 8)) {
				static constexpr uint8_t classes[] = { 0x07, 0x07, 0x07, 0x03, 0x04, 0x06, 0x01, 0x81, 0x30, 0x0a };
				mad[0] = one_in(r, 16) ? 0x80 : 1;
				mad[1] = classes[r() % std::size(classes)];
				mad[2] = mad[1] == 7 ? 2 : 1;
				mad[3] = any_of<uint8_t>(r, { 1, 2, 3, 0x81, 0x82, 0x86 });
				mad[4] = mad[5] = 0;
				// attributes of the connection manager: 0x10 .. 0x1a
				mad[16] = 0;
				mad[17] = static_cast<uint8_t>(0x10 + r() % 12);
			}
			q.pad = static_cast<uint8_t>(-mad.size() & 3);
			mad.resize(mad.size() + q.pad);
			q.rest.insert(q.rest.end(), mad.begin(), mad.end());
			to_b.send(q);
		}
		check_alive(beside, "beside management datagrams");
	}
	note(text("%d frames", to_b.sent()));
}

} // namespace

void add_tests(registry &r, const options &)
{
	r.add("every opcode, every length", every_opcode, 40);
	r.add("random requests", [](env &e) { random_requests(e, false); }, 40);
	r.add("random requests, SRQ", [](env &e) { random_requests(e, true); }, 40);
	r.add("verdict on one request", verdicts, 30);
	r.add("duplicate atomics", duplicate_atomics, 20);
	r.add("late duplicate of a READ", late_duplicate, 20);
	r.add("flood of READs and atomics", flood, 40);
	r.add("random responses", random_responses, 60);
	r.add("every syndrome", every_syndrome, 30);
	r.add("noise beside traffic", noise_beside, 60);
	r.add("every frame comes again", replayed, 60);
	r.add("gaps beside traffic", gaps_beside, 40);
	r.add("odd IP packets", odd_ip, 40);
	r.add("harmless IP packets", harmless_ip, 20);
	r.add("junk datagrams", junk_datagrams, 40);
	r.add("random datagrams", random_datagrams, 40);
	r.add("management datagrams", management, 40);
}
