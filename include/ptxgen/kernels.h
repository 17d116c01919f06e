// The kernels that ptxgen ships, and the registry that finds them by name.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/export.h"
#include "ptxgen/format.h"
#include "ptxgen/kernel_type.h"

namespace ptxgen {

template <>
inline constexpr std::array<std::string_view, kFormats.size()> kEnumNames<Format> = [] {
  std::array<std::string_view, kFormats.size()> names;
  for (const FormatInfo& format : kFormats) names[static_cast<std::size_t>(format.format)] = format.name;
  return names;
}();

// The types of the numbers in buffers. e4m3 has 4 bits of exponent, 3 of mantissa, no infinity, and 448 as
// its largest value (PTX ISA, "Alternate floating point data formats").
enum class ElementType : u8 { kF32, kF16, kBf16, kE4m3 };
template <>
inline constexpr std::array<std::string_view, 4> kEnumNames<ElementType> = {"f32", "f16", "bf16", "e4m3"};
constexpr u32 bytes_of(ElementType type) {
  return type == ElementType::kF32 ? 4 : type == ElementType::kE4m3 ? 1 : 2;
}

// out[n][k] = dequantise(weights[n][k]). f32 equals ggml's dequantize_row_* bit for bit; f16 and bf16 are
// that value rounded to nearest even. Weights are blocks of `format`, row after row; both buffers are
// row-major without padding.
struct PTXGEN_API Dequant {
  Format format = Format::kQ4_K;
  u32 k = 4096;
  u32 n = 4096;
  ElementType out_type = ElementType::kF32;

  static constexpr auto fields() {
    return std::tuple(field("k", &Dequant::k, "values in a row", &Dequant::k_bounds),
                      field("n", &Dequant::n, "rows", {1, 1u << 28}),
                      field("out_type", &Dequant::out_type, "type of the results",
                            between(ElementType::kF32, ElementType::kBf16)),
                      fixed_field("format", &Dequant::format));
  }

  struct Args {
    DevicePtr<const std::byte> weights;
    DevicePtr<std::byte, 16> out;
    static constexpr auto fields() {
      return std::tuple(input("weights", &Args::weights, &Dequant::weight_bytes, &Dequant::weight_alignment),
                        output("out", &Args::out, &Dequant::out_bytes));
    }
  };
  // Whole blocks.
  constexpr Bounds k_bounds() const {
    const FormatInfo& f = info(format);
    return {.min = f.block_values, .max = 1u << 24, .multiple = f.block_values, .block_of = f.ggml_name};
  }
  u64 num_blocks() const { return u64{n} * k / info(format).block_values; }
  u64 weight_bytes(const Args&) const { return num_blocks() * info(format).block_bytes; }
  std::size_t weight_alignment() const { return info(format).alignment; }
  u64 out_bytes(const Args&) const { return u64{n} * k * bytes_of(out_type); }

  std::string name() const;
  absl::Status validate() const;
  LaunchShape launch_shape(const Args& args) const;
  void build(KernelBuilder& k) const;
};

// dst = src, 16 bytes a load and store: the yardstick for kernels bound by memory.
struct PTXGEN_API Copy {
  u32 vectors = 1u << 20;  // of 16 bytes

  static constexpr auto fields() {
    return std::tuple(field("vectors", &Copy::vectors, "16-byte vectors to copy", {1, 1u << 31}));
  }
  struct Args {
    DevicePtr<const std::byte, 16> src;
    DevicePtr<std::byte, 16> dst;
    static constexpr auto fields() {
      return std::tuple(input("src", &Args::src, &Copy::bytes), output("dst", &Args::dst, &Copy::bytes));
    }
  };
  u64 bytes(const Args&) const { return u64{vectors} * 16; }

  std::string name() const { return "copy"; }
  LaunchShape launch_shape(const Args& args) const;
  void build(KernelBuilder& k) const;
};

// Reads memory once, 16 bytes a load, and keeps nothing: the floor under the time of every kernel that needs
// as many bytes. A thread folds the 32-bit words that it has read by exclusive or; where the fold is at least
// `least`, it goes into `sum`. So 0 gives sum ^= every word read, and 0xffffffff practically never writes.
struct PTXGEN_API Read {
  u32 vectors = 1u << 20;  // of 16 bytes
  u32 ctas = 0;            // 0: chosen by the kernel; so are the next two
  u32 threads = 0;
  u32 loads = 0;

  static constexpr auto fields() {
    return std::tuple(field("vectors", &Read::vectors, "16-byte vectors to read", {1, 1u << 31}),
                      optional_field("ctas", &Read::ctas, "CTAs of the launch", {1, 1u << 16}),
                      optional_field("threads", &Read::threads, "threads of a CTA", {32, 1024, 32}),
                      optional_field("loads", &Read::loads, "loads in flight of a thread", {1, 16}));
  }
  struct Args {
    DevicePtr<const std::byte, 16> src;
    DevicePtr<u32> sum;
    u32 least = 0;
    static constexpr auto fields() {
      return std::tuple(input("src", &Args::src, &Read::bytes), inout("sum", &Args::sum, &Read::sum_bytes),
                        scalar("least", &Args::least));
    }
  };
  u64 bytes(const Args&) const { return u64{vectors} * 16; }
  u64 sum_bytes(const Args&) const { return sizeof(u32); }

  std::string name() const { return "read"; }
  LaunchShape launch_shape(const Args& args) const;
  void build(KernelBuilder& k) const;
};

// A name and the constants given for it: {"k", "4096"}.
using FieldValues = std::vector<std::pair<std::string, std::string>>;

// One name in the registry: a kernel with some constants fixed and the rest to choose.
struct KernelFamily {
  std::string name;  // "q4k_dequant"
  std::string summary;
  std::vector<std::string> original_names;  // in the Rust original: "Q4KDequant"
  std::vector<FieldInfo> fields;            // what can be chosen, with bounds and defaults
  KernelType defaults;

  // The oldest target that the kernel with the defaults can be built for; building it takes a moment.
  Target lowest_target() const;

  // The kernel with these constants. Unknown fields, illegal values and broken rules are refused by name.
  absl::StatusOr<KernelType> make(const FieldValues& values) const;

  using Maker = absl::StatusOr<KernelType> (*)(const KernelType& defaults, const FieldValues& values);
  Maker maker;
};

// Every kernel of the library, in the order of docs; and the one called `name`, or a status that lists near
// names.
PTXGEN_API absl::Span<const KernelFamily> kernel_families();
PTXGEN_API absl::StatusOr<const KernelFamily*> find_kernel(std::string_view name);

}  // namespace ptxgen
