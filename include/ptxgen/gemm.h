// Matrix products over quantised weights: c[m][n] = a[m][k] W[n][k]^T, the work of reading a prompt.
//
// Weights are blocks of a ggml format, row after row. a is f32, or was prepared once for several products:
// int8 (QuantizeQ8_1) or f16 (StageF16). Sums are f32. m is an argument: one kernel serves every m. An output
// depends on its row of a and its row of weights alone, and the same inputs give the same bits; only split_k
// changes the order in which its products are added.
#pragma once

#include <bit>
#include <optional>

#include "ptxgen/gemv.h"
#include "ptxgen/tensor_map.h"

namespace ptxgen {

// f16 activations of a[m][k] for tensor cores, as StageF16 writes them:
//
//   f16   data[slabs][groups][8][8][8]   a slab is 64 values of a row, a group 8 rows of a
//   f32   inverse[groups * 8]            what a row's products are multiplied with
//
// A value is f16(a * 2^e), rounded to nearest even; the power of two, at most 2^126, brings a row's largest
// absolute value into [2^14, 2^15), so nothing overflows, and inverse is 2^-e. Only a row with an infinity or
// a NaN is not scaled, whose products are none. Rows past m, and values past k in the last slab, are zeros.
//
// data[s][g][o][r][i] is the value at staged_k(order, s, o, i) of row 8 g + r. The order of k follows from
// how a block of the format lies in the registers of a warp: four lanes take a quarter of it each.
constexpr u32 kSlabValues = 64, kSlabGroupRows = 8;
constexpr u64 staged_f16_slabs(u32 k) {
  return (u64{k} + kSlabValues - 1) / kSlabValues;
}
constexpr u64 staged_f16_groups(u32 m) {
  return (u64{m} + kSlabGroupRows - 1) / kSlabGroupRows;
}
constexpr u64 staged_f16_bytes(u32 k, u32 m) {
  return staged_f16_groups(m) * kSlabGroupRows *
         (staged_f16_slabs(k) * kSlabValues * sizeof(f16) + sizeof(f32));
}

// The order of k in products of f16, for the formats whose blocks lie alike: staged activations serve all
// weights of one order.
enum class StagedOrder : u8 {
  kNibbles,     // q4_0, q4_1, q5_0, q5_1
  kBytes,       // q8_0
  kWideRuns,    // q4_K, q5_K
  kNarrowRuns,  // q2_K, q3_K, q6_K
};
template <>
inline constexpr std::array<std::string_view, 4> kEnumNames<StagedOrder> = {"nibbles", "bytes", "wide_runs",
                                                                            "narrow_runs"};
PTXGEN_API StagedOrder staged_order(Format format);
// The place in its row of value `i` of octet `octet` of slab `slab`; octets and i are 0 to 7.
PTXGEN_API u32 staged_k(StagedOrder order, u32 slab, u32 octet, u32 i);

// dst = src[m][k] in f16, as above.
struct PTXGEN_API StageF16 {
  u32 k = 4096;
  StagedOrder order = StagedOrder::kWideRuns;
  u32 ctas = 0;  // so many share two rows, as a cluster (sm_90): sooner done where there are few; 0: one

  static constexpr auto fields() {
    return std::tuple(
        field("k", &StageF16::k, "values in a row", &StageF16::k_bounds),
        field("order", &StageF16::order, "order of the values, by the weights' format"),
        optional_field("ctas", &StageF16::ctas, "CTAs of a cluster, which share two rows", {2, 8}));
  }
  struct Args {
    DevicePtr<const f32, 16> src;
    DevicePtr<std::byte, 16> dst;
    u32 m = 1;  // rows; 0 does nothing
    static constexpr auto fields() {
      return std::tuple(input("src", &Args::src, &StageF16::src_bytes),
                        output("dst", &Args::dst, &StageF16::dst_bytes), scalar("m", &Args::m));
    }
  };
  Bounds k_bounds() const;
  u64 src_bytes(const Args& args) const { return u64{args.m} * k * 4; }
  u64 dst_bytes(const Args& args) const { return staged_f16_bytes(k, args.m); }

  std::string name() const { return "stage_f16"; }
  LaunchShape launch_shape(const Args& args) const;
  void build(KernelBuilder& k) const;
};

// How the work is divided and what multiplies. The last four compute with f16: weights are
//
//   f16(q * f16(d * scale) + f16(m * min)),
//
// activations those of StageF16, whether staged or f32, and products are exact. The last two have a power of
// two of its own for each row of weights, so that none overflows f16, and each is exact to f16's 11 bits or
// to 2^-9 of the largest d * scale that the row's blocks can have, or of their largest m.
enum class GemmSchedule : u8 {
  kTiled,          // f32: a thread a row of weights, activations in shared memory
  kDp4a,           // the same with int8 activations and dp4a
  kWmma,           // f16 tensor cores, one warp for 16 x 16 outputs
  kWmmaMultiWarp,  // 4 warps for 32 x 32
  kMma,            // f16 tensor cores, both operands through a pipeline of asynchronous copies; sm_80
  kWgmma,          // f16 tensor cores of Hopper, warps that copy and warps that multiply; sm_90a
};
template <>
inline constexpr std::array<std::string_view, 6> kEnumNames<GemmSchedule> = {
    "tiled", "dp4a", "wmma", "wmma_multi_warp", "mma", "wgmma"};

// What a schedule needs, and the rows of a that its CTAs may have: multiples of tile_step, or powers of two
// where it is 0; 0 to 0 where there is nothing to choose.
struct GemmScheduleInfo {
  Target lowest = kBaseTarget;
  u32 least_tile_m = 0, most_tile_m = 0, tile_step = 0;

  constexpr bool takes_tile(u32 tile_m) const {
    return tile_m >= least_tile_m && tile_m <= most_tile_m &&
           (tile_step ? tile_m % tile_step == 0 : std::has_single_bit(tile_m));
  }
};
constexpr GemmScheduleInfo info(GemmSchedule schedule) {
  switch (schedule) {
    case GemmSchedule::kTiled:
    case GemmSchedule::kDp4a: return {kBaseTarget, 1, 16, 1};
    case GemmSchedule::kWmma:
    case GemmSchedule::kWmmaMultiWarp: return {};
    case GemmSchedule::kMma: return {{80, false}, 16, 128};  // cp.async, and mma of f16 by 16
    case GemmSchedule::kWgmma: break;
  }
  return {{90, true}, 8, 256, 8};
}

// c[m][n] = a[m][k] W[n][k]^T.
struct PTXGEN_API Gemm {
  Format format = Format::kQ4_K;
  u32 k = 4096;
  u32 n = 4096;
  GemmSchedule schedule = GemmSchedule::kMma;
  Activations a_type = Activations::kF32;
  u32 tile_m = 0;
  u32 tile_n = 0;
  u32 split_k = 0;
  u32 ctas = 0;

  static constexpr auto fields() {
    return std::tuple(
        field("k", &Gemm::k, "values in a row", &Gemm::k_bounds),
        field("n", &Gemm::n, "rows of weights", {1, 1u << 28}),
        field("schedule", &Gemm::schedule, "who multiplies what with what"),
        field("a_type", &Gemm::a_type, "type of the activations",
              between(Activations::kF32, Activations::kF16)),
        optional_field("tile_m", &Gemm::tile_m,
                       "rows of a in a CTA; tiled, dp4a: 1 to 16, 8 where left out; mma: powers of two from "
                       "16 to 128, wgmma: multiples of 8 to 256, 64 where left out",
                       {1, 256}),
        optional_field("tile_n", &Gemm::tile_n,
                       "rows of weights in a CTA; mma: 32, 64 or 128; wgmma: 64 with tile_m 8 or 16, 128 "
                       "where left out",
                       {32, 128, 32}),
        optional_field("split_k", &Gemm::split_k,
                       "who shares k: mma: 2 teams of warps of a CTA; wgmma: 2 to 8 CTAs, a cluster", {2, 8}),
        optional_field(
            "ctas", &Gemm::ctas,
            "wgmma without tile_n and split_k; narrow tiles, whose k two teams of warps share, "
            "where k is a multiple of 512 and two chunks of each have room: at most so many CTAs, as "
            "many as a device has SMs, which take tiles in turn and begin to read one while they "
            "store the one before; left out: a CTA a tile",
            {1, 65536}),
        fixed_field("format", &Gemm::format));
  }
  struct Args {
    DevicePtr<const std::byte> weights;
    DevicePtr<const std::byte, 16> a;
    DevicePtr<f32> c;
    u32 m = 1;  // rows of a; 0 does nothing
    static constexpr auto fields() {
      return std::tuple(input("weights", &Args::weights, &Gemm::weight_bytes, &Gemm::weight_alignment),
                        input("a", &Args::a, &Gemm::a_bytes), output("c", &Args::c, &Gemm::c_bytes),
                        scalar("m", &Args::m));
    }
  };
  Bounds k_bounds() const { return Gemv{.format = format}.k_bounds(); }
  u64 weight_bytes(const Args&) const {
    return u64{n} * k / info(format).block_values * info(format).block_bytes;
  }
  // Whether CTAs may take tiles in turn.
  bool takes_ctas() const;
  // mma and wgmma copy weights in pieces of 16 bytes.
  bool copies_pieces() const { return schedule == GemmSchedule::kMma || schedule == GemmSchedule::kWgmma; }
  std::size_t weight_alignment() const { return copies_pieces() ? 16 : info(format).alignment; }
  u64 a_bytes(const Args& args) const {
    return a_type == Activations::kF16 ? staged_f16_bytes(k, args.m) : args.m * activation_bytes(a_type, k);
  }
  u64 c_bytes(const Args& args) const { return u64{args.m} * n * 4; }

  std::string name() const;
  absl::Status validate() const;
  LaunchShape launch_shape(const Args& args) const;
  // The weights, where wgmma copies boxes of them: of q4_0, q8_0 and q4_K, in tiles of up to 128 rows of a,
  // where rows are multiples of 16 bytes.
  std::optional<TiledTensor> tensor(const Args& args) const;
  void build(KernelBuilder& k) const;
};

}  // namespace ptxgen
