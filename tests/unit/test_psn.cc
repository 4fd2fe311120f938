// SPDX-License-Identifier: GPL-2.0
/*
 * 24-bit serial arithmetic, compared with arithmetic on unbounded integers.
 */
#include "psn.h"
#include "unit.h"

#include <cstdint>

namespace {

constexpr int64_t modulus = 1 << 24;
constexpr int64_t half = 1 << 23;

const u32 bases[] = {
	0, 1, 2, 0x7ffffe, 0x7fffff, 0x800000, 0x800001, 0xcf1710, 0xfffffe, 0xffffff,
};

u32 wrap(int64_t v)
{
	return static_cast<u32>(((v % modulus) + modulus) % modulus);
}

} /* namespace */

TEST("R027 PSN addition and subtraction wrap at 2^24")
{
	EQ(psn_add(0xffffff, 1), 0u);
	EQ(psn_add(0xfffffe, 4), 2u);
	EQ(psn_sub(0, 1), 0xffffffu);
	EQ(psn_sub(3, 5), 0xfffffeu);
	for (u32 a : bases)
		for (u32 n : {0u, 1u, 2u, 0x7fffffu, 0x800000u, 0xffffffu, 0x1000000u, 0xffffffffu}) {
			EQ(psn_add(a, n), wrap(int64_t{a} + n), "%#x + %#x", a, n);
			EQ(psn_sub(a, n), wrap(int64_t{a} - n), "%#x - %#x", a, n);
		}
}

TEST("R027 PSN distance is exact over the whole circle")
{
	for (u32 a : bases)
		for (int64_t d = -half; d < half; d += a == 0xffffff ? 1 : 997) {
			const u32 b = wrap(a + d);

			EQ(psn_diff(b, a), d, "a %#x b %#x", a, b);
			EQ(psn_before(b, a), d < 0, "a %#x b %#x", a, b);
		}
}

TEST("R027 PSN order at the borders of the window")
{
	EQ(psn_diff(0, 0xffffff), 1);
	EQ(psn_diff(0xffffff, 0), -1);
	CHECK(psn_before(0xffffff, 0));
	CHECK(!psn_before(0, 0xffffff));
	CHECK(!psn_before(5, 5));
	for (u32 a : bases) {
		/* half a circle ahead is as far as "after" goes */
		CHECK(psn_before(a, psn_add(a, 0x7fffff)), "%#x", a);
		CHECK(!psn_before(psn_add(a, 0x7fffff), a), "%#x", a);
		EQ(psn_diff(psn_add(a, 0x800000), a), -half, "%#x", a);
	}
}

TEST("R027 PSN ranges across the wrap")
{
	for (u32 first : bases)
		for (u32 n : {0u, 1u, 2u, 17u, 0x7fffffu, 0x800000u})
			for (int64_t d = -20; d < 40; d++) {
				EQ(psn_in(wrap(first + d), first, n), d >= 0 && d < n,
				   "first %#x n %#x offset %lld", first, n, static_cast<long long>(d));
				EQ(psn_in(wrap(int64_t{first} + n - 1 + d), first, n),
				   n + d >= 1 && d <= 0,
				   "first %#x n %#x from last %lld", first, n, static_cast<long long>(d));
			}
}
