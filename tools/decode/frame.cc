// SPDX-License-Identifier: GPL-2.0
/*
 * Frames taken apart. Nothing is read beyond the captured bytes: every header
 * is looked at only behind a check of the length that it needs.
 */
#include "frame.h"
#include "crc32.h"
#include "text.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <bit>
#include <pcap/dlt.h>

namespace decode {

namespace {

constexpr unsigned ether_ipv4 = 0x0800, ether_ipv6 = 0x86dd, ether_roce = 0x8915;
constexpr unsigned ip_udp = 17, ip_bth = 0x1b;
constexpr size_t udp_bytes = 8;
constexpr size_t pmtu_min = 256, pmtu_max = 4096;
/* Ethernet fills up to this, and some captures hold the check sequence too. */
constexpr size_t ether_min = 64;

/* A network layer packet in its frame. */
struct net {
	unsigned type;	/* EtherType */
	view data;	/* captured bytes from its header on */
	size_t wire;	/* bytes from its header to the end of the frame */
	std::vector<unsigned> vlans;
};

/* What lies between the network header and the BTH. */
struct segment {
	size_t head;	/* bytes in front of the BTH */
	size_t len;	/* BTH .. ICRC, as the innermost length field says */
	bool usable;	/* the length fields agree with each other and the frame */
};

void fault(roce_frame &f, const std::string &what)
{
	if (!f.faults.empty())
		f.faults += ", ";
	f.faults += what;
}

unsigned version_type(view p)
{
	return p.empty() ? 0 : p[0] >> 4 == 4 ? ether_ipv4 : p[0] >> 4 == 6 ? ether_ipv6 : 0;
}

/* Where the link layer header has its type (or none), and how long it is. */
struct link_layout {
	int link;
	int type_at;
	size_t len;
};

constexpr link_layout links[] = {
	{DLT_EN10MB, 12, 14},
	{DLT_LINUX_SLL, 14, 16},
	{DLT_LINUX_SLL2, 0, 20},
	{DLT_RAW, -1, 0},
	{DLT_IPV4, -1, 0},
	{DLT_IPV6, -1, 0},
	{DLT_NULL, -1, 4},
	{DLT_LOOP, -1, 4},
};

const link_layout *find_link(int link)
{
	const auto at = std::ranges::find(links, link, &link_layout::link);

	return at == std::end(links) ? nullptr : at;
}

std::optional<net> strip_link(int link, view data, size_t wire)
{
	const link_layout *l = find_link(link);

	if (!l || data.size() < l->len)
		return {};
	wire = std::max(wire, data.size());

	net n = {0, data.subspan(l->len), wire - l->len, {}};

	if (l->type_at < 0) {
		n.type = version_type(n.data);
		return n;
	}
	n.type = wire_get16(&data[l->type_at]);
	while (n.type == 0x8100 || n.type == 0x88a8 || n.type == 0x9100) {
		if (n.data.size() < 4)
			return {};
		n.vlans.push_back(wire_get16(&n.data[0]) & 0xfff);
		n.type = wire_get16(&n.data[2]);
		n.data = n.data.subspan(4);
		n.wire -= 4;
	}
	return n;
}

/* RFC 1071 sum of @p added to @sum, not yet folded. */
uint32_t sum16(uint32_t sum, view p)
{
	for (size_t i = 0; i < p.size(); i += 2)
		sum += static_cast<uint32_t>(p[i] << 8 | (i + 1 < p.size() ? p[i + 1] : 0));
	return sum;
}

uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return static_cast<uint16_t>(sum);
}

std::string address(int family, const uint8_t *p)
{
	std::array<char, INET6_ADDRSTRLEN> text = {};

	inet_ntop(family, p, text.data(), text.size());
	return text.data();
}

void name_ends(roce_frame &f, int family, const uint8_t *src, const uint8_t *dst)
{
	f.from = f.src = address(family, src);
	f.to = address(family, dst);
}

/* Zero is "no checksum"; else it has to be right, or a host drops the packet. */
void check_udp_sum(roce_frame &f, view addresses, view udp)
{
	if (!wire_get16(&udp[6]))
		return;

	const uint32_t pseudo = static_cast<uint32_t>(ip_udp + udp.size());

	if (fold(sum16(sum16(pseudo, addresses), udp)) != 0xffff)
		fault(f, "UDP checksum is wrong");
}

/*
 * @ip_len: length of the packet as its IP header says, header included.
 * The caller has seen the UDP port.
 */
segment open_udp(roce_frame &f, const net &n, size_t ip_head, size_t ip_len, view addresses)
{
	segment s = {ip_head + udp_bytes, 0, true};

	if (ip_len > n.wire) {
		fault(f, format("IP length is %zu, frame has %zu", ip_len, n.wire));
		s.usable = false;
	}
	if (n.wire < s.head || ip_len < s.head) {
		fault(f, "no room for UDP");
		s.usable = false;
		return s;
	}
	if (n.data.size() < s.head) {
		f.cut = true;
		s.usable = false;
		return s;
	}

	const size_t udp_len = wire_get16(&n.data[ip_head + 4]);

	if (udp_len < udp_bytes) {
		fault(f, format("UDP length is %zu", udp_len));
		s.usable = false;
		return s;
	}
	s.len = udp_len - udp_bytes;
	if (udp_len != ip_len - ip_head) {
		fault(f, format("UDP length is %zu, IP has %zu", udp_len, ip_len - ip_head));
		if (udp_len > ip_len - ip_head)
			s.usable = false;
	}
	if (s.usable && n.data.size() >= ip_head + udp_len)
		check_udp_sum(f, addresses, n.data.subspan(ip_head, udp_len));
	return s;
}

std::optional<segment> open_ipv4(roce_frame &f, const net &n)
{
	const view p = n.data;

	if (p.size() < 20 || p[0] >> 4 != 4 || p[9] != ip_udp)
		return {};

	const size_t head = (p[0] & 0xf) * size_t{4};

	if (head < 20 || p.size() < head + 4 || wire_get16(&p[6]) & 0x1fff ||
	    wire_get16(&p[head + 2]) != ROCE_UDP_PORT)
		return {};

	f.l3 = ROCE_L3_IPV4;
	name_ends(f, AF_INET, &p[12], &p[16]);
	f.src += format(":%u", wire_get16(&p[head]));
	f.ce = (p[1] & 3) == 3;
	if (fold(sum16(0, p.first(head))) != 0xffff)
		fault(f, "IP checksum is wrong");

	const bool fragment = wire_get16(&p[6]) & 0x2000;

	if (fragment)
		fault(f, "IP fragment");
	if (head != 20)
		fault(f, "IP options");

	segment s = open_udp(f, n, head, wire_get16(&p[2]), p.subspan(12, 8));

	if (fragment || head != 20)
		s.usable = false;
	return s;
}

std::optional<segment> open_ipv6(roce_frame &f, const net &n)
{
	const view p = n.data;

	if (p.size() < 44 || p[0] >> 4 != 6 || p[6] != ip_udp ||
	    wire_get16(&p[42]) != ROCE_UDP_PORT)
		return {};

	f.l3 = ROCE_L3_IPV6;
	name_ends(f, AF_INET6, &p[8], &p[24]);
	f.src = format("[%s]:%u", f.from.c_str(), wire_get16(&p[40]));
	f.ce = (p[1] >> 4 & 3) == 3;
	return open_udp(f, n, 40, size_t{40} + wire_get16(&p[4]), p.subspan(8, 32));
}

/* The EtherType says RoCE, whatever the rest is like. */
segment open_grh(roce_frame &f, const net &n)
{
	const view p = n.data;
	segment s = {40, 0, false};

	f.l3 = ROCE_L3_GRH;
	if (p.size() < 40) {
		f.from = f.src = f.to = "?";
		f.cut = p.size() < n.wire;
		if (!f.cut)
			fault(f, "no room for a GRH");
		return s;
	}
	name_ends(f, AF_INET6, &p[8], &p[24]);
	s.len = wire_get16(&p[4]);
	s.usable = true;
	if (p[0] >> 4 != 6) {
		fault(f, format("GRH version is %d", p[0] >> 4));
		s.usable = false;
	}
	if (p[6] != ip_bth) {
		fault(f, format("GRH next header is 0x%02x", p[6]));
		s.usable = false;
	}
	if (s.len > n.wire - 40) {
		fault(f, format("GRH length is %zu, frame has %zu", s.len, n.wire - 40));
		s.usable = false;
	}
	return s;
}

/* Does the payload fit the packet's place in its message? */
void check_payload(roce_frame &f)
{
	const roce_hdr &h = f.h;
	const bool any_place = h.flags & BTH_F_END || !(h.flags & BTH_F_PAYLOAD);
	const bool is_pmtu = std::has_single_bit(f.payload) &&
			     f.payload >= pmtu_min && f.payload <= pmtu_max;

	if (bth_len_ok(&h, any_place || !is_pmtu ? pmtu_max : h.payload_len))
		return;
	if (!(h.flags & BTH_F_PAYLOAD))
		fault(f, "payload or pad where none belongs");
	else if (f.payload > pmtu_max)
		fault(f, "more than one packet holds (a run that is not split yet?)");
	else if (!any_place)
		fault(f, "payload is no path MTU though more follows");
	else
		fault(f, "nothing in the last packet");
}

void open_transport(roce_frame &f, const net &n, const segment &s)
{
	const view t = n.data.subspan(s.head, std::min(n.data.size() - s.head, s.len));
	std::array<uint8_t, ROCE_HDR_MAX> head = {};

	f.cut = t.size() < s.len;
	if (t.size() < BTH_BYTES && f.cut)
		return;
	std::copy_n(t.begin(), std::min(t.size(), head.size()), head.begin());

	bth_err err = bth_parse(head.data(), s.len, &f.h);

	if (err == BTH_ERR_ALIGN) {
		fault(f, format("transport length %zu is no multiple of 4", s.len));
		/* the headers are worth a look even so */
		err = bth_parse(head.data(), s.len & ~size_t{3}, &f.h);
	}
	switch (err) {
	case BTH_OK:
		f.have_bth = true;
		f.have_ext = t.size() >= f.h.hdr_len;
		f.payload = f.h.payload_len;
		check_payload(f);
		break;
	case BTH_ERR_OPCODE:
		f.have_bth = true;
		fault(f, "unknown opcode");
		break;
	case BTH_ERR_TVER:
		fault(f, format("transport version is %d", head[1] & 0xf));
		break;
	default:
		fault(f, format("%zu bytes are too short for the headers", s.len));
		break;
	}
	if (f.cut || s.len < BTH_BYTES + ICRC_BYTES)
		return;

	const size_t l3 = roce_l3_len(f.l3);
	u32 reg = icrc_begin(crc32_sparse, f.l3, &n.data[s.head - l3]);

	reg = crc32_sparse(reg, t.data() + BTH_BYTES, s.len - BTH_BYTES - ICRC_BYTES);
	f.icrc = icrc_match(&t[s.len - ICRC_BYTES], reg) ? crc::good : crc::bad;
}

} /* namespace */

bool link_known(int link)
{
	return find_link(link);
}

std::optional<roce_frame> dissect(int link, view data, size_t wire)
{
	const std::optional<net> n = strip_link(link, data, wire);
	std::optional<segment> s;
	roce_frame f;

	if (!n)
		return {};
	if (n->type == ether_ipv4)
		s = open_ipv4(f, *n);
	else if (n->type == ether_ipv6)
		s = open_ipv6(f, *n);
	else if (n->type == ether_roce)
		s = open_grh(f, *n);
	if (!s)
		return {};

	f.vlans = n->vlans;
	if (s->usable) {
		open_transport(f, *n, *s);
		/* s is usable: its end lies in the frame */
		if (wire > ether_min)
			f.trailer = n->wire - s->head - s->len;
	}
	return f;
}

} /* namespace decode */
