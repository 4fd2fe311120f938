// SPDX-License-Identifier: GPL-2.0
//
// Mixed traffic of several queue pairs in both directions, every byte compared,
// with an eye on progress: what run.sh sends over bad cables (netem). Each
// queue pair has SEND, WRITE, WRITE_IMM, READ and atomics in flight at once.

#include <endian.h>
#include <map>
#include <memory>
#include <random>

#include "lib/rc_pair.hpp"
#include "lib/ud_pair.hpp"

using namespace vt;

const char *const program_suite = "traffic";

namespace {

constexpr int depth = 16;
constexpr size_t slot = 24000;

// One direction of one pair: a window of requests and what has to become of them.
class stream {
public:
	stream(rc_pair &p, rc_side &from, rc_side &to, uint64_t seed, int total)
		: pair_(p), from_(from), to_(to), random_(seed), total_(total),
		  local_(from.pd.get(), depth * slot), remote_(to.pd.get(), depth * slot + 8),
		  receive_(to.pd.get(), depth * slot), seed_(seed * 1000003)
	{
		memset(remote_.data() + depth * slot, 0, 8);
		for (int i = 0; i < depth; i++)
			post_receive(i);
	}

	bool done() const { return completed_ == total_ && expected_.empty(); }
	int completed() const { return completed_; }
	const ibv_qp *from_qp() const { return from_.qp.get(); }

	void fill()
	{
		while (posted_ < total_ && posted_ - completed_ < depth)
			post_next();
	}

	void on_send(const ibv_wc &wc)
	{
		const request &r = window_[completed_ % depth];
		const std::string what = text("request %d (opcode %d, %zu bytes)", completed_, r.opcode, r.size);
		REQUIRE(wc.status == IBV_WC_SUCCESS && wc.wr_id == static_cast<uint64_t>(completed_), "%s: %s",
			what.c_str(), describe(wc).c_str());
		const size_t at = completed_ % depth * slot;
		if (r.opcode == IBV_WR_RDMA_READ)
			REQUIRE(check_pattern(local_.bytes(at, r.size), r.seed, what), "READ");
		if (r.opcode == IBV_WR_RDMA_WRITE || r.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			REQUIRE(check_pattern(remote_.bytes(at, r.size), r.seed, what), "WRITE");
		if (r.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			uint64_t v;
			memcpy(&v, local_.data() + at, 8);
			REQUIRE_EQ(v, adds_ * 3, what);
			adds_++;
		}
		completed_++;
	}

	void on_receive(const ibv_wc &wc)
	{
		REQUIRE(wc.status == IBV_WC_SUCCESS, "receive %d: %s", received_, describe(wc).c_str());
		REQUIRE(!expected_.empty(), "a receive too many: %s", describe(wc).c_str());
		const request r = expected_.begin()->second;
		const std::string what = text("receive of request %d", expected_.begin()->first);
		expected_.erase(expected_.begin());
		REQUIRE_EQ(wc.wr_id, received_ % depth, what);
		REQUIRE_EQ(wc.byte_len, r.size, what);
		if (r.opcode == IBV_WR_SEND)
			REQUIRE(check_pattern(receive_.bytes(wc.wr_id * slot, r.size), r.seed, what), "SEND");
		else
			REQUIRE_EQ(be32toh(wc.imm_data), static_cast<uint32_t>(r.seed), what);
		post_receive(static_cast<int>(wc.wr_id));
		received_++;
	}

	void finish()
	{
		uint64_t sum;
		memcpy(&sum, remote_.data() + depth * slot, 8);
		CHECK_EQ(sum, adds_ * 3, "sum of the atomics");
		for (const buffer *b : { &local_, &remote_, &receive_ })
			b->check_canaries("traffic");
	}

private:
	struct request {
		ibv_wr_opcode opcode;
		size_t size;
		uint64_t seed;
	};

	void post_receive(int i)
	{
		to_.must_post_recv(i, receive_.sge(i * slot, slot));
	}

	void post_next()
	{
		static constexpr ibv_wr_opcode kinds[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
							   IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
							   IBV_WR_ATOMIC_FETCH_AND_ADD };
		request &r = window_[posted_ % depth];
		r.opcode = kinds[random_() % 5];
		// the receiver has one buffer for each request in flight
		if ((r.opcode == IBV_WR_SEND || r.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) && expected_.size() >= depth)
			r.opcode = IBV_WR_RDMA_WRITE;
		r.size = random_() % 4 ? random_() % 3000 : random_() % (slot + 1);
		r.seed = seed_ + posted_;
		const size_t at = posted_ % depth * slot;
		ibv_sge sge = local_.sge(at, r.size);
		ibv_send_wr wr = rdma_wr(posted_, r.opcode, &sge, remote_.addr() + at, remote_.rkey());
		switch (r.opcode) {
		case IBV_WR_RDMA_READ:
			fill_pattern(remote_.bytes(at, r.size), r.seed);
			break;
		case IBV_WR_ATOMIC_FETCH_AND_ADD:
			r.size = sge.length = 8;
			wr = atomic_wr(posted_, r.opcode, &sge, remote_.addr() + depth * slot, remote_.rkey(), 3, 0);
			break;
		default:
			fill_pattern(local_.bytes(at, r.size), r.seed);
			if (r.opcode == IBV_WR_SEND)
				wr.wr = {};
			wr.imm_data = htobe32(static_cast<uint32_t>(r.seed));
			if (r.opcode != IBV_WR_RDMA_WRITE)
				expected_[posted_] = r;
		}
		from_.must_post(wr);
		posted_++;
	}

	rc_pair &pair_;
	rc_side &from_, &to_;
	std::mt19937 random_;
	const int total_;
	buffer local_, remote_, receive_;
	const uint64_t seed_;
	request window_[depth]{};
	std::map<int, request> expected_;
	int posted_ = 0, completed_ = 0, received_ = 0;
	uint64_t adds_ = 0;
};

void mixed(env &e, int family, int pairs, int total)
{
	rc_config c;
	c.family = family;
	c.mtu = static_cast<ibv_mtu>(std::min(e.a().port().active_mtu, e.b().port().active_mtu));
	c.both([&](side_config &s) {
		s.timeout = e.opt.scale > 1 ? 15 : 13;
		s.min_rnr_timer = 12;
		s.max_rd_atomic = s.max_dest_rd_atomic = 4;
		s.cq_entries = 4 * depth;
		s.sq_psn = 0xfffff0; // wraps on the way
	});
	std::vector<std::unique_ptr<rc_pair>> all;
	std::vector<std::unique_ptr<stream>> streams; // two of each pair
	for (int i = 0; i < pairs; i++) {
		all.push_back(std::make_unique<rc_pair>(e, c));
		rc_pair &p = *all.back();
		streams.push_back(std::make_unique<stream>(p, p.a, p.b, 2 * i + 1, total));
		streams.push_back(std::make_unique<stream>(p, p.b, p.a, 2 * i + 2, total));
	}
	// no queue pair may stand still for 10 s
	const stopwatch watch;
	std::vector<deadline> progress(streams.size(), deadline(e.patience(10000)));
	double worst = 0;
	std::vector<stopwatch> since(streams.size());
	size_t finished = 0;
	while (finished < streams.size()) {
		finished = 0;
		bool any = false;
		for (size_t i = 0; i < streams.size(); i++) {
			rc_pair &p = *all[i / 2];
			rc_side &from = i % 2 ? p.b : p.a, &to = i % 2 ? p.a : p.b;
			stream &s = *streams[i];
			s.fill();
			ibv_wc wc[8];
			int n = ibv_poll_cq(to.rcq(), 8, wc);
			for (int k = 0; k < n; k++)
				s.on_receive(wc[k]);
			const int m = ibv_poll_cq(from.scq(), 8, wc);
			for (int k = 0; k < m; k++)
				s.on_send(wc[k]);
			if (n > 0 || m > 0) {
				worst = std::max(worst, since[i].ms());
				since[i] = stopwatch();
				progress[i] = deadline(e.patience(10000));
				any = true;
			}
			finished += s.done();
			REQUIRE(s.done() || !progress[i].passed(), "queue pair %zu stands still at %d of %d", i / 2,
				s.completed(), total);
		}
		if (!any)
			usleep(50);
	}
	for (auto &s : streams)
		s->finish();
	note(text("%d requests in %.0f ms, longest pause %.0f ms", static_cast<int>(streams.size()) * total,
		  watch.ms(), worst));
}

// A long message at once: retransmission within it.
void long_messages(env &e, int family, ibv_wr_opcode opcode, size_t size, int count)
{
	rc_config c;
	c.family = family;
	c.mtu = static_cast<ibv_mtu>(std::min(e.a().port().active_mtu, e.b().port().active_mtu));
	c.both([&](side_config &s) { s.timeout = e.opt.scale > 1 ? 15 : 13; });
	rc_pair p(e, c);
	buffer near(p.a.pd.get(), size), far(p.b.pd.get(), size);
	const stopwatch watch;
	for (int i = 0; i < count; i++) {
		const bool read = opcode == IBV_WR_RDMA_READ;
		const std::string what = text("message %d", i);
		fill_pattern(read ? far.bytes(0, size) : near.bytes(0, size), i);
		(read ? near : far).clear();
		if (opcode == IBV_WR_SEND)
			p.b.must_post_recv(2, far.sge());
		ibv_sge sge = near.sge();
		ibv_send_wr wr = rdma_wr(1, opcode, &sge, far.addr(), far.rkey());
		if (opcode == IBV_WR_SEND)
			wr.wr = {};
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(30000), 1, IBV_WC_SUCCESS, -1, what);
		if (opcode == IBV_WR_SEND)
			expect_wc(p.b.rcq(), p.ms(5000), 2, IBV_WC_SUCCESS, -1, what);
		REQUIRE(check_pattern(read ? near.bytes(0, size) : far.bytes(0, size), i, what), "data");
		far.check_canaries(what);
		near.check_canaries(what);
	}
	note(text("%.2f MB/s", static_cast<double>(size) * count / watch.ms() / 1000));
}

// Datagrams may get lost or doubled; what arrives is whole.
void datagrams(env &e, int family)
{
	ud_config c;
	c.family = family;
	ud_pair p(e, c);
	constexpr size_t size = 900;
	const int total = e.full() ? 5000 : 300;
	buffer source(p.a.pd.get(), size), target(p.b.pd.get(), 64 * 1024);
	for (int i = 0; i < 64; i++)
		p.b.must_post_recv(i, target.sge(1024 * i, 1024));
	int received = 0;
	const auto take = [&](int ms) {
		while (const auto wc = next_wc(p.b.rcq.get(), ms)) {
			REQUIRE(wc->status == IBV_WC_SUCCESS && wc->byte_len == ud_header + size, "%s",
				describe(*wc).c_str());
			const uint8_t *data = target.data() + 1024 * wc->wr_id + ud_header;
			uint64_t seed;
			memcpy(&seed, data, 8);
			CHECK(seed < static_cast<uint64_t>(total), "a datagram that was never sent");
			check_pattern({ data + 8, size - 8 }, seed, "datagram", 8);
			p.b.must_post_recv(wc->wr_id, target.sge(1024 * wc->wr_id, 1024));
			received++;
		}
	};
	for (int i = 0; i < total; i++) {
		const uint64_t seed = i;
		memcpy(source.data(), &seed, 8);
		fill_pattern(source.bytes(8, size - 8), seed, 8);
		ibv_sge sge = source.sge();
		REQUIRE(!p.a.post_send(i, &sge, 1, p.b, p.b.qkey), "post");
		expect_wc(p.a.scq.get(), p.ms(5000), i, IBV_WC_SUCCESS, IBV_WC_SEND, "datagram");
		take(0);
	}
	take(100);
	CHECK(received >= total / 2 && received <= 2 * total, "%d of %d datagrams arrived", received, total);
	note(text("%d of %d arrived", received, total));
}

} // namespace

void add_tests(registry &r, const options &o)
{
	const std::string cable = o.setting("cable", "good cable");
	for (const int family : o.families) {
		const auto name = [&](const char *what) {
			return text("%s v%d, %s [R039,R040,B80]", what, family, cable.c_str());
		};
		// one family for each kind but the first
		const auto add = [&](bool wanted, const std::string &n, std::function<void(env &)> body) {
			if (wanted)
				r.add(n, std::move(body), 40);
		};
		add(true, name("mixed operations"),
		    [=](env &e) { mixed(e, family, e.full() ? 3 : 2, e.full() ? 600 : 150); });
		const size_t size = o.full ? 2 << 20 : 1 << 20;
		add(family == 4, name("long WRITE"),
		    [=](env &e) { long_messages(e, family, IBV_WR_RDMA_WRITE, size, 2); });
		add(family == 6, name("long READ"),
		    [=](env &e) { long_messages(e, family, IBV_WR_RDMA_READ, size, 2); });
		add(family == 4, name("long SEND"), [=](env &e) { long_messages(e, family, IBV_WR_SEND, size, 2); });
		add(family == 6, name("datagrams"), [=](env &e) { datagrams(e, family); });
	}
}
