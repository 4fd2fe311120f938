/* SPDX-License-Identifier: GPL-2.0 */
/* 6.12: asm/unaligned.h moved here; found only where the kernel has none. */
#include <asm/unaligned.h>
