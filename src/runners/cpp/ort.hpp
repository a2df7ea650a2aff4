// ONNX Runtime's C++ API without its library: that is loaded by `Runtime`, and all files must agree.

#pragma once

#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>
