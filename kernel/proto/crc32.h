/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CRC-32 engines for the ICRC, in integer instructions only: no SIMD, no FPU,
 * so they run in softirq and in kernels that offer nothing better.
 *
 * All work on the register of icrc_fn (reflected 0xEDB88320, no complement)
 * and give the same result; they differ in speed and in the memory they touch.
 */
#ifndef SRN_PROTO_CRC32_H
#define SRN_PROTO_CRC32_H

#include "types.h"

SRN_PROTO_BEGIN

/**
 * crc32_small() - CRC register over a short buffer
 *
 * Eight bytes per step through 8 KiB of constants. The other engines end with
 * it. Any context.
 */
u32 crc32_small(u32 crc, const void *buf, size_t len);

/**
 * crc32_sparse() - CRC register over any buffer; an icrc_fn
 *
 * Folds in registers and needs neither memory nor set-up; hands short buffers
 * to crc32_small(). Any context, less than 100 bytes of stack.
 */
u32 crc32_sparse(u32 crc, const void *buf, size_t len);

/* From this length on crc32_sparse_bytes() beats crc32_sparse(). */
#define CRC32_SPARSE_BYTES_MIN 1280

/**
 * struct crc32_scratch - working memory of crc32_sparse_bytes()
 *
 * Contents mean nothing between calls. Too large for the stack of a softirq:
 * the caller keeps one per context that cannot be interrupted by another user.
 */
struct crc32_scratch {
	u64 word[320];
};

/**
 * crc32_sparse_bytes() - CRC register over a long buffer
 *
 * Falls back to crc32_sparse() below CRC32_SPARSE_BYTES_MIN.
 */
u32 crc32_sparse_bytes(u32 crc, const void *buf, size_t len, struct crc32_scratch *s);

SRN_PROTO_END

#endif /* SRN_PROTO_CRC32_H */
