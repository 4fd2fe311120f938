// SPDX-License-Identifier: GPL-2.0
//
// Finding and opening devices, choosing GIDs, waiting for asynchronous events.

#include "lib/device.hpp"

#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>

namespace vt {

endpoint endpoint::parse(std::string_view text)
{
	const size_t at = text.find('@');
	if (at == text.npos)
		return { std::string(text), {} };
	return { std::string(text.substr(0, at)), std::string(text.substr(at + 1)) };
}

netns_scope::netns_scope(const std::string &name)
{
	if (name.empty())
		return;
	before_.reset(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
	const fd_handle target(open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC));
	REQUIRE(before_ && target, "no network namespace '%s'", name.c_str());
	REQUIRE(!setns(target.get(), CLONE_NEWNET), "setns %s: %s", name.c_str(), strerror(errno));
}

netns_scope::~netns_scope()
{
	if (before_ && setns(before_.get(), CLONE_NEWNET))
		FAIL("return from a network namespace: %s", strerror(errno));
}

device::device(const endpoint &where) : where_(where)
{
	const netns_scope scope(where.netns);
	int count = 0;
	ibv_device **list = ibv_get_device_list(&count);
	REQUIRE(list, "ibv_get_device_list: %s", strerror(errno));
	std::string names;
	for (int i = 0; i < count; i++) {
		names += std::string(" ") + ibv_get_device_name(list[i]);
		if (where.name == ibv_get_device_name(list[i]))
			ctx_.reset(ibv_open_device(list[i]));
	}
	const int error = errno;
	ibv_free_device_list(list);
	REQUIRE(ctx_, "cannot open %s (%s); devices here:%s", where.name.c_str(), strerror(error),
		names.empty() ? " none" : names.c_str());
	REQUIRE(!ibv_query_device(ctx_.get(), &attr_), "ibv_query_device");
	fcntl(ctx_->async_fd, F_SETFL, fcntl(ctx_->async_fd, F_GETFL) | O_NONBLOCK);
}

ibv_port_attr device::port() const
{
	ibv_port_attr p{};
	REQUIRE(!ibv_query_port(ctx(), 1, &p), "ibv_query_port");
	return p;
}

std::vector<device::gid> device::gids() const
{
	const int length = port().gid_tbl_len;
	std::vector<ibv_gid_entry> table(length);
	std::vector<gid> found;
	const ssize_t n = ibv_query_gid_table(ctx(), table.data(), table.size(), 0);
	REQUIRE(n >= 0, "ibv_query_gid_table: %s", strerror(static_cast<int>(-n)));
	for (ssize_t i = 0; i < n; i++)
		if (table[i].gid_type == IBV_GID_TYPE_ROCE_V2)
			found.push_back({ static_cast<int>(table[i].gid_index), table[i].gid,
					  table[i].ndev_ifindex });
	return found;
}

device::gid device::find_gid(int family) const
{
	const gid *best = nullptr;
	const std::vector<gid> all = gids();
	for (const gid &g : all) {
		if (is_v4_mapped(g.raw) != (family == 4))
			continue;
		if (!best || (is_link_local(best->raw) && !is_link_local(g.raw)))
			best = &g;
	}
	REQUIRE(best, "%s has no RoCEv2 GID for IPv%d among %zu", name().c_str(), family, all.size());
	// the single-entry query has to agree with the table
	ibv_gid_entry one{};
	REQUIRE(!ibv_query_gid_ex(ctx(), 1, best->index, &one, 0), "ibv_query_gid_ex");
	CHECK(!memcmp(&one.gid, &best->raw, sizeof(one.gid)) && one.gid_type == IBV_GID_TYPE_ROCE_V2,
	      "GID table and GID entry %d differ", best->index);
	return *best;
}

pd_handle device::make_pd() const
{
	pd_handle pd(ibv_alloc_pd(ctx()));
	REQUIRE(pd, "ibv_alloc_pd: %s", strerror(errno));
	return pd;
}

cq_handle device::make_cq(int entries, ibv_comp_channel *channel) const
{
	cq_handle cq(ibv_create_cq(ctx(), entries, nullptr, channel, 0));
	REQUIRE(cq, "ibv_create_cq(%d): %s", entries, strerror(errno));
	CHECK(cq->cqe >= entries, "CQ of %d entries has %d", entries, cq->cqe);
	return cq;
}

channel_handle device::make_channel() const
{
	channel_handle ch(ibv_create_comp_channel(ctx()));
	REQUIRE(ch, "ibv_create_comp_channel: %s", strerror(errno));
	fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK);
	return ch;
}

bool device::next_event(ibv_async_event &event, int ms) const
{
	pollfd p{ ctx()->async_fd, POLLIN, 0 };
	if (poll(&p, 1, ms) <= 0)
		return false;
	if (ibv_get_async_event(ctx(), &event))
		return false;
	ibv_ack_async_event(&event);
	return true;
}

bool device::wait_event(ibv_event_type type, int ms, ibv_async_event *event) const
{
	using namespace std::chrono;
	const auto end = steady_clock::now() + milliseconds(ms);
	for (;;) {
		const auto left = duration_cast<milliseconds>(end - steady_clock::now()).count();
		ibv_async_event e{};
		if (!next_event(e, left > 0 ? static_cast<int>(left) : 0)) {
			if (left <= 0)
				return false;
			continue;
		}
		if (e.event_type != type)
			continue;
		if (event)
			*event = e;
		return true;
	}
}

bool is_v4_mapped(const ibv_gid &gid)
{
	static const uint8_t prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	return !memcmp(gid.raw, prefix, sizeof(prefix));
}

bool is_link_local(const ibv_gid &gid)
{
	return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

} // namespace vt
