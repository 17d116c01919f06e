// Dequantisation: out = (q - bias) * scale + shift for every value of every block.
//
// The blocks of all rows lie one after the other, so rows need no treatment of their own. A thread decodes
// one part of a block and stores each of its runs as 16 bytes: 4 values as f32, 8 as f16 or bf16.
// Neighbouring threads have neighbouring parts, so their loads and stores are contiguous.

#include "ptxgen/kernels.h"
#include "src/kernels/formats/with_format.h"
#include "src/kernels/parts/narrow.h"

namespace ptxgen {
namespace {

constexpr u32 kThreads = 256;
constexpr u32 kStoreBytes = 16;

constexpr u32 values_per_store(ElementType type) {
  return kStoreBytes / bytes_of(type);
}

u32 blocks_per_cta(const Dequant& d) {
  return formats::with_format(d.format, [&]<class F>(std::type_identity<F>) {
    return kThreads / formats::parts_per_block<F>(values_per_store(d.out_type));
  });
}

// The values of a run, each step rounded as in ggml's dequantize_row_*.
template <class F, u32 W>
std::vector<Reg<f32>> values_of(const formats::Part<W>& part, const formats::Run<W>& run) {
  const Reg<f32> scale = run.scale ? run.scale->value() * part.d : part.d;
  std::vector<Reg<f32>> values;
  for (u32 i = 0; i < W; ++i) {
    const Reg<f32> scaled = parts::integer_to_f32(run.q[i / 4], i % 4, F::kBias, F::kSigned) * scale;
    if (!part.m) {
      values.push_back(scaled);
    } else {
      values.push_back(scaled + (run.min ? run.min->value() * *part.m : *part.m));
    }
  }
  return values;
}

template <u32 W>
void store_run(KernelBuilder& k, ElementType type, const GlobalPtr<std::byte, kStoreBytes>& out,
               const std::vector<Reg<f32>>& values) {
  if constexpr (W == 4) {
    st_global_v4(at<f32>(out), {values[0], values[1], values[2], values[3]});
  } else {
    const auto pair = [&](u32 i) { return parts::narrow_pair(k, type, values[2 * i], values[2 * i + 1]); };
    st_global_v4(at<u32>(out), {pair(0), pair(1), pair(2), pair(3)});
  }
}

template <class F, u32 W>
void build_dequant(KernelBuilder& k, const Dequant& d) {
  constexpr u32 kParts = formats::parts_per_block<F>(W);
  constexpr u32 kBlockValues = info(F::kFormat).block_values;
  const u32 ctas_blocks = kThreads / kParts;
  k.maxntid(kThreads);
  const Reg<u32> tid = k.tid_x();
  const Reg<u32> block = k.ctaid_x() * ctas_blocks + tid / kParts;
  const Reg<u32> part = tid % kParts;

  const auto weights = at<parts::Bytes<info(F::kFormat).block_bytes>>(
      assume_aligned<info(F::kFormat).alignment>(k.param(&Dequant::Args::weights)));
  const auto out = at<parts::Bytes<kBlockValues / W * kStoreBytes>>(k.param(&Dequant::Args::out));
  const auto dequantise = [&] {
    const auto place = F::template place<W>(part);
    const auto raw = F::template load<W>(weights + block, place);
    const formats::Part<W> decoded = F::decode(raw, place, formats::Packing::kExact);
    const auto base = at<parts::Bytes<kStoreBytes>>(out + block) + place.base.index() / W;
    for (u32 run = 0; run < F::kRuns; ++run) {
      store_run<W>(k, d.out_type, at<std::byte>(base + run * (F::kRunStride / W)),
                   values_of<F>(decoded, decoded.runs[run]));
    }
  };
  if (d.num_blocks() % ctas_blocks == 0) {
    dequantise();
  } else {
    k.if_(block < static_cast<u32>(d.num_blocks()), dequantise);
  }
}

}  // namespace

std::string Dequant::name() const {
  return str_cat(info(format).name, "_dequant");
}

absl::Status Dequant::validate() const {
  constexpr u64 kMaxBlocks = 0xffffffff;  // a block's index is 32 bits
  if (num_blocks() > kMaxBlocks) {
    return absl::InvalidArgumentError(str_cat("n is ", n, " with k ", k, ", which makes ", num_blocks(),
                                              " blocks; the kernel counts up to ", kMaxBlocks,
                                              ": split the rows"));
  }
  return absl::OkStatus();
}

LaunchShape Dequant::launch_shape(const Args&) const {
  LaunchShape shape;
  const u64 per_cta = blocks_per_cta(*this);
  shape.grid = {(num_blocks() + per_cta - 1) / per_cta};
  shape.block = {kThreads};
  return shape;
}

void Dequant::build(KernelBuilder& b) const {
  formats::with_format(format, [&]<class F>(std::type_identity<F>) {
    if (out_type == ElementType::kF32) {
      build_dequant<F, values_per_store(ElementType::kF32)>(b, *this);
    } else {
      build_dequant<F, values_per_store(ElementType::kF16)>(b, *this);
    }
  });
}

}  // namespace ptxgen
