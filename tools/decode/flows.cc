// SPDX-License-Identifier: GPL-2.0
/*
 * Sums per flow. Damaged frames are counted and otherwise left alone, since
 * any of their fields may be the damage.
 */
#include "flows.h"
#include "aeth.h"
#include "psn.h"
#include "seg.h"
#include "text.h"

#include <bit>
#include <cinttypes>

namespace decode {

void psn_track::step(u32 psn, u32 expected)
{
	const s32 ahead = psn_diff(psn, expected);

	if (ahead > 0) {
		gaps++;
		missing += static_cast<uint32_t>(ahead);
	} else if (ahead < 0) {
		retransmitted++;
	}
}

u32 psn_track::read::end(u32 pmtu) const
{
	return psn_add(psn, seg_packets(len, pmtu));
}

/* Does it ask again for the rest of the last READ? */
bool psn_track::resumes(const roce_hdr &h)
{
	const s32 packets = psn_diff(h.psn, read_->psn);
	const u64 bytes = h.va - read_->va;

	if (!(h.flags & BTH_F_READ_REQ) || h.rkey != read_->rkey || packets <= 0 ||
	    bytes >= read_->len || h.dmalen != read_->len - bytes)
		return false;

	const u64 pmtu = bytes / static_cast<u32>(packets);

	if (pmtu * static_cast<u32>(packets) != bytes || !std::has_single_bit(pmtu) ||
	    !(pmtu & pmtus_))
		return false;
	pmtus_ = static_cast<u32>(pmtu);
	return true;
}

void psn_track::request(const roce_hdr &h)
{
	/* a packet that more follow is as long as the path MTU */
	if (h.flags & BTH_F_PAYLOAD && !(h.flags & BTH_F_END))
		pmtus_ = h.payload_len;
	if (read_) {
		u32 fitting = 0;

		if (resumes(h)) {
			retransmitted++;
			return;
		}
		for (u32 rest = pmtus_; rest; rest &= rest - 1)
			if (read_->end(rest & -rest) == h.psn)
				fitting |= rest & -rest;
		if (fitting)
			pmtus_ = fitting;
		next_ = read_->end(std::bit_floor(pmtus_));
	}
	if (next_)
		step(h.psn, *next_);

	/* an old one does not move the end */
	if (next_ && psn_before(h.psn, *next_))
		return;
	next_ = psn_add(h.psn, 1);
	read_.reset();
	if (h.flags & BTH_F_READ_REQ)
		read_ = {h.psn, h.rkey, h.dmalen, h.va};
}

void psn_track::response(const roce_hdr &h)
{
	const bool goes_on = h.flags & BTH_F_READ_RESP && !(h.flags & BTH_F_START);

	/* what begins an answer may skip the PSNs of other requests */
	if (next_response_ && (goes_on || psn_before(h.psn, *next_response_)))
		step(h.psn, *next_response_);
	if (!next_response_ || !psn_before(h.psn, *next_response_))
		next_response_ = psn_add(h.psn, 1);
}

void flows::add(const roce_frame &f)
{
	if (!f.have_bth)
		return;

	const bool datagram = f.have_ext && f.h.flags & BTH_F_DETH;
	flow &to = all_[{f.from, f.to, f.h.dqpn, class_name(f.h.opcode),
			 datagram ? f.h.sqpn : 0}];

	to.packets++;
	if (f.icrc == crc::bad)
		to.bad++;
	if (!f.faults.empty())
		to.malformed++;
	if (!f.sound())
		return;
	to.bytes += f.payload;
	if (f.h.flags & BTH_F_AETH) {
		switch (aeth_type(f.h.syndrome)) {
		case AETH_ACK:
			to.ack++;
			break;
		case AETH_RNR:
			to.rnr++;
			break;
		case AETH_NAK:
			to.nak++;
			break;
		default:
			break;
		}
	}
	/* a datagram's PSN counts what its sender sent to anyone */
	if (datagram)
		return;
	if (f.h.flags & BTH_F_REQUEST)
		to.psns.request(f.h);
	else if (f.h.flags & (BTH_F_READ_RESP | BTH_F_ATOMICACKETH))
		to.psns.response(f.h);
}

void flows::print(FILE *to) const
{
	for (const auto &[k, f] : all_) {
		fprintf(to, "%s > %s qp=0x%06x %s", k.from.c_str(), k.to.c_str(), k.qpn,
			k.cls.c_str());
		if (k.sqpn)
			fprintf(to, " sqp=0x%06x", k.sqpn);
		fprintf(to, " packets=%" PRIu64 " bytes=%" PRIu64, f.packets, f.bytes);
		if (k.cls == "RC" || k.cls == "UC")
			fprintf(to,
				" ack=%" PRIu64 " nak=%" PRIu64 " rnr=%" PRIu64 " gaps=%" PRIu64
				" missing=%" PRIu64 " retransmitted=%" PRIu64,
				f.ack, f.nak, f.rnr, f.psns.gaps, f.psns.missing,
				f.psns.retransmitted);
		fprintf(to, " bad=%" PRIu64 " malformed=%" PRIu64 "\n", f.bad, f.malformed);
	}
}

} /* namespace decode */
