/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Text: printf() into a string, names of the protocol, one frame as a line.
 */
#ifndef SRN_DECODE_TEXT_H
#define SRN_DECODE_TEXT_H

#include <cstdint>
#include <ctime>
#include <string>

namespace decode {

struct roce_frame;

[[gnu::format(printf, 1, 2)]] std::string format(const char *form, ...);

/* "RC", "UC", ...: transport class of an opcode. */
std::string class_name(uint8_t opcode);

/* "RC_WRITE_ONLY"; "OPCODE_0x18" when there is no such. */
std::string opcode_name(uint8_t opcode);

/* Local time of day, nanoseconds. */
std::string time_text(time_t sec, long nsec);

/* All of a frame but the time. */
std::string frame_text(const roce_frame &f);

} /* namespace decode */

#endif /* SRN_DECODE_TEXT_H */
