// Tensor copies: what lands where for every rank, swizzle, stride and edge of the tensor, and what the
// emulator says of descriptors, boxes and byte counts that do not fit.
#include <numeric>

#include "ptxgen/codegen.h"
#include "ptxgen/kernel_builder.h"
#include "ptxgen/strings.h"
#include "tests/emulator/harness.h"

namespace ptxgen::emulator {
namespace {

using Catch::Matchers::Contains;

constexpr std::uint32_t kThreads = 32;
constexpr std::uint32_t kTileBytes = 8192;

struct Tensor {
  TiledTensor tensor;
  std::vector<std::byte> bytes;  // of global memory from its address on
};

// A dense tensor whose byte i is 1 + i % 251.
Tensor make(ptxgen::Type type, std::vector<u64> extents, std::vector<u32> box,
            Swizzle swizzle = Swizzle::kNone, u64 padding = 0) {
  Tensor t;
  t.tensor.type = type;
  t.tensor.rank = static_cast<u32>(extents.size());
  t.tensor.swizzle = swizzle;
  u64 stride = info(type).bytes;
  for (u32 d = 0; d < t.tensor.rank; ++d) {
    t.tensor.extents[d] = extents[d];
    t.tensor.box[d] = box[d];
    if (d > 0) t.tensor.strides[d - 1] = stride;
    stride = (stride * extents[d] + 15) / 16 * 16 + padding;
  }
  t.bytes.resize(stride);
  for (std::size_t i = 0; i < t.bytes.size(); ++i) t.bytes[i] = static_cast<std::byte>(1 + i % 251);
  return t;
}

// What a box holds by the definition: element e of the row at index i is the tensor's at coordinate at + i *
// stride, or 0; the 16-byte pieces of 128 bytes change places with the number of the 128 bytes.
std::vector<std::byte> expected(const Tensor& t, const std::vector<std::int64_t>& at) {
  const TiledTensor& m = t.tensor;
  const u32 element = info(m.type).bytes;
  std::vector<std::byte> box(m.box_bytes());
  for (u64 n = 0; n < box.size() / element; ++n) {
    u64 rest = n, global = 0;
    bool inside = true;
    for (u32 d = 0; d < m.rank; ++d) {
      const u64 i = rest % m.moved(d);
      rest /= m.moved(d);
      const std::int64_t c = at[d] + static_cast<std::int64_t>(i * m.element_strides[d]);
      inside &= c >= 0 && c < static_cast<std::int64_t>(m.extents[d]);
      global += static_cast<u64>(c) * (d == 0 ? element : m.strides[d - 1]);
    }
    u64 place = n * element;
    if (m.swizzle != Swizzle::kNone) {
      const u64 line = place / 128, mask = bytes(m.swizzle) / 16 - 1;
      place = (place & ~(mask << 4)) | ((place >> 4 & mask) ^ (line & mask)) << 4;
    }
    for (u32 b = 0; b < element && inside; ++b) box[place + b] = t.bytes[global + b];
  }
  return box;
}

std::string braces(const std::vector<std::int64_t>& at) {
  std::string text = "{";
  for (std::size_t d = 0; d < at.size(); ++d) {
    const std::int64_t c = at[d];
    str_append(&text, d ? ", " : "", c);
  }
  return text + "}";
}

// A kernel with the map m, whose thread 0 does `body`; afterwards all copy the tile to out.
std::string text_of(std::string_view body, std::string_view after = "") {
  return module_of(str_cat(R"(
.visible .entry k(.param .u64 out_param, .param .align 64 .b8 m[128]) {
  .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<6>; .reg .b64 %out; .reg .b64 %map; .reg .b32 %t; .reg .b16 %h;
  .shared .align 1024 .b8 tile[8192]; .shared .align 8 .b64 bar;
  ld.param.u64 %out, [out_param]; mov.b64 %map, m; cvta.param.u64 %map, %map; mov.u32 %t, %tid.x;
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.shared.b64 [bar], 1; @%p0 fence.mbarrier_init.release.cluster; bar.sync 0;
)",
                           body, after, "\n}\n"));
}

// Copies the tile's first `bytes` to out.
std::string keep(u64 bytes) {
  return str_cat(
      "W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W;\n",
      "mul.wide.u32 %rd1, %t, 16; add.s64 %rd1, %out, %rd1; mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 16, %r1;",
      "mov.u32 %r2, 0; mul.lo.u32 %r7, %t, 16;\n", "L: setp.ge.u32 %p2, %r7, ", bytes,
      "; @%p2 bra END; ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r1];",
      "st.global.v4.b32 [%rd1], {%r3, %r4, %r5, %r6}; add.u32 %r1, %r1, 512; add.s64 %rd1, %rd1, 512;",
      "add.u32 %r7, %r7, 512; bra L; END:");
}

std::string load(const std::vector<std::int64_t>& at, u64 expect) {
  return str_cat("@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], ", expect,
                 ";\n@%p0 cp.async.bulk.tensor.", at.size(),
                 "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%map, ", braces(at),
                 "], [bar];\n");
}

struct Outcome {
  std::string message;
  std::vector<std::byte> out, tensor;  // the tensor's memory afterwards
};

// Runs with the map of `t` (or these 128 bytes).
Outcome outcome(const std::string& ptx, const Tensor& t, std::uint64_t seed = 0,
                const TensorMap* bits = nullptr) {
  INFO(ptx);
  Memory memory;
  TiledTensor tensor = t.tensor;
  tensor.address = upload(memory, t.bytes, "tensor");
  const std::uint64_t out = upload(memory, std::vector<std::byte>(kTileBytes), "out");
  const absl::StatusOr<TensorMap> map = encode_tensor_map(tensor);
  INFO(map.status().ToString());
  REQUIRE(map.ok());
  std::vector<std::byte> params(192);
  std::memcpy(params.data(), &out, sizeof(out));
  std::memcpy(params.data() + 64, bits ? bits : &*map, sizeof(TensorMap));
  Options options;
  options.seed = seed;
  options.workers = 1;
  LaunchConfig config;
  config.block = {kThreads};
  config.params = params;
  const auto stats = launch(*parsed(ptx), "k", config, memory, options);
  return {stats.ok() ? "ok" : std::string(stats.status().message()),
          download<std::byte>(memory, out, kTileBytes),
          download<std::byte>(memory, tensor.address, t.bytes.size())};
}

void check_load(const Tensor& t, const std::vector<std::int64_t>& at) {
  const u64 bytes = t.tensor.box_bytes();
  for (const std::uint64_t seed : {0, 1, 2}) {
    const Outcome o = outcome(text_of(load(at, bytes), keep(bytes)), t, seed);
    INFO("at " << braces(at) << " swizzle " << static_cast<int>(t.tensor.swizzle) << " rank "
               << t.tensor.rank);
    REQUIRE(o.message == "ok");
    REQUIRE(std::vector<std::byte>(o.out.begin(), o.out.begin() + static_cast<std::ptrdiff_t>(bytes)) ==
            expected(t, at));
  }
}

std::string says(const Tensor& t, std::string_view body, std::string_view after = "") {
  return outcome(text_of(body, after), t).message;
}

}  // namespace

TEST_CASE("boxes of every rank land as they are defined", "[emulator][tensor]") {
  using T = ptxgen::Type;
  check_load(make(T::kF32, {100}, {64}), {8});
  check_load(make(T::kU8, {64, 20}, {32, 8}), {16, 5});
  check_load(make(T::kBf16, {40, 12, 6}, {16, 4, 3}, Swizzle::kNone, 32), {8, 4, 2});
  check_load(make(T::kF64, {8, 5, 4, 3}, {4, 3, 2, 2}), {2, 1, 1, 1});
  check_load(make(T::kS32, {16, 3, 4, 2, 3}, {8, 2, 3, 2, 2}), {4, 1, 0, 0, 1});
}

TEST_CASE("outside the tensor there are zeros", "[emulator][tensor]") {
  const Tensor t = make(ptxgen::Type::kF16, {40, 12}, {16, 8});
  for (const std::vector<std::int64_t>& at : std::vector<std::vector<std::int64_t>>{{-8, 2},
                                                                                    {32, 2},
                                                                                    {8, -5},
                                                                                    {8, 9},
                                                                                    {-16, 0},
                                                                                    {40, 0},
                                                                                    {0, 12},
                                                                                    {-8, -5},
                                                                                    {32, 11},
                                                                                    {2147483640, 0}}) {
    check_load(t, at);
  }
  for (const Swizzle swizzle : {Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
    const Tensor swizzled = make(ptxgen::Type::kF16, {100, 40}, {bytes(swizzle) / 2, 16}, swizzle);
    check_load(swizzled, {-8, 30});
    check_load(swizzled, {88, -3});
  }
}

TEST_CASE("swizzles follow the address in shared memory", "[emulator][tensor]") {
  for (const Swizzle swizzle : {Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
    const u32 inner = bytes(swizzle);
    check_load(make(ptxgen::Type::kU8, {256, 64}, {inner, 40}, swizzle), {64, 3});
    check_load(make(ptxgen::Type::kF32, {128, 8, 8}, {inner / 4, 5, 4}, swizzle), {4, 1, 2});
  }
  // A tile 128 bytes on: the lines have other numbers.
  const Tensor t = make(ptxgen::Type::kU8, {128, 16}, {128, 8}, Swizzle::k128B);
  const std::string copy =
      "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024; mov.u32 %r1, tile;\n@%p0 "
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%r1+128], [%map, {0, 0}], [bar];\n";
  const Outcome o =
      outcome(text_of(copy, str_cat("W0: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W0;",
                                    "ld.shared.u8 %r5, [tile+128]; @%p0 st.global.u8 [%out], %r5;")),
              t);
  CHECK(o.message == "ok");
  CHECK(o.out[0] == t.bytes[16]);  // line 1: piece 1 stands where piece 0 would
}

TEST_CASE("every n-th element of an outer dimension", "[emulator][tensor]") {
  Tensor t = make(ptxgen::Type::kU16, {32, 24, 6}, {16, 9, 4});
  t.tensor.element_strides = {1, 2, 3, 1, 1};
  CHECK(t.tensor.moved(1) == 5);
  CHECK(t.tensor.moved(2) == 2);
  CHECK(t.tensor.box_bytes() == 16 * 5 * 2 * 2);
  check_load(t, {8, 3, 1});
  check_load(t, {8, -3, 4});
  check_load(t, {24, 20, 0});
}

TEST_CASE("a box is stored, but for what lies outside", "[emulator][tensor]") {
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k64B}) {
    const Tensor t = make(ptxgen::Type::kU16, {40, 12}, {32, 8}, swizzle);
    for (const std::vector<std::int64_t>& at :
         std::vector<std::vector<std::int64_t>>{{8, 2}, {-8, 1}, {24, 9}, {0, -3}}) {
      // Fill the tile with the box at (0, 0), then store it at `at`.
      const std::string body =
          str_cat(load({0, 0}, t.tensor.box_bytes()),
                  "W0: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra W0;\n",
                  "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, ", braces(at),
                  "], [tile];\n", "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;");
      const Outcome o = outcome(text_of(body), t);
      REQUIRE(o.message == "ok");
      std::vector<std::byte> want = t.bytes;
      for (std::int64_t y = 0; y < 8; ++y) {
        for (std::int64_t x = 0; x < 32; ++x) {
          const std::int64_t cx = at[0] + x, cy = at[1] + y;
          if (cx < 0 || cx >= 40 || cy < 0 || cy >= 12) continue;
          for (std::int64_t b = 0; b < 2; ++b) {
            want[static_cast<std::size_t>(80 * cy + 2 * cx + b)] =
                t.bytes[static_cast<std::size_t>(80 * y + 2 * x + b)];
          }
        }
      }
      CHECK(o.tensor == want);
    }
  }
}

TEST_CASE("tensor copies that go wrong", "[emulator][tensor]") {
  const Tensor t = make(ptxgen::Type::kF32, {64, 16}, {32, 8});
  const u64 bytes = t.tensor.box_bytes();
  CHECK_THAT(says(t, load({0, 0}, bytes - 16), keep(bytes)),
             Contains("deadlock") && Contains("which lacks 0 of 1 arrivals and -16 bytes"));
  CHECK_THAT(says(t, load({0, 0}, bytes + 4), keep(bytes)), Contains("deadlock") && Contains("and 4 bytes"));
  CHECK_THAT(says(t, load({0, 0}, bytes), "ld.shared.u32 %r1, [tile];"),
             Contains("which the asynchronous copy at PTX line") &&
                 Contains("is still to write; wait for it first"));
  CHECK_THAT(says(t, load({0, 0}, bytes), "ret;"), Contains("exits while this copy is still to write"));
  CHECK_THAT(says(t, load({0, 0, 0}, bytes)), Contains("copies a box of 3 dimensions; the tensor map has 2"));
  const auto copy = [&](std::string_view operands) {
    return says(t, str_cat("mov.u32 %r1, tile; @%p0 "
                           "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes ",
                           operands, ";"));
  };
  CHECK_THAT(copy("[%r1+64], [%map, {0, 0}], [bar]"),
             Contains("at shared address 0x40, which is not a multiple of 128"));
  CHECK_THAT(copy("[%r1+7296], [%map, {0, 0}], [bar]"),
             Contains("writes 1024 bytes at shared address 0x1c80"));
  CHECK_THAT(copy("[%r1], [%map, {3, 0}], [bar]"),
             Contains("the box begins at byte 12 of a row, which is not a multiple of 16"));
  CHECK_THAT(says(t, "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {-2, 0}], [tile];"),
             Contains("the box begins at byte -8 of a row"));
  CHECK_THAT(copy("[%r1], [%map, {0, 0}], [tile]"), Contains("where no mbarrier has been initialised"));
  CHECK_THAT(copy("[%r1], [%map+8, {0, 0}], [bar]"), Contains("which is not a multiple of 64"));
  CHECK_THAT(
      says(
          t,
          "cvta.shared.u64 %rd1, 0; @%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx"
          "::bytes [tile], [%rd1, {0, 0}], [bar];"),
      Contains("lies in .shared memory; it is a parameter, a constant or in global memory"));
  // A descriptor of a GPU, or one bit of ours changed.
  TensorMap bits = {};
  CHECK_THAT(outcome(text_of(load({0, 0}, bytes)), t, 0, &bits).message,
             Contains("are no tensor map that encode_tensor_map of the emulated device has made"));
  Memory memory;
  TiledTensor tensor = t.tensor;
  tensor.address = upload(memory, t.bytes, "elsewhere");
  bits = *encode_tensor_map(tensor);
  bits.opaque[3] ^= 1;
  CHECK_THAT(outcome(text_of(load({0, 0}, bytes)), t, 0, &bits).message, Contains("are no tensor map"));
  // A tensor larger than its allocation.
  Tensor large = t;
  large.tensor.extents[1] = 17;
  CHECK_THAT(
      says(large, load({0, 12}, bytes), keep(bytes)),
      Contains("reads 128 bytes at global address") && Contains("past the end of allocation 'tensor'"));
  // Out of shared memory: a fence orders the proxies, a wait the reuse.
  const std::string fill =
      "mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 32, %r1; mov.u32 %r2, 0; st.shared.v4.b32 [%r1], {%r2, %r2, "
      "%r2, %r2}; st.shared.v4.b32 [%r1+16], {%r2, %r2, %r2, %r2};\n";
  const std::string store =
      "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {0, 0}], [tile];\n";
  CHECK_THAT(says(t, str_cat(fill, "bar.sync 0;", store)), Contains("with no fence.proxy.async between"));
  CHECK_THAT(says(t, store), Contains("which nothing has written"));
  CHECK_THAT(says(t, str_cat(fill, "fence.proxy.async; bar.sync 0;", store,
                             "@%p0 cp.async.bulk.commit_group; bar.sync 0;", fill)),
             Contains("may still read; wait for it with cp.async.bulk.wait_group.read first"));
  CHECK_THAT(says(t, str_cat(fill, "fence.proxy.async; bar.sync 0;", store)),
             Contains("the CTA exits while this copy"));
}

TEST_CASE("tensor copies that are not PTX, or not emulated", "[emulator][tensor]") {
  const auto failure_of = [](std::string_view instruction) {
    return parse_failure(text_of(str_cat(instruction, ";")));
  };
  const std::string head = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes ";
  CHECK_THAT(failure_of(head + "[tile], [%map], [bar]"),
             Contains("a tensor is written [map, {coordinates}]"));
  CHECK_THAT(failure_of(head + "[tile], [%map, {%r1}], [bar]"), Contains("one coordinate a dimension"));
  CHECK_THAT(
      failure_of(
          "cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [tile], [%map, "
          "{%r1, %r2}], [bar], {%h}"),
      Contains("PTX line"));
  CHECK_THAT(failure_of("cp.async.bulk.tensor.6d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], "
                        "[%map, {%r1}], "
                        "[bar]"),
             Contains("needs a rank: one of .1d, .2d, .3d, .4d, .5d"));
  CHECK_THAT(
      failure_of("cp.async.bulk.tensor.2d.shared::cluster.shared::cta.bulk_group [tile], [%map, {%r1, %r2}]"),
      Contains("a tensor copy is .shared::cluster.global or .global.shared::cta"));
}

TEST_CASE("what a tensor map may say", "[emulator][tensor]") {
  TiledTensor good = make(ptxgen::Type::kF16, {64, 8}, {64, 8}, Swizzle::k128B).tensor;
  good.address = 1 << 20;
  CHECK(good.validate().ok());
  CHECK(encode_tensor_map(good).ok());
  const auto refused = [&](auto&& change) {
    TiledTensor t = good;
    change(t);
    CHECK(encode_tensor_map(t).status() == t.validate());
    return std::string(t.validate().message());
  };
#define CHECK_REFUSED(change, text) CHECK(refused([](TiledTensor& t) { change; }) == text)
  CHECK_REFUSED(t.type = ptxgen::Type::kPred,
                "TiledTensor::type is pred; allowed are u8, u16, u32, s32, u64, s64, f16, bf16, f32 and f64");
  CHECK_REFUSED(t.rank = 0, "TiledTensor::rank is 0; allowed is 1 to 5");
  CHECK_REFUSED(t.rank = 6, "TiledTensor::rank is 6; allowed is 1 to 5");
  CHECK_REFUSED(t.address += 8, "TiledTensor::address is 1048584; it is a multiple of 16 in global memory");
  CHECK_REFUSED(t.address = 0, "TiledTensor::address is 0; it is a multiple of 16 in global memory");
  CHECK_REFUSED(t.extents[1] = 0, "TiledTensor::extents[1] is 0; allowed is 1 to 4294967296");
  CHECK_REFUSED(t.extents[0] = (u64{1} << 32) + 1,
                "TiledTensor::extents[0] is 4294967297; allowed is 1 to 4294967296");
  CHECK_REFUSED(t.strides[0] = 136,
                "TiledTensor::strides[0] is 136 bytes; it is a multiple of 16 below 1099511627776");
  CHECK_REFUSED(t.strides[0] = u64{1} << 40,
                "TiledTensor::strides[0] is 1099511627776 bytes; it is a multiple of 16 below 1099511627776");
  CHECK_REFUSED(t.box[1] = 0, "TiledTensor::box[1] is 0; allowed is 1 to 256");
  CHECK_REFUSED(t.box[1] = 257, "TiledTensor::box[1] is 257; allowed is 1 to 256");
  CHECK_REFUSED(t.box[0] = 4, "TiledTensor::box[0] is 4 elements, 8 bytes; they are a multiple of 16");
  CHECK_REFUSED(
      t.swizzle = Swizzle::k64B,
      "TiledTensor::box[0] is 64 elements, 128 bytes; a swizzle of 64 bytes allows no more than these");
  CHECK_REFUSED(t.element_strides[1] = 9, "TiledTensor::element_strides[1] is 9; allowed is 1 to 8");
  CHECK_REFUSED(t.element_strides[1] = 0, "TiledTensor::element_strides[1] is 0; allowed is 1 to 8");
  CHECK_REFUSED(t.element_strides[0] = 2,
                "TiledTensor::element_strides[0] is 2; the first dimension is copied without gaps: 1");
  CHECK_REFUSED(t.l2_promotion = 32, "TiledTensor::l2_promotion is 32; allowed are 0, 64, 128 and 256");
  CHECK_REFUSED((t.type = ptxgen::Type::kU16, t.out_of_bounds = OutOfBounds::kNaN),
                "TiledTensor::out_of_bounds is kNaN; u16 has no NaN, use kZero");
#undef CHECK_REFUSED
  // What CUDA allows and the emulator has no knowledge of.
  good.out_of_bounds = OutOfBounds::kNaN;
  CHECK(good.validate().ok());
  CHECK_THAT(std::string(encode_tensor_map(good).status().message()),
             Contains("the bits of that NaN are the GPU's own"));
  good.out_of_bounds = OutOfBounds::kZero;
  good.box[0] = 32;
  CHECK(good.validate().ok());
  CHECK_THAT(std::string(encode_tensor_map(good).status().message()),
             Contains("TiledTensor::box[0] has 64 bytes, the swizzle 128; the emulated device knows the "
                      "layout of boxes as "
                      "wide as their swizzle alone"));
}

// ---- through the builder ----

namespace {

struct Args {
  TensorMap source, target;
  static constexpr auto fields() {
    return std::tuple(tensor_map("source", &Args::source), tensor_map("target", &Args::target));
  }
};

}  // namespace

TEST_CASE("a tensor is copied box by box, written with the builder", "[emulator][tensor]") {
  KernelBuilder k("k", {{90, false}, {8, 7}});
  k.declare_parameters<Args>();
  k.maxntid(kThreads);
  const auto tile = k.shared<u16, 1024>(64 * 8);
  const auto full = k.shared<MBarrier>(1);
  const auto source = k.param(&Args::source);
  const auto target = k.param(&Args::target);
  const Pred first = k.tid_x() == 0;
  k.if_(first, [&] {
    prefetch_tensormap(source);
    mbarrier_init(full, 1);
    k.fence_mbarrier_init_release_cluster();
  });
  k.bar_sync(0);
  const std::array<Reg<s32>, 2> at = {bitcast<s32>(k.ctaid_x() * 64u), bitcast<s32>(k.ctaid_y() * 8u)};
  k.if_(first, [&] {
    mbarrier_arrive_expect_tx(full, 1024);
    cp_async_bulk_tensor_2d_shared_global(tile, source, at, full);
  });
  k.mbarrier_wait_parity(full, 0);
  k.if_(first, [&] {
    cp_async_bulk_tensor_2d_global_shared(target, at, tile);
    k.cp_async_bulk_commit_group();
    k.cp_async_bulk_wait_group(0);
  });
  const auto kernel = k.finish();
  INFO(kernel.status().ToString());
  REQUIRE(kernel.ok());
  const std::string ptx = print_ptx(*kernel);
  CHECK_THAT(ptx, Contains(".param .align 64 .b8 source[128],\n  .param .align 64 .b8 target[128]\n"));
  const Tensor t = make(ptxgen::Type::kF16, {200, 30}, {64, 8}, Swizzle::k128B);
  Memory memory;
  TiledTensor from = t.tensor, to = t.tensor;
  from.address = upload(memory, t.bytes, "from");
  to.address = upload(memory, std::vector<std::byte>(t.bytes.size()), "to");
  const Args args = {*encode_tensor_map(from), *encode_tensor_map(to)};
  std::vector<std::byte> params(sizeof(args));
  std::memcpy(params.data(), &args, sizeof(args));
  LaunchConfig config;
  config.grid = {4, 4};
  config.block = {kThreads};
  config.params = params;
  run(*parsed(ptx), "k", config, memory);
  CHECK(download<std::byte>(memory, to.address, t.bytes.size()) == t.bytes);
}

}  // namespace ptxgen::emulator
