// SPDX-License-Identifier: GPL-2.0
//
// Registered memory between canaries, filled with patterns that tell where a
// wrong byte came from.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lib/raii.hpp"

namespace vt {

constexpr int access_local = IBV_ACCESS_LOCAL_WRITE;
constexpr int access_all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// An anonymous mapping.
class mapping {
public:
	explicit mapping(size_t bytes);
	mapping(mapping &&other) noexcept;
	~mapping();

	uint8_t *data() const { return at_; }
	size_t size() const { return bytes_; }

private:
	uint8_t *at_ = nullptr;
	size_t bytes_ = 0;
};

// Memory of len bytes at offset bytes into a page, at least a page of canary
// before and behind it, and an MR that covers exactly the len bytes (one byte
// when len is 0).
class buffer {
public:
	buffer(ibv_pd *pd, size_t len, int access = access_all, size_t offset = 0);

	uint8_t *data() const { return at_; }
	size_t size() const { return len_; }
	uint64_t addr() const { return reinterpret_cast<uintptr_t>(at_); }
	uint32_t lkey() const { return mr_->lkey; }
	uint32_t rkey() const { return mr_->rkey; }
	ibv_mr *mr() const { return mr_.get(); }
	void release_mr() { mr_.reset(); }
	std::span<uint8_t> bytes(size_t from, size_t len) const { return { at_ + from, len }; }
	ibv_sge sge(size_t from, size_t len) const
	{
		return { addr() + from, static_cast<uint32_t>(len), lkey() };
	}
	ibv_sge sge() const { return sge(0, len_); }

	// Makes all of the buffer value.
	void clear(uint8_t value = 0xee);
	// The canaries around the buffer; what names the occasion.
	bool check_canaries(const std::string &what) const;
	// [from, from + len) still holds the value of clear().
	bool check_clear(size_t from, size_t len, const std::string &what, uint8_t value = 0xee) const;

private:
	size_t len_;
	mapping map_;
	uint8_t *at_;
	mr_handle mr_;
};

// A pattern that differs for each seed, repeats nowhere nearby and is cheap.
void fill_pattern(std::span<uint8_t> out, uint64_t seed, size_t from = 0);
bool check_pattern(std::span<const uint8_t> in, uint64_t seed, const std::string &what,
		   size_t from = 0);

} // namespace vt
