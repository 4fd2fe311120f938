// SPDX-License-Identifier: GPL-2.0
/*
 * bth_parse(), bth_build(), bth_len_ok() and bth_seq_next() on one packet.
 * Input: 2 bytes transport length, then transport headers.
 */
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz::input in(data, size);
	const size_t len = fuzz::take(in, 2);
	const auto t = fuzz::exact(in, std::min<size_t>(len, ROCE_HDR_MAX));
	roce_hdr h{};

	if (fuzz::check_parse(t.get(), len, &h) != BTH_OK)
		return 0;

	const model::op *o = model::find_op(h.opcode);

	for (enum roce_seq seq : {ROCE_SEQ_IDLE, ROCE_SEQ_SEND, ROCE_SEQ_WRITE}) {
		enum roce_seq next = seq;
		bool want = false;

		if (model::is_request(*o)) {
			const bool inside = model::is_middle(*o) || model::is_last(*o);

			want = seq == ROCE_SEQ_IDLE ? !inside :
			       inside && model::is_send(*o) == (seq == ROCE_SEQ_SEND);
		}
		ORACLE(bth_seq_next(seq, h.flags, &next) == want);
		if (!want)
			ORACLE(next == seq);
		else if (model::is_first(*o) || model::is_middle(*o))
			ORACLE(next == (model::is_send(*o) ? ROCE_SEQ_SEND : ROCE_SEQ_WRITE));
		else
			ORACLE(next == ROCE_SEQ_IDLE);
	}
	return 0;
}
