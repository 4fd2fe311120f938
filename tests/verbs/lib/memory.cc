// SPDX-License-Identifier: GPL-2.0
//
// Canaries and patterns.

#include "lib/memory.hpp"

#include <algorithm>
#include <sys/mman.h>

namespace vt {

namespace {

constexpr size_t page = 4096;
constexpr uint8_t canary = 0xc5;

size_t mapping_bytes(size_t len, size_t offset)
{
	return (offset + std::max<size_t>(len, 1) + page - 1) / page * page + 2 * page;
}

// 8 bytes of the pattern: a mix of seed and position.
uint64_t pattern_word(uint64_t seed, uint64_t index)
{
	uint64_t x = (index + 1) * 0x9e3779b97f4a7c15ull ^ seed * 0xd1342543de82ef95ull;
	x ^= x >> 29;
	return x * 0xbf58476d1ce4e5b9ull;
}

// The first position in [from, to) that does not hold value, or to.
const uint8_t *find_other(const uint8_t *from, const uint8_t *to, uint8_t value)
{
	return std::find_if(from, to, [=](uint8_t v) { return v != value; });
}

} // namespace

mapping::mapping(size_t bytes) : bytes_(bytes)
{
	void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(p != MAP_FAILED, "mmap %zu: %s", bytes, strerror(errno));
	at_ = static_cast<uint8_t *>(p);
}

mapping::mapping(mapping &&other) noexcept
	: at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0))
{
}

mapping::~mapping()
{
	if (at_)
		munmap(at_, bytes_);
}

buffer::buffer(ibv_pd *pd, size_t len, int access, size_t offset)
	: len_(len), map_(mapping_bytes(len, offset)), at_(map_.data() + page + offset)
{
	std::fill(map_.data(), at_, canary);
	std::fill(at_ + len_, map_.data() + map_.size(), canary);
	mr_.reset(ibv_reg_mr(pd, at_, std::max<size_t>(len, 1), access));
	REQUIRE(mr_, "ibv_reg_mr(%zu bytes, access %#x): %s", len, access, strerror(errno));
}

void buffer::clear(uint8_t value)
{
	std::fill(at_, at_ + len_, value);
}

bool buffer::check_canaries(const std::string &what) const
{
	const uint8_t *end = map_.data() + map_.size();
	const uint8_t *bad = find_other(map_.data(), at_, canary);
	if (bad != at_)
		return FAIL("%s: byte %zd before the buffer is %#x", what.c_str(), at_ - bad, *bad);
	bad = find_other(at_ + len_, end, canary);
	if (bad != end)
		return FAIL("%s: byte %zd behind the buffer is %#x", what.c_str(), bad - (at_ + len_), *bad);
	return true;
}

bool buffer::check_clear(size_t from, size_t len, const std::string &what, uint8_t value) const
{
	const uint8_t *bad = find_other(at_ + from, at_ + from + len, value);
	if (bad != at_ + from + len)
		return FAIL("%s: byte %zd changed to %#x", what.c_str(), bad - at_, *bad);
	return true;
}

void fill_pattern(std::span<uint8_t> out, uint64_t seed, size_t from)
{
	size_t i = 0;
	if (from % 8 == 0)
		for (; i + 8 <= out.size(); i += 8) {
			const uint64_t w = pattern_word(seed, (from + i) / 8);
			memcpy(&out[i], &w, 8);
		}
	for (; i < out.size(); i++)
		out[i] = static_cast<uint8_t>(pattern_word(seed, (from + i) / 8) >> 8 * ((from + i) % 8));
}

bool check_pattern(std::span<const uint8_t> in, uint64_t seed, const std::string &what, size_t from)
{
	size_t i = 0;
	if (from % 8 == 0)
		for (; i + 8 <= in.size(); i += 8) {
			const uint64_t w = pattern_word(seed, (from + i) / 8);
			if (memcmp(&in[i], &w, 8))
				break;
		}
	for (; i < in.size(); i++) {
		const uint8_t want = static_cast<uint8_t>(pattern_word(seed, (from + i) / 8) >>
							  8 * ((from + i) % 8));
		if (in[i] != want)
			return FAIL("%s: byte %zu of %zu is %#x, expected %#x", what.c_str(), from + i,
				    from + in.size(), in[i], want);
	}
	return true;
}

} // namespace vt
