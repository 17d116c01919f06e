// The one switch over formats.
#pragma once

#include <type_traits>

#include "src/kernels/formats/q2_k.h"
#include "src/kernels/formats/q3_k.h"
#include "src/kernels/formats/q4_0.h"
#include "src/kernels/formats/q4_1.h"
#include "src/kernels/formats/q4_k.h"
#include "src/kernels/formats/q5_0.h"
#include "src/kernels/formats/q5_1.h"
#include "src/kernels/formats/q5_k.h"
#include "src/kernels/formats/q6_k.h"
#include "src/kernels/formats/q8_0.h"

namespace ptxgen::formats {

// Calls f(std::type_identity<F>{}) with the format's struct.
template <class Function>
decltype(auto) with_format(Format format, Function&& f) {
  switch (format) {
    case Format::kQ4_0: return f(std::type_identity<Q4_0>{});
    case Format::kQ4_1: return f(std::type_identity<Q4_1>{});
    case Format::kQ5_0: return f(std::type_identity<Q5_0>{});
    case Format::kQ5_1: return f(std::type_identity<Q5_1>{});
    case Format::kQ8_0: return f(std::type_identity<Q8_0>{});
    case Format::kQ2_K: return f(std::type_identity<Q2_K>{});
    case Format::kQ3_K: return f(std::type_identity<Q3_K>{});
    case Format::kQ4_K: return f(std::type_identity<Q4_K>{});
    case Format::kQ5_K: return f(std::type_identity<Q5_K>{});
    case Format::kQ6_K: break;
  }
  return f(std::type_identity<Q6_K>{});
}

}  // namespace ptxgen::formats
