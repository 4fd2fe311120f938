// SPDX-License-Identifier: GPL-2.0
//
// Bounded waiting for completions. Nothing in the tests waits without a limit.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/device.hpp"

namespace vt {

using steady = std::chrono::steady_clock;

// A moment in the future.
class deadline {
public:
	explicit deadline(int ms) : end_(steady::now() + std::chrono::milliseconds(ms)) {}
	bool passed() const { return steady::now() >= end_; }
	int left() const
	{
		const auto ms =
			std::chrono::duration_cast<std::chrono::milliseconds>(end_ - steady::now()).count();
		return ms > 0 ? static_cast<int>(ms) : 0;
	}

private:
	steady::time_point end_;
};

class stopwatch {
public:
	double ms() const
	{
		return std::chrono::duration<double, std::milli>(steady::now() - start_).count();
	}

private:
	steady::time_point start_ = steady::now();
};

// The next completion, if one comes within ms.
std::optional<ibv_wc> next_wc(ibv_cq *cq, int ms);

// The next completion must be this one; it ends the test when none comes.
// On success the opcode is compared as well (opcode < 0: any).
ibv_wc expect_wc(ibv_cq *cq, int ms, uint64_t wr_id, ibv_wc_status status, int opcode = -1,
		 const std::string &what = {});

// No completion may come within ms.
void expect_no_wc(ibv_cq *cq, int ms, const std::string &what = {});

// Throws away what is in the CQ; returns how many there were.
int drain_cq(ibv_cq *cq);

// One completion event of the channel, acknowledged; nullptr when none comes.
ibv_cq *next_cq_event(ibv_comp_channel *channel, int ms);

std::string describe(const ibv_wc &wc);

// What ibv_post_* and most verbs return is a positive errno.
std::string error_text(int rc);

} // namespace vt
