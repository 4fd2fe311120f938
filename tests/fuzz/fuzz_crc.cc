// SPDX-License-Identifier: GPL-2.0
/*
 * The CRC engines: same result at any alignment, and in two pieces by two
 * engines. Input: 1 byte engines, 1 byte alignment, 2 bytes cut, 4 bytes
 * register, the data.
 */
#include "crc32.h"
#include "engine.h"
#include "fuzz.h"

namespace {

u32 sparse_bytes(u32 crc, const void *buf, size_t len)
{
	static const std::unique_ptr<crc32_scratch> scratch(new crc32_scratch);

	return crc32_sparse_bytes(crc, buf, len, scratch.get());
}

constexpr icrc_fn engines[] = {crc32_small, crc32_sparse, sparse_bytes};

} /* namespace */

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz::input in(data, size);
	const uint64_t which = fuzz::take(in, 1);
	const size_t align = fuzz::take(in, 1) % 16;
	const size_t at = fuzz::take(in, 2);
	const u32 reg = static_cast<u32>(fuzz::take(in, 4));
	const size_t len = in.size(), cut = len ? at % (len + 1) : 0;
	/* the block ends where the data ends, so that ASan sees a read beyond */
	const auto block = fuzz::exact({}, align + len);
	uint8_t *p = block.get() + align;

	if (len)
		memcpy(p, in.data(), len);

	const u32 want = test_crc(reg, p, len);

	for (icrc_fn engine : engines)
		ORACLE(engine(reg, p, len) == want);

	const icrc_fn first = engines[which % 3], second = engines[which / 3 % 3];

	ORACLE(second(first(reg, p, cut), p + cut, len - cut) == want);
	return 0;
}
