#include "cuda.hpp"

#include <dlfcn.h>

#include <cstring>

#include "result.hpp"

namespace {

// On 64 bits a device's addresses are passed as pointers are.
using Copy = int (*)(void* to, const void* from, std::size_t bytes);

Copy find(const char* name) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void* found = library ? dlsym(library, name) : nullptr;
    if (!found) throw Failure(Cause::crash, std::string("CUDA's driver has no ") + name);
    return reinterpret_cast<Copy>(found);
}

void check(int error, const char* call) {
    if (error == 0) return;
    const auto said = std::string(call) + " returned " + std::to_string(error);
    throw Failure(Cause::crash, "CUDA: " + said);
}

}  // namespace

void copy_to_host(OrtMemoryInfoDeviceType device, void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    if (device == OrtMemoryInfoDeviceType_CPU) return void(std::memcpy(to, from, bytes));
    static const auto copy = find("cuMemcpyDtoH_v2");
    check(copy(to, from, bytes), "cuMemcpyDtoH");
}

void copy_to_device(OrtMemoryInfoDeviceType device, void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    if (device == OrtMemoryInfoDeviceType_CPU) return void(std::memcpy(to, from, bytes));
    static const auto copy = find("cuMemcpyHtoD_v2");
    check(copy(to, from, bytes), "cuMemcpyHtoD");
}
