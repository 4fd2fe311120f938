// SPDX-License-Identifier: GPL-2.0
//
// Things go away while they are in use: queue pairs, processes, links, netdevs,
// namespaces. Whoever takes them away is not kept waiting, whoever used them is
// told, and nothing is left behind.
//
// The tests that delete links do so on hosts of their own:
//
//	 namespace lc1            namespace lc2
//	+---------------+        +---------------+
//	| ld1 on lv1    |--veth--|    ld2 on lv2 |
//	| 198.51.100.1  |        |  198.51.100.2 |
//	+---------------+        +---------------+

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <random>
#include <signal.h>
#include <sys/wait.h>
#include <thread>

#include "lib/rc_pair.hpp"

using namespace vt;

const char *const program_suite = "lifecycle";

namespace {

// --- commands --------------------------------------------------------------------

struct outcome {
	int status; // 124: was still running
	double ms;
	std::string output; // its last line
};

// Never waits longer than it says, also for a command that cannot be killed.
outcome run(const std::string &command, int seconds)
{
	const stopwatch watch;
	const deadline end(seconds * 1000);
	int ends[2];
	REQUIRE(!pipe2(ends, O_CLOEXEC), "pipe: %s", strerror(errno));
	const pid_t pid = fork();
	REQUIRE(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		execl("/bin/bash", "bash", "-c", command.c_str(), nullptr);
		_exit(127);
	}
	close(ends[1]);
	const fd_handle out(ends[0]);
	outcome o{ 124, 0, {} };
	std::string all;
	int status = 0;
	bool ended = false;
	while (!ended && !end.passed()) {
		pollfd p{ out.get(), POLLIN, 0 };
		char buf[512];
		ssize_t n = 0;
		if (poll(&p, 1, 10) > 0 && (n = read(out.get(), buf, sizeof(buf))) > 0) {
			all.append(buf, n);
			continue;
		}
		ended = waitpid(pid, &status, WNOHANG) == pid;
		if (!ended && p.revents)
			usleep(1000);
	}
	o.ms = watch.ms();
	if (ended)
		o.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	else
		kill(pid, SIGKILL);
	while (!all.empty() && all.back() == '\n')
		all.pop_back();
	o.output = all.substr(all.rfind('\n') + 1);
	return o;
}

void must_run(const std::string &command)
{
	const outcome o = run(command, 30);
	REQUIRE(!o.status, "'%s': status %d: %s", command.c_str(), o.status, o.output.c_str());
}

// Removal under use: within the seconds the issue tracker's users would bear.
void must_be_prompt(env &e, const std::string &command)
{
	const double limit = e.patience(5000);
	const outcome o = run(command, static_cast<int>(limit / 1000) + 5);
	REQUIRE(o.status != 124, "'%s' hangs", command.c_str());
	CHECK(!o.status, "'%s': status %d: %s", command.c_str(), o.status, o.output.c_str());
	CHECK(o.ms < limit, "'%s' took %.0f ms", command.c_str(), o.ms);
	note(text("'%s' took %.0f ms", command.c_str(), o.ms));
}

int module_references(env &e)
{
	const std::string path = "/sys/module/" + e.opt.setting("module", "softrnic") + "/refcnt";
	FILE *f = fopen(path.c_str(), "re");
	int n = -1;
	if (f) {
		if (fscanf(f, "%d", &n) != 1)
			n = -1;
		fclose(f);
	}
	return n;
}

bool eventually(int ms, const std::function<bool()> &condition)
{
	const deadline end(ms);
	while (!condition()) {
		if (end.passed())
			return false;
		usleep(20000);
	}
	return true;
}

// The two hosts; made anew by every test that needs them.
class hosts {
public:
	explicit hosts(env &e) : env_(e), type_(e.opt.setting("type", "roce"))
	{
		remove();
		must_run("ip netns add lc1 && ip netns add lc2 && "
			 "ip link add lv1 netns lc1 type veth peer name lv2 netns lc2 && "
			 "ip -n lc1 addr add 198.51.100.1/24 dev lv1 && ip -n lc2 addr add 198.51.100.2/24 dev lv2 && "
			 "ip -n lc1 link set lv1 up && ip -n lc2 link set lv2 up");
		add_link(1);
		add_link(2);
		opt_ = e.opt;
		opt_.devices = { { "ld1", "lc1" }, { "ld2", "lc2" } };
		opt_.family = 4;
		opt_.families = { 4 };
		REQUIRE(eventually(e.patience(5000), [&] { return has_gid("ld1") && has_gid("ld2"); }),
			"the devices have no GIDs");
	}
	~hosts() { remove(); }

	const options &opt() const { return opt_; }
	void add_link(int i)
	{
		const std::string n = std::to_string(i);
		must_run("ip netns exec lc" + n + " rdma link add ld" + n + " type " + type_ + " netdev lv" + n);
	}
	bool device_there(int i)
	{
		return !run("rdma link show ld" + std::to_string(i) + "/1", 10).status;
	}

private:
	static bool has_gid(const std::string &name)
	{
		// as seen in sysfs of this namespace, which shares devices
		return !run("for i in 0 1 2 3; do cat /sys/class/infiniband/" + name +
				    "/ports/1/gids/$i 2>/dev/null; done | grep -q ffff:c633",
			    10).status;
	}
	void remove()
	{
		run("for d in ld1 ld2; do ! rdma link show $d/1 >/dev/null 2>&1 || rdma link delete $d; done; "
		    "for n in lc1 lc2; do [ ! -e /run/netns/$n ] || ip netns del $n; done",
		    10);
		eventually(env_.patience(5000), [&] { return !device_there(1) && !device_there(2); });
	}

	env &env_;
	std::string type_;
	options opt_;
};

// WRITEs and READs without end on a pair, from a thread, until told or in error.
class busy_pair {
public:
	explicit busy_pair(env &e, const rc_config &c = {})
		: pair(e, c), near_(pair.a.pd.get(), 70000), far_(pair.b.pd.get(), 70000), thread_([this] { loop(); })
	{
	}
	~busy_pair() { stop(); }

	rc_pair pair;
	int done() const { return done_; }
	bool in_error() const { return error_; }
	void stop()
	{
		stop_ = true;
		if (thread_.joinable())
			thread_.join();
	}
	// Waits until it moves.
	void warm_up()
	{
		const int before = done_;
		REQUIRE(eventually(pair.ms(5000), [&] { return done_ > before + 10 || error_; }) && !error_,
			"the traffic does not start (%d done)", done_.load());
	}

private:
	void loop()
	{
		int outstanding = 0;
		while (!stop_) {
			while (outstanding < 16 && !stop_) {
				ibv_sge sge = near_.sge(0, 1 + next_ * 7919 % 65536);
				ibv_send_wr wr = rdma_wr(next_, next_ % 3 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, &sge,
							 far_.addr(), far_.rkey());
				if (pair.a.post(wr)) {
					error_ = true;
					return;
				}
				next_++;
				outstanding++;
			}
			ibv_wc wc[8];
			const int n = ibv_poll_cq(pair.a.scq(), 8, wc);
			for (int i = 0; i < n; i++) {
				outstanding--;
				if (wc[i].status != IBV_WC_SUCCESS) {
					error_ = true;
					return;
				}
				done_++;
			}
			if (n <= 0)
				usleep(100);
		}
	}

	buffer near_, far_;
	uint64_t next_ = 0;
	std::atomic<int> done_ = 0;
	std::atomic<bool> stop_ = false, error_ = false;
	std::thread thread_;
};

// --- queue pairs -------------------------------------------------------------------

void churn(env &e)
{
	const int rounds = e.full() ? 500 : 60;
	busy_pair busy(e);
	busy.warm_up();
	for (int round = 0; round < rounds; round++) {
		rc_config c;
		c.both([](side_config &s) { s.send_wr = s.recv_wr = 16; });
		rc_pair p(e, c);
		buffer near(p.a.pd.get(), 30000), far(p.b.pd.get(), 30000);
		ibv_sge sge = near.sge();
		for (int i = 0; i < 8; i++) {
			p.b.must_post_recv(i, far.sge());
			ibv_send_wr wr = i % 2 ? send_wr(i, IBV_WR_SEND, &sge) :
						 rdma_wr(i, IBV_WR_RDMA_READ, &sge, far.addr(), far.rkey());
			p.a.must_post(wr);
		}
		usleep(round * 37 % 500);
		// one end goes before the other, with work in flight
		(round % 2 ? p.a : p.b).qp.reset();
	}
	busy.warm_up();
	CHECK(!busy.in_error(), "the queue pair beside them failed");
}

// Timers of every kind against destroy.
void destroy_in_retransmission(env &e)
{
	const int threads = e.full() ? 16 : 4, rounds = e.full() ? 100 : 25;
	e.a();
	e.b();
	busy_pair busy(e);
	busy.warm_up();
	std::vector<std::thread> all;
	for (int t = 0; t < threads; t++)
		all.emplace_back([&, t] {
			try {
				std::mt19937 random(t);
				for (int round = 0; round < rounds; round++) {
					rc_config c;
					c.a.timeout = 1; // 8 us
					c.a.retry_cnt = 7;
					c.b.min_rnr_timer = 1; // 10 us
					rc_pair p(e, c);
					// half of them without any answer, half with RNR NAKs
					if (round % 2 && p.b.to_state(IBV_QPS_RESET))
						FAIL("to RESET");
					buffer near(p.a.pd.get(), 5000), far(p.b.pd.get(), 5000);
					ibv_sge sge = near.sge();
					for (int i = 0; i < 8; i++) {
						ibv_send_wr wr = send_wr(i, IBV_WR_SEND, &sge);
						p.a.must_post(wr);
					}
					usleep(random() % 1500);
					p.a.qp.reset();
				}
			} catch (const test_failed &) {
			} catch (const test_skipped &) {
			}
		});
	for (std::thread &t : all)
		t.join();
	busy.warm_up();
	CHECK(!busy.in_error(), "the queue pair beside them failed");
}

// RESET and ERR instead of destroy, likewise.
void states_in_retransmission(env &e)
{
	rc_config c;
	c.a.timeout = 1;
	c.a.retry_cnt = 7;
	c.b.min_rnr_timer = 1;
	rc_pair p(e, c);
	buffer near(p.a.pd.get(), 5000);
	const int rounds = e.full() ? 1000 : 150;
	for (int round = 0; round < rounds; round++) {
		ibv_sge sge = near.sge();
		for (int i = 0; i < 4; i++) {
			ibv_send_wr wr = send_wr(i, IBV_WR_SEND, &sge);
			p.a.must_post(wr);
		}
		usleep(round * 13 % 700);
		REQUIRE(!p.a.to_state(round % 2 ? IBV_QPS_ERR : IBV_QPS_RESET), "state");
		p.reconnect();
	}
	check_alive(p, "afterwards");
}

// --- processes ------------------------------------------------------------------------

// A process with traffic on two pairs, which says when it moves.
pid_t busy_process(const options &o, bool exits)
{
	int ends[2];
	REQUIRE(!pipe2(ends, O_CLOEXEC), "pipe");
	const pid_t pid = fork();
	REQUIRE(pid >= 0, "fork");
	if (!pid) {
		try {
			env mine(o);
			busy_pair x(mine), y(mine);
			x.warm_up();
			y.warm_up();
			if (write(ends[1], "x", 1) != 1)
				_exit(1);
			for (int i = 0; i < 3000 && !exits; i++)
				usleep(10000);
			_exit(0); // all of it open
		} catch (...) {
			_exit(1);
		}
	}
	close(ends[1]);
	char c;
	pollfd p{ ends[0], POLLIN, 0 };
	const bool moves = poll(&p, 1, static_cast<int>(15000 * o.scale)) > 0 && read(ends[0], &c, 1) == 1;
	close(ends[0]);
	if (!moves)
		kill(pid, SIGKILL);
	REQUIRE(moves, "the process does not get going");
	return pid;
}

void must_end(env &e, pid_t pid, const char *what)
{
	int status;
	if (!eventually(e.patience(5000), [&] { return waitpid(pid, &status, WNOHANG) == pid; })) {
		kill(pid, SIGKILL);
		FAIL("%s: still there after 5 s", what);
		throw test_failed{};
	}
}

int resources_of(pid_t pid)
{
	const outcome o = run("rdma resource show qp 2>/dev/null | grep -c \"pid " + std::to_string(pid) + " \"", 10);
	return atoi(o.output.c_str());
}

void killed(env &e)
{
	const int rounds = e.full() ? 60 : 6;
	for (int round = 0; round < rounds; round++) {
		const pid_t pid = busy_process(e.opt, false);
		usleep(round * 1711 % 20000);
		kill(pid, SIGKILL);
		must_end(e, pid, "killed process");
		CHECK(eventually(e.patience(3000), [&] { return !resources_of(pid); }), "queue pairs of process %d are left",
		      pid);
	}
	rc_pair p(e);
	check_alive(p, "afterwards");
}

void exited(env &e)
{
	for (int round = 0; round < (e.full() ? 20 : 3); round++) {
		const pid_t pid = busy_process(e.opt, true);
		must_end(e, pid, "process that exits with all of it open");
	}
	rc_pair p(e);
	check_alive(p, "afterwards");
}

// A child shares nothing that hurts: it exits, it writes to its copy of the memory.
void forked(env &e)
{
	rc_pair p(e);
	buffer near(p.a.pd.get(), 50000), far(p.b.pd.get(), 50000);
	for (int round = 0; round < 10; round++) {
		fill_pattern(near.bytes(0, 50000), round);
		const pid_t pid = fork();
		if (!pid) {
			near.clear(1);
			far.clear(2);
			_exit(0);
		}
		ibv_sge sge = near.sge();
		ibv_send_wr wr = rdma_wr(1, IBV_WR_RDMA_WRITE, &sge, far.addr(), far.rkey());
		p.a.must_post(wr);
		expect_wc(p.a.scq(), p.ms(5000), 1, IBV_WC_SUCCESS, -1, "while a child lives");
		check_pattern(far.bytes(0, 50000), round, "parent's memory");
		must_end(e, pid, "child");
	}
}

// --- links, netdevs, namespaces --------------------------------------------------------

// What the owner of a device that went away still does must not hang or crash.
void use_dead(const rc_side &s)
{
	ibv_wc wc[16];
	for (int i = 0; i < 100; i++)
		if (ibv_poll_cq(s.scq(), 16, wc) <= 0)
			break;
	ibv_send_wr wr = send_wr(1, IBV_WR_SEND, nullptr, 0);
	s.post(wr);
	s.post_recv(1, {});
	ibv_port_attr port{};
	CHECK(ibv_query_port(s.dev->ctx(), 1, &port) != 0, "a port of a device that is gone");
	mapping memory(4096);
	ibv_mr *mr = ibv_reg_mr(s.pd.get(), memory.data(), 4096, access_local);
	CHECK(!mr, "an MR on a device that is gone");
	CHECK(s.to_state(IBV_QPS_ERR) != 0, "modify_qp on a device that is gone");
}

void gone(env &e, const std::string &command, bool both)
{
	hosts h(e);
	const int idle = module_references(e);
	{
		env mine(h.opt());
		auto busy = std::make_unique<busy_pair>(mine);
		busy->warm_up();
		must_be_prompt(e, command);
		rc_pair &p = busy->pair;
		CHECK(p.a.dev->wait_event(IBV_EVENT_DEVICE_FATAL, e.patience(5000)), "no DEVICE_FATAL");
		if (both)
			CHECK(p.b.dev->wait_event(IBV_EVENT_DEVICE_FATAL, e.patience(5000)),
			      "no DEVICE_FATAL on the other end");
		CHECK(eventually(e.patience(5000), [&] { return !h.device_there(1); }), "the device is still listed");
		busy->stop();
		use_dead(p.a);
	}
	// each device held one; what held the gone ones open is closed
	const int left = std::max(0, idle - (both ? 2 : 1));
	CHECK(eventually(e.patience(5000), [&] { return module_references(e) <= left; }),
	      "module references went from %d to %d, not %d", idle, module_references(e), left);
}

void link_deleted(env &e)
{
	gone(e, "rdma link delete ld1", false);
}

void netdev_deleted(env &e)
{
	gone(e, "ip -n lc1 link del lv1", true);
}

void namespace_deleted(env &e)
{
	gone(e, "ip netns del lc1", true);
}

// The owner sleeps; the name is free at once for a new link.
void link_deleted_while_open(env &e)
{
	hosts h(e);
	env mine(h.opt());
	device &d = mine.a();
	const pd_handle pd = d.make_pd();
	const cq_handle cq = d.make_cq(16);
	const buffer memory(pd.get(), 100000);
	must_be_prompt(e, "rdma link delete ld1");
	CHECK(d.wait_event(IBV_EVENT_DEVICE_FATAL, e.patience(2000)), "no DEVICE_FATAL");
	h.add_link(1);
	env again(h.opt());
	REQUIRE(eventually(e.patience(5000), [&] { return !again.a().gids().empty(); }), "no GIDs");
	usleep(300000);
	rc_pair p(again);
	check_alive(p, "new link of the same name");
	errno = 0;
	mr_handle mr(ibv_reg_mr(pd.get(), memory.data(), 4096, access_local));
	CHECK(!mr, "the old device still works");
}

// Another process holds it and does nothing about the event.
void link_deleted_under_process(env &e)
{
	hosts h(e);
	const pid_t pid = busy_process(h.opt(), false);
	must_be_prompt(e, "rdma link delete ld1");
	must_be_prompt(e, "rdma link delete ld2");
	kill(pid, SIGKILL);
	must_end(e, pid, "process of deleted links");
	CHECK(!h.device_there(1) && !h.device_there(2), "the devices are still listed");
}

// Completion channels and event threads that sleep are woken.
void sleepers_are_woken(env &e)
{
	hosts h(e);
	env mine(h.opt());
	rc_config c;
	c.a.channel = true;
	rc_pair p(mine, c);
	REQUIRE(!ibv_req_notify_cq(p.a.scq(), 0), "arm");
	std::atomic<bool> woken = false;
	std::jthread sleeper([&] {
		pollfd fds[2] = { { p.a.dev->ctx()->async_fd, POLLIN, 0 }, { p.a.channel->fd, POLLIN, 0 } };
		woken = poll(fds, 2, e.patience(5000)) > 0;
	});
	usleep(50000);
	must_be_prompt(e, "rdma link delete ld1");
	sleeper.join();
	CHECK(woken, "the sleeper was not woken");
}

void add_and_delete(env &e)
{
	hosts h(e);
	const int rounds = e.full() ? 40 : 4;
	for (int round = 0; round < rounds; round++) {
		{
			env mine(h.opt());
			REQUIRE(eventually(e.patience(5000),
					   [&] {
						   for (const auto &g : mine.a().gids())
							   if (is_v4_mapped(g.raw))
								   return true;
						   return false;
					   }),
				"no GID in round %d", round);
			rc_pair p(mine);
			check_alive(p, text("round %d", round));
		}
		must_be_prompt(e, "rdma link delete ld1");
		h.add_link(1);
	}
}

// Devices are opened and closed while they come and go.
void open_races(env &e)
{
	hosts h(e);
	std::atomic<bool> stop = false;
	std::vector<std::thread> openers;
	for (int i = 0; i < 3; i++)
		openers.emplace_back([&] {
			while (!stop) {
				int n = 0;
				ibv_device **list = ibv_get_device_list(&n);
				for (int k = 0; list && k < n; k++) {
					if (strncmp(ibv_get_device_name(list[k]), "ld", 2))
						continue;
					ibv_context *ctx = ibv_open_device(list[k]);
					if (!ctx)
						continue;
					ibv_pd *pd = ibv_alloc_pd(ctx);
					ibv_cq *cq = ibv_create_cq(ctx, 16, nullptr, nullptr, 0);
					if (cq)
						ibv_destroy_cq(cq);
					if (pd)
						ibv_dealloc_pd(pd);
					ibv_close_device(ctx);
				}
				if (list)
					ibv_free_device_list(list);
				usleep(2000);
			}
		});
	try {
		for (int round = 0; round < (e.full() ? 40 : 6); round++) {
			must_be_prompt(e, "rdma link delete ld1");
			h.add_link(1);
		}
	} catch (...) {
		stop = true;
		for (std::thread &t : openers)
			t.join();
		throw;
	}
	stop = true;
	for (std::thread &t : openers)
		t.join();
}

// Down, up, and traffic goes on.
void carrier_flap(env &e)
{
	hosts h(e);
	env mine(h.opt());
	rc_config c;
	c.both([](side_config &s) { s.timeout = 16; });
	busy_pair busy(mine, c);
	busy.warm_up();
	for (int round = 0; round < 3; round++) {
		must_run("ip -n lc1 link set lv1 down");
		CHECK(busy.pair.a.dev->wait_event(IBV_EVENT_PORT_ERR, e.patience(3000)), "no PORT_ERR");
		usleep(300000);
		must_run("ip -n lc1 link set lv1 up");
		CHECK(busy.pair.a.dev->wait_event(IBV_EVENT_PORT_ACTIVE, e.patience(3000)), "no PORT_ACTIVE");
		const int before = busy.done();
		CHECK(eventually(e.patience(8000), [&] { return busy.in_error() || busy.done() > before + 20; }),
		      "stuck after the cable came back, at %d", busy.done());
		REQUIRE(!busy.in_error(), "the queue pair failed within its retries");
	}
}

// The MTU shrinks below what a queue pair sends: an error, or nothing on the wire.
void mtu_shrinks(env &e)
{
	hosts h(e);
	must_run("ip -n lc1 link set lv1 mtu 4400 && ip -n lc2 link set lv2 mtu 4400");
	env mine(h.opt());
	REQUIRE(eventually(e.patience(3000), [&] { return mine.a().port().active_mtu == IBV_MTU_4096 &&
							  mine.b().port().active_mtu == IBV_MTU_4096; }),
		"active_mtu does not follow");
	rc_config c;
	c.mtu = IBV_MTU_4096;
	c.a.timeout = 12;
	c.a.retry_cnt = 2;
	rc_pair p(mine, c);
	check_alive(p, "before");
	must_run("ip -n lc1 link set lv1 mtu 1500");
	REQUIRE(eventually(e.patience(3000), [&] { return mine.a().port().active_mtu == IBV_MTU_1024; }),
		"active_mtu does not follow");
	buffer near(p.a.pd.get(), 10000), far(p.b.pd.get(), 10000);
	ibv_sge sge = near.sge();
	ibv_send_wr wr = rdma_wr(1, IBV_WR_RDMA_WRITE, &sge, far.addr(), far.rkey());
	p.a.must_post(wr);
	const auto wc = next_wc(p.a.scq(), p.ms(8000));
	REQUIRE(wc, "neither sent nor an error");
	CHECK(wc->status != IBV_WC_SUCCESS, "packets of 4096 bytes over an MTU of 1500");
}

void address_removed(env &e)
{
	hosts h(e);
	env mine(h.opt());
	busy_pair busy(mine);
	busy.warm_up();
	must_run("ip -n lc1 addr del 198.51.100.1/24 dev lv1");
	CHECK(busy.pair.a.dev->wait_event(IBV_EVENT_GID_CHANGE, e.patience(3000)), "no GID_CHANGE");
	must_run("ip -n lc1 addr add 198.51.100.1/24 dev lv1");
	// either it went on or it ended; a new one works
	usleep(300000);
	busy.stop();
	REQUIRE(eventually(e.patience(3000),
			   [&] {
				   for (const auto &g : mine.a().gids())
					   if (is_v4_mapped(g.raw))
						   return true;
				   return false;
			   }),
		"the GID does not come back");
	rc_pair p(mine);
	check_alive(p, "afterwards");
}

void netdev_moved(env &e)
{
	hosts h(e);
	env mine(h.opt());
	busy_pair busy(mine);
	busy.warm_up();
	must_be_prompt(e, "ip -n lc1 link set lv1 netns lc2");
	usleep(200000);
	busy.stop();
	const bool there = h.device_there(1);
	note(there ? "the device stays" : "the device goes");
	if (!there)
		CHECK(busy.pair.a.dev->wait_event(IBV_EVENT_DEVICE_FATAL, e.patience(3000)), "no DEVICE_FATAL");
}

void module_in_use(env &e)
{
	const std::string module = e.opt.setting("module", "softrnic");
	rc_pair p(e);
	const outcome o = run("rmmod " + module, 10);
	CHECK(o.status != 0 && o.status != 124, "rmmod with a device in use: status %d", o.status);
	check_alive(p, "after a refused rmmod");
}

} // namespace

void add_tests(registry &r, const options &)
{
	r.add("queue pairs come and go under traffic", churn, 60);
	r.add("destroy in retransmission [B102]", destroy_in_retransmission, 60);
	r.add("RESET and ERR in retransmission [B102,R052]", states_in_retransmission, 40);
	r.add("process killed under traffic [B68]", killed, 60);
	r.add("process exits under traffic", exited, 30);
	r.add("fork beside traffic [B64]", forked, 20);
	r.add("link deleted under traffic [B26,B114]", link_deleted, 40);
	r.add("link deleted while open, and made again [B114]", link_deleted_while_open, 40);
	r.add("link deleted under a process [B114]", link_deleted_under_process, 40);
	r.add_full("sleepers are woken [B114]", sleepers_are_woken, 40);
	r.add("netdev deleted under traffic [B26]", netdev_deleted, 40);
	r.add("namespace deleted under traffic [B17,B18]", namespace_deleted, 40);
	r.add_full("netdev moved to another namespace [B17]", netdev_moved, 40);
	r.add_full("links added and deleted [B15]", add_and_delete, 60);
	r.add_full("open and close race with links", open_races, 60);
	r.add("carrier flaps under traffic [B27]", carrier_flap, 40);
	r.add_full("MTU shrinks below the path MTU [B28]", mtu_shrinks, 40);
	r.add_full("address removed under traffic [B37]", address_removed, 40);
	r.add("module in use", module_in_use, 20);
}
