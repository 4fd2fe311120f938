// SPDX-License-Identifier: GPL-2.0
//
// RoCEv2 packets made by hand and sent as Ethernet frames from the namespace
// of one device to another, past the device: right to the last bit where they
// shall reach the state machines, and wrong wherever a test wants them to be.
// For one source file of a program: the ICRC is compiled in here.
#pragma once

#include <array>
#include <arpa/inet.h>
#include <cstdint>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <optional>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <vector>

#include "../../kernel/proto/aeth.h"
#include "../../kernel/proto/bth.h"
#include "../../kernel/proto/icrc.c"
#include "../../kernel/proto/psn.h"
#include "lib/device.hpp"

namespace vt {

using bytes = std::vector<uint8_t>;

// CRC-32 register of an icrc_fn, one byte at a time.
inline uint32_t frame_crc(uint32_t crc, const void *buf, size_t len)
{
	static const auto table = [] {
		std::array<uint32_t, 256> t{};
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t c = i;
			for (int k = 0; k < 8; k++)
				c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
			t[i] = c;
		}
		return t;
	}();
	for (const auto *p = static_cast<const uint8_t *>(buf); len--; p++)
		crc = table[(crc ^ *p) & 0xff] ^ crc >> 8;
	return crc;
}

// Big-endian bytes at the end of a header.
inline void put(bytes &b, uint64_t value, int count)
{
	while (count--)
		b.push_back(static_cast<uint8_t>(value >> 8 * count));
}

// A BTH field by field, and whatever follows it up to the ICRC.
struct packet {
	uint8_t opcode = 0;
	bool se = false, migreq = true, ackreq = false;
	uint8_t pad = 0, tver = 0, fecn_becn = 0;
	uint16_t pkey = ROCE_PKEY_DEFAULT;
	uint32_t dqpn = 0, psn = 0;
	bytes rest;

	packet() = default;
	packet(uint8_t op, uint32_t qpn, uint32_t number) : opcode(op), dqpn(qpn), psn(number) {}

	packet &ack(bool on = true)
	{
		ackreq = on;
		return *this;
	}
	packet &reth(uint64_t va, uint32_t rkey, uint32_t len)
	{
		put(rest, va, 8);
		put(rest, rkey, 4);
		put(rest, len, 4);
		return *this;
	}
	packet &atomiceth(uint64_t va, uint32_t rkey, uint64_t swap_add, uint64_t compare)
	{
		put(rest, va, 8);
		put(rest, rkey, 4);
		put(rest, swap_add, 8);
		put(rest, compare, 8);
		return *this;
	}
	packet &aeth(uint8_t syndrome, uint32_t msn)
	{
		put(rest, syndrome, 1);
		put(rest, msn, 3);
		return *this;
	}
	packet &deth(uint32_t qkey, uint32_t sqpn)
	{
		put(rest, qkey, 4);
		put(rest, sqpn, 4);
		return *this;
	}
	packet &word(uint64_t value, int count)
	{
		put(rest, value, count);
		return *this;
	}
	// Payload of len bytes, padded as it has to be.
	packet &payload(size_t len, uint8_t fill = 0x5a)
	{
		pad = static_cast<uint8_t>(-len & 3);
		rest.insert(rest.end(), len, fill);
		rest.insert(rest.end(), pad, 0);
		return *this;
	}

	bytes build() const
	{
		bytes b;
		put(b, opcode, 1);
		put(b, se << 7 | migreq << 6 | (pad & 3) << 4 | (tver & 15), 1);
		put(b, pkey, 2);
		put(b, fecn_becn, 1);
		put(b, dqpn, 3);
		put(b, ackreq << 7, 1);
		put(b, psn, 3);
		b.insert(b.end(), rest.begin(), rest.end());
		return b;
	}
};

// What is below the BTH.
struct below {
	uint16_t sport = 0xc123;
	uint8_t tos = 0, ttl = 64;
	bool bad_icrc = false;
	bool other_source = false; // not the peer's address
	bytes options;		   // IPv4: multiple of four
	int udp_len = 0;	   // added to the true length
	int ip_len = 0;
	bytes trailer;		   // of the frame, behind the IP packet
	bool udp_checksum = false; // a wrong one
	std::optional<ibv_gid> to; // another destination
	bool multicast_mac = false;
};

// The road from one device to another.
class road {
public:
	road(device &from, device &to, int family)
		: v4_(family == 4), saddr_(from.find_gid(family)), daddr_(to.find_gid(family))
	{
		{
			const netns_scope scope(to.netns());
			read_mac(daddr_.ifindex, dmac_);
		}
		const netns_scope scope(from.netns());
		read_mac(saddr_.ifindex, smac_);
		out_.reset(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
		REQUIRE(out_, "AF_PACKET: %s", strerror(errno));
		// what leaves is seen by those that see all
		in_.reset(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL)));
		REQUIRE(in_, "AF_PACKET: %s", strerror(errno));
		sockaddr_ll at{};
		at.sll_family = AF_PACKET;
		at.sll_protocol = htons(ETH_P_ALL);
		at.sll_ifindex = static_cast<int>(saddr_.ifindex);
		REQUIRE(!bind(in_.get(), reinterpret_cast<sockaddr *>(&at), sizeof(at)), "bind: %s", strerror(errno));
	}

	bool v4() const { return v4_; }
	size_t l3_len() const { return v4_ ? 20 : 40; }
	int sent() const { return sent_; }

	// An IP packet around BTH .. end of payload.
	bytes ip(const bytes &transport, const below &b = {}) const
	{
		const ibv_gid &to = b.to ? *b.to : daddr_.raw;
		ibv_gid from = saddr_.raw;
		if (b.other_source)
			from.raw[15] ^= 0x55;
		bytes p;
		const size_t udp = 8 + transport.size() + ICRC_BYTES;
		if (v4_) {
			put(p, 0x45, 1);
			put(p, b.tos, 1);
			put(p, 20 + b.options.size() + udp + b.ip_len, 2);
			put(p, 0x4000, 4); // ID 0, DF
			put(p, b.ttl, 1);
			put(p, IPPROTO_UDP, 1);
			put(p, 0, 2);
			p.insert(p.end(), from.raw + 12, from.raw + 16);
			p.insert(p.end(), to.raw + 12, to.raw + 16);
		} else {
			put(p, 0x60000000u | b.tos << 20, 4);
			put(p, udp + b.ip_len, 2);
			put(p, IPPROTO_UDP, 1);
			put(p, b.ttl, 1);
			p.insert(p.end(), from.raw, from.raw + 16);
			p.insert(p.end(), to.raw, to.raw + 16);
		}
		put(p, b.sport, 2);
		put(p, ROCE_UDP_PORT, 2);
		put(p, udp + b.udp_len, 2);
		put(p, b.udp_checksum ? 0x1234 : 0, 2);
		p.insert(p.end(), transport.begin(), transport.end());
		// a truncated BTH has no ICRC that anybody would look at
		uint32_t crc = 0;
		if (transport.size() >= BTH_BYTES) {
			const size_t covered = l3_len() + 8 + BTH_BYTES;
			crc = icrc_begin(frame_crc, v4_ ? ROCE_L3_IPV4 : ROCE_L3_IPV6, p.data());
			crc = frame_crc(crc, p.data() + covered, p.size() - covered);
		}
		if (b.bad_icrc)
			crc ^= 1u << b.sport % 32;
		p.resize(p.size() + ICRC_BYTES);
		icrc_store(p.data() + p.size() - ICRC_BYTES, crc);
		if (!b.options.empty()) {
			p.insert(p.begin() + 20, b.options.begin(), b.options.end());
			p[0] = static_cast<uint8_t>(0x45 + b.options.size() / 4);
		}
		seal4(p);
		return p;
	}

	// The checksum of an IPv4 header.
	static void seal4(bytes &p)
	{
		if (p[0] >> 4 != 4)
			return;
		const size_t len = (p[0] & 15) * 4;
		uint32_t sum = 0;
		p[10] = p[11] = 0;
		for (size_t i = 0; i < len; i += 2)
			sum += p[i] << 8 | p[i + 1];
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		p[10] = static_cast<uint8_t>(~sum >> 8);
		p[11] = static_cast<uint8_t>(~sum);
	}

	bool send_ip(const bytes &ip, const below &b = {})
	{
		bytes f(dmac_.begin(), dmac_.end());
		if (b.multicast_mac)
			f[0] |= 1;
		f.insert(f.end(), smac_.begin(), smac_.end());
		put(f, v4_ ? ETH_P_IP : ETH_P_IPV6, 2);
		f.insert(f.end(), ip.begin(), ip.end());
		f.insert(f.end(), b.trailer.begin(), b.trailer.end());
		return send_frame(f);
	}
	bool send_frame(const bytes &f)
	{
		sockaddr_ll at{};
		at.sll_family = AF_PACKET;
		at.sll_ifindex = static_cast<int>(saddr_.ifindex);
		at.sll_halen = 6;
		memcpy(at.sll_addr, f.data(), 6);
		sent_++;
		return sendto(out_.get(), f.data(), f.size(), 0, reinterpret_cast<sockaddr *>(&at), sizeof(at)) ==
		       static_cast<ssize_t>(f.size());
	}
	bool send(const packet &p, const below &b = {}) { return send_ip(ip(p.build(), b), b); }
	bool send_bytes(const bytes &transport, const below &b = {}) { return send_ip(ip(transport, b), b); }

	// A packet that came back this road, or that left it when own.
	struct heard {
		uint8_t opcode;
		uint32_t dqpn, psn;
		uint8_t syndrome;
		bytes frame;
	};
	std::optional<heard> hear(bool own = false)
	{
		for (;;) {
			bytes f(70000);
			sockaddr_ll from{};
			socklen_t len = sizeof(from);
			const ssize_t n = recvfrom(in_.get(), f.data(), f.size(), 0, reinterpret_cast<sockaddr *>(&from), &len);
			if (n < 0)
				return {};
			f.resize(static_cast<size_t>(n));
			const size_t bth = 14 + l3_len() + 8;
			if ((from.sll_pkttype == PACKET_OUTGOING) != own || f.size() < bth + BTH_BYTES ||
			    wire_get16(&f[12]) != (v4_ ? ETH_P_IP : ETH_P_IPV6) || wire_get16(&f[bth - 6]) != ROCE_UDP_PORT)
				continue;
			// several packets in one: not to be taken for one
			if (wire_get16(&f[bth - 4]) != f.size() - bth + 8)
				continue;
			heard h{ f[bth], wire_get24(&f[bth + 5]), wire_get24(&f[bth + 9]), 0, {} };
			h.syndrome = f.size() > bth + BTH_BYTES ? f[bth + BTH_BYTES] : 0;
			h.frame = std::move(f);
			return h;
		}
	}
	void forget_heard()
	{
		while (hear() || hear(true))
			;
	}

private:
	using mac = std::array<uint8_t, 6>;

	static void read_mac(uint32_t ifindex, mac &out)
	{
		ifreq r{};
		const fd_handle s(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
		REQUIRE(s && if_indextoname(ifindex, r.ifr_name), "interface %u: %s", ifindex, strerror(errno));
		REQUIRE(!ioctl(s.get(), SIOCGIFHWADDR, &r), "SIOCGIFHWADDR: %s", strerror(errno));
		memcpy(out.data(), r.ifr_hwaddr.sa_data, 6);
	}

	bool v4_;
	device::gid saddr_, daddr_;
	mac smac_{}, dmac_{};
	fd_handle out_, in_;
	int sent_ = 0;
};

} // namespace vt
