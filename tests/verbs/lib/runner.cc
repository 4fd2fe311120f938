// SPDX-License-Identifier: GPL-2.0
//
// The test runner: command line, one child process per test, deadlines, and
// the CUnit registry that counts the verdicts.

#include "lib/runner.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fnmatch.h>
#include <map>
#include <mutex>
#include <poll.h>
#include <signal.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>

namespace vt {

namespace {

// --- in the test's process -------------------------------------------------

int report_fd = -1;
std::atomic<int> failures;
std::mutex report_lock;

void report(char kind, std::string what)
{
	std::replace(what.begin(), what.end(), '\n', ' ');
	const std::string line = kind + what + "\n";
	const std::lock_guard guard(report_lock);
	if (report_fd < 0) {
		fputs(line.c_str() + 1, stderr);
		return;
	}
	// a pipe takes lines below PIPE_BUF in one piece
	if (write(report_fd, line.data(), line.size()) < 0)
		perror("report");
}

} // namespace

std::string text(const char *format, ...)
{
	char out[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(out, sizeof(out), format, args);
	va_end(args);
	return out;
}

bool fail_at(const char *file, int line, const std::string &what)
{
	const char *base = strrchr(file, '/');
	// a test that fails in a loop need not say so a million times
	if (failures.fetch_add(1) < 8)
		report('F', what + " at " + (base ? base + 1 : file) + ":" + std::to_string(line));
	return false;
}

void skip(const std::string &why)
{
	report('S', why);
	throw test_skipped{};
}

void note(const std::string &what)
{
	report('N', what);
}

bool has_failed()
{
	return failures.load() > 0;
}

std::string options::setting(const std::string &name, const std::string &otherwise) const
{
	for (const std::string &a : arguments)
		if (a.compare(0, name.size() + 1, name + "=") == 0)
			return a.substr(name.size() + 1);
	return otherwise;
}

device &env::open(size_t which)
{
	if (!opened_[which])
		opened_[which] = std::make_unique<device>(opt.devices.at(which));
	return *opened_[which];
}

std::unique_ptr<device> env::open_again(int which)
{
	const size_t last = opt.devices.size() - 1;
	return std::make_unique<device>(opt.devices.at(std::min<size_t>(which, last)));
}

// --- in the runner's process ------------------------------------------------

namespace {

using steady = std::chrono::steady_clock;

struct verdict {
	enum { passed, failed, skipped } kind = passed;
	std::string why;
	std::vector<std::string> notes;
	double seconds = 0;
};

options opt;
std::map<std::string, test_case> running;
std::map<std::string, verdict> verdicts;
// stays in the way of later tests: an unkillable child
int stuck_children;

[[noreturn]] void run_child(const test_case &t, int fd)
{
	// the test's own children die with its process group
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	const rlimit no_core{ 0, 0 };
	setrlimit(RLIMIT_CORE, &no_core);
	report_fd = fd;
	failures = 0;
	try {
		env e(opt);
		t.body(e);
	} catch (const test_failed &) {
	} catch (const test_skipped &) {
	} catch (const std::exception &x) {
		fail_at(__FILE__, __LINE__, std::string("exception: ") + x.what());
	}
	report('E', "");
	_exit(0);
}

std::string wait_channel(pid_t pid)
{
	std::string where;
	char path[64], line[256];
	for (const char *file : { "wchan", "stack" }) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
		FILE *f = fopen(path, "re");
		if (!f)
			continue;
		while (fgets(line, sizeof(line), f)) {
			line[strcspn(line, "\n")] = 0;
			where += std::string(" ") + line;
		}
		fclose(f);
	}
	return where;
}

void take_line(verdict &v, const std::string &line, bool &ended)
{
	switch (line[0]) {
	case 'F':
		v.kind = verdict::failed;
		v.why += (v.why.empty() ? "" : "; ") + line.substr(1);
		break;
	case 'S':
		if (v.kind == verdict::passed) {
			v.kind = verdict::skipped;
			v.why = line.substr(1);
		}
		break;
	case 'N':
		v.notes.push_back(line.substr(1));
		break;
	case 'E':
		ended = true;
		break;
	}
}

verdict run_case(const test_case &t)
{
	verdict v;
	int ends[2];
	if (pipe2(ends, O_CLOEXEC)) {
		v.kind = verdict::failed;
		v.why = "pipe: " + std::string(strerror(errno));
		return v;
	}
	const auto start = steady::now();
	const auto deadline = start + std::chrono::milliseconds(
					      static_cast<long>(t.seconds * 1000 * opt.scale));
	fflush(stdout);
	const pid_t pid = fork();
	if (!pid) {
		close(ends[0]);
		run_child(t, ends[1]);
	}
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);

	bool ended = false, exited = false, killed = false;
	int status = 0;
	auto kill_deadline = deadline;
	std::string pending;
	for (;;) {
		pollfd p{ ends[0], POLLIN, 0 };
		poll(&p, 1, 20);
		char buf[4096];
		ssize_t n;
		while ((n = read(ends[0], buf, sizeof(buf))) > 0)
			pending.append(buf, n);
		for (size_t at; (at = pending.find('\n')) != std::string::npos;) {
			take_line(v, pending.substr(0, at), ended);
			pending.erase(0, at + 1);
		}
		if (exited)
			break;
		if (pid < 0 || waitpid(pid, &status, WNOHANG) == pid) {
			exited = true;
			continue; // once more for the rest of the pipe
		}
		// a closed pipe never blocks in poll
		if (n == 0)
			usleep(5000);
		const auto now = steady::now();
		if (!killed && now > deadline) {
			v.kind = verdict::failed;
			v.why += (v.why.empty() ? "" : "; ") +
				 text("still running after %.0f s, killed", t.seconds * opt.scale);
			const std::string where = wait_channel(pid);
			if (!where.empty())
				v.why += ", was in" + where;
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
			killed = true;
			kill_deadline = now + std::chrono::seconds(10);
		}
		if (killed && now > kill_deadline) {
			v.why += "; does not die:" + wait_channel(pid);
			stuck_children++;
			break;
		}
	}
	kill(-pid, SIGKILL);
	close(ends[0]);
	if (pid < 0) {
		v.kind = verdict::failed;
		v.why = "fork failed";
	} else if (exited && !killed && !ended) {
		v.kind = verdict::failed;
		v.why += (v.why.empty() ? "" : "; ");
		v.why += WIFSIGNALED(status) ? std::string("died of ") + strsignal(WTERMSIG(status)) :
					       text("exited early with status %d", WEXITSTATUS(status));
	}
	v.seconds = std::chrono::duration<double>(steady::now() - start).count();
	return v;
}

// CUnit's test functions take no argument: the registry says which one runs.
void trampoline()
{
	const std::string name = CU_get_current_test()->pName;
	verdict v = run_case(running.at(name));
	if (v.kind == verdict::failed)
		CU_assertImplementation(CU_FALSE, 0, v.why.c_str(), name.c_str(), "", CU_FALSE);
	else
		CU_assertImplementation(CU_TRUE, 0, "passed", name.c_str(), "", CU_FALSE);
	verdicts[name] = std::move(v);
}

int passed, failed, skipped;

void on_complete(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord)
{
	const verdict &v = verdicts[test->pName];
	const std::string name = std::string(suite->pName) + "/" + test->pName;
	for (const std::string &n : v.notes)
		printf("# %s: %s\n", name.c_str(), n.c_str());
	switch (v.kind) {
	case verdict::passed:
		passed++;
		printf("ok - %s (%.2f s)\n", name.c_str(), v.seconds);
		break;
	case verdict::failed:
		failed++;
		printf("not ok - %s: %s\n", name.c_str(), v.why.c_str());
		break;
	case verdict::skipped:
		skipped++;
		printf("skip - %s: %s\n", name.c_str(), v.why.c_str());
		break;
	}
	fflush(stdout);
}

const char usage[] =
	"usage: PROGRAM --devices A[@NETNS][,B[@NETNS]] [--quick|--full] [--family 4|6]\n"
	"               [--filter GLOB]... [--not GLOB]... [--scale N] [--set NAME=VALUE]\n"
	"               [--list | --gid]\n";

[[noreturn]] void die(const std::string &why)
{
	fprintf(stderr, "%s: error: %s\n%s", program_suite, why.c_str(), usage);
	exit(2);
}

bool matches(const std::vector<std::string> &globs, const std::string &name)
{
	return std::any_of(globs.begin(), globs.end(), [&](const std::string &g) {
		return !fnmatch(("*" + g + "*").c_str(), name.c_str(), 0);
	});
}

} // namespace

} // namespace vt

int main(int argc, char **argv)
{
	using namespace vt;
	std::vector<std::string> filters, without;
	bool list = false, gid = false;

	for (int i = 1; i < argc; i++) {
		const std::string_view a = argv[i];
		const auto value = [&]() -> std::string {
			if (i + 1 >= argc)
				die(std::string(a) + " needs a value");
			return argv[++i];
		};
		if (a == "--devices") {
			const std::string v = value();
			for (size_t at = 0; at <= v.size();) {
				const size_t comma = std::min(v.find(',', at), v.size());
				opt.devices.push_back(endpoint::parse(v.substr(at, comma - at)));
				at = comma + 1;
			}
		} else if (a == "--family") {
			const std::string v = value();
			if (v != "4" && v != "6")
				die("--family takes 4 or 6, not '" + v + "'");
			opt.family = v[0] - '0';
			opt.families = { opt.family };
		} else if (a == "--filter") {
			filters.push_back(value());
		} else if (a == "--not") {
			without.push_back(value());
		} else if (a == "--scale") {
			opt.scale = atof(value().c_str());
			if (opt.scale <= 0)
				die("--scale takes a positive number");
		} else if (a == "--set") {
			opt.arguments.push_back(value());
		} else if (a == "--quick") {
			opt.full = false;
		} else if (a == "--full") {
			opt.full = true;
		} else if (a == "--list") {
			list = true;
		} else if (a == "--gid") {
			gid = true;
		} else if (a == "--help") {
			fputs(usage, stdout);
			return 0;
		} else {
			die("unknown argument '" + std::string(a) + "'");
		}
	}
	if (!list && (opt.devices.empty() || opt.devices.size() > 2))
		die("--devices takes one device or two");

	if (gid) {
		try {
			printf("%d\n", device(opt.devices[0]).find_gid(opt.family).index);
		} catch (const test_failed &) {
			return 1;
		}
		return 0;
	}

	registry r;
	add_tests(r, opt);
	std::vector<const test_case *> chosen;
	for (const test_case &t : r.cases)
		if ((opt.full || !t.only_full) && (filters.empty() || matches(filters, t.name)) &&
		    !matches(without, t.name))
			chosen.push_back(&t);
	if (list) {
		for (const test_case *t : chosen)
			printf("%s\n", t->name.c_str());
		return 0;
	}

	setvbuf(stdout, nullptr, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	if (CU_initialize_registry() != CUE_SUCCESS)
		die("CUnit does not start");
	CU_pSuite suite = CU_add_suite(program_suite, nullptr, nullptr);
	for (const test_case *t : chosen) {
		if (!running.emplace(t->name, *t).second)
			die("two tests are called '" + t->name + "'");
		CU_add_test(suite, t->name.c_str(), trampoline);
	}
	CU_set_test_complete_handler(on_complete);
	CU_run_all_tests();
	CU_cleanup_registry();
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed ? 1 : 0;
}
