/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A CRC engine for tests whose subject is not the engine: four bits at a
 * time, C linkage because icrc_begin() calls it.
 */
#ifndef SRN_TESTS_ENGINE_H
#define SRN_TESTS_ENGINE_H

#include "icrc.h"

extern "C" inline u32 test_crc(u32 crc, const void *buf, size_t len)
{
	static const auto nibbles = [] {
		struct { u32 v[16]; } t{};

		for (u32 i = 0; i < 16; i++) {
			u32 r = i;

			for (int bit = 0; bit < 4; bit++)
				r = r >> 1 ^ (r & 1 ? 0xedb88320u : 0);
			t.v[i] = r;
		}
		return t;
	}();

	for (const u8 *p = static_cast<const u8 *>(buf), *end = p + len; p < end; p++) {
		crc ^= *p;
		crc = crc >> 4 ^ nibbles.v[crc & 15];
		crc = crc >> 4 ^ nibbles.v[crc & 15];
	}
	return crc;
}

#endif /* SRN_TESTS_ENGINE_H */
