// SPDX-License-Identifier: GPL-2.0
//
// Runs a program's tests under CUnit, each in a process of its own with a
// deadline, so that a crash or a hang is one failed test and not the end of
// the run. Prints "ok - name", "not ok - name: why" or "skip - name: why" for
// each and "N passed, N failed, N skipped" last; exits 0 only without failures.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/device.hpp"

namespace vt {

// What the command line asked for.
struct options {
	std::vector<endpoint> devices;
	std::vector<int> families = { 4, 6 }; // what matrices go through
	int family = 4;			      // what all other tests use
	bool full = false;
	double scale = 1; // of deadlines, for slow guests
	std::vector<std::string> arguments; // --set NAME=VALUE

	std::string setting(const std::string &name, const std::string &otherwise = {}) const;
};

// The world of one test. Devices are opened when first asked for.
class env {
public:
	explicit env(const options &o) : opt(o) {}

	const options &opt;
	bool full() const { return opt.full; }
	device &a() { return open(0); }
	device &b() { return open(opt.devices.size() > 1 ? 1 : 0); }
	bool two_devices() const { return opt.devices.size() > 1; }
	// A second, independent open of the first or second device.
	std::unique_ptr<device> open_again(int which);

	// Milliseconds stretched by --scale: for every wait that should never elapse.
	int patience(int ms) const { return static_cast<int>(ms * opt.scale); }

private:
	device &open(size_t which);
	std::unique_ptr<device> opened_[2];
};

struct test_case {
	std::string name;
	std::function<void(env &)> body;
	int seconds = 20;	 // deadline before --scale
	bool only_full = false; // not part of --quick
};

class registry {
public:
	void add(test_case t) { cases.push_back(std::move(t)); }
	void add(std::string name, std::function<void(env &)> body, int seconds = 20)
	{
		cases.push_back({ std::move(name), std::move(body), seconds, false });
	}
	void add_full(std::string name, std::function<void(env &)> body, int seconds = 20)
	{
		cases.push_back({ std::move(name), std::move(body), seconds, true });
	}

	std::vector<test_case> cases;
};

} // namespace vt

// Each program defines these two.
extern const char *const program_suite;
void add_tests(vt::registry &r, const vt::options &o);
