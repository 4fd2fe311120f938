// SPDX-License-Identifier: GPL-2.0
//
// What a hostile or broken process can do with what is mapped and open to it:
// garbage in its rings, mappings that outlive their queues, mappings that it
// should not get, odd system calls. It may only harm itself; the kernel log
// must stay clean, which scripts/guest.sh looks at.

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <fcntl.h>
#include <memory>
#include <random>
#include <rdma/ib_user_verbs.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>

#include "lib/rc_pair.hpp"
#include "lib/ud_pair.hpp"

using namespace vt;

const char *const program_suite = "abuse";

namespace {

// One mapping of a verbs device in this process.
struct ring {
	uint8_t *at;
	size_t bytes;
	uint64_t offset;

	bool operator==(const ring &) const = default;
};

std::vector<ring> mapped_rings()
{
	std::vector<ring> found;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	while (f && fgets(line, sizeof(line), f)) {
		uint64_t from, to, offset;
		if (strstr(line, "/dev/infiniband/uverbs") &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &from, &to, &offset) == 3)
			found.push_back({ reinterpret_cast<uint8_t *>(from), to - from, offset });
	}
	if (f)
		fclose(f);
	return found;
}

// --- garbage in the rings --------------------------------------------------------

enum class garbage { everything, entries, indices, single_bits, plausible, kinds };

const char *name_of(garbage g)
{
	static const char *const names[] = { "everything", "entries", "indices", "single bits", "plausible values" };
	return names[static_cast<int>(g)];
}

// Overwrites the rings of this process for as long as it lives.
[[noreturn]] void scribble(const std::vector<ring> &rings, garbage kind, uint32_t seed)
{
	std::mt19937 random(seed);
	constexpr size_t control = 128;
	for (;;) {
		const ring &r = rings[random() % rings.size()];
		const size_t words = std::min<size_t>(r.bytes, 16384) / 4;
		auto *w = reinterpret_cast<volatile uint32_t *>(r.at);
		size_t i = random() % words;
		switch (kind) {
		case garbage::everything:
			w[i] = random();
			break;
		case garbage::entries:
			i = control / 4 + random() % std::max<size_t>(words - control / 4, 1);
			w[i] = random();
			break;
		case garbage::indices:
			w[random() % (control / 4)] = random() % 3 ? random() : w[i] + random() % 5;
			break;
		case garbage::single_bits:
			w[i] = w[i] ^ 1u << random() % 32;
			break;
		default: {
			// counts, lengths, opcodes and keys just over what is right
			static constexpr uint32_t values[] = { 0, 1, 2, 31, 32, 33, 34, 255, 4096, 0x7fffffff,
							       0x80000000, 0x80000001, 0xfffffff0, 0xffffffff };
			w[i] = values[random() % std::size(values)];
		}
		}
		if (random() % 64 == 0)
			usleep(1);
	}
}

// A process of its own: uses its queues by the rules from one thread while
// another one overwrites them. It may crash, it may stall; the parent ends it.
[[noreturn]] void offender(const options &o, garbage kind, uint32_t seed)
{
	const std::vector<ring> before = mapped_rings();
	try {
		env e(o);
		rc_config c;
		c.both([&](side_config &s) {
			s.send_wr = s.recv_wr = 16;
			s.send_sge = s.recv_sge = 4;
			s.inline_data = 64;
			s.timeout = 8;
		});
		c.b.srq = seed % 2;
		rc_pair p(e, c);
		ud_pair u(e);
		buffer near(p.a.pd.get(), 20000), far(p.b.pd.get(), 20000), un(u.a.pd.get(), 200), uf(u.b.pd.get(), 200);
		std::vector<ring> mine;
		for (const ring &r : mapped_rings())
			if (std::find(before.begin(), before.end(), r) == before.end())
				mine.push_back(r);
		if (mine.empty())
			_exit(77); // nothing mapped: nothing to write
		std::thread(scribble, mine, kind, seed).detach();
		std::mt19937 random(seed + 1);
		for (;;) {
			for (int i = 0; i < 8; i++) {
				ibv_sge sges[2] = { near.sge(0, random() % 9000), near.sge(10000, random() % 50) };
				ibv_send_wr wr = rdma_wr(i, static_cast<ibv_wr_opcode>(random() % 7), sges, far.addr(),
							 far.rkey(), static_cast<int>(random() % 3));
				if (wr.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP)
					wr = atomic_wr(i, wr.opcode, sges, far.addr(), far.rkey(), 1, 2);
				else if (random() % 4 == 0)
					wr.send_flags |= IBV_SEND_SOLICITED;
				p.a.post(wr);
				ibv_sge rsges[2] = { far.sge(0, 9000), far.sge(9000, 9000) };
				p.b.post_recv(i, rsges);
				ibv_sge usge = un.sge();
				u.a.post_send(i, &usge, 1, u.b, u.b.qkey);
				usge = uf.sge();
				ibv_recv_wr rwr{}, *bad;
				rwr.sg_list = &usge;
				rwr.num_sge = 1;
				ibv_post_recv(u.b.qp.get(), &rwr, &bad);
			}
			ibv_wc wc[8];
			for (ibv_cq *cq : { p.a.scq(), p.a.rcq(), p.b.scq(), p.b.rcq(), u.a.scq.get(), u.b.rcq.get() })
				for (int i = 0; i < 10 && ibv_poll_cq(cq, 8, wc) > 0; i++)
					;
			if (random() % 8 == 0) {
				// back to life, not by way of the checks of reconnect()
				for (const rc_side *s : { &p.a, &p.b })
					s->to_state(IBV_QPS_RESET);
				for (const auto &[mine2, peer] : { std::pair(&p.a, &p.b), std::pair(&p.b, &p.a) }) {
					mine2->to_init();
					mine2->to_rtr(*peer, p.config.mtu);
					mine2->to_rts();
				}
			}
			if (random() % 32 == 0) {
				ibv_qp_attr at{};
				at.qp_state = IBV_QPS_ERR;
				ibv_modify_qp(p.a.qp.get(), &at, IBV_QP_STATE);
			}
		}
	} catch (...) {
		_exit(1);
	}
}

void rings_of_garbage(env &e, garbage kind)
{
	rc_pair victim(e);
	const int seconds = e.full() ? 4 : 2;
	const deadline end(seconds * 1000);
	int processes = 0, without = 0, crashed = 0;
	while (!end.passed()) {
		const pid_t pid = fork();
		REQUIRE(pid >= 0, "fork");
		if (!pid) {
			// its complaints about its own garbage are of no interest
			fd_handle null(open("/dev/null", O_WRONLY | O_CLOEXEC));
			dup2(null.get(), 2);
			for (int sig : { SIGSEGV, SIGBUS, SIGABRT, SIGFPE })
				signal(sig, SIG_DFL);
			offender(e.opt, kind, processes);
		}
		processes++;
		const deadline one(500);
		int status = 0;
		bool ended = false;
		while (!one.passed() && !ended) {
			check_alive(victim, text("beside garbage in %s", name_of(kind)));
			ended = waitpid(pid, &status, WNOHANG) == pid;
		}
		if (!ended) {
			kill(pid, SIGKILL);
			const deadline dies(victim.ms(8000));
			while (!(ended = waitpid(pid, &status, WNOHANG) == pid) && !dies.passed())
				usleep(5000);
			REQUIRE(ended, "the process with garbage in %s does not die", name_of(kind));
		} else if (WIFSIGNALED(status)) {
			crashed++;
		} else {
			without += WEXITSTATUS(status) == 77;
		}
	}
	if (without == processes)
		skip("the device maps no rings");
	note(text("%d processes, %d of them crashed by themselves", processes, crashed));
	rc_pair fresh(e);
	check_alive(fresh, "a new pair afterwards");
	check_alive(victim, "the pair beside, afterwards");
}

// --- lifetime of mappings -----------------------------------------------------------

sigjmp_buf fault_exit;

void on_fault(int)
{
	siglongjmp(fault_exit, 1);
}

// Reads and writes through memory that may be gone. false: it faulted.
bool touch(uint8_t *at, size_t bytes)
{
	struct sigaction act {}, bus, segv;
	act.sa_handler = on_fault;
	sigaction(SIGBUS, &act, &bus);
	sigaction(SIGSEGV, &act, &segv);
	volatile bool fine = false;
	if (!sigsetjmp(fault_exit, 1)) {
		for (size_t i = 0; i < bytes; i += 512) {
			volatile uint8_t *b = at + i;
			*b = static_cast<uint8_t>(*b + 1);
		}
		fine = true;
	}
	sigaction(SIGBUS, &bus, nullptr);
	sigaction(SIGSEGV, &segv, nullptr);
	return fine;
}

void *map_again(const rc_side &s, const ring &r, size_t bytes)
{
	void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s.dev->ctx()->cmd_fd,
		       static_cast<off_t>(r.offset));
	return p == MAP_FAILED ? nullptr : p;
}

// The mappings that came with a pair.
std::vector<ring> rings_of_pair(env &e, std::unique_ptr<rc_pair> &p, const rc_config &c = {})
{
	e.a();
	e.b();
	const std::vector<ring> before = mapped_rings();
	p = std::make_unique<rc_pair>(e, c);
	std::vector<ring> mine;
	for (const ring &r : mapped_rings())
		if (std::find(before.begin(), before.end(), r) == before.end())
			mine.push_back(r);
	if (mine.empty())
		skip("the device maps no rings");
	return mine;
}

void mapping_outlives_queue(env &e)
{
	for (int round = 0; round < 4; round++) {
		std::unique_ptr<rc_pair> p;
		rc_config c;
		c.a.srq = c.b.srq = round & 1;
		const std::vector<ring> rings = rings_of_pair(e, p, c);
		struct kept_mapping {
			uint8_t *at;
			size_t bytes;
		};
		std::vector<kept_mapping> kept;
		std::vector<ring> again;
		for (const ring &r : rings)
			for (const rc_side *s : { &p->a, &p->b })
				if (void *at = map_again(*s, r, r.bytes)) {
					kept.push_back({ static_cast<uint8_t *>(at), r.bytes });
					again.push_back(r);
				}
		note(text("%zu rings, %zu of them mapped twice", rings.size(), kept.size()));
		// requests in flight when their queue goes
		buffer near(p->a.pd.get(), 60000), far(p->b.pd.get(), 60000);
		ibv_sge sge = near.sge();
		for (int i = 0; i < 8; i++) {
			ibv_send_wr wr = rdma_wr(i, IBV_WR_RDMA_WRITE, &sge, far.addr(), far.rkey());
			p->a.must_post(wr);
		}
		near.release_mr();
		far.release_mr();
		p.reset();
		int faults = 0;
		for (const auto &k : kept)
			faults += !touch(k.at, k.bytes);
		note(text("%d of them fault now", faults));
		// an offset whose queue is gone cannot be mapped any more
		for (const ring &r : again)
			for (device *d : { &e.a(), &e.b() }) {
				void *at = mmap(nullptr, r.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, d->ctx()->cmd_fd,
						static_cast<off_t>(r.offset));
				CHECK(at == MAP_FAILED, "offset %#llx can be mapped though its queue is gone",
				      static_cast<unsigned long long>(r.offset));
				if (at != MAP_FAILED)
					munmap(at, r.bytes);
			}
		rc_pair fresh(e);
		for (const auto &k : kept)
			touch(k.at, k.bytes);
		check_alive(fresh, "a new pair beside old mappings");
		for (const auto &k : kept)
			munmap(k.at, k.bytes);
	}
}

void odd_mappings(env &e)
{
	std::unique_ptr<rc_pair> p;
	const std::vector<ring> rings = rings_of_pair(e, p);
	const long page = 4096;
	// the offsets of one context say nothing to another
	const std::unique_ptr<device> stranger = e.open_again(0);
	for (const ring &r : rings) {
		void *at = mmap(nullptr, r.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, stranger->ctx()->cmd_fd,
				static_cast<off_t>(r.offset));
		CHECK(at == MAP_FAILED, "a ring of another context was mapped");
		if (at != MAP_FAILED)
			munmap(at, r.bytes);
	}
	for (const ring &r : rings)
		for (const size_t bytes : { r.bytes + page, r.bytes * 2, r.bytes + (1 << 24) })
			if (void *at = map_again(p->a, r, bytes)) {
				FAIL("%zu bytes of a ring of %zu were mapped", bytes, r.bytes);
				munmap(at, bytes);
			}
	// anywhere else
	std::mt19937_64 random(1);
	int lucky = 0;
	for (int i = 0; i < 2000; i++) {
		const uint64_t offset = (i < 1000 ? random() % 100000 : random() >> 14) * page;
		bool known = false;
		for (const ring &r : rings)
			known |= offset >= r.offset && offset < r.offset + r.bytes;
		if (known)
			continue;
		void *at = mmap(nullptr, page, PROT_READ, MAP_SHARED, p->a.dev->ctx()->cmd_fd, static_cast<off_t>(offset));
		if (at == MAP_FAILED)
			continue;
		lucky++;
		touch(static_cast<uint8_t *>(at), 0);
		munmap(at, page);
	}
	CHECK(!lucky, "%d offsets that nobody gave out could be mapped", lucky);
	// private, executable
	for (const ring &r : rings) {
		void *at = mmap(nullptr, r.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, p->a.dev->ctx()->cmd_fd,
				static_cast<off_t>(r.offset));
		if (at != MAP_FAILED)
			munmap(at, r.bytes);
	}
	// a second mapping grown, cut, protected, unmapped in pieces
	for (const ring &r : rings) {
		auto *at = static_cast<uint8_t *>(map_again(p->a, r, r.bytes));
		if (!at)
			continue;
		void *grown = mremap(at, r.bytes, r.bytes + 16 * page, MREMAP_MAYMOVE);
		if (grown != MAP_FAILED) {
			touch(static_cast<uint8_t *>(grown), r.bytes + 16 * page);
			munmap(grown, r.bytes + 16 * page);
			continue;
		}
		void *moved = mremap(at, r.bytes, r.bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
		if (moved != MAP_FAILED) {
			touch(static_cast<uint8_t *>(moved), r.bytes);
			munmap(moved, r.bytes);
		}
		mprotect(at, page, PROT_READ);
		for (size_t i = 0; i < r.bytes; i += page)
			munmap(at + (i * 7 % r.bytes) / page * page, page);
		munmap(at, r.bytes);
	}
	check_alive(*p, "afterwards");
}

// One thread maps what it can guess while queues come and go.
void mapping_races(env &e)
{
	std::unique_ptr<rc_pair> first;
	const std::vector<ring> rings = rings_of_pair(e, first);
	uint64_t from = ~0ull, to = 0;
	for (const ring &r : rings) {
		from = std::min(from, r.offset);
		to = std::max(to, r.offset + r.bytes);
	}
	from = from > (1 << 20) ? from - (1 << 20) : 0;
	to += 4 << 20;
	std::atomic<bool> stop = false;
	std::atomic<int> got = 0;
	std::vector<std::thread> mappers;
	for (int t = 0; t < 2; t++)
		mappers.emplace_back([&, t] {
			std::mt19937_64 random(t);
			while (!stop) {
				const uint64_t offset = from + random() % ((to - from) / 4096) * 4096;
				const size_t bytes = (1 + random() % 8) * 4096;
				void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, first->a.dev->ctx()->cmd_fd,
						static_cast<off_t>(offset));
				if (at == MAP_FAILED)
					continue;
				got++;
				// look only: the ring is in use by its owner
				volatile uint8_t sum = 0;
				for (size_t i = 0; i < bytes; i += 4096)
					sum = sum + static_cast<uint8_t *>(at)[i];
				munmap(at, bytes);
			}
		});
	const int rounds = e.full() ? 300 : 40;
	for (int i = 0; i < rounds; i++) {
		try {
			rc_config c;
			c.both([](side_config &s) { s.send_wr = s.recv_wr = s.cq_entries = 8; });
			rc_pair p(e, c);
			check_alive(p, "beside mappers");
			if (i % 4 == 0)
				ibv_resize_cq(p.a.scq(), 100 + i);
		} catch (const test_failed &) {
			break;
		}
	}
	stop = true;
	for (std::thread &t : mappers)
		t.join();
	note(text("%d mappings", got.load()));
	check_alive(*first, "afterwards");
}

// --- system calls -------------------------------------------------------------------

// The doorbell is a write() of POST_SEND and its like: with every handle and length.
void odd_commands(env &e)
{
	rc_pair victim(e);
	env own(e.opt); // devices opened once more
	rc_pair p(own);
	const int fd = p.a.dev->ctx()->cmd_fd;
	std::mt19937 random(7);
	const int rounds = e.full() ? 200000 : 20000;
	int accepted = 0;
	constexpr size_t wr_bytes = sizeof(ib_uverbs_send_wr), sge_bytes = sizeof(ib_uverbs_sge);
	uint32_t words[(32 + 3 * wr_bytes + 3 * sge_bytes) / 4];
	static constexpr uint32_t commands[] = { IB_USER_VERBS_CMD_POST_SEND, IB_USER_VERBS_CMD_POST_RECV,
						 IB_USER_VERBS_CMD_POST_SRQ_RECV, IB_USER_VERBS_CMD_POLL_CQ,
						 IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, IB_USER_VERBS_CMD_PEEK_CQ,
						 IB_USER_VERBS_CMD_RESIZE_CQ, IB_USER_VERBS_CMD_MODIFY_SRQ,
						 IB_USER_VERBS_CMD_ATTACH_MCAST, IB_USER_VERBS_CMD_QUERY_QP,
						 IB_USER_VERBS_CMD_CREATE_AH, IB_USER_VERBS_CMD_REREG_MR };
	for (int i = 0; i < rounds; i++) {
		for (uint32_t &w : words)
			w = random() % 3 ? random() % 40 : random();
		size_t bytes = 8 + random() % 30 * 4;
		uint32_t answer_words = random() % 4 ? 0 : random() % 16;
		words[0] = commands[random() % std::size(commands)];
		if (random() % 2)
			words[4] = p.a.qp->handle;
		if (i % 4 == 0) {
			// a doorbell as providers ring it, now and then with requests
			const uint32_t wrs = random() % 4 ? 0 : random() % 3, sges = random() % 4 ? 0 : random() % 3;
			words[0] = IB_USER_VERBS_CMD_POST_SEND;
			words[5] = wrs;
			words[6] = sges;
			words[7] = wr_bytes;
			bytes = 32 + wrs * wr_bytes + sges * sge_bytes;
			answer_words = 1;
		}
		// sizes in words: right as often as not
		words[1] = random() % 8 ? static_cast<uint32_t>(bytes / 4) : random() % 64;
		words[1] |= answer_words << 16;
		// a response, where there is one, goes to memory of ours or to none
		static uint8_t room[4096];
		const uint64_t answer = random() % 8 ? reinterpret_cast<uintptr_t>(room) : random();
		memcpy(&words[2], &answer, 8);
		accepted += write(fd, words, bytes) > 0;
	}
	CHECK(accepted > 0, "none was accepted: this test tests nothing");
	note(text("%d of %d commands were accepted", accepted, rounds));
	check_alive(victim, "beside odd commands");
}

} // namespace

void add_tests(registry &r, const options &)
{
	for (int k = 0; k < static_cast<int>(garbage::kinds); k++) {
		const garbage kind = static_cast<garbage>(k);
		r.add(text("garbage in rings: %s [B53]", name_of(kind)), [=](env &e) { rings_of_garbage(e, kind); }, 40);
	}
	r.add("mapping outlives its queue [B54]", mapping_outlives_queue, 30);
	r.add("mappings that should not be [B54]", odd_mappings, 30);
	r.add("mapping races with queues [B54]", mapping_races, 40);
	r.add("odd commands", odd_commands, 30);
}
