// NVIDIA's driver, without CUDA's toolkit.

#pragma once

#include <cstddef>

namespace transect::cuda {

// Raises Failure, no-provider, unless the driver shows a device.
void require_device();

// Copies from the device and to it. The thread must have made a session on it, or run one: that
// makes it current.
void copy_to_host(void* to, const void* from, std::size_t bytes);
void copy_to_device(void* to, const void* from, std::size_t bytes);

}  // namespace transect::cuda
