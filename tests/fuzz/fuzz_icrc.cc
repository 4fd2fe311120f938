// SPDX-License-Identifier: GPL-2.0
/*
 * icrc_begin(), icrc_store() and icrc_match() against the model, and one
 * flipped bit per run. Input: L3 kind, 2 bytes bit number, packet from L3 on.
 */
#include "engine.h"
#include "fuzz.h"

namespace {

u32 whole(enum roce_l3 l3, const uint8_t *p, size_t len)
{
	const size_t head = roce_l3_len(l3) + BTH_BYTES;

	return test_crc(icrc_begin(test_crc, l3, p), p + head, len - head);
}

} /* namespace */

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz::input in(data, size);
	const auto l3 = static_cast<enum roce_l3>(fuzz::take(in, 1) % 3);
	const size_t bit = fuzz::take(in, 2);
	const size_t head = roce_l3_len(l3) + BTH_BYTES;
	const size_t len = std::max(head, in.size());
	const auto p = fuzz::exact(in, len);
	const auto only_head = fuzz::exact({p.get(), len}, head);
	uint8_t wire[ICRC_BYTES];

	ORACLE(icrc_begin(test_crc, l3, only_head.get()) == icrc_begin(test_crc, l3, p.get()));
	icrc_store(wire, whole(l3, p.get(), len));
	ORACLE(!memcmp(wire, model::icrc_wire(l3, {p.get(), len}).data(), ICRC_BYTES));
	ORACLE(icrc_match(wire, whole(l3, p.get(), len)));

	if (bit >= len * 8)
		return 0;
	p[bit / 8] ^= static_cast<uint8_t>(0x80 >> bit % 8);
	ORACLE(icrc_match(wire, whole(l3, p.get(), len)) ==
	       model::is_masked(l3, static_cast<unsigned>(bit)));
	return 0;
}
