/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The only door between the protocol code and its host.
 *
 * Everything in kernel/proto compiles in the kernel, in C++20 tests, in the
 * fuzzers and in the tools. It allocates nothing, takes no locks and has no
 * globals but constant tables.
 */
#ifndef SRN_PROTO_TYPES_H
#define SRN_PROTO_TYPES_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <sys/cdefs.h>	/* __always_inline */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef uint32_t __be32;
#endif

#ifdef __cplusplus
#define SRN_PROTO_BEGIN extern "C" {
#define SRN_PROTO_END }
#else
#define SRN_PROTO_BEGIN
#define SRN_PROTO_END
#endif

/*
 * Big-endian loads and stores at any alignment. Written with bytes so that
 * they mean the same in every host; compilers fold each into one load and a
 * byte swap, once it is inline: kernels built for size would call it.
 */
static __always_inline u16 wire_get16(const u8 *p)
{
	return (u16)(p[0] << 8 | p[1]);
}

static __always_inline u32 wire_get24(const u8 *p)
{
	return (u32)p[0] << 16 | (u32)p[1] << 8 | p[2];
}

static __always_inline u32 wire_get32(const u8 *p)
{
	return (u32)p[0] << 24 | wire_get24(p + 1);
}

static __always_inline u64 wire_get64(const u8 *p)
{
	return (u64)wire_get32(p) << 32 | wire_get32(p + 4);
}

static __always_inline void wire_put16(u8 *p, u16 v)
{
	p[0] = (u8)(v >> 8);
	p[1] = (u8)v;
}

static __always_inline void wire_put24(u8 *p, u32 v)
{
	p[0] = (u8)(v >> 16);
	p[1] = (u8)(v >> 8);
	p[2] = (u8)v;
}

static __always_inline void wire_put32(u8 *p, u32 v)
{
	p[0] = (u8)(v >> 24);
	wire_put24(p + 1, v & 0xffffff);
}

static __always_inline void wire_put64(u8 *p, u64 v)
{
	wire_put32(p, (u32)(v >> 32));
	wire_put32(p + 4, (u32)v);
}

#endif /* SRN_PROTO_TYPES_H */
