// SPDX-License-Identifier: GPL-2.0
/*
 * Every CRC engine against the bit-at-a-time definition, at every length and
 * alignment, from buffers of exactly the size it may read.
 */
#include "crc32.h"
#include "engine.h"
#include "model.h"
#include "unit.h"

#include <cstring>
#include <memory>
#include <random>

namespace {

constexpr size_t max_len = 5000;

/* The scratch is full of rubbish at every call: it must not matter. */
u32 sparse_bytes(u32 crc, const void *buf, size_t len)
{
	static const std::unique_ptr<crc32_scratch> s(new crc32_scratch);

	if (len % 61 == 0)
		memset(s.get(), 0xa5, sizeof(*s));
	return crc32_sparse_bytes(crc, buf, len, s.get());
}

struct engine {
	const char *name;
	icrc_fn fn;
};

const engine engines[] = {
	{"small", crc32_small}, {"sparse", crc32_sparse},
	{"sparse-bytes", sparse_bytes},
};

std::vector<uint8_t> random_bytes(size_t n)
{
	static std::mt19937_64 rnd(300155);
	std::vector<uint8_t> out(n);

	for (uint8_t &byte : out)
		byte = static_cast<uint8_t>(rnd());
	return out;
}

/* Registers after every prefix of @data, by the definition. */
std::vector<u32> prefixes(u32 crc, std::span<const uint8_t> data)
{
	std::vector<u32> all = {crc};

	for (const uint8_t &byte : data)
		all.push_back(crc = model::crc_bits(crc, {&byte, 1}));
	return all;
}

} /* namespace */

TEST("CRC engines: the well-known check value")
{
	for (const engine &e : engines)
		EQ(~e.fn(0xffffffffu, "123456789", 9), 0xcbf43926u, "%s", e.name);
}

TEST("x^300 + x^155 + x^117 + x^89 + 1 is a multiple of the polynomial, and at x^8")
{
	for (unsigned scale : {1u, 8u}) {
		std::vector<uint8_t> message(300 * scale / 8 + 1);

		/* the register starts at zero, so leading zeros do not count */
		for (unsigned e : {300u, 155u, 117u, 89u, 0u}) {
			const size_t n = message.size() * 8 - 1 - e * scale;

			message[n / 8] ^= static_cast<uint8_t>(1 << n % 8);
		}
		/* the polynomial divides it: nothing remains, shifted by 32 or not */
		EQ(model::crc_bits(0, message), 0u, "at x^%u", scale);
	}
}

/* Lengths up to max_len at one alignment; the ends of heap blocks are guarded by ASan. */
static void every_length(const engine &e, size_t step)
{
	const std::vector<uint8_t> data = random_bytes(max_len);

	for (u32 seed : {0xffffffffu, 0u, 0xdebb20e3u}) {
		const std::vector<u32> want = prefixes(seed, data);

		for (size_t align = 0; align < 16; align++) {
			const std::unique_ptr<uint8_t[]> block(new uint8_t[max_len + 16]);
			uint8_t *p = block.get() + align;

			memcpy(p, data.data(), max_len);
			for (size_t len = 0; len < max_len; len += seed == 0xffffffffu ? 1 : step)
				EQ(e.fn(seed, p, len), want[len], "%s length %zu alignment %zu seed %#x",
				   e.name, len, align, seed);
		}
	}
}

TEST("crc32_small at every length 0..4999 and alignment 0..15") { every_length(engines[0], 17); }
TEST("crc32_sparse at every length 0..4999 and alignment 0..15") { every_length(engines[1], 17); }
TEST("crc32_sparse_bytes at every length 0..4999 and alignment 0..15") { every_length(engines[2], 17); }

TEST("CRC engines read nothing outside the buffer")
{
	const std::vector<uint8_t> data = random_bytes(max_len);
	const std::vector<u32> want = prefixes(0xffffffffu, data);

	for (const engine &e : engines)
		for (size_t len = 0; len < max_len; len += len < 700 ? 1 : 13) {
			const std::unique_ptr<uint8_t[]> exact(new uint8_t[len]);

			memcpy(exact.get(), data.data(), len);
			EQ(e.fn(0xffffffffu, exact.get(), len), want[len], "%s length %zu", e.name, len);
		}
}

TEST("CRC engines on long buffers and every single bit of a packet")
{
	for (size_t len : {8192u, 9000u, 65535u, 200001u}) {
		const std::vector<uint8_t> data = random_bytes(len);
		const u32 want = model::crc_bits(0x12345678u, data);

		for (const engine &e : engines)
			EQ(e.fn(0x12345678u, data.data(), len), want, "%s length %zu", e.name, len);
	}

	/* one bit set: no error can hide behind another */
	for (size_t len : {1036u, 4108u}) {
		std::vector<uint8_t> data(len);

		for (size_t bit = 0; bit < len * 8; bit++) {
			data[bit / 8] = static_cast<uint8_t>(1 << bit % 8);
			const u32 want = test_crc(0, data.data(), len);

			for (const engine &e : engines)
				EQ(e.fn(0, data.data(), len), want, "%s bit %zu", e.name, bit);
			data[bit / 8] = 0;
			/* the slow reference makes all bits too dear */
			bit += bit % 64 == 63 ? 0 : 12;
		}
	}
}

TEST("CRC engines continue one another at any cut")
{
	const std::vector<uint8_t> data = random_bytes(4140);
	const u32 want = model::crc_bits(0xffffffffu, data);

	for (const engine &a : engines)
		for (const engine &b : engines)
			for (size_t cut = 0; cut <= data.size(); cut += 23)
				EQ(b.fn(a.fn(0xffffffffu, data.data(), cut), data.data() + cut,
					data.size() - cut), want, "%s, %s cut %zu", a.name, b.name, cut);
}
