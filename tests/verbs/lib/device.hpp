// SPDX-License-Identifier: GPL-2.0
//
// RDMA devices by name, in whichever network namespace they live: opening one
// enters its namespace for that moment only, so that a single process holds
// the devices of several hosts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/raii.hpp"

namespace vt {

// A device as the command line names it: NAME or NAME@NETNS.
struct endpoint {
	std::string name;
	std::string netns;

	static endpoint parse(std::string_view text);
};

// Puts the calling thread into a named network namespace while it lives.
class netns_scope {
public:
	explicit netns_scope(const std::string &name);
	~netns_scope();
	netns_scope(const netns_scope &) = delete;
	netns_scope &operator=(const netns_scope &) = delete;

private:
	fd_handle before_;
};

class device {
public:
	explicit device(const endpoint &where);

	ibv_context *ctx() const { return ctx_.get(); }
	const std::string &name() const { return where_.name; }
	const std::string &netns() const { return where_.netns; }
	const ibv_device_attr &attr() const { return attr_; }
	ibv_port_attr port() const;

	struct gid {
		int index;
		ibv_gid raw;
		uint32_t ifindex;
	};
	std::vector<gid> gids() const; // all of type RoCEv2
	// The RoCEv2 GID that belongs to an address of this family; of IPv6 a
	// global one rather than the link-local one.
	gid find_gid(int family) const;

	pd_handle make_pd() const;
	cq_handle make_cq(int entries, ibv_comp_channel *channel = nullptr) const;
	channel_handle make_channel() const;
	// The next asynchronous event, acknowledged. false: none within ms.
	bool next_event(ibv_async_event &event, int ms) const;
	// Waits for an event of this type; others are passed over.
	bool wait_event(ibv_event_type type, int ms, ibv_async_event *event = nullptr) const;

private:
	endpoint where_;
	context_handle ctx_;
	ibv_device_attr attr_{};
};

bool is_v4_mapped(const ibv_gid &gid);
bool is_link_local(const ibv_gid &gid);
constexpr uint32_t mtu_bytes(ibv_mtu mtu)
{
	return 128u << mtu;
}

} // namespace vt
