/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One captured frame taken apart: link layer, IP and UDP or GRH here, the
 * RoCE headers by kernel/proto. What is wrong with a frame is said in words;
 * how a frame or a sum of them is shown is not done here.
 */
#ifndef SRN_DECODE_FRAME_H
#define SRN_DECODE_FRAME_H

#include "bth.h"
#include "icrc.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace decode {

using view = std::span<const uint8_t>;

enum class crc { good, bad, unseen };

/**
 * struct roce_frame - a RoCE frame
 * @vlans: VLAN ids, outermost first
 * @src: address, with the UDP source port where there is one
 * @from: address alone
 * @to: destination address
 * @ce: congestion mark of the IP header
 * @have_bth: the BTH fields of @h are valid
 * @have_ext: so are the extended headers of its opcode
 * @h: headers
 * @payload: bytes, without pad and ICRC
 * @icrc: verdict; unseen when the bytes are not there
 * @cut: the capture kept only the first bytes
 * @trailer: bytes behind the packet, above what Ethernet pads to
 * @faults: what makes it malformed; a bad ICRC is not among it
 */
struct roce_frame {
	enum roce_l3 l3 = ROCE_L3_IPV4;
	std::vector<unsigned> vlans;
	std::string src, from, to;
	bool ce = false;
	bool have_bth = false;
	bool have_ext = false;
	roce_hdr h = {};
	size_t payload = 0;
	crc icrc = crc::unseen;
	bool cut = false;
	size_t trailer = 0;
	std::string faults;

	/* Headers and payload are what the sender meant. */
	bool sound() const
	{
		return have_ext && faults.empty() && icrc != crc::bad;
	}
};

/* Can frames of this link type (DLT_*) be read? */
bool link_known(int link);

/**
 * dissect() - take a frame apart
 * @link: link type, DLT_*
 * @data: what was captured of it
 * @wire: bytes that it had
 *
 * Return: nothing when it is no RoCE frame, or not enough is there to tell.
 */
std::optional<roce_frame> dissect(int link, view data, size_t wire);

} /* namespace decode */

#endif /* SRN_DECODE_FRAME_H */
