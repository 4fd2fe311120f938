// SPDX-License-Identifier: GPL-2.0
/*
 * A whole frame walked as a receiver does: Ethernet, IPv4 / IPv6 / GRH, UDP,
 * BTH, ICRC. Input: 1 byte (bit 0: put the right ICRC in first), the frame.
 *
 * Random bytes never carry a valid ICRC; with bit 0 the fuzzer gets past it.
 */
#include "engine.h"
#include "frame.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz::input in(data, size);
	const bool repair = fuzz::take(in, 1) & 1;
	const size_t len = in.size();
	const auto f = fuzz::exact(in, len);
	const auto p = frame::walk({f.get(), len});

	if (!p)
		return 0;

	const auto t = p->transport;
	/* the length fields have the last word, never beyond the frame */
	ORACLE(t.data() >= f.get() && t.data() + t.size() <= f.get() + len);
	ORACLE(t.data() == p->from_l3.data() + roce_l3_len(p->l3));

	const auto head = fuzz::exact(t, std::min<size_t>(t.size(), ROCE_HDR_MAX));
	roce_hdr h{};
	const enum bth_err err = fuzz::check_parse(head.get(), t.size(), &h);

	if (err != BTH_OK && err != BTH_ERR_OPCODE)
		return 0;

	const auto covered = p->from_l3.first(p->from_l3.size() - ICRC_BYTES);
	const fuzz::bytes want = model::icrc_wire(p->l3, covered);
	uint8_t *icrc = f.get() + (t.data() - f.get()) + t.size() - ICRC_BYTES;
	const bool good = !memcmp(icrc, want.data(), ICRC_BYTES);

	ORACLE(frame::icrc_ok(*p, test_crc) == good);
	if (!repair || good)
		return 0;
	memcpy(icrc, want.data(), ICRC_BYTES);
	ORACLE(frame::icrc_ok(*p, test_crc));
	icrc[3] ^= 1;
	ORACLE(!frame::icrc_ok(*p, test_crc));
	return 0;
}
