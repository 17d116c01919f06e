// Matrix-vector products over quantised weights: y[n] = W[n][k] x[k], the work of decoding a token.
//
// Weights are blocks of a ggml format, row after row. x is f32, or has been quantised to int8 once for
// several products (QuantizeQ8_1). Sums are f32. The same inputs give the same bits, launch after launch.
#pragma once

#include "ptxgen/kernels.h"

namespace ptxgen {

// 32 activations as int8: x[i] = d * qs[i]. The block's size and its order are ggml's block_q8_1; the first
// four bytes differ: d is bf16, which has f32's range, and the sum is the integer sum of qs, which cannot
// overflow where d * sum as f16 would (32 activations of 5000).
//
// d is f32(largest |x| * f32(1 / 127)) rounded up to bf16, so no q exceeds 127; q is the integer nearest to
// the exact product x * f32(1 / d), ties to even. A block whose largest |x| is below 2^-118 is zero. Infinity
// or NaN anywhere in a block makes its d NaN, which surfaces in every product with it.
struct BlockQ8_1 {
  bf16 d;
  s16 sum;
  s8 qs[32];
};
static_assert(sizeof(BlockQ8_1) == 36);

// dst[m][k / 32] = the blocks of src[m][k].
struct PTXGEN_API QuantizeQ8_1 {
  u32 k = 4096;

  static constexpr auto fields() {
    return std::tuple(field("k", &QuantizeQ8_1::k, "values in a row", {32, 1u << 24, 32}));
  }
  struct Args {
    DevicePtr<const f32, 16> src;
    DevicePtr<std::byte, 4> dst;
    u32 m = 1;  // rows; 0 does nothing
    static constexpr auto fields() {
      return std::tuple(input("src", &Args::src, &QuantizeQ8_1::src_bytes),
                        output("dst", &Args::dst, &QuantizeQ8_1::dst_bytes), scalar("m", &Args::m));
    }
  };
  u64 src_bytes(const Args& args) const { return u64{args.m} * k * 4; }
  u64 dst_bytes(const Args& args) const { return u64{args.m} * k / 32 * sizeof(BlockQ8_1); }

  std::string name() const { return "quantize_q8_1"; }
  LaunchShape launch_shape(const Args& args) const;
  void build(KernelBuilder& k) const;
};

// How the work of a product is divided and where its data passes; docs/gemv.md compares them. For one row of
// x (Gemv) there are the first ten, for more (BatchedGemv) the last three.
enum class Schedule : u8 {
  kWarp,           // 32 threads a row, a byte of weights a load
  kTiled,          // x staged in shared memory for several rows
  kChunkedTiled,   // the same in pieces of x
  kCoalesced,      // a block's scales loaded once and broadcast by shuffle
  kWide,           // 8 warps a row
  kVectorized,     // 4-byte weight loads
  kMultiWarp,      // several warps a row, 4-byte weight loads
  kMultiWarpDp4a,  // int8 activations, dp4a, scales broadcast
  kHalfWarpDp4a,   // int8 activations, dp4a, 8-byte loads, scales loaded by every thread
  kStream,         // int8 activations, weights through shared memory ahead of the activations; sm_90
  kMma,            // int8 tensor cores, 16 rows of weights by 8 of x; weights as in stream; sm_90
  kMmaDirect,      // the same with weights loaded from global memory by the threads that need them; sm_80
};
template <>
inline constexpr std::array<std::string_view, 12> kEnumNames<Schedule> = {
    "warp",       "tiled",           "chunked_tiled",  "coalesced", "wide", "vectorized",
    "multi_warp", "multi_warp_dp4a", "half_warp_dp4a", "stream",    "mma",  "mma_direct"};

enum class Activations : u8 {
  kF32,   // as they are; schedules on int8 quantise them first, in the same kernel
  kQ8_1,  // BlockQ8_1, quantised by an earlier kernel
  kF16,   // for Gemm: staged by an earlier kernel (gemm.h, StageF16)
  // For the paths of cuBLASLt (gemm_variant.h), row after row, and all with one scale:
  kF16Rows,
  kE4m3,
};
template <>
inline constexpr std::array<std::string_view, 5> kEnumNames<Activations> = {"f32", "q8_1", "f16", "f16_rows",
                                                                            "e4m3"};

// The bytes of k activations, f32 or q8_1.
constexpr u64 activation_bytes(Activations type, u32 k) {
  return type == Activations::kF32 ? u64{k} * 4 : u64{k} / 32 * sizeof(BlockQ8_1);
}

// The SMs of the device that the plans of schedule `stream` were measured on.
inline constexpr u32 kMeasuredSmCount = 132;

// How schedule `stream` divides its work. ctas == 0 leaves all of it to the kernel, which has measured plans
// for a device of 132 SMs (planned() makes them for others). Otherwise every number counts as it is.
struct StreamPlan {
  u32 ctas = 0;         // of the launch; each takes an equal share of the rows
  u32 row_lanes = 0;    // lanes of a warp that share a row: 4, 8, 16 or 32
  u32 groups = 0;       // warps that take different rows at the same time
  u32 rows = 0;         // sets of 32 / row_lanes rows that a warp takes from a tile
  u32 stages = 0;       // tiles in flight in shared memory
  u32 in_flight = 0;    // of these, so many may be on their way at once; 0: all
  u32 trigger = 0;      // the next kernel may start when so many tiles remain to be loaded; 0: at once
  u32 ctas_per_sm = 0;  // that registers must leave room for

  static constexpr auto fields() {
    return std::tuple(
        optional_field("ctas", &StreamPlan::ctas, "stream: CTAs of the launch", {1, 1u << 16}),
        optional_field("row_lanes", &StreamPlan::row_lanes, "stream: lanes that share a row", {4, 32, 4}),
        optional_field("groups", &StreamPlan::groups, "stream: warps on different rows", {1, 31}),
        optional_field("rows", &StreamPlan::rows, "stream: row sets of a warp in a tile", {1, 8}),
        optional_field("stages", &StreamPlan::stages, "stream: tiles in shared memory", {1, 32}),
        optional_field("in_flight", &StreamPlan::in_flight,
                       "stream: tiles on their way at once; 0: all stages", {1, 32}),
        optional_field("trigger", &StreamPlan::trigger,
                       "stream: tiles left to load when the next kernel may start; 0: all", {1, 1u << 16}),
        optional_field("ctas_per_sm", &StreamPlan::ctas_per_sm, "stream: CTAs an SM has room for", {1, 8}));
  }
};

// y[n] = W[n][k] x[k].
struct PTXGEN_API Gemv {
  Format format = Format::kQ4_K;
  u32 k = 4096;
  u32 n = 4096;
  Schedule schedule = Schedule::kStream;
  Activations x_type = Activations::kF32;
  u32 num_warps = 0;
  u32 outputs_per_block = 0;
  StreamPlan plan = {};

  static constexpr auto fields() {
    return std::tuple(
        field("k", &Gemv::k, "values in a row", &Gemv::k_bounds), field("n", &Gemv::n, "rows", {1, 1u << 28}),
        field("schedule", &Gemv::schedule, "who reads what", between(Schedule::kWarp, Schedule::kStream)),
        field("x_type", &Gemv::x_type, "type of the activations",
              between(Activations::kF32, Activations::kQ8_1)),
        optional_field("num_warps", &Gemv::num_warps, "multi_warp, *_dp4a: warps a row", {1, 32}),
        optional_field("outputs_per_block", &Gemv::outputs_per_block, "tiled, chunked_tiled: rows a CTA",
                       {1, 32}),
        fields_of(&Gemv::plan), fixed_field("format", &Gemv::format));
  }
  struct Args {
    DevicePtr<const std::byte> weights;
    DevicePtr<const std::byte> x;
    DevicePtr<f32> y;
    static constexpr auto fields() {
      return std::tuple(input("weights", &Args::weights, &Gemv::weight_bytes, &Gemv::weight_alignment),
                        input("x", &Args::x, &Gemv::x_bytes, &Gemv::x_alignment),
                        output("y", &Args::y, &Gemv::y_bytes));
    }
  };
  Bounds k_bounds() const;
  u64 weight_bytes(const Args&) const {
    return u64{n} * k / info(format).block_values * info(format).block_bytes;
  }
  // stream copies weights and prepared activations in pieces of 16 bytes.
  std::size_t weight_alignment() const {
    return schedule == Schedule::kStream ? std::size_t{16} : std::size_t{info(format).alignment};
  }
  u64 x_bytes(const Args&) const { return activation_bytes(x_type, k); }
  std::size_t x_alignment() const {
    return x_type == Activations::kF32 || schedule == Schedule::kStream ? 16 : alignof(u32);
  }
  u64 y_bytes(const Args&) const { return u64{n} * 4; }

  std::string name() const;
  absl::Status validate() const;
  LaunchShape launch_shape(const Args& args) const;
  void build(KernelBuilder& k) const;
};

// The most rows of x that schedule `stream` takes: their activations are in registers.
inline constexpr u32 kMostStreamRows = 4;

// What schedules mma and mma_direct divide besides. They take of StreamPlan ctas, stages, in_flight, trigger
// and ctas_per_sm, where a tile is 16 rows by `chunk` blocks. ctas == 0 leaves these to the kernel, too.
struct MmaPlan {
  u32 columns = 0;  // rows of x that a CTA takes: 8 or 16. Where max_m is more, several CTAs share weights
  u32 warps = 0;    // that share the rows of weights of a CTA, each with its columns of them
  u32 chunk = 0;    // blocks of a row in a stage

  static constexpr auto fields() {
    return std::tuple(
        optional_field("columns", &MmaPlan::columns, "mma*: rows of x a CTA", {8, 16, 8}),
        optional_field("warps", &MmaPlan::warps, "mma*: warps that share a row of weights: 4, 8 or 16",
                       {4, 16, 4}),
        optional_field("chunk", &MmaPlan::chunk, "mma: blocks of a row in a stage", {1, 1u << 19}));
  }
};

// y[m][n] = x[m][k] W[n][k]^T for few rows of x, weights read once. m is an argument: one kernel serves all m
// up to max_m. The sums of a row do not depend on the other rows, nor on max_m within one schedule.
struct PTXGEN_API BatchedGemv {
  Format format = Format::kQ4_K;
  u32 k = 4096;
  u32 n = 4096;
  u32 max_m = 4;
  Schedule schedule = Schedule::kStream;
  Activations x_type = Activations::kF32;
  StreamPlan plan = {};
  MmaPlan mma_plan = {};

  static constexpr auto fields() {
    return std::tuple(field("k", &BatchedGemv::k, "values in a row", &BatchedGemv::k_bounds),
                      field("n", &BatchedGemv::n, "rows of weights", {1, 1u << 28}),
                      field("max_m", &BatchedGemv::max_m, "most rows of x: a power of two, or 3", {1, 16}),
                      field("schedule", &BatchedGemv::schedule, "who reads what",
                            between(Schedule::kStream, Schedule::kMmaDirect)),
                      field("x_type", &BatchedGemv::x_type, "type of the activations",
                            between(Activations::kF32, Activations::kQ8_1)),
                      fields_of(&BatchedGemv::plan), fields_of(&BatchedGemv::mma_plan),
                      fixed_field("format", &BatchedGemv::format));
  }
  struct Args {
    DevicePtr<const std::byte, 16> weights;
    DevicePtr<const std::byte, 16> x;
    DevicePtr<f32> y;
    u32 m = 1;  // rows of x, at most max_m; 0 does nothing
    static constexpr auto fields() {
      return std::tuple(input("weights", &Args::weights, &BatchedGemv::weight_bytes),
                        input("x", &Args::x, &BatchedGemv::x_bytes),
                        output("y", &Args::y, &BatchedGemv::y_bytes), scalar("m", &Args::m));
    }
  };
  Bounds k_bounds() const { return Gemv{.format = format}.k_bounds(); }
  u64 weight_bytes(const Args&) const {
    return u64{n} * k / info(format).block_values * info(format).block_bytes;
  }
  u64 x_bytes(const Args& args) const { return args.m * activation_bytes(x_type, k); }
  u64 y_bytes(const Args& args) const { return u64{args.m} * n * 4; }

  std::string name() const;
  absl::Status validate() const;
  // A CTA count beyond every device where m exceeds max_m, so that the launch is refused.
  LaunchShape launch_shape(const Args& args) const;
  void build(KernelBuilder& k) const;
};

enum class Norm : u8 { kNone, kRms };
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<Norm> = {"none", "rms"};
enum class Combine : u8 {
  kNone,
  kSwiglu,  // y = silu(W x) * (W_b x), silu(v) = v / (1 + exp(-v)); weights_b has the shape of weights
};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<Combine> = {"none", "swiglu"};
enum class Residual : u8 {
  kNone,
  kAdd,  // y = residual + W x
};
template <>
inline constexpr std::array<std::string_view, 2> kEnumNames<Residual> = {"none", "add"};

// Up to three products of one x in one launch, by schedule `stream`, with what comes before and after them:
//
//   x' = x, or x * gamma / sqrt(mean(x^2) + epsilon)
//   y = W x', y_b = W_b x', y_c = W_c x', combined and added as `combine` and `residual` say
//
// Q/K/V is three matrices, K/V two, gate and up two with combine swiglu. Their formats may differ where all
// have blocks of 256 values or all have blocks of 32. Buffers of what is not there may be null.
struct PTXGEN_API FusedGemv {
  Format format = Format::kQ4_K;
  u32 k = 4096;
  u32 n = 4096;
  Format format_b = Format::kQ4_K, format_c = Format::kQ4_K;
  u32 n_b = 0, n_c = 0;
  Norm norm = Norm::kNone;
  Combine combine = Combine::kNone;
  Residual residual = Residual::kNone;
  Activations x_type = Activations::kF32;
  StreamPlan plan = {};

  static constexpr auto fields() {
    return std::tuple(field("k", &FusedGemv::k, "values in a row", &FusedGemv::k_bounds),
                      field("n", &FusedGemv::n, "rows of the first matrix", {1, 1u << 28}),
                      optional_field("n_b", &FusedGemv::n_b, "rows of the second matrix", {1, 1u << 28}),
                      optional_field("n_c", &FusedGemv::n_c, "rows of the third matrix", {1, 1u << 28}),
                      field("format_b", &FusedGemv::format_b, "format of the second matrix"),
                      field("format_c", &FusedGemv::format_c, "format of the third matrix"),
                      field("norm", &FusedGemv::norm, "normalisation of x"),
                      field("combine", &FusedGemv::combine, "what becomes of the first two products"),
                      field("residual", &FusedGemv::residual, "what is added to the first product"),
                      field("x_type", &FusedGemv::x_type, "type of the activations",
                            between(Activations::kF32, Activations::kQ8_1)),
                      fields_of(&FusedGemv::plan), fixed_field("format", &FusedGemv::format));
  }
  struct Args {
    DevicePtr<const std::byte, 16> weights, weights_b, weights_c;
    DevicePtr<const std::byte, 16> x;
    DevicePtr<const f32, 16> gamma;
    DevicePtr<const f32> residual;
    DevicePtr<f32> y, y_b, y_c;
    f32 epsilon = 1e-5f;
    static constexpr auto fields() {
      return std::tuple(
          input("weights", &Args::weights, &FusedGemv::weight_bytes),
          input("weights_b", &Args::weights_b, &FusedGemv::weight_b_bytes),
          input("weights_c", &Args::weights_c, &FusedGemv::weight_c_bytes),
          input("x", &Args::x, &FusedGemv::x_bytes), input("gamma", &Args::gamma, &FusedGemv::gamma_bytes),
          input("residual", &Args::residual, &FusedGemv::residual_bytes),
          output("y", &Args::y, &FusedGemv::y_bytes), output("y_b", &Args::y_b, &FusedGemv::y_b_bytes),
          output("y_c", &Args::y_c, &FusedGemv::y_c_bytes), scalar("epsilon", &Args::epsilon));
    }
  };
  Bounds k_bounds() const { return Gemv{.format = format}.k_bounds(); }
  u64 weight_bytes(const Args&) const { return matrix_bytes(format, n); }
  u64 weight_b_bytes(const Args&) const { return matrix_bytes(format_b, n_b); }
  u64 weight_c_bytes(const Args&) const { return matrix_bytes(format_c, n_c); }
  u64 x_bytes(const Args&) const { return activation_bytes(x_type, k); }
  u64 gamma_bytes(const Args&) const { return norm == Norm::kRms ? u64{k} * 4 : 0; }
  u64 residual_bytes(const Args&) const { return residual == Residual::kAdd ? u64{n} * 4 : 0; }
  u64 y_bytes(const Args&) const { return u64{n} * 4; }
  u64 y_b_bytes(const Args&) const { return combine == Combine::kNone ? u64{n_b} * 4 : 0; }
  u64 y_c_bytes(const Args&) const { return u64{n_c} * 4; }

  std::string name() const;
  absl::Status validate() const;
  LaunchShape launch_shape(const Args& args) const;
  void build(KernelBuilder& k) const;

 private:
  u64 matrix_bytes(Format f, u32 rows) const {
    return u64{rows} * k / info(f).block_values * info(f).block_bytes;
  }
};

// The product with the whole plan that its schedule makes for it on a device of so many SMs, whatever plan it
// has. Schedules without a plan leave it as it is.
PTXGEN_API Gemv planned(Gemv product, u32 sm_count = kMeasuredSmCount);
PTXGEN_API BatchedGemv planned(BatchedGemv product, u32 sm_count = kMeasuredSmCount);
PTXGEN_API FusedGemv planned(FusedGemv product, u32 sm_count = kMeasuredSmCount);

}  // namespace ptxgen
