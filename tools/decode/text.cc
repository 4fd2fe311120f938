// SPDX-License-Identifier: GPL-2.0
/*
 * Frames as text. Everything shown is a number, a name from a table here or
 * an address: no byte of a capture reaches the terminal as it is.
 */
#include "text.h"
#include "aeth.h"
#include "frame.h"

#include <arpa/inet.h>
#include <array>
#include <cstdarg>
#include <cstdio>

namespace decode {

namespace {

/* BTH.OpCode[4:0] of the connected classes. */
constexpr std::array<const char *, 32> op_names = {
	"SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM",
	"SEND_ONLY", "SEND_ONLY_IMM",
	"WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST", "WRITE_LAST_IMM",
	"WRITE_ONLY", "WRITE_ONLY_IMM",
	"READ_REQUEST", "READ_RESP_FIRST", "READ_RESP_MIDDLE", "READ_RESP_LAST",
	"READ_RESP_ONLY", "ACK", "ATOMIC_ACK", "COMPARE_SWAP", "FETCH_ADD", nullptr,
	"SEND_LAST_INV", "SEND_ONLY_INV",
};

constexpr std::array<const char *, 8> classes = {
	"RC", "UC", "RD", "UD", "CNP", "XRC", "VENDOR", "VENDOR",
};

std::string syndrome_text(uint8_t syndrome)
{
	const uint8_t value = aeth_value(syndrome);

	switch (aeth_type(syndrome)) {
	case AETH_ACK:
		if (value == AETH_CREDIT_NONE)
			return "ack";
		return format("ack credits=%u", aeth_credits(value));
	case AETH_RNR:
		return format("rnr wait=%u.%02ums", aeth_rnr_usec(value) / 1000,
			      aeth_rnr_usec(value) % 1000 / 10);
	case AETH_NAK:
		switch (syndrome) {
		case AETH_NAK_PSN_SEQ:
			return "nak sequence";
		case AETH_NAK_INV_REQ:
			return "nak invalid-request";
		case AETH_NAK_REM_ACCESS:
			return "nak remote-access";
		case AETH_NAK_REM_OP:
			return "nak remote-operation";
		}
		return format("nak 0x%02x", syndrome);
	default:
		return format("reserved 0x%02x", syndrome);
	}
}

std::string bth_text(const roce_hdr &h)
{
	std::string s = format(" %s qp=0x%06x psn=0x%06x", opcode_name(h.opcode).c_str(),
			       h.dqpn, h.psn);

	if (h.pkey != ROCE_PKEY_DEFAULT)
		s += format(" pkey=0x%04x", h.pkey);
	if (h.ackreq)
		s += " ackreq";
	if (h.se)
		s += " se";
	if (!h.migreq)
		s += " migreq=0";
	if (h.fecn)
		s += " fecn";
	if (h.becn)
		s += " becn";
	return s + format(" pad=%u", h.pad);
}

std::string ext_text(const roce_hdr &h)
{
	std::string s;

	if (h.flags & BTH_F_DETH)
		s += format(" deth(qkey=0x%08x sqp=0x%06x)", h.qkey, h.sqpn);
	if (h.flags & BTH_F_RETH)
		s += format(" reth(va=0x%016jx rkey=0x%08x len=%u)", uintmax_t{h.va}, h.rkey,
			    h.dmalen);
	if (h.flags & BTH_F_ATOMICETH) {
		s += format(" atomiceth(va=0x%016jx rkey=0x%08x ", uintmax_t{h.va}, h.rkey);
		if ((h.opcode & ~ROCE_CLASS_MASK) == ROCE_OP_COMPARE_SWAP)
			s += format("swap=0x%016jx compare=0x%016jx)", uintmax_t{h.swap_add},
				    uintmax_t{h.compare});
		else
			s += format("add=0x%016jx)", uintmax_t{h.swap_add});
	}
	if (h.flags & BTH_F_AETH)
		s += format(" aeth(%s msn=%u)", syndrome_text(h.syndrome).c_str(), h.msn);
	if (h.flags & BTH_F_ATOMICACKETH)
		s += format(" atomicacketh(orig=0x%016jx)", uintmax_t{h.orig});
	if (h.flags & BTH_F_IMM)
		s += format(" imm=0x%08x", ntohl(h.imm));
	if (h.flags & BTH_F_IETH)
		s += format(" ieth(rkey=0x%08x)", h.inv_rkey);
	return s;
}

} /* namespace */

std::string format(const char *form, ...)
{
	std::array<char, 256> text;
	va_list ap;

	va_start(ap, form);
	vsnprintf(text.data(), text.size(), form, ap);
	va_end(ap);
	return text.data();
}

std::string class_name(uint8_t opcode)
{
	return classes[opcode >> 5];
}

std::string opcode_name(uint8_t opcode)
{
	if (!bth_op_flags(opcode))
		return format("OPCODE_0x%02x", opcode);
	if (opcode == ROCE_CNP)
		return "CNP";

	const char *name = op_names[opcode & ~ROCE_CLASS_MASK];

	return class_name(opcode) + "_" + (name ? name : format("0x%02x", opcode));
}

std::string time_text(time_t sec, long nsec)
{
	tm local = {};

	if (!localtime_r(&sec, &local))
		return format("%jd.%09ld", intmax_t{sec}, nsec);
	return format("%02d:%02d:%02d.%09ld", local.tm_hour, local.tm_min, local.tm_sec, nsec);
}

std::string frame_text(const roce_frame &f)
{
	std::string s = f.src + " > " + f.to;

	if (f.l3 == ROCE_L3_GRH)
		s += " v1";
	for (unsigned id : f.vlans)
		s += format(" vlan=%u", id);
	if (f.ce)
		s += " ce";
	if (f.have_bth)
		s += bth_text(f.h);
	if (f.have_ext)
		s += ext_text(f.h) + format(" payload=%zu", f.payload);
	if (f.trailer)
		s += format(" trailer=%zu", f.trailer);
	s += f.icrc == crc::good ? " icrc=good" : f.icrc == crc::bad ? " icrc=BAD" : " icrc=?";
	if (f.cut)
		s += " (cut by the capture)";
	if (!f.faults.empty())
		s += " MALFORMED: " + f.faults;
	return s;
}

} /* namespace decode */
