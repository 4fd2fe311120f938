/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What went to each queue pair, from which host: counts, and the PSNs.
 *
 *	requests   ->  PSNs of the sender: a step over some is a gap, one that
 *	               was there before a retransmission
 *	responses  ->  PSNs of the receiver's own requests: ACKs may skip, data
 *	               of a READ may not
 *
 * A flow is what one host sends to one queue pair of another. RC packets do
 * not name the queue pair they come from; datagrams do.
 */
#ifndef SRN_DECODE_FLOWS_H
#define SRN_DECODE_FLOWS_H

#include "frame.h"

#include <compare>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

namespace decode {

class psn_track {
public:
	/* A request, in the order of capture. */
	void request(const roce_hdr &h);
	/* Data of a READ, or the answer to an atomic. */
	void response(const roce_hdr &h);

	uint64_t gaps = 0;		/* how often PSNs were stepped over */
	uint64_t missing = 0;		/* how many they were */
	uint64_t retransmitted = 0;

private:
	/* How many PSNs it took depends on the path MTU. */
	struct read {
		u32 psn, rkey, len;
		u64 va;

		u32 end(u32 pmtu) const;
	};

	void step(u32 psn, u32 expected);
	bool resumes(const roce_hdr &h);

	std::optional<u32> next_;	/* PSN of the next new request */
	std::optional<read> read_;	/* then this came last, and next_ is behind it */
	std::optional<u32> next_response_;
	u32 pmtus_ = 0x1f00;		/* a bit for each path MTU that it may be */
};

class flows {
public:
	void add(const roce_frame &f);
	void print(FILE *to) const;

private:
	struct key {
		std::string from, to;
		uint32_t qpn;
		std::string cls;
		uint32_t sqpn;

		auto operator<=>(const key &) const = default;
	};

	struct flow {
		uint64_t packets = 0, bytes = 0, ack = 0, nak = 0, rnr = 0;
		uint64_t bad = 0, malformed = 0;
		psn_track psns;
	};

	std::map<key, flow> all_;
};

} /* namespace decode */

#endif /* SRN_DECODE_FLOWS_H */
