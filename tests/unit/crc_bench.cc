// SPDX-License-Identifier: GPL-2.0
/*
 * Speed of the CRC engines, one pass over buffers that stay in the cache.
 *
 * Not part of check: figures depend on the machine and on what else it does.
 * Each figure is the best of several rounds.
 */
#include "crc32.h"
#include "engine.h"

#include <chrono>
#include <cstdio>
#include <vector>

namespace {

crc32_scratch scratch;
u32 table[256];

u32 sparse_bytes(u32 crc, const void *buf, size_t len)
{
	return crc32_sparse_bytes(crc, buf, len, &scratch);
}

/* What most code in the field does: the figure to beat. */
u32 byte_table(u32 crc, const void *buf, size_t len)
{
	for (const u8 *p = static_cast<const u8 *>(buf), *end = p + len; p < end; p++)
		crc = crc >> 8 ^ table[(crc ^ *p) & 0xff];
	return crc;
}

struct engine {
	const char *name;
	icrc_fn fn;
};

const engine engines[] = {
	{"byte table", byte_table}, {"small", crc32_small},
	{"sparse", crc32_sparse}, {"sparse-bytes", sparse_bytes},
};

volatile u32 sink;

/* Nanoseconds of one call. */
double best(icrc_fn fn, const u8 *buf, size_t len)
{
	using clock = std::chrono::steady_clock;
	const unsigned calls = static_cast<unsigned>(2000000 / (len + 64) + 1);
	double least = 1e9;

	for (unsigned round = 0; round < 15; round++) {
		const auto start = clock::now();
		u32 crc = ~0u;

		for (unsigned i = 0; i < calls; i++)
			crc = fn(crc, buf, len);
		sink = crc;

		const std::chrono::duration<double, std::nano> took = clock::now() - start;

		least = std::min(least, took.count() / calls);
	}
	return least;
}

} /* namespace */

int main()
{
	std::vector<u8> buf(1 << 16);
	u32 rnd = 1;

	for (u8 &byte : buf)
		byte = static_cast<u8>((rnd = rnd * 1664525u + 1013904223u) >> 24);
	for (u32 i = 0; i < 256; i++) {
		const u8 byte = static_cast<u8>(i);

		table[i] = test_crc(0, &byte, 1);
	}

	printf("MB/s (ns per call)\n%8s", "bytes");
	for (const engine &e : engines)
		printf("%18s", e.name);
	printf("\n");
	/* offset 2: where a payload lies behind Ethernet, IPv4, UDP and BTH */
	for (size_t len : {16, 40, 64, 96, 128, 256, 512, 1036, 1500, 2060, 3000, 4108, 9000, 32768}) {
		printf("%8zu", len);
		for (const engine &e : engines) {
			const double ns = best(e.fn, &buf[2], len);

			printf("%9.0f (%6.0f)", static_cast<double>(len) * 1000 / ns, ns);
		}
		printf("\n");
	}
	return 0;
}
