// SPDX-License-Identifier: GPL-2.0
/*
 * Messages cut into packets: count, offsets, lengths, pads, opcodes; and the
 * UDP source port of a flow.
 */
#include "icrc.h"
#include "model.h"
#include "seg.h"
#include "unit.h"

#include <algorithm>
#include <cstring>

namespace {

constexpr u32 mtus[] = {256, 512, 1024, 2048, 4096};

/* Names of first, middle, last and only packet, as the opcode tables spell them. */
struct kind {
	enum seg_kind kind;
	const char *first, *middle, *last, *only;
};

const kind kinds[] = {
	{SEG_SEND, "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_ONLY"},
	{SEG_SEND_IMM, "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST_IMM", "SEND_ONLY_IMM"},
	{SEG_SEND_INV, "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST_INV", "SEND_ONLY_INV"},
	{SEG_WRITE, "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST", "WRITE_ONLY"},
	{SEG_WRITE_IMM, "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST_IMM", "WRITE_ONLY_IMM"},
	{SEG_READ_RESP, "READ_RESP_FIRST", "READ_RESP_MIDDLE", "READ_RESP_LAST", "READ_RESP_ONLY"},
};

int rc_opcode(const char *name)
{
	for (const model::op &o : model::ops())
		if (o.opcode < 0x20 && !strcmp(o.name, name))
			return o.opcode;
	return -1;
}

std::vector<u32> lengths(u32 pmtu)
{
	return {0, 1, 2, 3, 4, 5, pmtu - 1, pmtu, pmtu + 1, 2 * pmtu - 1, 2 * pmtu, 2 * pmtu + 1,
		10 * pmtu + 7, 0x7fffffff, 0x80000000};
}

u64 packets(u64 len, u64 pmtu)
{
	return std::max<u64>(1, (len + pmtu - 1) / pmtu);
}

} /* namespace */

TEST("R032 packet count is max(1, ceil(len / pmtu))")
{
	for (u32 pmtu : mtus)
		for (u32 len : lengths(pmtu))
			EQ(seg_packets(len, pmtu), packets(len, pmtu), "len %u pmtu %u", len, pmtu);
	EQ(seg_packets(0, 1024), 1u);
	EQ(seg_packets(1024, 1024), 1u);
	EQ(seg_packets(1025, 1024), 2u);
}

TEST("R026 a message of 2^31 bytes is cut at every path MTU")
{
	for (u32 pmtu : mtus) {
		const u32 n = seg_packets(ROCE_MSG_MAX, pmtu);

		EQ(n, 0x80000000u / pmtu, "pmtu %u", pmtu);
		EQ(seg_len(ROCE_MSG_MAX, pmtu, n - 1), pmtu, "pmtu %u", pmtu);
		EQ(seg_offset(n - 1, pmtu), 0x80000000u - pmtu, "pmtu %u", pmtu);
	}
}

TEST("R020 R021 R022 lengths of packets tile the message, only the last is short")
{
	for (u32 pmtu : mtus)
		for (u32 len : lengths(pmtu)) {
			const u32 n = static_cast<u32>(packets(len, pmtu));
			u64 at = 0;

			for (u32 i = 0; i < n; i++) {
				const u32 got = seg_len(len, pmtu, i);

				EQ(seg_offset(i, pmtu), at, "len %u pmtu %u packet %u", len, pmtu, i);
				if (i + 1 < n)
					EQ(got, pmtu, "len %u pmtu %u packet %u", len, pmtu, i);
				else
					CHECK(got <= pmtu && (got || !len),
					      "len %u pmtu %u last %u bytes", len, pmtu, got);
				at += got;
			}
			EQ(at, len, "pmtu %u", pmtu);
		}
}

TEST("R022 PadCnt makes every payload a multiple of 4")
{
	for (u32 len = 0; len <= 4100; len++) {
		static const u8 want[4] = {0, 3, 2, 1};

		EQ(seg_pad(len), want[len % 4], "len %u", len);
	}
}

TEST("opcodes of every packet of every kind")
{
	for (const kind &k : kinds) {
		const int first = rc_opcode(k.first), middle = rc_opcode(k.middle);
		const int last = rc_opcode(k.last), only = rc_opcode(k.only);

		CHECK(first >= 0 && middle >= 0 && last >= 0 && only >= 0);
		for (u32 pmtu : mtus)
			for (u32 len : lengths(pmtu)) {
				const u32 n = static_cast<u32>(packets(len, pmtu));

				for (u32 i = 0; i < n; i++)
					EQ(seg_opcode(k.kind, i, n),
					   n == 1 ? only : i == 0 ? first : i == n - 1 ? last : middle,
					   "%s packet %u of %u", k.only, i, n);
			}
	}
}

TEST("packets of a message satisfy the order and length rules of the responder")
{
	for (const kind &k : kinds)
		for (u32 pmtu : mtus)
			for (u32 len : lengths(pmtu)) {
				const u32 n = static_cast<u32>(packets(len, pmtu));
				enum roce_seq seq = ROCE_SEQ_IDLE;

				if (n > 64)
					continue;
				for (u32 i = 0; i < n; i++) {
					roce_hdr h{};

					h.opcode = seg_opcode(k.kind, i, n);
					h.flags = bth_op_flags(h.opcode);
					h.payload_len = static_cast<u16>(seg_len(len, pmtu, i));
					h.pad = seg_pad(h.payload_len);
					CHECK(bth_len_ok(&h, pmtu), "%s len %u packet %u", k.only, len, i);
					if (k.kind != SEG_READ_RESP)
						CHECK(bth_seq_next(seq, h.flags, &seq),
						      "%s len %u packet %u", k.only, len, i);
				}
				EQ(seq, ROCE_SEQ_IDLE, "%s len %u", k.only, len);
			}
}

TEST("R006 UDP source port vectors")
{
	EQ(seg_udp_sport(0x12345, 0, 0), 0xe341);
	EQ(seg_udp_sport(0xfffff, 1, 2), 0xffc0);
	EQ(seg_udp_sport(0xabcde, 3, 4), 0xfcf4);
	EQ(seg_udp_sport(0, 0x11, 0x12), 0xc132);
	EQ(seg_udp_sport(0, 0x100000, 0x200001), 0xc003);
}

TEST("R006 UDP source port lies in 0xC000..0xFFFF and is the same at both ends")
{
	u32 rnd = 1;

	for (unsigned i = 0; i < 200000; i++) {
		const auto next = [&rnd] { return rnd = rnd * 1664525u + 1013904223u; };
		const u32 a = next() >> 8, b = next() >> 8, fl = next() >> 12;

		CHECK(seg_udp_sport(fl, a, b) >= 0xc000, "flow label %#x", fl);
		CHECK(seg_udp_sport(0, a, b) >= 0xc000, "QPNs %#x %#x", a, b);
		EQ(seg_udp_sport(0, a, b), seg_udp_sport(0, b, a), "QPNs %#x %#x", a, b);
		if (fl) {
			EQ(seg_udp_sport(fl, a, b),
			   ((fl & 0x3fff) ^ ((fl & 0xfc000) >> 14)) | 0xc000, "flow label %#x", fl);
		}
	}
}
