// SPDX-License-Identifier: GPL-2.0
//
// Polling completion queues with a limit.

#include "lib/wait.hpp"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

namespace vt {

std::optional<ibv_wc> next_wc(ibv_cq *cq, int ms)
{
	const deadline end(ms);
	for (unsigned int idle = 0;; idle++) {
		ibv_wc wc{};
		const int n = ibv_poll_cq(cq, 1, &wc);
		REQUIRE(n >= 0, "ibv_poll_cq: %d", n);
		if (n)
			return wc;
		// other processes of a guest with two CPUs have work to do
		if (idle > 2000)
			usleep(100);
		else if (idle > 50)
			sched_yield();
		if ((idle & 15) == 15 && end.passed()) {
			// this process may just have been off the CPU for long
			if (ibv_poll_cq(cq, 1, &wc) > 0)
				return wc;
			return std::nullopt;
		}
	}
}

std::string describe(const ibv_wc &wc)
{
	return text("wr_id %#llx status %s (%d, vendor %#x) opcode %d len %u qp %#x flags %#x",
		    static_cast<unsigned long long>(wc.wr_id), ibv_wc_status_str(wc.status), wc.status,
		    wc.vendor_err, wc.opcode, wc.byte_len, wc.qp_num, wc.wc_flags);
}

ibv_wc expect_wc(ibv_cq *cq, int ms, uint64_t wr_id, ibv_wc_status status, int opcode,
		 const std::string &what)
{
	const std::optional<ibv_wc> wc = next_wc(cq, ms);
	REQUIRE(wc, "%s: no completion within %d ms, expected wr_id %#llx %s", what.c_str(), ms,
		static_cast<unsigned long long>(wr_id), ibv_wc_status_str(status));
	REQUIRE(wc->status == status && wc->wr_id == wr_id, "%s: %s; expected wr_id %#llx %s",
		what.c_str(), describe(*wc).c_str(), static_cast<unsigned long long>(wr_id),
		ibv_wc_status_str(status));
	if (status == IBV_WC_SUCCESS && opcode >= 0)
		CHECK(wc->opcode == static_cast<ibv_wc_opcode>(opcode), "%s: %s; expected opcode %d",
		      what.c_str(), describe(*wc).c_str(), opcode);
	return *wc;
}

void expect_no_wc(ibv_cq *cq, int ms, const std::string &what)
{
	const std::optional<ibv_wc> wc = next_wc(cq, ms);
	CHECK(!wc, "%s: unexpected %s", what.c_str(), wc ? describe(*wc).c_str() : "");
}

int drain_cq(ibv_cq *cq)
{
	ibv_wc wc[16];
	int total = 0, n;
	while (total < 1 << 22 && (n = ibv_poll_cq(cq, 16, wc)) > 0)
		total += n;
	return total;
}

ibv_cq *next_cq_event(ibv_comp_channel *channel, int ms)
{
	pollfd p{ channel->fd, POLLIN, 0 };
	ibv_cq *cq;
	void *context;
	if (poll(&p, 1, ms) <= 0 || ibv_get_cq_event(channel, &cq, &context))
		return nullptr;
	ibv_ack_cq_events(cq, 1);
	return cq;
}

std::string error_text(int rc)
{
	return rc < 0 ? text("%d (negative)", rc) : text("%d (%s)", rc, strerror(rc));
}

} // namespace vt
