// SPDX-License-Identifier: GPL-2.0
/*
 * The ICRC against a bit-at-a-time CRC over a message that is masked from a
 * table of bit ranges, and what a change in flight does to it.
 */
#include "crc32.h"
#include "engine.h"
#include "frame.h"
#include "golden.h"
#include "icrc.h"
#include "model.h"
#include "unit.h"

#include <cstring>
#include <random>

namespace {

constexpr enum roce_l3 kinds[] = {ROCE_L3_GRH, ROCE_L3_IPV4, ROCE_L3_IPV6};

/* A packet from the L3 header to the last pad byte, of random bytes. */
golden::bytes random_packet(enum roce_l3 l3, size_t behind_bth)
{
	static std::mt19937 rnd(4791);
	golden::bytes p(roce_l3_len(l3) + BTH_BYTES + behind_bth);

	for (uint8_t &byte : p)
		byte = static_cast<uint8_t>(rnd());
	return p;
}

golden::bytes icrc(enum roce_l3 l3, const golden::bytes &p, icrc_fn crc)
{
	const size_t head = roce_l3_len(l3) + BTH_BYTES;
	/* exactly the bytes that icrc_begin() may read */
	const golden::bytes hdr(p.begin(), p.begin() + static_cast<ptrdiff_t>(head));
	golden::bytes out(4);
	u32 reg = icrc_begin(crc, l3, hdr.data());

	reg = crc(reg, p.data() + head, p.size() - head);
	icrc_store(out.data(), reg);
	CHECK(icrc_match(out.data(), reg));
	for (unsigned bit = 0; bit < 32; bit++)
		CHECK(!icrc_match(out.data(), reg ^ 1u << bit));
	return out;
}

std::vector<size_t> lengths()
{
	std::vector<size_t> all;

	for (size_t len = 0; len <= 64; len++)
		all.push_back(len);
	for (size_t mtu = 256; mtu <= 4096; mtu *= 2)
		for (size_t len = mtu - 4; len <= mtu + 4; len++)
			all.push_back(len);
	return all;
}

/* The packet of a golden frame, L3 header .. ICRC. */
frame::packet packet_of(const golden::frame &f)
{
	return (f.ethernet ? frame::walk(f.data) : frame::walk_l3(ROCE_L3_IPV4, f.data)).value();
}

} /* namespace */

TEST("the model's CRC is the well-known CRC-32")
{
	const std::string check = "123456789";
	const std::span<const uint8_t> data(reinterpret_cast<const uint8_t *>(check.data()), 9);

	EQ(~model::crc_bits(0xffffffffu, data), 0xcbf43926u);
	EQ(~test_crc(0xffffffffu, check.data(), 9), 0xcbf43926u);
	EQ(model::crc_bits(0xffffffffu, golden::bytes(8, 0xff)), 0xdebb20e3u);
}

TEST("roce_l3_len covers L3 and L4 headers")
{
	EQ(roce_l3_len(ROCE_L3_GRH), 40);
	EQ(roce_l3_len(ROCE_L3_IPV4), 20 + 8);
	EQ(roce_l3_len(ROCE_L3_IPV6), 40 + 8);
}

TEST("R011 ICRC of every length 0..64 and around every MTU, v1, v2/IPv4, v2/IPv6")
{
	for (enum roce_l3 l3 : kinds)
		for (size_t len : lengths()) {
			const golden::bytes p = random_packet(l3, len);

			for (icrc_fn crc : {test_crc, crc32_small, crc32_sparse})
				CHECK(icrc(l3, p, crc) == model::icrc_wire(l3, p),
				      "L3 kind %d, %zu bytes behind the BTH", l3, len);
		}
}

TEST("R011 ICRC of headers that are all zeros and all ones")
{
	for (enum roce_l3 l3 : kinds)
		for (uint8_t fill : {0x00, 0xff}) {
			const golden::bytes p(roce_l3_len(l3) + BTH_BYTES + 64u, fill);

			CHECK(icrc(l3, p, test_crc) == model::icrc_wire(l3, p),
			      "L3 kind %d, fill %#x", l3, fill);
		}
}

TEST("R011 the ICRC is stored least significant byte first")
{
	u8 p[4];

	icrc_store(p, ~0x4a1a09d5u);
	EQ(p[0], 0xd5);
	EQ(p[1], 0x09);
	EQ(p[2], 0x1a);
	EQ(p[3], 0x4a);
}

TEST("icrc_begin leaves the packet alone")
{
	for (enum roce_l3 l3 : kinds) {
		const golden::bytes before = random_packet(l3, 0);
		const golden::bytes after = before;

		icrc_begin(test_crc, l3, after.data());
		CHECK(before == after);
	}
}

TEST("R012 a change of any masked bit keeps the ICRC of every golden frame")
{
	for (const golden::frame *f : golden::all()) {
		const frame::packet p = packet_of(*f);
		const unsigned bits = static_cast<unsigned>(p.from_l3.size() - ICRC_BYTES) * 8;
		unsigned masked = 0;

		for (unsigned bit = 0; bit < bits; bit++) {
			golden::bytes copy(p.from_l3.begin(), p.from_l3.end());
			frame::packet q = {p.l3, copy, std::span<const uint8_t>(copy).subspan(roce_l3_len(p.l3))};

			if (!model::is_masked(p.l3, bit))
				continue;
			masked++;
			copy[bit / 8] ^= static_cast<uint8_t>(0x80 >> bit % 8);
			CHECK(frame::icrc_ok(q, test_crc), "%s bit %u", f->name, bit);
		}
		/* ToS, TTL, checksums, BTH byte 4; or class, label, hop limit ... */
		EQ(masked, p.l3 == ROCE_L3_IPV4 ? 8 + 8 + 16 + 16 + 8u :
			   p.l3 == ROCE_L3_IPV6 ? 8 + 20 + 8 + 16 + 8u : 8 + 20 + 8 + 8u,
		   "%s", f->name);
	}
}

TEST("R012 all masked fields changed at once keep the ICRC")
{
	for (enum roce_l3 l3 : kinds) {
		golden::bytes p = random_packet(l3, 64);
		const golden::bytes want = icrc(l3, p, test_crc);
		const golden::bytes other = random_packet(l3, 64);

		for (unsigned bit = 0; bit < p.size() * 8; bit++) {
			const uint8_t m = static_cast<uint8_t>(0x80 >> bit % 8);

			if (model::is_masked(l3, bit))
				p[bit / 8] = static_cast<uint8_t>((p[bit / 8] & ~m) | (other[bit / 8] & m));
		}
		CHECK(icrc(l3, p, test_crc) == want, "L3 kind %d", l3);
	}
}

TEST("R013 a flip of any other bit, ICRC included, breaks every golden frame")
{
	for (const golden::frame *f : golden::all()) {
		const frame::packet p = packet_of(*f);

		for (unsigned bit = 0; bit < p.from_l3.size() * 8; bit++) {
			golden::bytes copy(p.from_l3.begin(), p.from_l3.end());
			frame::packet q = {p.l3, copy, std::span<const uint8_t>(copy).subspan(roce_l3_len(p.l3))};

			if (model::is_masked(p.l3, bit))
				continue;
			copy[bit / 8] ^= static_cast<uint8_t>(0x80 >> bit % 8);
			CHECK(!frame::icrc_ok(q, test_crc), "%s bit %u", f->name, bit);
		}
	}
}
