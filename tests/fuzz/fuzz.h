/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the fuzz targets: how an oracle complains, and input cut off the
 * front of what libFuzzer hands over.
 *
 * What is right comes from tests/unit/model.h. Buffers given to the code
 * under test are heap blocks of exactly the size it may read.
 */
#ifndef SRN_TESTS_FUZZ_H
#define SRN_TESTS_FUZZ_H

#include "model.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#define ORACLE(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: oracle failed: %s\n", __FILE__, __LINE__, #cond); \
		abort(); \
	} \
} while (0)

namespace fuzz {

using bytes = std::vector<uint8_t>;
using input = std::span<const uint8_t>;

/* A block of exactly @n bytes: the front of @in, zeros when that is shorter. */
inline std::unique_ptr<uint8_t[]> exact(input in, size_t n)
{
	std::unique_ptr<uint8_t[]> block(new uint8_t[n]());

	if (n && !in.empty())
		memcpy(block.get(), in.data(), std::min(n, in.size()));
	return block;
}

/* Little-endian number of @n bytes off the front of @in, zeros when short. */
inline uint64_t take(input &in, unsigned n)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < n && !in.empty(); i++) {
		v |= uint64_t{in[0]} << 8 * i;
		in = in.subspan(1);
	}
	return v;
}

/*
 * All that can be said of bth_parse() on @len bytes of which @t holds the
 * first min(@len, ROCE_HDR_MAX): the verdict, the lengths, and that building
 * from the parsed fields gives the bytes back but for reserved bits.
 */
inline enum bth_err check_parse(const uint8_t *t, size_t len, roce_hdr *h)
{
	const size_t readable = std::min<size_t>(len, ROCE_HDR_MAX);
	const enum bth_err err = bth_parse(t, len, h);

	ORACLE(err == model::verdict({t, readable}, len));
	if (err == BTH_ERR_OPCODE)
		ORACLE(h->opcode == t[0] && !h->flags && !bth_op_hdr_len(t[0]));
	if (err != BTH_OK)
		return err;

	const model::op *o = model::find_op(t[0]);

	ORACLE(h->flags == model::flags(*o) && h->flags == bth_op_flags(t[0]));
	ORACLE(h->hdr_len == o->hdr_bytes && h->hdr_len == bth_op_hdr_len(t[0]));
	ORACLE(size_t{h->hdr_len} + h->payload_len + h->pad + ICRC_BYTES == len);

	bytes want(t, t + h->hdr_len);

	want[4] &= 0xc0;
	want[8] &= 0x80;
	if (model::has(o->ext, "DETH"))
		want[16] = 0;
	if (model::has(o->ext, "CNP"))
		std::fill(want.begin() + BTH_BYTES, want.end(), 0);
	ORACLE(model::headers(*h, *o) == want);

	uint8_t built[ROCE_HDR_MAX];

	ORACLE(bth_build(built, h) == h->hdr_len);
	ORACLE(!memcmp(built, want.data(), want.size()));

	for (u32 pmtu : {256u, 512u, 1024u, 2048u, 4096u}) {
		const u32 n = h->payload_len;
		const bool fits = o->payload == 'M' ? n == pmtu && !h->pad :
				  o->payload == 'L' ? n >= 1 && n <= pmtu :
				  o->payload == 'O' ? n <= pmtu : !n && !h->pad;

		ORACLE(bth_len_ok(h, pmtu) == fits);
	}
	return BTH_OK;
}

} /* namespace fuzz */

#endif /* SRN_TESTS_FUZZ_H */
