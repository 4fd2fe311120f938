/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whole RoCE frames around kernel/proto: built from fields, and walked the
 * way a receiver does (EtherType, IPv4 / IPv6 / GRH, UDP, BTH, ICRC).
 *
 * Ethernet and IP belong to the host's network stack, so this is test code;
 * everything from the BTH on is the code under test.
 */
#ifndef SRN_TESTS_FRAME_H
#define SRN_TESTS_FRAME_H

#include "bth.h"
#include "icrc.h"
#include "seg.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace frame {

using bytes = std::vector<uint8_t>;

struct net {
	enum roce_l3 l3 = ROCE_L3_IPV4;
	bytes dmac, smac;	/* empty: no Ethernet header */
	bytes src, dst;		/* 4 or 16 bytes */
	uint8_t tos = 0;	/* or traffic class */
	uint32_t flow_label = 0;
	uint8_t ttl = 64;	/* or hop limit */
	uint16_t id = 0;
	uint16_t sport = 0;
};

inline void put16(bytes &out, unsigned v)
{
	out.push_back(static_cast<uint8_t>(v >> 8));
	out.push_back(static_cast<uint8_t>(v));
}

inline void append(bytes &out, const bytes &more)
{
	out.insert(out.end(), more.begin(), more.end());
}

inline uint16_t ip_checksum(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += static_cast<uint32_t>(p[i] << 8 | p[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return static_cast<uint16_t>(~sum);
}

/* L2 .. L4 of a packet of @transport bytes (BTH .. ICRC). */
inline bytes build_net(const net &n, size_t transport)
{
	const unsigned udp = static_cast<unsigned>(8 + transport);
	bytes out;

	if (!n.dmac.empty()) {
		append(out, n.dmac);
		append(out, n.smac);
		put16(out, n.l3 == ROCE_L3_IPV4 ? 0x0800 :
			   n.l3 == ROCE_L3_IPV6 ? 0x86dd : 0x8915);
	}
	const size_t l3 = out.size();

	if (n.l3 == ROCE_L3_IPV4) {
		out.push_back(0x45);
		out.push_back(n.tos);
		put16(out, 20 + udp);
		put16(out, n.id);
		put16(out, 0x4000);	/* do not fragment */
		out.push_back(n.ttl);
		out.push_back(17);
		put16(out, 0);
	} else {
		put16(out, 0x6000u | n.tos << 4 | n.flow_label >> 16);
		put16(out, n.flow_label & 0xffff);
		put16(out, n.l3 == ROCE_L3_GRH ? static_cast<unsigned>(transport) : udp);
		out.push_back(n.l3 == ROCE_L3_GRH ? 0x1b : 17);
		out.push_back(n.ttl);
	}
	append(out, n.src);
	append(out, n.dst);
	if (n.l3 == ROCE_L3_IPV4) {
		const uint16_t sum = ip_checksum(&out[l3], 20);

		out[l3 + 10] = static_cast<uint8_t>(sum >> 8);
		out[l3 + 11] = static_cast<uint8_t>(sum);
	}
	if (n.l3 != ROCE_L3_GRH) {
		put16(out, n.sport);
		put16(out, ROCE_UDP_PORT);
		put16(out, udp);
		put16(out, 0);
	}
	return out;
}

/* A complete frame; @h.pad is set from @payload. */
inline bytes build(const net &n, roce_hdr h, const bytes &payload, icrc_fn crc)
{
	uint8_t headers[ROCE_HDR_MAX];

	h.pad = seg_pad(static_cast<u32>(payload.size()));

	const size_t hdr_len = bth_build(headers, &h);
	bytes out = build_net(n, hdr_len + payload.size() + h.pad + ICRC_BYTES);
	const size_t bth = out.size();
	const size_t l3 = bth - roce_l3_len(n.l3);

	out.insert(out.end(), headers, headers + hdr_len);
	append(out, payload);
	out.insert(out.end(), h.pad, 0);

	u32 reg = icrc_begin(crc, n.l3, &out[l3]);

	if (out.size() > bth + BTH_BYTES)
		reg = crc(reg, &out[bth + BTH_BYTES], out.size() - bth - BTH_BYTES);
	out.resize(out.size() + ICRC_BYTES);
	icrc_store(&out[out.size() - ICRC_BYTES], reg);
	return out;
}

struct packet {
	enum roce_l3 l3;
	std::span<const uint8_t> from_l3;	/* L3 header .. ICRC */
	std::span<const uint8_t> transport;	/* BTH .. ICRC */
};

/* From the L3 header on; trailing bytes beyond the length fields are ignored. */
inline std::optional<packet> walk_l3(enum roce_l3 l3, std::span<const uint8_t> p)
{
	const size_t l3_bytes = l3 == ROCE_L3_IPV4 ? 20 : 40;
	const size_t head = roce_l3_len(l3);
	size_t len;	/* behind the L3 header */

	if (p.size() < head)
		return {};
	if (l3 == ROCE_L3_IPV4) {
		const size_t total = wire_get16(&p[2]);

		if (p[0] != 0x45 || p[9] != 17 || (wire_get16(&p[6]) & 0x3fff) || total < 28)
			return {};
		len = total - 20;
	} else {
		if (p[0] >> 4 != 6 || p[6] != (l3 == ROCE_L3_GRH ? 0x1b : 17))
			return {};
		len = wire_get16(&p[4]);
	}
	if (l3 != ROCE_L3_GRH) {
		if (len < 8 || wire_get16(&p[l3_bytes + 2]) != ROCE_UDP_PORT ||
		    wire_get16(&p[l3_bytes + 4]) != len)
			return {};
		len -= 8;
	}
	if (len > p.size() - head)
		return {};
	return packet{l3, p.first(head + len), p.subspan(head, len)};
}

inline std::optional<packet> walk(std::span<const uint8_t> f)
{
	size_t at = 12;

	if (f.size() >= 16 && wire_get16(&f[at]) == 0x8100)
		at += 4;
	if (f.size() < at + 2)
		return {};
	switch (wire_get16(&f[at])) {
	case 0x0800:
		return walk_l3(ROCE_L3_IPV4, f.subspan(at + 2));
	case 0x86dd:
		return walk_l3(ROCE_L3_IPV6, f.subspan(at + 2));
	case 0x8915:
		return walk_l3(ROCE_L3_GRH, f.subspan(at + 2));
	}
	return {};
}

/* Does the ICRC at the end of a packet of at least BTH and ICRC hold? */
inline bool icrc_ok(const packet &p, icrc_fn crc)
{
	const std::span<const uint8_t> t = p.transport;
	u32 reg = icrc_begin(crc, p.l3, p.from_l3.data());

	reg = crc(reg, t.data() + BTH_BYTES, t.size() - BTH_BYTES - ICRC_BYTES);
	return icrc_match(&t[t.size() - ICRC_BYTES], reg);
}

} /* namespace frame */

#endif /* SRN_TESTS_FRAME_H */
