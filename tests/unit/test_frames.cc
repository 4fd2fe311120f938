// SPDX-License-Identifier: GPL-2.0
/*
 * The golden frames: built from their fields, compared byte for byte, parsed
 * back, ICRC checked.
 */
#include "aeth.h"
#include "crc32.h"
#include "frame.h"
#include "golden.h"
#include "model.h"
#include "unit.h"

#include <cstring>

namespace {

using golden::hex;

/* Every field of a BTH that is the same in most of the frames. */
roce_hdr bth(u8 opcode, u32 dqpn, u32 psn)
{
	roce_hdr h{};

	h.opcode = opcode;
	h.migreq = true;
	h.pkey = ROCE_PKEY_DEFAULT;
	h.dqpn = dqpn;
	h.psn = psn;
	return h;
}

frame::net ipv4(const char *src, const char *dst)
{
	frame::net n;

	n.l3 = ROCE_L3_IPV4;
	n.src = hex(src);
	n.dst = hex(dst);
	return n;
}

const u8 mac1[] = {2, 0, 0, 0, 0, 1};
const u8 mac2[] = {2, 0, 0, 0, 0, 2};

void from_to(frame::net &n, const u8 (&smac)[6], const u8 (&dmac)[6])
{
	n.smac.assign(smac, smac + 6);
	n.dmac.assign(dmac, dmac + 6);
}

/* The frame walks, its ICRC holds and agrees with the model, its headers parse. */
roce_hdr receive(const golden::frame &f, enum roce_l3 l3)
{
	const auto p = f.ethernet ? frame::walk(f.data) : frame::walk_l3(l3, f.data);
	roce_hdr h{};

	CHECK(p.has_value(), "%s", f.name);
	if (!p)
		return h;
	EQ(p->l3, l3, "%s", f.name);
	/* length fields and frame length agree: no frame has trailing bytes */
	EQ(p->from_l3.size(), f.data.size() - (f.ethernet ? 14 : 0), "%s", f.name);
	CHECK(frame::icrc_ok(*p, crc32_sparse), "%s", f.name);

	const auto covered = p->from_l3.first(p->from_l3.size() - ICRC_BYTES);
	const golden::bytes want = model::icrc_wire(l3, covered);

	CHECK(!memcmp(want.data(), &f.data[f.data.size() - 4], 4), "%s", f.name);
	EQ(bth_parse(p->transport.data(), p->transport.size(), &h), BTH_OK, "%s", f.name);
	EQ(h.hdr_len + h.payload_len + h.pad + ICRC_BYTES, p->transport.size(), "%s", f.name);
	return h;
}

golden::bytes payload(const golden::frame &f, const roce_hdr &h)
{
	const size_t end = f.data.size() - ICRC_BYTES - h.pad;

	return {f.data.begin() + static_cast<ptrdiff_t>(end - h.payload_len),
		f.data.begin() + static_cast<ptrdiff_t>(end)};
}

/* A test that compares says where the first difference is. */
void same_bytes(const golden::frame &want, const golden::bytes &got)
{
	EQ(got.size(), want.data.size(), "%s", want.name);
	for (size_t i = 0; i < std::min(got.size(), want.data.size()); i++)
		EQ(got[i], want.data[i], "%s byte %zu", want.name, i);
}

} /* namespace */

TEST("R001 R011 X1: CNP captured from hardware")
{
	frame::net n = ipv4("0a 00 11 01", "0a 00 12 01");
	roce_hdr h = bth(ROCE_CNP, 0x118, 0);

	n.dmac = hex("e4 1d 2d ab 2b c2");
	n.smac = hex("7c fe 90 64 3b 32");
	n.tos = 0xc2;
	n.id = 0x718c;
	n.sport = 0;
	h.migreq = false;
	h.becn = true;
	same_bytes(golden::X1(), frame::build(n, h, {}, crc32_sparse));

	const roce_hdr got = receive(golden::X1(), ROCE_L3_IPV4);

	EQ(got.opcode, ROCE_CNP);
	CHECK(got.becn && !got.fecn && !got.se && !got.migreq && !got.ackreq);
	EQ(got.pkey, 0xffff);
	EQ(got.dqpn, 0x118u);
	EQ(got.psn, 0u);
	EQ(got.pad, 0);
	EQ(got.hdr_len, 28);
	EQ(got.payload_len, 0);
	EQ(got.flags, 0u + BTH_F_KNOWN + BTH_F_CNP);
}

TEST("R011 X1: the masked message is the one that the reference gives")
{
	const golden::bytes &x1 = golden::X1().data;
	const golden::bytes want = hex(
		"ffffffffffffffff 45ff003c718c4000ff11ffff0a0011010a001201 000012b70028ffff"
		"8100ffffff00011800000000 00000000000000000000000000000000");

	CHECK(model::icrc_message(ROCE_L3_IPV4, std::span(x1).subspan(14, 56)) == want);
}

TEST("R001 R011 X2: UC SEND_ONLY, value from public regression data")
{
	frame::net n = ipv4("c0 a8 00 07", "c0 a8 00 07");
	const golden::bytes data = hex("46 30 81 8b e2 89 35 d9 0e 9a 95 50 54 01 be 88 5e 50");
	const roce_hdr h = bth(ROCE_CLASS_UC + 0x04, 211, 13571856);

	n.tos = 1;
	n.id = 1144;
	n.sport = 49152;
	same_bytes(golden::X2(), frame::build(n, h, data, crc32_sparse));

	const roce_hdr got = receive(golden::X2(), ROCE_L3_IPV4);

	EQ(got.opcode, 0x24);
	EQ(got.opcode & ROCE_CLASS_MASK, ROCE_CLASS_UC);
	CHECK(got.migreq && !got.se && !got.ackreq);
	EQ(got.pad, 2);
	EQ(got.pkey, 0xffff);
	EQ(got.dqpn, 211u);
	EQ(got.psn, 13571856u);
	EQ(got.payload_len, 18);
	CHECK(payload(golden::X2(), got) == data);
}

TEST("R001 R006 R011 R1: RoCEv2/IPv4 RC SEND_ONLY")
{
	frame::net n = ipv4("c0 a8 01 01", "c0 a8 01 02");
	const golden::bytes data = {'h', 'e', 'l', 'l', 'o'};
	roce_hdr h = bth(ROCE_OP_SEND_ONLY, 0x11, 0x100);

	from_to(n, mac1, mac2);
	n.tos = 2;
	n.sport = seg_udp_sport(0, 0x11, 0x12);
	h.ackreq = true;
	same_bytes(golden::R1(), frame::build(n, h, data, crc32_sparse));

	const roce_hdr got = receive(golden::R1(), ROCE_L3_IPV4);

	EQ(got.opcode, ROCE_OP_SEND_ONLY);
	CHECK(got.migreq && !got.se && got.ackreq && !got.fecn && !got.becn);
	EQ(got.pad, 3);
	EQ(got.dqpn, 0x11u);
	EQ(got.psn, 0x100u);
	EQ(got.payload_len, 5);
	CHECK(payload(golden::R1(), got) == data);
	CHECK(bth_len_ok(&got, 256));
}

TEST("R001 R006 R011 R2: RoCEv2/IPv6 RC ACKNOWLEDGE")
{
	frame::net n;
	roce_hdr h = bth(ROCE_OP_ACK, 0x12, 0x100);

	n.l3 = ROCE_L3_IPV6;
	n.src = hex("fe 80 00 00 00 00 00 00 00 00 00 ff fe 00 00 02");
	n.dst = hex("fe 80 00 00 00 00 00 00 00 00 00 ff fe 00 00 01");
	from_to(n, mac2, mac1);
	n.tos = 0x6a;
	n.flow_label = 0x12345;
	n.sport = seg_udp_sport(0x12345, 0x11, 0x12);
	h.syndrome = aeth_ack(AETH_CREDIT_NONE);
	h.msn = 1;
	same_bytes(golden::R2(), frame::build(n, h, {}, crc32_sparse));

	const roce_hdr got = receive(golden::R2(), ROCE_L3_IPV6);

	EQ(got.opcode, ROCE_OP_ACK);
	CHECK(got.migreq && !got.se && !got.ackreq);
	EQ(got.pad, 0);
	EQ(got.dqpn, 0x12u);
	EQ(got.psn, 0x100u);
	EQ(got.syndrome, 0x1f);
	EQ(aeth_type(got.syndrome), AETH_ACK);
	EQ(got.msn, 1u);
	EQ(got.payload_len, 0);
}

TEST("R007 R012 R2: with the UDP checksum filled in the ICRC stays the same")
{
	golden::frame f = golden::R2();

	f.data[14 + 40 + 6] = 0x44;
	f.data[14 + 40 + 7] = 0xb2;
	receive(f, ROCE_L3_IPV6);
}

TEST("R002 R011 R3: RoCEv1 UD SEND_ONLY to the GSI")
{
	frame::net n;
	golden::bytes data;
	roce_hdr h = bth(ROCE_UD_SEND_ONLY, ROCE_QPN_GSI, 0);

	for (uint8_t i = 0; i < 16; i++)
		data.push_back(i);
	n.l3 = ROCE_L3_GRH;
	n.src = hex("fe 80 00 00 00 00 00 00 00 00 00 ff fe 00 00 01");
	n.dst = hex("fe 80 00 00 00 00 00 00 00 00 00 ff fe 00 00 02");
	from_to(n, mac1, mac2);
	n.ttl = 1;
	h.migreq = false;
	h.qkey = ROCE_GSI_QKEY;
	h.sqpn = ROCE_QPN_GSI;
	same_bytes(golden::R3(), frame::build(n, h, data, crc32_sparse));

	const roce_hdr got = receive(golden::R3(), ROCE_L3_GRH);

	EQ(got.opcode, ROCE_UD_SEND_ONLY);
	EQ(got.dqpn, 1u);
	EQ(got.qkey, 0x80010000u);
	EQ(got.sqpn, 1u);
	EQ(got.payload_len, 16);
	CHECK(payload(golden::R3(), got) == data);
}

TEST("R001 R006 R011 R4: RoCEv2/IPv4 RC WRITE_ONLY")
{
	frame::net n = ipv4("c0 a8 01 01", "c0 a8 01 02");
	const golden::bytes data = hex("de ad be ef");
	roce_hdr h = bth(ROCE_OP_WRITE_ONLY, 0x11, 0x101);

	from_to(n, mac1, mac2);
	n.tos = 2;
	n.id = 0x1234;
	n.sport = seg_udp_sport(0, 0x12, 0x11);
	h.ackreq = true;
	h.va = 0x00007f0012345000;
	h.rkey = 0x123;
	h.dmalen = 4;
	same_bytes(golden::R4(), frame::build(n, h, data, crc32_sparse));

	const roce_hdr got = receive(golden::R4(), ROCE_L3_IPV4);

	EQ(got.opcode, ROCE_OP_WRITE_ONLY);
	CHECK(got.migreq && !got.se && got.ackreq);
	EQ(got.dqpn, 0x11u);
	EQ(got.psn, 0x101u);
	EQ(got.va, 0x00007f0012345000u);
	EQ(got.rkey, 0x123u);
	EQ(got.dmalen, 4u);
	EQ(got.pad, 0);
	EQ(got.payload_len, 4);
	CHECK(payload(golden::R4(), got) == data);
}

TEST("R001 R006 R011 R5: CNP by its fields")
{
	frame::net n = ipv4("c0 a8 01 02", "c0 a8 01 01");
	roce_hdr h = bth(ROCE_CNP, 0x12, 0);

	n.tos = 48 << 2;
	n.sport = seg_udp_sport(0, 0x12, 0x11);
	h.migreq = false;
	h.becn = true;
	same_bytes(golden::R5(), frame::build(n, h, {}, crc32_sparse));

	const roce_hdr got = receive(golden::R5(), ROCE_L3_IPV4);

	EQ(got.opcode, ROCE_CNP);
	CHECK(got.becn);
	EQ(got.dqpn, 0x12u);
	EQ(got.payload_len, 0);
}

TEST("R005 trailing Ethernet padding does not disturb a frame")
{
	for (const golden::frame *f : golden::all()) {
		golden::bytes padded = f->data;

		if (!f->ethernet)
			continue;
		padded.insert(padded.end(), 46, 0xaa);
		const auto p = frame::walk(padded);

		CHECK(p && frame::icrc_ok(*p, crc32_sparse), "%s", f->name);
	}
}

TEST("R004 lengths of every opcode and pad count follow the formulas")
{
	for (const model::op &o : model::ops())
		for (size_t len = 0; len <= (o.payload == '0' ? 0u : 9u); len++) {
			const frame::net n = ipv4("c0 a8 01 01", "c0 a8 01 02");
			const golden::bytes f = frame::build(n, bth(o.opcode, 1, 2),
							     golden::bytes(len, 0x5a), crc32_sparse);
			const size_t t = o.hdr_bytes + (len + 3) / 4 * 4 + 4;

			EQ(f.size(), 28 + t, "%s len %zu", o.name, len);
			EQ(wire_get16(&f[2]), 28 + t, "%s len %zu", o.name, len);
			EQ(wire_get16(&f[24]), 8 + t, "%s len %zu", o.name, len);

			const auto p = frame::walk_l3(ROCE_L3_IPV4, f);
			roce_hdr h{};

			CHECK(p && frame::icrc_ok(*p, crc32_sparse), "%s len %zu", o.name, len);
			EQ(bth_parse(&f[28], t, &h), BTH_OK, "%s len %zu", o.name, len);
			EQ(h.payload_len, len, "%s", o.name);
		}
}
