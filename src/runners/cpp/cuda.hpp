// Copies between host and device by NVIDIA's driver, without CUDA's toolkit.

#pragma once

#include "plan.hpp"

// The thread must have made a session on the device, or run one: that makes it current. Where the
// device is the host, memory is copied. Raises Failure, crash.
void copy_to_host(OrtMemoryInfoDeviceType device, void* to, const void* from, std::size_t bytes);
void copy_to_device(OrtMemoryInfoDeviceType device, void* to, const void* from, std::size_t bytes);
