// SPDX-License-Identifier: GPL-2.0
//
// Owners of verbs objects: unique handles whose end calls the verb that
// destroys the object and notes a failure when that verb refuses. EIO and
// ENODEV are no failure: the device is gone and took the object along.
#pragma once

#include <cerrno>
#include <cstring>
#include <memory>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "lib/check.hpp"

namespace vt {

template <auto destroy> struct closer {
	template <typename T> void operator()(T *object) const
	{
		const int rc = destroy(object);
		const int error = rc == -1 ? errno : rc;
		if (rc && error != EIO && error != ENODEV)
			FAIL("destroying a verbs object failed: %s", strerror(error));
	}
};

template <typename T, auto destroy> using handle = std::unique_ptr<T, closer<destroy>>;

using context_handle = handle<ibv_context, ibv_close_device>;
using pd_handle = handle<ibv_pd, ibv_dealloc_pd>;
using cq_handle = handle<ibv_cq, ibv_destroy_cq>;
using channel_handle = handle<ibv_comp_channel, ibv_destroy_comp_channel>;
using mr_handle = handle<ibv_mr, ibv_dereg_mr>;
using mw_handle = handle<ibv_mw, ibv_dealloc_mw>;
using qp_handle = handle<ibv_qp, ibv_destroy_qp>;
using srq_handle = handle<ibv_srq, ibv_destroy_srq>;
using ah_handle = handle<ibv_ah, ibv_destroy_ah>;

// A file descriptor.
class fd_handle {
public:
	fd_handle() = default;
	explicit fd_handle(int fd) : fd_(fd) {}
	fd_handle(fd_handle &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	fd_handle &operator=(fd_handle &&other) noexcept
	{
		reset(std::exchange(other.fd_, -1));
		return *this;
	}
	~fd_handle() { reset(); }

	int get() const { return fd_; }
	explicit operator bool() const { return fd_ >= 0; }
	void reset(int fd = -1)
	{
		if (fd_ >= 0)
			close(fd_);
		fd_ = fd;
	}

private:
	int fd_ = -1;
};

} // namespace vt
