// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32 engines in plain integer code.
 *
 * Any context. What makes the fast ones fast: a multiple of the polynomial
 * with five terms. Modulo the CRC a bit may be replaced by the other terms of
 * the multiple, so the front of a message can be folded into what follows
 * with a few shifts and xors until only its last bytes have to be divided.
 */
#include "crc32.h"

/* Words are little-endian here: bit 0 of byte 0 comes first in the message. */
static __always_inline u64 load64(const u8 *p)
{
	u64 v;

	__builtin_memcpy(&v, p, sizeof(v));
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

/* The @n < 8 bytes at @p as the low bytes of a word. */
static __always_inline u64 load_part(const u8 *p, size_t n)
{
	u64 v = 0;

	while (n--)
		v = v << 8 | p[n];
	return v;
}

/*
 * CRC of a word, one byte per table. A CRC is linear, so the row of a byte
 * follows from the CRCs of its eight bits.
 */
#define XOR16(x, a, b, c, d) \
	(x), (x) ^ (a), (x) ^ (b), (x) ^ (a) ^ (b), \
	(x) ^ (c), (x) ^ (a) ^ (c), (x) ^ (b) ^ (c), (x) ^ (a) ^ (b) ^ (c), \
	(x) ^ (d), (x) ^ (a) ^ (d), (x) ^ (b) ^ (d), (x) ^ (a) ^ (b) ^ (d), \
	(x) ^ (c) ^ (d), (x) ^ (a) ^ (c) ^ (d), (x) ^ (b) ^ (c) ^ (d), \
	(x) ^ (a) ^ (b) ^ (c) ^ (d)
#define ROW(a, b, c, d, e, f, g, h) { \
	XOR16(0u, a, b, c, d), XOR16(e, a, b, c, d), \
	XOR16(f, a, b, c, d), XOR16((e) ^ (f), a, b, c, d), \
	XOR16(g, a, b, c, d), XOR16((e) ^ (g), a, b, c, d), \
	XOR16((f) ^ (g), a, b, c, d), XOR16((e) ^ (f) ^ (g), a, b, c, d), \
	XOR16(h, a, b, c, d), XOR16((e) ^ (h), a, b, c, d), \
	XOR16((f) ^ (h), a, b, c, d), XOR16((e) ^ (f) ^ (h), a, b, c, d), \
	XOR16((g) ^ (h), a, b, c, d), XOR16((e) ^ (g) ^ (h), a, b, c, d), \
	XOR16((f) ^ (g) ^ (h), a, b, c, d), XOR16((e) ^ (f) ^ (g) ^ (h), a, b, c, d) }

static const u32 byte_row[8][256] = {
	ROW(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5,
	    0x7cbb312b, 0xf9766256, 0x299dc2ed, 0x533b85da),
	ROW(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67,
	    0x67de9cce, 0xcfbd399c, 0x440b7579, 0x8816eaf2),
	ROW(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d,
	    0x03d6029b, 0x07ac0536, 0x0f580a6c, 0x1eb014d8),
	ROW(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1,
	    0x60e09782, 0xc1c12f04, 0x58f35849, 0xb1e6b092),
	ROW(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef,
	    0x5019579f, 0xa032af3e, 0x9b14583d, 0xed59b63b),
	ROW(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8,
	    0x1c26a370, 0x384d46e0, 0x709a8dc0, 0xe1351b80),
	ROW(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08,
	    0x4ac21251, 0x958424a2, 0xf0794f05, 0x3b83984b),
	ROW(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832,
	    0x1db71064, 0x3b6e20c8, 0x76dc4190, 0xedb88320),
};

/*
 * CRC register after the eight bytes of @v. The half that does not wait for
 * @crc, the register before, is summed first.
 */
static __always_inline u32 crc_word(u64 v, u32 crc)
{
	const u32 low = (u32)v ^ crc, high = (u32)(v >> 32);
	const u32 ready = byte_row[7][high >> 24] ^ byte_row[6][high >> 16 & 0xff] ^
			  byte_row[5][high >> 8 & 0xff] ^ byte_row[4][high & 0xff];

	return (ready ^ byte_row[0][low & 0xff] ^ byte_row[1][low >> 8 & 0xff]) ^
	       (byte_row[2][low >> 16 & 0xff] ^ byte_row[3][low >> 24]);
}

/* The last @n < 8 bytes of a message. */
static __always_inline u32 crc_part(u32 crc, const u8 *p, size_t n)
{
	u64 v;

	if (!n)
		return crc;
	/* Bytes moved to the end of a word of zeros: leading zeros add nothing. */
	v = (load_part(p, n) ^ crc) << (64 - 8 * n);
	return crc_word(v, 0) ^ (u32)((u64)crc >> 8 * n);
}

u32 crc32_small(u32 crc, const void *buf, size_t len)
{
	const u8 *p = buf;

	for (; len >= 8; len -= 8, p += 8)
		crc = crc_word(load64(p), crc);
	return crc_part(crc, p, len);
}

/*
 * x^300 + x^155 + x^117 + x^89 + 1 is a multiple of the polynomial: a bit of
 * the message may be cancelled by adding it 145, 183, 211 and 300 bits later.
 * For a word that is 2 words + 17 bits, 2 + 55, 3 + 19 and 4 + 44. @p2 .. @p5
 * sum up what is added to the second to fifth word after @w.
 */
#define FOLD_WORDS 5
#define FOLD(w, p2, p3, p4, p5) do { \
	(p2) ^= (w) << 17 ^ (w) << 55; \
	(p3) ^= (w) >> 47 ^ (w) >> 9 ^ (w) << 19; \
	(p4) ^= (w) >> 45 ^ (w) << 44; \
	(p5) = (w) >> 20; \
} while (0)

u32 crc32_sparse(u32 crc, const void *buf, size_t len)
{
	u64 p0 = crc, p1 = 0, p2 = 0, p3 = 0, p4 = 0, w;
	const u8 *p = buf;

	/* A word to fold and the five that it adds to. */
	if (len < 8 * FOLD_WORDS + 8)
		return crc32_small(crc, buf, len);

	/* Five words a turn, so that the sums change roles instead of places. */
	for (; len >= 16 * FOLD_WORDS; len -= 8 * FOLD_WORDS, p += 8 * FOLD_WORDS) {
		w = load64(p) ^ p0;
		FOLD(w, p2, p3, p4, p0);
		w = load64(p + 8) ^ p1;
		FOLD(w, p3, p4, p0, p1);
		w = load64(p + 16) ^ p2;
		FOLD(w, p4, p0, p1, p2);
		w = load64(p + 24) ^ p3;
		FOLD(w, p0, p1, p2, p3);
		w = load64(p + 32) ^ p4;
		FOLD(w, p1, p2, p3, p4);
	}
	for (; len >= 8 * FOLD_WORDS + 8; len -= 8, p += 8) {
		w = load64(p) ^ p0;
		FOLD(w, p2, p3, p4, p0);
		w = p0;
		p0 = p1;
		p1 = p2;
		p2 = p3;
		p3 = p4;
		p4 = w;
	}

	crc = crc_word(load64(p) ^ p0, 0);
	crc = crc_word(load64(p + 8) ^ p1, crc);
	crc = crc_word(load64(p + 16) ^ p2, crc);
	crc = crc_word(load64(p + 24) ^ p3, crc);
	crc = crc_word(load64(p + 32) ^ p4, crc);
	return crc32_small(crc, p + 40, len - 40);
}

/*
 * The same multiple at x^8, which is its eighth power and so a multiple too:
 * the distances become 145, 183, 211 and 300 bytes, and shifts become
 * unaligned loads from the words folded so far.
 */
#define HISTORY 304

/*
 * out[i] = src[i] + what the bytes before it add, which lie before @past. @n
 * is a multiple of 8. With out == past this folds. Neither overlaps @src.
 */
static inline void fold_bytes(u8 *out, const u8 *past, const u8 *src, size_t n)
{
	size_t i;

	for (i = 0; i < n; i += 8) {
		u64 v, a, b, c, d;

		/* The order of bytes in a word does not matter to a sum. */
		__builtin_memcpy(&v, src + i, 8);
		__builtin_memcpy(&a, past + i - 145, 8);
		__builtin_memcpy(&b, past + i - 183, 8);
		__builtin_memcpy(&c, past + i - 211, 8);
		__builtin_memcpy(&d, past + i - 300, 8);
		v ^= a ^ b ^ c ^ d;
		__builtin_memcpy(out + i, &v, 8);
	}
}

u32 crc32_sparse_bytes(u32 crc, const void *buf, size_t len, struct crc32_scratch *s)
{
	/* history, words folded in this turn or the zeros that end them, the tail */
	u8 *const history = (u8 *)s->word;
	u8 *const folded = history + HISTORY;
	u8 *const tail = history + sizeof(s->word) - HISTORY;
	const size_t room = sizeof(s->word) - 3 * HISTORY;
	const u8 *p = buf;
	size_t n;

	if (len < CRC32_SPARSE_BYTES_MIN)
		return crc32_sparse(crc, buf, len);

	/* The register adds to the first four bytes: a past 300 bytes back. */
	memset(history, 0, HISTORY);
	history[HISTORY - 300] = (u8)crc;
	history[HISTORY - 299] = (u8)(crc >> 8);
	history[HISTORY - 298] = (u8)(crc >> 16);
	history[HISTORY - 297] = (u8)(crc >> 24);

	for (;;) {
		n = (len - HISTORY) & ~(size_t)7;
		if (n > room)
			n = room;
		fold_bytes(folded, folded, p, n);
		p += n;
		len -= n;
		if (len < HISTORY + 8)
			break;
		/* a full turn, which is longer than the history: no overlap */
		memcpy(history, folded + n - HISTORY, HISTORY);
	}

	/* What is left only receives: nothing but zeros behind the last fold. */
	memset(folded + n, 0, HISTORY);
	fold_bytes(tail, folded + n, p, HISTORY);
	crc = crc32_sparse(0, tail, HISTORY);
	return crc32_small(crc, p + HISTORY, len - HISTORY);
}
