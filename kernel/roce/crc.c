// SPDX-License-Identifier: GPL-2.0
/*
 * The CRC engine behind the ICRC.
 *
 * Kernels differ: crc32_le() is a table walk in some and vector code in others,
 * some have the vector code behind the crypto API only. So every engine
 * found is checked against the plain definition and timed once, when the module
 * is loaded, and the fastest serves. All run with BH off.
 */
#include <crypto/hash.h>
#include <linux/crc32.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include "proto/crc32.h"
#include "roce.h"

/* One packet of the largest path MTU. */
#define CRC_TRIAL_BYTES 4096
#define CRC_TRIALS 16

/* Below this the own engine serves always. */
#define CRC_SHORT 256

static struct crc32_scratch __percpu *crc_scratch;

static u32 crc_kernel(u32 crc, const void *buf, size_t len)
{
	return crc32_le(crc, buf, len);
}

/* BH is off, so the scratch of this CPU has no other user. */
static u32 crc_own(u32 crc, const void *buf, size_t len)
{
	return crc32_sparse_bytes(crc, buf, len, this_cpu_ptr(crc_scratch));
}

#if IS_REACHABLE(CONFIG_CRYPTO_HASH)
static struct crypto_shash *crc_shash;

/* The state of the "crc32" hash is the register itself. */
static u32 crc_crypto(u32 crc, const void *buf, size_t len)
{
	SHASH_DESC_ON_STACK(desc, crc_shash);

	desc->tfm = crc_shash;
	memcpy(shash_desc_ctx(desc), &crc, sizeof(crc));
	if (crypto_shash_update(desc, buf, len))
		return crc32_le(crc, buf, len);
	memcpy(&crc, shash_desc_ctx(desc), sizeof(crc));
	return crc;
}

static icrc_fn crc_crypto_open(void)
{
	crc_shash = crypto_alloc_shash("crc32", 0, 0);
	if (!IS_ERR(crc_shash) &&
	    crypto_shash_descsize(crc_shash) == sizeof(u32))
		return crc_crypto;
	if (!IS_ERR(crc_shash))
		crypto_free_shash(crc_shash);
	crc_shash = NULL;
	return NULL;
}

static void crc_crypto_close(void)
{
	if (crc_shash)
		crypto_free_shash(crc_shash);
}
#else
static icrc_fn crc_crypto_open(void)
{
	return NULL;
}

static void crc_crypto_close(void)
{
}
#endif

static icrc_fn crc_engine = crc_kernel;

/*
 * Headers and small packets are not worth an indirect call, nor the vector
 * registers that some engines have to save.
 */
u32 roce_crc32(u32 crc, const void *buf, size_t len)
{
	if (len < CRC_SHORT)
		return crc32_sparse(crc, buf, len);
	return crc_engine(crc, buf, len);
}

static bool crc_is_right(icrc_fn fn, const u8 *buf)
{
	size_t len;

	for (len = 0; len <= CRC_TRIAL_BYTES - 3; len += 1 + len / 7)
		if (fn(~0u, buf + len % 4, len) !=
		    crc32_le(~0u, buf + len % 4, len))
			return false;
	return true;
}

/* Nanoseconds of the fastest trial. */
static u64 crc_time(icrc_fn fn, const u8 *buf)
{
	u64 best = U64_MAX;
	u32 crc = ~0u;
	int i;

	for (i = 0; i < CRC_TRIALS; i++) {
		u64 start = ktime_get_ns();

		crc = fn(crc, buf, CRC_TRIAL_BYTES);
		crc = fn(crc, buf, CRC_TRIAL_BYTES);
		best = min(best, ktime_get_ns() - start);
	}
	return best;
}

static void crc_choose(const u8 *buf)
{
	icrc_fn engines[] = { crc_kernel, crc_own, crc_crypto_open() };
	u64 best = U64_MAX, ns;
	int i;

	for (i = 0; i < ARRAY_SIZE(engines); i++) {
		if (!engines[i])
			continue;
		local_bh_disable();
		ns = crc_is_right(engines[i], buf) ? crc_time(engines[i], buf) :
						     U64_MAX;
		local_bh_enable();
		if (ns < best) {
			best = ns;
			crc_engine = engines[i];
		}
	}
}

int roce_crc_init(void)
{
	u8 *buf;
	int i;

	crc_scratch = alloc_percpu(struct crc32_scratch);
	buf = kmalloc(CRC_TRIAL_BYTES, GFP_KERNEL);
	if (!crc_scratch || !buf) {
		free_percpu(crc_scratch);
		kfree(buf);
		return -ENOMEM;
	}
	for (i = 0; i < CRC_TRIAL_BYTES; i++)
		buf[i] = i * 31 >> 2;
	crc_choose(buf);
	kfree(buf);
	return 0;
}

void roce_crc_exit(void)
{
	crc_crypto_close();
	free_percpu(crc_scratch);
}
