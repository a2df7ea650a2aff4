#include "runtime.hpp"

#include <dlfcn.h>

#include "failure.hpp"

namespace transect {

Runtime::Runtime(const std::filesystem::path& library) {
    const auto fail = [&](const std::string& why) {
        return Failure(Cause::missing_dependency, "--library " + library.string() + ": " + why);
    };
    // Never closed: threads that the library has started may outlive its environment.
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw fail(std::string("cannot be loaded: ") + dlerror());
    using GetBase = const OrtApiBase* (*)();
    const auto get_base = reinterpret_cast<GetBase>(dlsym(handle, "OrtGetApiBase"));
    if (!get_base) throw fail("it has no OrtGetApiBase");
    const OrtApiBase* base = get_base();
    address_ = base;
    version_ = base->GetVersionString();
    const OrtApi* api = base->GetApi(ORT_API_VERSION);
    if (!api) {
        throw fail("it is ONNX Runtime " + version_ + ", expected one with API version " +
                   std::to_string(ORT_API_VERSION));
    }
    Ort::InitApi(api);
    environment_.emplace(ORT_LOGGING_LEVEL_ERROR, "transect");
}

}  // namespace transect
