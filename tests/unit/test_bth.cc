// SPDX-License-Identifier: GPL-2.0
/*
 * Opcode table, header layout, parse at every truncation, length and order
 * rules: all against the tables of model.h.
 */
#include "bth.h"
#include "model.h"
#include "unit.h"

#include <cstring>
#include <memory>
#include <random>

namespace {

std::mt19937_64 rnd(20260801);

roce_hdr random_hdr(u8 opcode)
{
	roce_hdr h{};

	h.opcode = opcode;
	h.pad = rnd() & 3;
	h.se = rnd() & 1;
	h.migreq = rnd() & 1;
	h.ackreq = rnd() & 1;
	h.fecn = rnd() & 1;
	h.becn = rnd() & 1;
	h.pkey = static_cast<u16>(rnd());
	h.syndrome = static_cast<u8>(rnd());
	h.dqpn = rnd() & 0xffffff;
	h.psn = rnd() & 0xffffff;
	h.msn = rnd() & 0xffffff;
	h.va = rnd();
	h.rkey = static_cast<u32>(rnd());
	h.dmalen = static_cast<u32>(rnd());
	h.swap_add = rnd();
	h.compare = rnd();
	h.orig = rnd();
	h.imm = static_cast<__be32>(rnd());
	h.inv_rkey = static_cast<u32>(rnd());
	h.qkey = static_cast<u32>(rnd());
	h.sqpn = rnd() & 0xffffff;
	return h;
}

/* The fields that packets of @o carry are equal. */
void same_fields(const roce_hdr &got, const roce_hdr &want, const model::op &o)
{
#define SAME(field) EQ(got.field, want.field, "opcode %#x " #field, o.opcode)
	SAME(opcode);
	SAME(pad);
	SAME(tver);
	SAME(se);
	SAME(migreq);
	SAME(ackreq);
	SAME(fecn);
	SAME(becn);
	SAME(pkey);
	SAME(dqpn);
	SAME(psn);
	if (model::has(o.ext, "DETH")) {
		SAME(qkey);
		SAME(sqpn);
	}
	if (model::has(o.ext, "RETH")) {
		SAME(va);
		SAME(rkey);
		SAME(dmalen);
	}
	if (model::has(o.ext, "AtomicETH")) {
		SAME(va);
		SAME(rkey);
		SAME(swap_add);
		SAME(compare);
	}
	if (model::has(o.ext, "AETH")) {
		SAME(syndrome);
		SAME(msn);
	}
	if (model::has(o.ext, "AtomicAckETH"))
		SAME(orig);
	if (model::has(o.ext, "ImmDt"))
		SAME(imm);
	if (model::has(o.ext, "IETH"))
		SAME(inv_rkey);
#undef SAME
}

/* bth_parse() on a heap block of exactly the bytes it may read. */
enum bth_err parse(const u8 *t, size_t len, roce_hdr *h)
{
	const size_t readable = std::min<size_t>(len, ROCE_HDR_MAX);
	const std::unique_ptr<u8[]> exact(new u8[readable]);

	memcpy(exact.get(), t, readable);
	return bth_parse(exact.get(), len, h);
}

} /* namespace */

TEST("R019 opcode table: flags of all 256 opcodes")
{
	unsigned known = 0;

	for (unsigned op = 0; op < 256; op++) {
		const model::op *o = model::find_op(op);

		EQ(bth_op_flags(static_cast<u8>(op)), o ? model::flags(*o) : 0u, "opcode %#x", op);
		known += bth_op_flags(static_cast<u8>(op)) != 0;
	}
	EQ(known, 23u + 12u + 2u + 1u);
}

TEST("header bytes of all 256 opcodes")
{
	for (unsigned op = 0; op < 256; op++) {
		const model::op *o = model::find_op(op);

		EQ(bth_op_hdr_len(static_cast<u8>(op)), o ? o->hdr_bytes : 0u, "opcode %#x", op);
		CHECK(bth_op_hdr_len(static_cast<u8>(op)) <= ROCE_HDR_MAX, "opcode %#x", op);
	}
}

TEST("build writes every header field in its place")
{
	for (const model::op &o : model::ops())
		for (unsigned i = 0; i < 200; i++) {
			const roce_hdr h = random_hdr(o.opcode);
			const model::bytes want = model::headers(h, o);
			u8 t[ROCE_HDR_MAX];

			memset(t, 0xa5, sizeof(t));
			const size_t len = bth_build(t, &h);

			EQ(len, want.size(), "%s", o.name);
			CHECK(!memcmp(t, want.data(), want.size()), "%s (%#x)", o.name, o.opcode);
			for (size_t at = len; at < sizeof(t); at++)
				EQ(t[at], 0xa5, "%s wrote byte %zu", o.name, at);
		}
}

TEST("build refuses unknown opcodes and touches nothing")
{
	for (unsigned op = 0; op < 256; op++) {
		u8 t[ROCE_HDR_MAX];

		if (model::find_op(op))
			continue;
		memset(t, 0xa5, sizeof(t));
		const roce_hdr h = random_hdr(static_cast<u8>(op));

		EQ(bth_build(t, &h), 0u, "opcode %#x", op);
		for (u8 byte : t)
			EQ(byte, 0xa5, "opcode %#x", op);
	}
}

TEST("build cuts fields to their width and keeps reserved bits zero")
{
	roce_hdr h = random_hdr(ROCE_UD_SEND_ONLY);
	u8 t[ROCE_HDR_MAX];

	h.pad = 0xfe;
	h.tver = 0xf0;
	h.se = h.migreq = false;
	h.dqpn = 0xff123456;
	h.psn = 0xff654321;
	h.sqpn = 0xffabcdef;
	bth_build(t, &h);
	EQ(t[1], 0x20);
	EQ(t[4] & 0x3f, 0);
	EQ(wire_get24(t + 5), 0x123456u);
	EQ(t[8] & 0x7f, 0);
	EQ(wire_get24(t + 9), 0x654321u);
	EQ(wire_get32(t + 16), 0x00abcdefu);

	h.opcode = ROCE_OP_ACK;
	h.msn = 0xff010203;
	bth_build(t, &h);
	EQ(wire_get24(t + 13), 0x010203u);
}

TEST("parse reads back what build wrote")
{
	for (const model::op &o : model::ops())
		for (unsigned i = 0; i < 200; i++) {
			const roce_hdr h = random_hdr(o.opcode);
			const size_t payload = o.payload == '0' ? 0 : 4 * (rnd() % 1024) + 4 - h.pad;
			u8 t[ROCE_HDR_MAX] = {};
			roce_hdr got{};

			const size_t len = bth_build(t, &h);
			const u8 pad = o.payload == '0' ? 0 : h.pad;
			roce_hdr want = h;

			want.pad = pad;
			t[1] = static_cast<u8>((t[1] & ~0x30) | pad << 4);
			EQ(parse(t, len + payload + pad + 4, &got), BTH_OK, "%s", o.name);
			same_fields(got, want, o);
			EQ(got.hdr_len, o.hdr_bytes, "%s", o.name);
			EQ(got.payload_len, payload, "%s", o.name);
			EQ(got.flags, model::flags(o), "%s", o.name);
		}
}

TEST("parse ignores reserved bits")
{
	for (const model::op &o : model::ops()) {
		roce_hdr h = random_hdr(o.opcode), got{};
		u8 t[ROCE_HDR_MAX] = {};

		h.pad = 0;
		const size_t len = bth_build(t, &h);

		t[4] |= 0x3f;
		t[8] |= 0x7f;
		if (model::has(o.ext, "DETH"))
			t[16] = 0xff;
		if (model::has(o.ext, "CNP"))
			memset(t + 12, 0xff, 16);
		EQ(parse(t, len + 4, &got), BTH_OK, "%s", o.name);
		same_fields(got, h, o);
	}
}

TEST("R014 R019 all opcodes, pads and versions truncated at every byte")
{
	for (unsigned op = 0; op < 256; op++)
		for (unsigned byte1 = 0; byte1 < 256; byte1 += op == 4 || op == 0x64 ? 1 : 0x10)
			for (size_t len = 0; len <= 64; len++) {
				const model::op *o = model::find_op(op);
				u8 t[ROCE_HDR_MAX];
				roce_hdr got{};

				for (u8 &byte : t)
					byte = static_cast<u8>(rnd());
				t[0] = static_cast<u8>(op);
				t[1] = static_cast<u8>(byte1);

				const enum bth_err want = model::verdict(t, len);
				const enum bth_err err = parse(t, len, &got);

				EQ(err, want, "opcode %#x byte1 %#x len %zu", op, byte1, len);
				if (err != BTH_OK || !o)
					continue;
				EQ(got.payload_len, len - o->hdr_bytes - (byte1 >> 4 & 3) - 4,
				   "opcode %#x byte1 %#x len %zu", op, byte1, len);
			}
}

TEST("R014 every transport version but 0 is refused, whatever the opcode")
{
	for (unsigned op = 0; op < 256; op++)
		for (u8 tver = 1; tver < 16; tver++) {
			u8 t[ROCE_HDR_MAX] = {};
			roce_hdr got{};

			t[0] = static_cast<u8>(op);
			t[1] = tver;
			EQ(parse(t, 64, &got), BTH_ERR_TVER, "opcode %#x version %u", op, tver);
		}
}

TEST("R019 an unknown opcode still yields the BTH fields for a NAK")
{
	for (unsigned op = 0; op < 256; op++) {
		u8 t[ROCE_HDR_MAX];
		roce_hdr h = random_hdr(ROCE_OP_SEND_ONLY), got = random_hdr(ROCE_OP_SEND_ONLY);

		if (model::find_op(op))
			continue;
		bth_build(t, &h);
		t[0] = static_cast<u8>(op);
		EQ(parse(t, 64, &got), BTH_ERR_OPCODE, "opcode %#x", op);
		EQ(got.opcode, op);
		EQ(got.psn, h.psn, "opcode %#x", op);
		EQ(got.dqpn, h.dqpn, "opcode %#x", op);
		EQ(got.pkey, h.pkey, "opcode %#x", op);
		EQ(got.ackreq, h.ackreq, "opcode %#x", op);
		EQ(got.flags, 0u, "opcode %#x", op);
	}
}

TEST("parse: length limits")
{
	u8 t[ROCE_HDR_MAX] = {ROCE_OP_SEND_ONLY};
	roce_hdr got{};

	EQ(parse(t, 0xfffc, &got), BTH_OK);
	EQ(got.payload_len, 0xfffc - 16);
	EQ(parse(t, 0x10000, &got), BTH_ERR_ALIGN);
	EQ(parse(t, 0x10010, &got), BTH_ERR_ALIGN);
	EQ(parse(t, ~size_t{3}, &got), BTH_ERR_ALIGN);
	/* the smallest RoCE packet: BTH and ICRC */
	EQ(parse(t, 16, &got), BTH_OK);
	EQ(got.payload_len, 0);
	/* PadCnt larger than what is there */
	t[1] = 0x10;
	EQ(parse(t, 16, &got), BTH_ERR_SHORT);
	EQ(parse(t, 20, &got), BTH_OK);
	EQ(got.payload_len, 3);
}

TEST("bth_set_ackreq sets one bit")
{
	roce_hdr h = random_hdr(ROCE_OP_WRITE_ONLY);
	u8 t[ROCE_HDR_MAX], want[ROCE_HDR_MAX];

	h.ackreq = false;
	const size_t len = bth_build(t, &h);

	h.ackreq = true;
	bth_build(want, &h);
	bth_set_ackreq(t);
	CHECK(!memcmp(t, want, len));
}

TEST("R020 R021 R022 payload length of every opcode at every path MTU")
{
	for (const model::op &o : model::ops())
		for (u32 pmtu : {256u, 512u, 1024u, 2048u, 4096u})
			for (u32 len = 0; len <= 4200; len++) {
				roce_hdr h{};

				h.opcode = o.opcode;
				h.flags = bth_op_flags(o.opcode);
				h.payload_len = static_cast<u16>(len);
				h.pad = static_cast<u8>((4 - len % 4) % 4);

				const bool want = o.payload == 'M' ? len == pmtu :
						  o.payload == 'L' ? len >= 1 && len <= pmtu :
						  o.payload == 'O' ? len <= pmtu : len == 0;

				EQ(bth_len_ok(&h, pmtu), want, "%s len %u pmtu %u", o.name, len, pmtu);
			}
}

TEST("R020 R022 a pad count that does not fit the payload is refused")
{
	for (const model::op &o : model::ops())
		for (u32 len : {0u, 1u, 2u, 3u, 4u, 253u, 254u, 255u, 256u})
			for (u8 pad = 0; pad < 4; pad++) {
				roce_hdr h{};

				if ((len + pad) % 4 == 0)
					continue;
				h.opcode = o.opcode;
				h.flags = bth_op_flags(o.opcode);
				h.payload_len = static_cast<u16>(len);
				h.pad = pad;
				CHECK(!bth_len_ok(&h, 256), "%s len %u pad %u", o.name, len, pad);
			}
}

TEST("R023 order of request packets, every state and opcode")
{
	/* What may follow, by the name of the last accepted request. */
	const auto allowed = [](const model::op &prev, const model::op &o) {
		if (!model::is_request(o))
			return false;
		const bool inside = model::is_first(prev) || model::is_middle(prev);

		if (!inside)
			return model::is_first(o) || model::is_only(o) || model::is_read_req(o) ||
			       model::is_atomic(o);
		if (!model::is_middle(o) && !model::is_last(o))
			return false;
		return model::is_send(prev) ? model::is_send(o) : model::is_write(o);
	};
	const auto state = [](const model::op &o) {
		if (!model::is_first(o) && !model::is_middle(o))
			return ROCE_SEQ_IDLE;
		return model::is_send(o) ? ROCE_SEQ_SEND : ROCE_SEQ_WRITE;
	};

	for (const model::op &prev : model::ops()) {
		if (!model::is_request(prev))
			continue;
		for (unsigned op = 0; op < 256; op++) {
			const model::op *o = model::find_op(op);
			const bool want = o && allowed(prev, *o);
			/* a value that no state has: refused packets leave it */
			enum roce_seq next = static_cast<enum roce_seq>(3);

			EQ(bth_seq_next(state(prev), bth_op_flags(static_cast<u8>(op)), &next), want,
			   "%s then %#x", prev.name, op);
			EQ(next, want ? state(*o) : 3, "%s then %#x", prev.name, op);
		}
	}
}

TEST("R023 order rules by example")
{
	enum roce_seq next = ROCE_SEQ_IDLE;
	const auto may = [&next](enum roce_seq seq, u8 op) {
		return bth_seq_next(seq, bth_op_flags(op), &next);
	};

	CHECK(!may(ROCE_SEQ_SEND, ROCE_OP_WRITE_MIDDLE));
	CHECK(!may(ROCE_SEQ_SEND, ROCE_OP_SEND_ONLY));
	CHECK(!may(ROCE_SEQ_SEND, ROCE_OP_READ_REQUEST));
	CHECK(!may(ROCE_SEQ_WRITE, ROCE_OP_SEND_LAST));
	CHECK(!may(ROCE_SEQ_IDLE, ROCE_OP_SEND_MIDDLE));
	CHECK(!may(ROCE_SEQ_IDLE, ROCE_OP_WRITE_LAST_IMM));
	CHECK(!may(ROCE_SEQ_IDLE, ROCE_OP_ACK));
	CHECK(!may(ROCE_SEQ_IDLE, ROCE_OP_READ_RESP_ONLY));
	CHECK(!may(ROCE_SEQ_IDLE, ROCE_CNP));
	CHECK(may(ROCE_SEQ_SEND, ROCE_OP_SEND_LAST_INV));
	EQ(next, ROCE_SEQ_IDLE);
	CHECK(may(ROCE_SEQ_IDLE, ROCE_OP_WRITE_FIRST));
	EQ(next, ROCE_SEQ_WRITE);
	CHECK(may(ROCE_SEQ_IDLE, ROCE_OP_FETCH_ADD));
	EQ(next, ROCE_SEQ_IDLE);
}
