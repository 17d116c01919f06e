#include <bit>
#include <cmath>
#include <limits>

#include "ptxgen/convert.h"
#include "src/reference/convert_operation.h"
#include "tests/kernels/products.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"

namespace ptxgen::testing {
namespace {

constexpr std::size_t kSrc = 0, kDst = 1, kFactors = 4, kAbsmax = 5, kScale = 6;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kF16, ElementType::kBf16,
                                  ElementType::kE4m3};

std::vector<u64> scalars(u64 count, float factor = 1) {
  return {0, 0, count, std::bit_cast<u32>(factor), 0, 0, 0};
}

LaunchData launch_of(const Convert& kernel, u64 count, float factor = 1) {
  return random_launch(kernel, scalars(count, factor), count + 1);
}

// Every bit pattern of a narrow type; of f32 every upper half with lower halves around all ties.
std::vector<std::byte> all_inputs(ElementType type) {
  if (type != ElementType::kF32) {
    std::vector<std::byte> bytes;
    for (u32 bits = 0; bits < (type == ElementType::kE4m3 ? 0x100u : 0x10000u); ++bits) {
      for (u32 i = 0; i < ptxgen::bytes_of(type); ++i)
        bytes.push_back(static_cast<std::byte>(bits >> (8 * i)));
    }
    return bytes;
  }
  std::vector<u32> values;
  for (u32 upper = 0; upper < 0x10000; ++upper) {
    for (const u32 lower : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      values.push_back(upper << 16 | lower);
  }
  return bytes_of(values);
}

TEST_CASE("conversions of any count, with every scale", "[kernels][convert][device]") {
  for (const ElementType from : kTypes) {
    for (const ElementType to : kTypes) {
      for (const ConvertScale scale :
           {ConvertScale::kNone, ConvertScale::kValue, ConvertScale::kFactor, ConvertScale::kDevice}) {
        const Convert kernel = {from, to, scale};
        if (!kernel.validate().ok()) continue;
        CAPTURE(KernelType(kernel)->text());
        for (const u64 count : {0, 1, 7, 8, 9, 255, 2049, 8191, 8192, 8193, 16411}) {
          CAPTURE(count);
          check(launch_of(kernel, count, 3.14159f));
        }
      }
    }
  }
}

TEST_CASE("every pattern converts as the definition says", "[kernels][convert][device]") {
  for (const ElementType from : kTypes) {
    for (const ElementType to : kTypes) {
      const Convert kernel = {from, to};
      CAPTURE(KernelType(kernel)->text());
      const std::vector<std::byte> inputs = all_inputs(from);
      LaunchData launch = launch_of(kernel, inputs.size() / ptxgen::bytes_of(from));
      launch.inputs[kSrc] = inputs;
      check(launch);
    }
  }
}

// Targets without the instructions do the same in integers.
TEST_CASE("e4m3 and bf16 are the same on targets without their instructions",
          "[kernels][convert][emulator]") {
  for (const ElementType to : {ElementType::kE4m3, ElementType::kBf16, ElementType::kF16}) {
    const std::vector<std::byte> inputs = all_inputs(ElementType::kF32);
    LaunchData launch = launch_of({.to = to}, inputs.size() / 4);
    launch.inputs[kSrc] = inputs;
    const std::vector<std::byte> expected = run(launch)[kDst];
    for (const Target target : {Target{75, false}, Target{80, false}, Target{89, false}}) {
      CAPTURE(target.to_string(), detail::field_text(to));
      KernelCache cache(take(Device::open({.choice = DeviceChoice::kEmulator, .emulator_target = target})));
      CHECK(run(launch, cache)[kDst] == expected);
      const std::string ptx = take(cache.get(launch.kernel)).generated().ptx;
      CHECK((ptx.find("e4m3x2") != ptx.npos) == (to == ElementType::kE4m3 && target.sm >= 89));
    }
  }
}

TEST_CASE("to e4m3 by the largest value of all, on the device alone", "[kernels][convert][device]") {
  struct Case {
    float absmax, scale;
    std::vector<float> values;
    std::vector<u8> e4m3;
  };
  const Case cases[] = {
      {0, 1, {0.f, -0.f, 1.f}, {0x00, 0x80, 0x38}},
      {448, 1, {448.f, -448.f, 464.f, 500.f, kInf, -kInf}, {0x7e, 0xfe, 0x7e, 0x7e, 0x7e, 0xfe}},
      {1, 1.f / 448, {1.f, -1.f, 0.5f, 0.f}, {0x7e, 0xfe, 0x76, 0x00}},
      {1e5f, 1e5f / 448, {1e5f, -1e5f, 5e4f}, {0x7e, 0xfe, 0x76}},
      {1e-40f, 1e-40f / 448, {0.f, 1e-40f}, {0x00, 0x19}},  // 448 / 1e-40 is beyond f32
      {kInf, kInf, {1.f, kInf}, {0x00, 0x7f}},
      {kNan, kNan, {0.f, 1.f}, {0x7f, 0x7f}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.absmax);
    LaunchData launch =
        launch_of({.to = ElementType::kE4m3, .scale = ConvertScale::kDevice}, c.values.size());
    launch.inputs[kSrc] = bytes_of(c.values);
    launch.inputs[kAbsmax] = bytes_of(std::vector<float>{c.absmax});
    check(launch);
    const auto outputs = run(launch);
    const float scale = as<float>(outputs[kScale])[0];
    CHECK((scale == c.scale || (std::isnan(scale) && std::isnan(c.scale))));
    if (c.absmax != 1e-40f) CHECK(as<u8>(outputs[kDst]) == c.e4m3);
  }
}

TEST_CASE("the largest absolute value of any count", "[kernels][convert][device]") {
  for (const ElementType from : kTypes) {
    for (const u64 count : {0, 1, 7, 8, 9, 31, 8191, 8192, 8193, 70001}) {
      CAPTURE(detail::field_text(from), count);
      LaunchData launch = random_launch(Absmax{from}, {0, 0, count}, count + 3);
      check(launch);
      if (count == 0) continue;
      // At every place that is the last of something.
      const std::size_t size = ptxgen::bytes_of(from);
      for (const u64 place : {u64{0}, count / 2, count - 1}) {
        const u32 bits = from == ElementType::kF32 ? 0xc7000000 : from == ElementType::kE4m3 ? 0xfe : 0xf7ff;
        LaunchData planted = launch;
        std::memcpy(planted.inputs[0].data() + place * size, &bits, size);
        const float most = as<float>(run(planted)[1])[0];
        CHECK(most == std::abs(reference::widen(reference::float_type(from), bits)));
      }
    }
  }
}

TEST_CASE("the largest of all goes on from what was found, and NaN is larger than anything",
          "[kernels][convert][device]") {
  LaunchData launch = random_launch(Absmax{}, {0, 0, 5}, 1);
  launch.inputs[0] = bytes_of(std::vector<float>{1, -3, 2, -0.f, 1e-42f});
  const auto found = [&](float before) {
    launch.inputs[1] = bytes_of(std::vector<float>{before});
    return as<float>(run(launch)[1])[0];
  };
  CHECK(found(0) == 3);
  CHECK(found(3.5f) == 3.5f);
  launch.inputs[0] = bytes_of(std::vector<float>{1, kInf, 2, 3, 4});
  CHECK(found(0) == kInf);
  launch.inputs[0] = bytes_of(std::vector<float>{1, kInf, -kNan, 3, 4});
  CHECK(std::isnan(found(0)));
}

TEST_CASE("the largest of each part, whatever stood there before", "[kernels][convert][device]") {
  for (const ElementType from : kTypes) {
    for (const u32 parts : {1u, 4u, 256u}) {
      for (const u64 count : {0, 1, 8, 9, 25, 2049, 70001}) {
        CAPTURE(detail::field_text(from), parts, count);
        LaunchData launch = random_launch(Absmax{from, parts}, {0, 0, count}, count + parts);
        launch.inputs[1] = bytes_of(std::vector<float>(parts, 1e30f));
        check(launch);
      }
    }
  }
}

TEST_CASE("parts are a power of two", "[kernels][convert]") {
  CHECK(Absmax{.parts = 512}.validate().ok());
  CHECK(Absmax{.parts = 300}.validate().message() == "parts is 300; it must be a power of two");
  const Convert by_value = {.scale = ConvertScale::kValue, .parts = 512};
  CHECK(by_value.validate().message() ==
        "parts is 512 and scale value; they belong to scale device: leave them out");
}

TEST_CASE("to the largest of several numbers", "[kernels][convert][device]") {
  for (const ElementType to : {ElementType::kF16, ElementType::kE4m3}) {
    for (const u32 parts : {1u, 2u, 31u, 256u, 257u, 1024u}) {
      for (const u64 count : {9, 16384 + 8}) {  // with a CTA of whole units and without
        const Convert kernel = {ElementType::kF32, to, ConvertScale::kDevice, parts};
        LaunchData launch = launch_of(kernel, count);
        for (const u32 place : {0u, parts / 2, parts - 1}) {
          CAPTURE(detail::field_text(to), parts, count, place);
          std::vector<float> absmax(parts, 0.5f);
          absmax[place] = 1000;
          launch.inputs[kAbsmax] = bytes_of(absmax);
          check(launch);
          CHECK(as<float>(run(launch)[kScale])[0] == (to == ElementType::kF16 ? 0x1p-5f : 1000.f / 448));
        }
      }
    }
  }
}

TEST_CASE("to f16 by a power of two that no value overflows with", "[kernels][convert][device]") {
  struct Case {
    float absmax, scale;
    std::vector<float> values;
    std::vector<u16> f16;
  };
  const Case cases[] = {
      {0, 0x1p-126f, {0.f, -0.f}, {0x0000, 0x8000}},
      {1, 0x1p-14f, {1.f, -1.f, 0.5f, 0x1p-28f}, {0x7400, 0xf400, 0x7000, 0x0400}},
      {1e5f, 4, {1e5f, -1e5f, 4.f}, {0x761a, 0xf61a, 0x3c00}},
      {1e-40f, 0x1p-126f, {1e-40f}, {0x205b}},
      {0x1.fffffep127f, 0x1p113f, {0x1.fffffep127f, 0x1p127f}, {0x7800, 0x7400}},
      {kInf, 1, {1.f, kInf}, {0x3c00, 0x7c00}},
      {kNan, 1, {1.f}, {0x3c00}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.absmax);
    LaunchData launch = launch_of({.to = ElementType::kF16, .scale = ConvertScale::kDevice}, c.values.size());
    launch.inputs[kSrc] = bytes_of(c.values);
    launch.inputs[kAbsmax] = bytes_of(std::vector<float>{c.absmax});
    check(launch);
    const auto outputs = run(launch);
    CHECK(as<float>(outputs[kScale])[0] == c.scale);
    CHECK(as<u16>(outputs[kDst]) == c.f16);
  }
}

TEST_CASE("a scale by the device is for e4m3 and f16", "[kernels][convert]") {
  CHECK(Convert{.to = ElementType::kBf16, .scale = ConvertScale::kDevice}.validate().message() ==
        "to is bf16 and scale device, which fits values into e4m3 and f16; convert to one of them, or choose "
        "another scale");
}

// Hidden, since it takes a GPU a minute and the emulator hours.
TEST_CASE("all 2^32 numbers convert to e4m3 as the definition says", "[.exhaustive]") {
  constexpr u64 kAtOnce = 1 << 24;
  for (u64 first = 0; first < u64{1} << 32; first += kAtOnce) {
    std::vector<u32> values(kAtOnce);
    for (u64 i = 0; i < kAtOnce; ++i) values[i] = static_cast<u32>(first + i);
    const LaunchData launch = {
        Convert{.to = ElementType::kE4m3}, scalars(kAtOnce), {bytes_of(values), {}, {}, {}, {}, {}, {}}};
    const std::vector<std::byte> converted = run(launch)[kDst];
    std::vector<float> floats(kAtOnce);
    std::memcpy(floats.data(), values.data(), kAtOnce * 4);
    std::vector<std::byte> expected(kAtOnce);
    ok(reference::narrow(reference::FloatType::kE4m3, floats, absl::MakeSpan(expected)));
    CAPTURE(first);
    REQUIRE(converted == expected);
  }
}

}  // namespace
}  // namespace ptxgen::testing
