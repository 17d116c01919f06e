// Matrix products: every format and schedule at the edges of tiles, against sums in f64.

#include "ptxgen/gemm.h"

#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include "ptxgen/emulator.h"
#include "src/reference/generate.h"
#include "src/reference/half.h"
#include "src/reference/q8_1.h"
#include "tests/kernels/products.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

bool has_mma() {
  return test_device().target().supports({80, false});
}

// A way to compute a product.
struct Way {
  GemmSchedule schedule;
  Activations a_type = Activations::kF32;
  u32 split_k = 0;
};
std::vector<Way> ways() {
  std::vector<Way> all = {{GemmSchedule::kTiled},
                          {GemmSchedule::kDp4a},
                          {GemmSchedule::kDp4a, Activations::kQ8_1},
                          {GemmSchedule::kWmma},
                          {GemmSchedule::kWmmaMultiWarp}};
  if (has_mma()) {
    all.push_back({GemmSchedule::kMma});
    all.push_back({GemmSchedule::kMma, Activations::kF16});
    all.push_back({GemmSchedule::kMma, Activations::kF16, 2});
  }
  if (test_device().target().supports({90, true})) all.push_back({GemmSchedule::kWgmma, Activations::kF16});
  return all;
}

Gemm product(Format format, u32 blocks, u32 n, const Way& way) {
  return {.format = format,
          .k = blocks * info(format).block_values,
          .n = n,
          .schedule = way.schedule,
          .a_type = way.a_type,
          .split_k = way.split_k};
}

void check_random(const Gemm& gemm, u32 m, std::uint64_t seed) {
  CAPTURE(m);
  check(random_launch(gemm, {0, 0, 0, m}, seed));
}

TEST_CASE("activations are staged as f16", "[kernels][gemm][device]") {
  std::uint64_t seed = 10;
  for (const StagedOrder order :
       {StagedOrder::kNibbles, StagedOrder::kBytes, StagedOrder::kWideRuns, StagedOrder::kNarrowRuns}) {
    const u32 block = StageF16{.order = order}.k_bounds().min;
    for (const u32 blocks : {1u, 2u, 3u, 17u}) {
      for (const u32 m : {1u, 7u, 8u, 9u, 17u})
        check(random_launch(StageF16{.k = blocks * block, .order = order}, {0, 0, m}, ++seed));
    }
  }
}

// Held in registers of two rows' threads, of one's, and read twice; with a last turn of few threads.
TEST_CASE("long rows of activations are staged as f16", "[kernels][gemm][device]") {
  for (const u32 k : {8192u, 8448u, 16384u, 16640u, 32768u, 33024u}) {
    for (const u32 m : {1u, 10u}) check(random_launch(StageF16{.k = k}, {0, 0, m}, k + m));
  }
}

TEST_CASE("CTAs of a cluster stage rows of activations together", "[kernels][gemm][device]") {
  if (!test_device().target().supports({90, false})) return;
  // The one large value of a row is in the part of each CTA in turn.
  for (const u32 ctas : {2u, 4u, 8u}) {
    for (const u32 k : {4096u, 33024u}) {  // up to 32 warps of a cluster, and more
      for (u32 part = 0; part < ctas; ++part) {
        constexpr u32 kM = 3;
        LaunchData staged = random_launch(StageF16{.k = k, .ctas = ctas}, {0, 0, kM}, k + part);
        std::vector<float> rows = as<float>(staged.inputs[0]);
        for (float& value : rows) value *= 1e-3f;
        for (u32 row = 0; row < kM; ++row) rows[row * k + part * (k / ctas) + 5 * row] = 1e4f;
        staged.inputs[0] = bytes_of(rows);
        CAPTURE(ctas, k, part);
        check(staged);
      }
    }
  }
  CHECK_THAT(std::string(build_kernel(*KernelType(StageF16{.ctas = 4}), {{80, false}}).status().message()),
             Catch::Matchers::Contains("ctas is 4, and clusters need sm_90"));
  for (const u32 ctas : {2u, 4u, 7u, 8u}) {
    for (const u32 k : {256u, 4352u, 14336u, 33024u, 66048u}) {
      for (const u32 m : {1u, 10u}) check(random_launch(StageF16{.k = k, .ctas = ctas}, {0, 0, m}, k + m));
    }
  }
}

TEST_CASE("the order of staged activations has every value of a block once", "[kernels][gemm]") {
  for (const StagedOrder order :
       {StagedOrder::kNibbles, StagedOrder::kBytes, StagedOrder::kWideRuns, StagedOrder::kNarrowRuns}) {
    std::set<u32> places;
    for (u32 slab = 0; slab < 8; ++slab) {
      for (u32 octet = 0; octet < 8; ++octet) {
        for (u32 i = 0; i < 8; ++i) places.insert(staged_k(order, slab, octet, i));
      }
    }
    CHECK(places.size() == 512);
    CHECK(*places.begin() == 0);
    CHECK(*places.rbegin() == 511);
  }
}

TEST_CASE("matrix products at the edges of tiles", "[kernels][gemm][device]") {
  std::uint64_t seed = 100;
  for (const FormatInfo& format : kFormats) {
    for (const Way& way : ways()) {
      // Blocks of 32 values: less than a slab, a slab and a half, chunks and a rest.
      const bool large = format.block_values == 256;
      const u32 blocks[] = {1, large ? 2u : 3u, large ? 3u : 19u};
      const u32 rows[] = {1, 15, 17, 65}, columns[] = {1, 31, 64, 130};
      for (u32 i = 0; i < 4; ++i) {
        const u32 pick = i + static_cast<u32>(seed % 3);
        check_random(product(format.format, blocks[pick % 3], columns[i], way), rows[pick % 4], ++seed);
      }
    }
  }
}

TEST_CASE("matrix products by tiles of every size", "[kernels][gemm][device]") {
  std::uint64_t seed = 2000;
  for (const u32 tile_m : {1u, 5u, 16u}) {
    for (const GemmSchedule schedule : {GemmSchedule::kTiled, GemmSchedule::kDp4a}) {
      Gemm gemm = product(Format::kQ5_K, 3, 133, {schedule});
      gemm.tile_m = tile_m;
      check_random(gemm, 18, ++seed);
    }
  }
  if (!has_mma()) return;
  const std::pair<Format, u32> kShapes[] = {{Format::kQ4_K, 5}, {Format::kQ6_K, 3}, {Format::kQ8_0, 37}};
  for (const u32 tile_m : {16u, 32u, 64u, 128u}) {
    for (const u32 tile_n : {32u, 64u, 128u}) {
      const auto& [format, blocks] = kShapes[seed % 3];
      Gemm gemm = product(format, blocks, tile_n + 3, {GemmSchedule::kMma, Activations::kF16});
      gemm.tile_m = tile_m;
      gemm.tile_n = tile_n;
      check_random(gemm, tile_m + 5, ++seed);
    }
  }
}

TEST_CASE("matrix products by wgmma with tiles of every width, and rings that come round",
          "[kernels][gemm][device]") {
  if (!test_device().target().supports({90, true})) return;
  std::uint64_t seed = 2500;
  const auto checked = [&](Format format, u32 blocks, u32 n, u32 tile_m, u32 m) {
    Gemm gemm = product(format, blocks, n, {GemmSchedule::kWgmma, Activations::kF16});
    gemm.tile_m = tile_m;
    check_random(gemm, m, ++seed);
  };
  const std::pair<Format, u32> kShapes[] = {{Format::kQ4_K, 2}, {Format::kQ6_K, 3}, {Format::kQ8_0, 11}};
  for (const u32 tile_m : {8u, 16u, 24u, 32u, 40u, 56u, 64u, 72u, 104u, 128u, 136u, 200u, 256u}) {
    const auto& [format, blocks] = kShapes[seed % 3];
    checked(format, blocks, tile_m <= 64 ? 131 : 3, tile_m, tile_m + 5);
  }
  // More chunks than there is room for twice: 4 stages of two chunks of q4_K, few of q8_0 and q6_K.
  checked(Format::kQ4_K, 17, 5, 8, 3);
  checked(Format::kQ8_0, 9 * 8 + 1, 5, 64, 3);
  checked(Format::kQ6_K, 7, 5, 256, 3);
  // Sets of slabs, of which a width has as many as fit: 8 of a chunk, of half a chunk, 6 of one team, 4, 8 of
  // a slab.
  checked(Format::kQ4_K, 19, 5, 24, 3);
  checked(Format::kQ8_0, 9 * 8 + 1, 5, 24, 3);
  checked(Format::kQ4_K, 11, 5, 56, 3);
  checked(Format::kQ4_K, 7, 5, 72, 3);
  checked(Format::kQ3_K, 7, 5, 104, 3);
  checked(Format::kQ6_K, 7, 5, 168, 3);
}

// d of a block, an f16, becomes `high` over a byte of zeros; everything else of the block may stay.
constexpr int k2To13 = 0x70;
void set_d(Format format, absl::Span<std::byte> weights, std::size_t block, int high) {
  const std::size_t d = block * info(format).block_bytes + (format == Format::kQ6_K ? 208 : 0);
  weights[d] = std::byte{0};
  weights[d + 1] = static_cast<std::byte>(high);
}

// The scales of random blocks differ so much that some row takes a second pass; those of a model do not.
TEST_CASE("matrix products of rows whose first block tells the unit, or none does, or all are too large",
          "[kernels][gemm][device]") {
  std::uint64_t seed = 2800;
  for (const Way& way : ways()) {
    if (way.schedule != GemmSchedule::kMma && way.schedule != GemmSchedule::kWgmma) continue;
    for (const Format format : {Format::kQ4_K, Format::kQ6_K, Format::kQ4_0, Format::kQ8_0}) {
      const Gemm gemm = product(format, 3 * 256 / info(format).block_values, 130, way);
      LaunchData launch = random_launch(gemm, {0, 0, 0, 9}, ++seed);
      const absl::Span<std::byte> weights = absl::MakeSpan(launch.inputs[0]);
      reference::level_scales(format, weights);
      check(launch);
      const auto set = [&](std::size_t block, int high) { set_d(format, weights, block, high); };
      const std::size_t in_row = gemm.k / info(format).block_values;
      for (std::size_t row = 0; row < gemm.n; ++row) {
        set(row * in_row, 0);                                        // 0, and the others as they are
        if (row % 3 == 0) set(row * in_row + in_row - 1, k2To13);    // beside 2^-8
        if (row % 5 == 0) set(row * in_row, row % 2 ? 0x7b : 0x00);  // 57344: q * d is beyond f16
      }
      check(launch);
      for (const float y : as<float>(run(launch)[2])) CHECK(std::isfinite(y));
      for (std::size_t i = 0; i < gemm.n * in_row; ++i) set(i, 0);
      check(launch);
    }
  }
}

TEST_CASE("matrix products of rows whose mins are much larger than their scales", "[kernels][gemm][device]") {
  std::uint64_t seed = 2900;
  for (const Way& way : ways()) {
    if (way.schedule != GemmSchedule::kMma && way.schedule != GemmSchedule::kWgmma) continue;
    for (const auto& [format, dmin] :
         {std::pair{Format::kQ4_K, 2u}, {Format::kQ5_K, 2u}, {Format::kQ2_K, 82u}}) {
      const Gemm gemm = product(format, 3, 130, way);
      LaunchData launch = random_launch(gemm, {0, 0, 0, 9}, ++seed);
      const absl::Span<std::byte> weights = absl::MakeSpan(launch.inputs[0]);
      reference::level_scales(format, weights);
      for (std::size_t row = 0; row < gemm.n; ++row) {
        const std::size_t block = row * 3 + (row % 2 ? 2 : 0);  // the last, or the first
        if (row % 3 == 0)
          weights[block * info(format).block_bytes + dmin + 1] = std::byte{0x7b};  // 57344 or more
      }
      check(launch);
      for (const float y : as<float>(run(launch)[2])) CHECK(std::isfinite(y));
    }
  }
}

// Of schedule wgmma.
Gemm in_turn(Format format, u32 blocks, u32 n, u32 tile_m, u32 ctas) {
  Gemm gemm = product(format, blocks, n, {GemmSchedule::kWgmma, Activations::kF16});
  gemm.tile_m = tile_m;
  gemm.ctas = ctas;
  return gemm;
}

Gemm alone(Gemm gemm) {
  gemm.ctas = 0;
  return gemm;
}
bool same_bits(const LaunchData& launch, const Gemm& other) {
  LaunchData by_other = launch;
  by_other.kernel = other;
  return run(launch)[2] == run(by_other)[2];
}

TEST_CASE("CTAs that take tiles in turn give the bits that a CTA a tile gives", "[kernels][gemm][device]") {
  if (!test_device().target().supports({90, true})) return;
  std::uint64_t seed = 2600;
  // Fewer slabs than a ring has sets, and more; a rest of less than a chunk; boxes, pieces, and rows that are
  // no multiples of 16 bytes.
  const std::pair<Format, u32> kShapes[] = {
      {Format::kQ4_K, 1}, {Format::kQ4_K, 7}, {Format::kQ6_K, 3}, {Format::kQ8_0, 11}, {Format::kQ4_0, 9}};
  const auto checked = [&](Format format, u32 blocks, u32 tile_m) {
    // Four tiles, two of them with 5 rows of a, two with 2 rows of weights; or more CTAs than tiles.
    const u32 ctas = std::array{1u, 3u, 5u}[++seed % 3], m = tile_m + 5;
    Gemm gemm = in_turn(format, blocks, 130, tile_m, ctas);
    CAPTURE(KernelType(gemm)->text());
    LaunchData launch = random_launch(gemm, {0, 0, 0, m}, seed);
    if (seed % 2) reference::level_scales(format, absl::MakeSpan(launch.inputs[0]));  // one pass is enough
    check(launch);
    CHECK(same_bits(launch, alone(gemm)));
  };
  for (const auto& [format, blocks] : kShapes) {
    for (const u32 tile_m : {72u, std::array{128u, 152u, 256u}[seed % 3]}) checked(format, blocks, tile_m);
  }
  // Two teams: a chunk each, two, or more than the ring has stages; boxes of two chunks, of one, and pieces.
  for (const u32 chunks : {2u, 4u, 14u}) {
    for (const u32 tile_m : {8u, 16u, 32u, 48u}) checked(Format::kQ4_K, chunks, tile_m);
    for (const u32 tile_m : {8u, 16u}) checked(Format::kQ6_K, chunks, tile_m);
    for (const u32 tile_m : {8u, 16u}) checked(Format::kQ8_0, chunks * 8, tile_m);
  }
  CHECK(in_turn(Format::kQ4_K, 1, 1024, 72, 5).launch_shape({0, 0, 0, 73}).grid == Dim3{5});
  CHECK(in_turn(Format::kQ4_K, 1, 1024, 72, 50).launch_shape({0, 0, 0, 73}).grid == Dim3{16});
}

TEST_CASE("tiles taken in turn of more rows of a than go together", "[kernels][gemm][device]") {
  if (!test_device().target().supports({90, true})) return;
  // Of 1024 rows 4 tiles of 256 go together, 14 of 72.
  for (const auto& [tile_m, m] : {std::pair(256u, 1030u), std::pair(72u, 1100u)}) {
    const Gemm gemm = in_turn(Format::kQ4_K, 1, 130, tile_m, 3);
    const LaunchData launch = random_launch(gemm, {0, 0, 0, m}, 2650 + m);
    CAPTURE(KernelType(gemm)->text());
    check(launch);
    CHECK(same_bits(launch, alone(gemm)));
  }
}

TEST_CASE("a tile whose units do not fit is multiplied again among those that a CTA takes in turn",
          "[kernels][gemm][device]") {
  if (!test_device().target().supports({90, true})) return;
  std::uint64_t seed = 2700;
  // A block of a row becomes too large for it, the `back`-th from its end.
  const auto checked = [&](const Gemm& gemm, u32 m, const std::set<std::size_t>& tiles,
                           std::size_t back = 1) {
    LaunchData launch = random_launch(gemm, {0, 0, 0, m}, ++seed);
    const absl::Span<std::byte> weights = absl::MakeSpan(launch.inputs[0]);
    reference::level_scales(gemm.format, weights);
    const std::vector<float> level = as<float>(run(launch)[2]);
    const auto changes = [&](std::size_t row) {
      return tiles.count(row / 128) && row % 128 < 20 && row % 3 == 0;
    };
    const std::size_t in_row = gemm.k / info(gemm.format).block_values;
    for (std::size_t row = 0; row < gemm.n; ++row) {
      if (changes(row)) set_d(gemm.format, weights, (row + 1) * in_row - back, k2To13);
    }
    CAPTURE(KernelType(gemm)->text(), tiles);
    check(launch);
    CHECK(same_bits(launch, alone(gemm)));
    const std::vector<float> c = as<float>(run(launch)[2]);
    std::size_t touched = 0, infinite = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      infinite += !std::isfinite(c[i]);
      touched += !changes(i % gemm.n) && c[i] != level[i];
    }
    CHECK(infinite == 0);
    CHECK(touched == 0);  // other rows have the bits that they have without these
  };
  for (const Format format : {Format::kQ4_K, Format::kQ6_K, Format::kQ8_0}) {
    const u32 in_row = 3 * 256 / info(format).block_values;
    for (const std::size_t tile : {0u, 1u, 2u}) checked(in_turn(format, in_row, 300, 72, 2), 9, {tile});
    // Either of two teams, whose chunks alternate, finds it.
    const Gemm narrow = in_turn(format, in_row / 3 * 4, 300, 16, 2);
    for (const std::size_t tile : {0u, 2u}) checked(narrow, 9, {tile}, 1 + tile / 2 * in_row / 3);
  }
  checked(in_turn(Format::kQ4_K, 2, 35 * 128, 72, 1), 2, {31, 33});  // turns that share a bit
}

TEST_CASE("matrix products by four teams of a warpgroup", "[kernels][gemm][device]") {
  if (!test_device().target().supports({90, true})) return;
  std::uint64_t seed = 2850;
  // Boxes of four chunks, of two (a box has 256 words), pieces; a chunk for some teams only, rings that come
  // round, a rest of less than a chunk.
  const std::pair<Format, u32> kShapes[] = {
      {Format::kQ4_K, 1},         {Format::kQ4_K, 21}, {Format::kQ8_0, 8 * 19}, {Format::kQ8_0, 8 * 5 + 1},
      {Format::kQ4_0, 8 * 6 + 3}, {Format::kQ6_K, 5},  {Format::kQ5_K, 9}};
  for (const auto& [format, blocks] : kShapes) {
    for (const u32 split_k : {0u, 2u, 5u, 8u}) {  // from 5 on some of a cluster store nothing
      Gemm gemm =
          product(format, blocks, seed % 3 ? 70 : 1, {GemmSchedule::kWgmma, Activations::kF16, split_k});
      gemm.tile_m = ++seed % 2 ? 8 : 16;
      gemm.tile_n = 64;
      CAPTURE(KernelType(gemm)->text());
      check_random(gemm, gemm.tile_m + (split_k ? 0 : 3), seed);
    }
  }
}

TEST_CASE("every tile of schedule wgmma fits into shared memory", "[kernels][gemm]") {
  for (const FormatInfo& format : kFormats) {
    for (u32 tile_m = 8; tile_m <= 256; tile_m += 8) {
      for (const u32 k : {256u, 4096u, 4352u, 4128u}) {
        if (k % format.block_values != 0) continue;
        Gemm gemm =
            product(format.format, k / format.block_values, 40, {GemmSchedule::kWgmma, Activations::kF16});
        gemm.tile_m = tile_m;
        const auto fits = [&] {
          CAPTURE(KernelType(gemm)->text());
          const u64 own = generated_for(gemm, {90, true}).static_shared_bytes;
          CHECK(gemm.launch_shape({}).dynamic_shared_bytes + own <=
                limits({90, true}).shared_bytes_per_cta());
        };
        fits();
        if (tile_m > 64 || k != 4096) continue;
        gemm.split_k = 3;
        fits();
        if (tile_m <= 16) gemm.tile_n = 64, fits();
      }
    }
  }
}

TEST_CASE("matrix products whose k two teams of a CTA share", "[kernels][gemm][device]") {
  if (!has_mma()) return;
  std::uint64_t seed = 2950;
  // A chunk for one team, for each, one more for one, a rest of less than a chunk for either, and nothing
  // else.
  const std::pair<Format, u32> kShapes[] = {{Format::kQ4_K, 1},  {Format::kQ4_K, 2},  {Format::kQ6_K, 5},
                                            {Format::kQ8_0, 19}, {Format::kQ8_0, 27}, {Format::kQ4_0, 3}};
  for (const auto& [format, blocks] : kShapes) {
    for (const Activations a_type : {Activations::kF32, Activations::kF16}) {
      for (const auto& [tile_m, tile_n] : {std::pair{16u, 32u}, {64u, 128u}, {128u, 64u}}) {
        Gemm gemm = product(format, blocks, tile_n + 3, {GemmSchedule::kMma, a_type, 2});
        gemm.tile_m = tile_m;
        gemm.tile_n = tile_n;
        check_random(gemm, tile_m + 3, ++seed);
      }
    }
  }
}

TEST_CASE("weights come in boxes where rows are multiples of 16 bytes and boxes pay", "[kernels][gemm]") {
  const auto tensor = [](Format format, u32 blocks, u32 tile_m, u32 tile_n = 0) {
    Gemm gemm = product(format, blocks, 40, {GemmSchedule::kWgmma, Activations::kF16});
    gemm.tile_m = tile_m, gemm.tile_n = tile_n;
    const KernelType kernel(gemm);
    const GeneratedKernel generated = generated_for(gemm, {90, true});
    const auto program = emulator::Program::parse(generated.ptx);
    REQUIRE(program.ok());
    CHECK((*program)->find_entry(generated.entry)->params.size() == kernel->num_parameters());
    Gemm::Args args;
    args.weights.address = 4096;
    return gemm.tensor(args);
  };
  // 3 chunks of 144 bytes a row, two of them or one in a stage of 128 rows.
  const std::optional<TiledTensor> two = tensor(Format::kQ4_K, 3, 8);
  REQUIRE(two);
  CHECK(two->address == 4096);
  CHECK(two->extents[0] == 108);
  CHECK(two->extents[1] == 40);
  CHECK(two->strides[0] == 432);
  CHECK(two->box_bytes() == 288 * 128);
  CHECK(tensor(Format::kQ4_K, 3, 128)->box_bytes() == 144 * 128);
  CHECK(tensor(Format::kQ8_0, 24, 8)->box_bytes() == 272 * 128);  // two would leave room for two stages
  CHECK(tensor(Format::kQ4_K, 3, 8, 64)->box_bytes() == 576 * 64);
  CHECK(tensor(Format::kQ8_0, 24, 8, 64)->box_bytes() == 544 * 64);  // four are more words than a box has
  CHECK(two->validate().ok());
  CHECK_FALSE(tensor(Format::kQ4_K, 3, 136));
  CHECK_FALSE(tensor(Format::kQ5_K, 3, 8));
  CHECK_FALSE(tensor(Format::kQ6_K, 8, 8));
  CHECK_FALSE(tensor(Format::kQ8_0, 9, 8));
  Gemm mma = product(Format::kQ4_K, 3, 40, {GemmSchedule::kMma, Activations::kF16});
  CHECK_FALSE(mma.tensor({}));
}

TEST_CASE("matrix products whose k a cluster shares", "[kernels][gemm][device]") {
  if (!test_device().target().supports({90, true})) return;
  std::uint64_t seed = 3000;
  // Fewer chunks than CTAs, a chunk each, unequal parts, a rest of less than a chunk.
  const std::pair<Format, u32> kShapes[] = {
      {Format::kQ4_K, 1}, {Format::kQ4_K, 8}, {Format::kQ6_K, 5}, {Format::kQ8_0, 27}, {Format::kQ4_0, 3}};
  for (const auto& [format, blocks] : kShapes) {
    for (const u32 split : {2u, 3u, 4u, 7u, 8u}) {
      for (const u32 tile_m : {8u, split == 2 ? 128u : split == 3 ? 104u : 64u}) {
        Gemm gemm = product(format, blocks, tile_m == 8 ? 131 : 7, {GemmSchedule::kWgmma, Activations::kF16});
        gemm.tile_m = tile_m;
        gemm.split_k = split;
        check_random(gemm, tile_m + 3, ++seed);
      }
    }
  }
}

// Those of tiles of 32 rows are sent, those of 48 kept.
TEST_CASE("sums of a cluster of which one CTA makes a second pass", "[kernels][gemm][device]") {
  if (!test_device().target().supports({90, true})) return;
  constexpr u32 kBlocks = 9, kRanks = 3;
  for (u32 rank = 0; rank < kRanks; ++rank) {
    Gemm gemm = product(Format::kQ4_K, kBlocks, 40, {GemmSchedule::kWgmma, Activations::kF16, kRanks});
    gemm.tile_m = 32;
    LaunchData launch = random_launch(gemm, {0, 0, 0, 9}, 3300 + rank);
    const absl::Span<std::byte> weights = absl::MakeSpan(launch.inputs[0]);
    reference::level_scales(gemm.format, weights);
    // A block that is not the first of the rank's.
    set_d(gemm.format, weights, 3 * kBlocks + rank * kBlocks / kRanks + 2, k2To13);
    CAPTURE(rank);
    check(launch);
    for (const float y : as<float>(run(launch)[2])) CHECK(std::isfinite(y));
    Gemm kept = gemm;
    kept.tile_m = 48;
    CHECK(same_bits(launch, kept));
  }
}

// a[m][k], with what a schedule takes.
LaunchData with_rows(const Gemm& gemm, const LaunchData& weights, const std::vector<float>& a) {
  const u32 m = static_cast<u32>(a.size() / gemm.k);
  LaunchData launch = {gemm, {0, 0, 0, m}, {weights.inputs[0], bytes_of(a), {}, {}}};
  if (gemm.a_type == Activations::kQ8_1) {
    launch.inputs[1].resize(a.size() / reference::kQ8_1Values * reference::kQ8_1Bytes);
    REQUIRE(reference::quantize_q8_1(a, absl::MakeSpan(launch.inputs[1])).ok());
  } else if (gemm.a_type == Activations::kF16) {
    launch.inputs[1] = reference::stage_f16(staged_order(gemm.format), a, m, gemm.k);
  }
  return launch;
}
std::vector<float> random_rows(u32 m, u32 k, std::uint64_t seed) {
  return reference::random_activations(std::size_t{m} * k, seed);
}

TEST_CASE("a row of a gives the bits that it gives alone, staged or not", "[kernels][gemm][device]") {
  for (const Format format : {Format::kQ4_K, Format::kQ6_K, Format::kQ4_0}) {
    std::vector<float> of_mma;  // whoever stages
    for (const Way& way : ways()) {
      const Gemm gemm = product(format, info(format).block_values == 256 ? 2 : 11, 35, way);
      CAPTURE(KernelType(gemm)->text());
      const LaunchData weights = random_launch(gemm, {0, 0, 0, 1}, 77);
      const std::vector<float> a = random_rows(21, gemm.k, 78);
      const std::vector<float> all = as<float>(run(with_rows(gemm, weights, a))[2]);
      for (const u32 row : {0u, 8u, 20u}) {
        const std::vector<float> alone(a.begin() + row * gemm.k, a.begin() + (row + 1) * gemm.k);
        CHECK(as<float>(run(with_rows(gemm, weights, alone))[2]) ==
              std::vector<float>(all.begin() + row * gemm.n, all.begin() + (row + 1) * gemm.n));
      }
      if (way.schedule != GemmSchedule::kMma || way.split_k) continue;
      if (!of_mma.empty()) CHECK(all == of_mma);
      of_mma = all;
    }
  }
}

TEST_CASE("matrix products with huge, tiny and zero activations", "[kernels][gemm][device]") {
  for (const float value : {0.f, 5000.f, 1e5f, 3e30f, 1e-33f, 1e-41f}) {
    for (const Way& way : ways()) {
      const Gemm gemm = product(Format::kQ4_K, 2, 33, way);
      std::vector<float> a(std::size_t{9} * gemm.k);
      for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = (i % 3 ? value : -value) * static_cast<float>(1 + i % 5) / 5;
      CAPTURE(value);
      const LaunchData launch = with_rows(gemm, random_launch(gemm, {0, 0, 0, 1}, 5), a);
      check(launch);
      for (const float y : as<float>(run(launch)[2])) CHECK(std::isfinite(y));
    }
  }
}

TEST_CASE("a NaN or infinity in a row of a surfaces in that row's outputs and nowhere else",
          "[kernels][gemm][device]") {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const Way& way : ways()) {
      const Gemm gemm = product(Format::kQ4_K, 1, 33, way);
      const LaunchData weights = random_launch(gemm, {0, 0, 0, 1}, 6);
      std::vector<float> a = random_rows(11, gemm.k, 7);
      const std::vector<float> before = as<float>(run(with_rows(gemm, weights, a))[2]);
      a[3 * gemm.k + 77] = value;
      const std::vector<float> after = as<float>(run(with_rows(gemm, weights, a))[2]);
      for (u32 i = 0; i < after.size(); ++i) {
        CAPTURE(KernelType(gemm)->text(), value, i);
        if (i / gemm.n == 3) {
          CHECK_FALSE(std::isfinite(after[i]));
        } else {
          CHECK(after[i] == before[i]);
        }
      }
    }
  }
}

// What the emulator says of a kernel whose text was spoilt.
template <class Spoil>
std::string complaint_of(const Gemm& gemm, Target target, Spoil&& spoil) {
  constexpr u32 kRows = 9;
  const auto device = Device::open({.choice = DeviceChoice::kEmulator});
  REQUIRE(device.ok());
  GeneratedKernel text = generated_for(gemm, target);
  const std::string spoilt = spoil(text.ptx);
  const bool changed = spoilt != text.ptx;
  REQUIRE(changed);
  text.ptx = spoilt;
  return std::string(run_text(text, random_launch(gemm, {0, 0, 0, kRows}, 9), *device).status().message());
}
// The same where every `pattern` was replaced.
std::string complaint(const Gemm& gemm, Target target, const std::string& pattern, const std::string& by) {
  CAPTURE(pattern);
  return complaint_of(
      gemm, target, [&](const std::string& ptx) { return std::regex_replace(ptx, std::regex(pattern), by); });
}

TEST_CASE("the emulator finds a wait or a barrier that schedule mma lacks", "[kernels][gemm]") {
  const Gemm gemm = product(Format::kQ4_K, 3, 40, {GemmSchedule::kMma, Activations::kF16});
  const auto spoilt = [&](const std::string& pattern, const std::string& by) {
    return complaint(gemm, {80, false}, pattern, by);
  };
  CHECK(spoilt("\\.address_size 64", ".address_size  64").empty());
  CHECK_THAT(spoilt("cp\\.async\\.wait_group 2;", "cp.async.wait_group 3;"),
             Catch::Matchers::Contains("is still to write; wait for it first"));
  CHECK_THAT(spoilt("bar\\.sync 0;", ""), Catch::Matchers::Contains("race in shared memory"));
}

TEST_CASE("the emulator finds a barrier that two teams of schedule mma lack", "[kernels][gemm]") {
  const Gemm gemm = product(Format::kQ4_K, 3, 40, {GemmSchedule::kMma, Activations::kF16, 2});
  const auto races_with = [&](const std::string& instruction, const std::string& pattern,
                              const std::string& by) {
    const std::string found = complaint(gemm, {80, false}, pattern, by);
    CHECK_THAT(found, Catch::Matchers::Contains("race in shared memory"));
    CHECK_THAT(found, Catch::Matchers::Contains("`" + instruction));
  };
  // A team's own, before it reads a slab; then before the second team's sums come where stages are read, and
  // before they are read.
  races_with("ld.shared.v4", "bar\\.sync (%r[0-9]+), 128;", "");
  const std::string sums = "bar.sync 0;", both = "bar\\.sync 0;([^]*)bar\\.sync 0;";
  races_with("st.shared.f32", both, "$1" + sums);
  races_with("ld.shared.f32", both, sums + "$1");
}

TEST_CASE("the emulator finds what goes wrong in the pipeline of schedule wgmma", "[kernels][gemm]") {
  // Rings come round: 9 chunks and stages for 6 at most, 9 sets of slabs and stages for 6.
  Gemm gemm = product(Format::kQ4_K, 9, 40, {GemmSchedule::kWgmma, Activations::kF16});
  gemm.tile_m = 32;
  const auto spoilt = [&](const std::string& pattern, const std::string& by) {
    return complaint(gemm, {90, true}, pattern, by);
  };
  CHECK(spoilt("\\.address_size 64", ".address_size  64").empty());
  // The end of a slab's multiplications is not waited for before its stage is handed back.
  CHECK_THAT(spoilt("wgmma\\.wait_group\\.sync\\.aligned 1;", "wgmma.wait_group.sync.aligned 4;"),
             Catch::Matchers::Contains("may still read; wait for its group"));
  // Registers are written, and multiplied without a fence between.
  CHECK_THAT(spoilt("wgmma\\.fence\\.sync\\.aligned;", ""),
             Catch::Matchers::Contains("there is no wgmma.fence before"));
  // A stage is called full before its box of 128 rows of two chunks has landed.
  CHECK_THAT(spoilt("mov\\.b32 (%r[0-9]+), 36864;", "mov.b32 $1, 0;"),
             Catch::Matchers::Contains("is still to write; wait for it first"));
  // The same of pieces: rows of 1890 bytes.
  gemm.format = Format::kQ6_K;
  CHECK_THAT(spoilt("cp\\.async\\.mbarrier\\.arrive\\.noinc\\.shared\\.b64 (\\[.*\\]);",
                    "mbarrier.arrive.shared::cta.b64 _, $1;"),
             Catch::Matchers::Contains("is still to write; wait for it first"));
  gemm.format = Format::kQ4_K;
  // Phases never change: every wait is for the first, and a set of slabs is announced before the last has
  // come.
  CHECK_THAT(spoilt("xor\\.b32 (%r[0-9]+), \\1, (%r[0-9]+);", "mov.b32 $1, $1;"),
             Catch::Matchers::Contains("lacks 0 of 1 arrivals and 16384 bytes"));
  // Zeros that threads wrote are not made visible to the multiplication.
  CHECK_THAT(spoilt("fence\\.proxy\\.async\\.shared::cta;", ""),
             Catch::Matchers::Contains("no fence.proxy.async between"));
  // Nobody hands a stage back.
  CHECK_THAT(spoilt("mbarrier\\.arrive\\.shared::cta\\.b64 _, (\\[.*\\]);", ""),
             Catch::Matchers::Contains("deadlock"));
}

// Of a barrier in shared memory; and what says that it is over.
const std::regex& wait_for_phase() {
  static const std::regex wait("mbarrier\\.try_wait\\.parity\\.shared\\.b64 (%p[0-9]+), .*;");
  return wait;
}
constexpr std::string_view kWaited = "setp.eq.u32 $1, 0, 0;";

TEST_CASE("the emulator finds a missing wait between tiles that a CTA takes in turn", "[kernels][gemm]") {
  const auto without = [&](u32 blocks, u32 n, const std::set<int>& missing) {
    const Gemm gemm = in_turn(Format::kQ4_K, blocks, n, 72, 1);
    return complaint_of(gemm, {90, true}, [&](const std::string& ptx) {
      std::string text;
      auto from = ptx.begin();
      int i = 0;
      for (std::sregex_iterator match(ptx.begin(), ptx.end(), wait_for_phase());
           match != std::sregex_iterator(); ++match) {
        const auto begin = ptx.begin() + match->position();
        text.append(from, begin);
        text += missing.count(i++) ? match->format(std::string(kWaited)) : match->str();
        from = begin + match->length();
      }
      CHECK(i == 9);
      return text.append(from, ptx.end());
    });
  };
  const auto found = Catch::Matchers::Matches("[^]*(is still to write|nothing has written|lacks)[^]*");
  // Eleven tiles of a chunk, so that rings come round at tiles' ends. Consumers wait for weights, for both
  // sets of slabs of the chunk, for the rows' scales; copiers for the pace of the first weights, which is no
  // fault, for a stage that is free, for two sets, and until scales have been read.
  for (const int missing : {0, 1, 2, 3, 5, 8}) {
    CAPTURE(missing);
    CHECK_THAT(without(1, 1300, {missing}), found);
  }
  CHECK(without(1, 1300, {4}).empty());
  // Of a few chunks the scales keep copiers from being far ahead.
  CHECK_THAT(without(5, 300, {6, 7}), found);
}

TEST_CASE("the emulator finds what lacks between two teams that take tiles in turn", "[kernels][gemm]") {
  const Gemm gemm = in_turn(Format::kQ4_K, 2, 600, 16, 1);
  const auto without_last = [&](const std::regex& instruction, const std::string& instead) {
    return complaint_of(gemm, {90, true}, [&](const std::string& ptx) {
      std::smatch last;
      for (std::sregex_iterator match(ptx.begin(), ptx.end(), instruction); match != std::sregex_iterator();
           ++match)
        last = *match;
      REQUIRE_FALSE(last.empty());
      std::string text = ptx;
      return text.replace(last.position(), last.length(), last.format(instead));
    });
  };
  // Sums are added when they have been kept, and kept when those of the tile before have been added: when the
  // scales of its rows have been used, for which the last of a copier's waits is.
  CHECK_THAT(
      without_last(std::regex("bar\\.sync 1, 512;"), ""),
      Catch::Matchers::Contains("race in shared memory") || Catch::Matchers::Contains("nothing has written"));
  CHECK_THAT(without_last(wait_for_phase(), std::string(kWaited)),
             Catch::Matchers::Contains("lacks 0 of 1 arrivals"));
}

TEST_CASE("the emulator finds that a cluster does not meet before its sums are added", "[kernels][gemm]") {
  Gemm gemm = product(Format::kQ4_K, 2, 5, {GemmSchedule::kWgmma, Activations::kF16});
  gemm.tile_m = 8;
  gemm.split_k = 2;
  const auto spoilt = [&](const std::string& pattern, const std::string& by) {
    return complaint(gemm, {90, true}, pattern, by);
  };
  CHECK(spoilt("\\.address_size 64", ".address_size  64").empty());
  const std::string wait = "barrier\\.cluster\\.wait;", meeting = "barrier\\.cluster\\.arrive;\\s*" + wait,
                    one = "barrier.cluster.arrive;\n  barrier.cluster.wait;";
  // Sums are sent to who may not have begun; and are added before all have been sent.
  CHECK_THAT(spoilt(wait + "([^]*)" + wait + "([^]*)" + meeting, "$1$2barrier.cluster.wait;\n  " + one),
             Catch::Matchers::Contains("may not have begun to run"));
  CHECK_THAT(spoilt(meeting, ""),
             Catch::Matchers::Contains("which has exited; let all CTAs of the cluster meet"));
  // Where there is no room for them: nobody waits for the sums of the others; nobody waits until they were
  // read.
  gemm.tile_m = 48;
  const std::string both = meeting + "([^]*)" + meeting;
  CHECK_THAT(spoilt(both, "$1" + one), Catch::Matchers::Contains("may not have begun to run"));
  CHECK_THAT(spoilt(both, one + "$1"), Catch::Matchers::Contains("before they exit"));
  // Consumers put their sums where others still multiply activations, of which a chunk has two sets, or where
  // these are still to come; the first team reads sums of the second before they are there.
  const std::string sums = "bar.sync 1, 512;", twice = "bar\\.sync 1, 512;([^]*)bar\\.sync 1, 512;";
  const auto says = [&](u32 blocks, std::string_view what, const std::string& instruction,
                        const std::string& by) {
    gemm.k = blocks * info(gemm.format).block_values;
    const std::string found = spoilt(twice, by);
    CHECK_THAT(found, Catch::Matchers::Contains(std::string(what)));
    CHECK_THAT(found, Catch::Matchers::Contains("`" + instruction));
  };
  says(11, "race in shared memory", "wgmma.mma_async", "$1" + sums);
  says(2, "is still to write; wait for it first", "cp.async.bulk", "$1" + sums);
  says(2, "race in shared memory", "ld.shared.f32", sums + "$1");
  // The same of four teams.
  gemm.tile_m = 16;
  gemm.tile_n = 64;
  says(11, "is still to write; wait for it first", "cp.async.bulk", "$1" + sums);
  says(4, "race in shared memory", "ld.shared.f32", sums + "$1");
}

TEST_CASE("matrix products refuse what they cannot do", "[kernels][gemm]") {
  const auto refused = [](Gemm gemm, std::string_view why) {
    const absl::Status status = gemm.validate();
    CAPTURE(status.ToString());
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(status.message().find(std::string(why)) != std::string::npos);
  };
  CHECK(Gemm{}.validate().ok());
  refused({.a_type = Activations::kQ8_1},
          "a_type is q8_1 with schedule mma; int8 activations belong to dp4a");
  refused({.schedule = GemmSchedule::kWmma, .a_type = Activations::kF16},
          "staged activations belong to mma and wgmma");
  refused({.schedule = GemmSchedule::kWmma, .tile_m = 16}, "tile_m is given with schedule wmma");
  refused({.schedule = GemmSchedule::kTiled, .tile_n = 64}, "tile_n is given with schedule tiled");
  refused({.schedule = GemmSchedule::kDp4a, .tile_m = 32},
          "tile_m is 32 with schedule dp4a; there it is 1 to 16");
  refused({.tile_m = 48}, "tile_m is 48 with schedule mma; there it is 16 to 128, a power of two");
  refused({.schedule = GemmSchedule::kWgmma, .a_type = Activations::kF16, .tile_m = 12},
          "tile_m is 12 with schedule wgmma; there it is 8 to 256, a multiple of 8");
  refused({.schedule = GemmSchedule::kWgmma, .a_type = Activations::kF16, .tile_m = 24, .tile_n = 64},
          "tile_n is 64 with schedule wgmma and tile_m 24; there it is 64 with tile_m 8 or 16");
  refused({.schedule = GemmSchedule::kWgmma, .a_type = Activations::kF16, .tile_m = 16, .tile_n = 32},
          "tile_n is 32 with schedule wgmma");
  refused({.tile_n = 96}, "tile_n is 96; it must be 32, 64 or 128");
  refused({.schedule = GemmSchedule::kTiled, .split_k = 2},
          "split_k is 2 with schedule tiled; it belongs to mma and wgmma");
  refused({.split_k = 3}, "split_k is 3 with schedule mma; there it is 2");
  const Gemm too_many = {.schedule = GemmSchedule::kWgmma, .a_type = Activations::kF16, .split_k = 9};
  CHECK_THAT(std::string(KernelType(too_many)->validate().message()), Catch::Matchers::Contains("split_k"));
  refused({.schedule = GemmSchedule::kWgmma, .a_type = Activations::kF16, .tile_m = 256, .split_k = 2},
          "split_k is 2 with tile_m 256; it goes with tiles up to 128 rows");
  refused(in_turn(Format::kQ4_K, 3, 64, 16, 132),
          "ctas is 132 with schedule wgmma, k 768, tile_m 16, tile_n 0 and split_k 0; it belongs to wgmma");
  Gemm four_teams = in_turn(Format::kQ4_K, 8, 64, 16, 132);
  four_teams.tile_n = 64;
  refused(four_teams, "tile_n 64 and split_k 0");
  refused(in_turn(Format::kQ8_0, 8 * 16, 64, 64, 132), "shared memory has room for two chunks of each");
  refused(in_turn(Format::kQ4_K, 8, 64, 4, 132), "ctas is 132 with schedule wgmma, k 2048, tile_m 4");
  Gemm shared = in_turn(Format::kQ4_K, 8, 64, 128, 132);
  shared.split_k = 2;
  refused(shared, "tile_m 128, tile_n 0 and split_k 2");
  refused({.tile_m = 128, .ctas = 132}, "ctas is 132 with schedule mma");
  const auto built = build_kernel(*KernelType(Gemm{}), {{75, false}});
  CHECK(built.status().message().find("schedule mma needs sm_80") != std::string::npos);
}

TEST_CASE("no rows of a are no work", "[kernels][gemm][device]") {
  for (const Way& way : ways()) {
    const Gemm gemm = product(Format::kQ4_K, 1, 5, way);
    const auto kernel = test_kernels().get(gemm);
    REQUIRE(kernel.ok());
    const auto weights = test_device().allocate(5 * 144, "weights");
    REQUIRE(weights.ok());
    CHECK(kernel->launch(test_device().default_stream(), {weights->address(), 0, 0, 0}).ok());
  }
}

}  // namespace
}  // namespace ptxgen::testing
