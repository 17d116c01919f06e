// Numbers from one type to another, and the scale that fits them into e4m3.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "ptxgen/kernels.h"

namespace ptxgen {

// What a value is multiplied with on its way; the product is rounded to f32 before it is rounded to dst's
// type.
enum class ConvertScale : u8 {
  kNone,
  kValue,   // the argument `factor`
  kFactor,  // *factors, in device memory
  kDevice,  // to e4m3: 448 / *absmax, at most the largest f32; *scale becomes *absmax / 448. Both are 1 where
            // *absmax is 0, and NaN where it is NaN. To f16: the power of two, at most 2^126, that brings
            // *absmax into [2^14, 2^15); *scale becomes its inverse. Both are 1 where *absmax is not finite
};
template <>
inline constexpr std::array<std::string_view, 4> kEnumNames<ConvertScale> = {"none", "value", "factor",
                                                                             "device"};

inline constexpr u32 kMostAbsmaxParts = 1024;

// dst[i] = src[i] * scale for i < count, rounded to nearest even and subnormals kept. To f16 and bf16
// overflow gives infinity; to e4m3 what lies beyond 448 and infinity give 448 with their sign
// (cvt.rn.satfinite.e4m3x2.f32, also on targets without it). NaN gives a NaN: to f16 and bf16 0x7fff, to e4m3
// 0x7f, to f32 any.
struct PTXGEN_API Convert {
  ElementType from = ElementType::kF32;
  ElementType to = ElementType::kF16;
  ConvertScale scale = ConvertScale::kNone;
  u32 parts = 0;

  static constexpr auto fields() {
    return std::tuple(
        field("from", &Convert::from, "type of src"), field("to", &Convert::to, "type of dst"),
        field("scale", &Convert::scale, "what values are multiplied with"),
        optional_field("parts", &Convert::parts,
                       "scale device: numbers in absmax, the largest of which counts; one where "
                       "left out",
                       {1, kMostAbsmaxParts}));
  }
  // Buffers of a scale that is not there may be null.
  struct Args {
    DevicePtr<const std::byte, 16> src;
    DevicePtr<std::byte, 16> dst;
    u64 count = 4096;  // values; 0 does nothing
    f32 factor = 1;
    DevicePtr<const f32> factors;
    DevicePtr<const f32> absmax;
    DevicePtr<f32> scale;
    static constexpr auto fields() {
      return std::tuple(input("src", &Args::src, &Convert::src_bytes),
                        output("dst", &Args::dst, &Convert::dst_bytes), scalar("count", &Args::count),
                        scalar("factor", &Args::factor),
                        input("factors", &Args::factors, &Convert::factors_bytes),
                        input("absmax", &Args::absmax, &Convert::absmax_bytes),
                        output("scale", &Args::scale, &Convert::device_bytes));
    }
  };
  u64 src_bytes(const Args& args) const { return args.count * bytes_of(from); }
  u64 dst_bytes(const Args& args) const { return args.count * bytes_of(to); }
  u64 factors_bytes(const Args&) const { return scale == ConvertScale::kFactor ? sizeof(f32) : 0; }
  u64 absmax_bytes(const Args& args) const { return device_bytes(args) * (parts ? parts : 1); }
  u64 device_bytes(const Args& args) const {
    return scale == ConvertScale::kDevice && args.count > 0 ? sizeof(f32) : 0;
  }

  std::string name() const { return "convert"; }
  absl::Status validate() const;
  LaunchShape launch_shape(const Args& args) const;
  void build(KernelBuilder& k) const;
};

// *absmax = the largest of *absmax and |src[i]|, i < count: set it to 0 before. NaN counts as larger than
// anything. With `parts` nothing is set before: src is cut into as many parts, all but the last ones of
// equally many values, a multiple of 8, and absmax[p] is the largest |src[i]| of part p, 0 where it has no
// values.
struct PTXGEN_API Absmax {
  ElementType from = ElementType::kF32;
  u32 parts = 0;

  static constexpr auto fields() {
    return std::tuple(
        field("from", &Absmax::from, "type of src"),
        optional_field("parts", &Absmax::parts,
                       "parts of src with a number each, a power of two; where left out one number, "
                       "which goes on from what it was",
                       {1, kMostAbsmaxParts}));
  }
  struct Args {
    DevicePtr<const std::byte, 16> src;
    DevicePtr<f32> absmax;
    u64 count = 4096;  // values; 0 does nothing
    static constexpr auto fields() {
      return std::tuple(input("src", &Args::src, &Absmax::src_bytes),
                        inout("absmax", &Args::absmax, &Absmax::absmax_bytes), scalar("count", &Args::count));
    }
  };
  u64 src_bytes(const Args& args) const { return args.count * bytes_of(from); }
  u64 absmax_bytes(const Args&) const { return sizeof(f32) * (parts ? parts : 1); }

  std::string name() const { return "absmax"; }
  absl::Status validate() const;
  LaunchShape launch_shape(const Args& args) const;
  void build(KernelBuilder& k) const;
};

}  // namespace ptxgen
