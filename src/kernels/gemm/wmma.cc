// The f16 tensor cores by wmma. A CTA decodes a chunk of 256 values of its rows of weights into shared
// memory as f16, and its rows of a beside it; each warp multiplies 16 x 16 outputs of them, 16 values at a
// time.

#include "src/kernels/formats/with_format.h"
#include "src/kernels/gemm/half_weights.h"
#include "src/kernels/gemm/row_scale.h"
#include "src/kernels/gemm/schedules.h"
#include "src/kernels/parts/dependence.h"

namespace ptxgen::gemm {
namespace {

using parts::Bytes;

constexpr u32 kEdge = 16;  // rows, columns and values of a multiplication
constexpr u32 kChunkValues = 256;
constexpr u32 kPitch = kChunkValues + 8;  // from row to row, so that rows begin in different banks
constexpr u32 kWidth = 8;                 // bytes of a part
constexpr u32 kMostRegisters = 96;        // of a thread of wmma_multi_warp

u32 warps_along(const Gemm& g) {
  return g.schedule == GemmSchedule::kWmma ? 1 : 2;
}

template <class F>
class WmmaKernel {
  static constexpr FormatInfo kInfo = info(F::kFormat);
  static constexpr u32 kChunkBlocks = kChunkValues / kInfo.block_values;
  static constexpr u32 kParts = formats::parts_per_block<F>(kWidth);
  using A = WmmaFragment<Matrix::kA, f16, 16, 16, 16, Layout::kRow>;
  using B = WmmaFragment<Matrix::kB, f16, 16, 16, 16, Layout::kCol>;
  using C = WmmaFragment<Matrix::kC, f32, 16, 16, 16>;

 public:
  WmmaKernel(KernelBuilder& k, const Gemm& g, const Shape& shape)
      : k_(k),
        g_(g),
        edge_(shape.tile_m),
        threads_(shape.threads),
        m_(k.param(&Gemm::Args::m)),
        a_(at<f32>(k.param(&Gemm::Args::a))),
        weights_(
            at<Bytes<kInfo.block_bytes>>(assume_aligned<kInfo.alignment>(k.param(&Gemm::Args::weights)))),
        tile_(tile_of_cta(k, shape, m_)),
        a_tile_(k.shared<f16, 32>(edge_ * kPitch)),
        w_tile_(k.shared<f16, 32>(edge_ * kPitch)),
        sums_(k.shared<f32, 32>(edge_ * edge_)),
        scales_(k, k.shared<f32>(edge_ * 2), edge_) {}

  void build() {
    const Reg<u32> warp = k_.tid_x() >> 5;
    const Reg<u32> warp_m = warp / warps_along(g_) * kEdge;
    const Reg<u32> warp_n = warp % warps_along(g_) * kEdge;
    WmmaAccumulator<f32, 16, 16, 16> sums(k_);
    parts::launch_dependents(k_);
    parts::wait_for_predecessor(k_);
    scales_.find(g_.k, threads_, [&](const Reg<u32>& i) { return row_of_a(i); });
    const auto add_chunk = [&](const Reg<u32>& chunk, u32 values) {
      k_.bar_sync(0);
      stage_a(chunk, values);
      stage_weights(chunk, values / kInfo.block_values);
      k_.bar_sync(0);
      k_.for_(0u, values, kEdge, [&](const Reg<u32>& i) {
        const A a = wmma_load_a_m16n16k16<Layout::kRow>(tile_at(a_tile_, warp_m, i), kPitch);
        const B b = wmma_load_b_m16n16k16<Layout::kCol>(tile_at(w_tile_, warp_n, i), kPitch);
        sums = wmma_mma(a, b, C(sums));
      });
    };
    const u32 whole = g_.k / kChunkValues, rest = g_.k % kChunkValues;
    k_.for_(0u, whole, 1, [&](const Reg<u32>& chunk) { add_chunk(chunk, kChunkValues); });
    if (rest) add_chunk(k_.constant<u32>(whole), rest);
    wmma_store_d<Layout::kRow>(assume_aligned<32>(sums_ + (warp_m * edge_ + warp_n)), C(sums), edge_);
    k_.bar_sync(0);
    store();
  }

 private:
  // Rows past the last, of a and of weights, are that one again; their sums are not kept.
  GlobalPtr<const f32, 16> row_of_a(const Reg<u32>& i) const {
    const Reg<u32> row = (min)(tile_.first_m + i, m_ - 1u);
    return assume_aligned<16>(a_ + cvt<u64>(row) * u64{g_.k});
  }
  static SharedPtr<f16, 32> tile_at(const SharedPtr<f16, 32>& tile, const Reg<u32>& row, const Reg<u32>& i) {
    return assume_aligned<32>(tile + (row * kPitch + i));
  }

  void stage_a(const Reg<u32>& chunk, u32 values) const {
    k_.for_(k_.tid_x(), edge_ * (values / 4), threads_, [&](const Reg<u32>& index) {
      const Reg<u32> row = index / (values / 4);
      const Reg<u32> quad = index % (values / 4);
      const auto four =
          ld_global_v4(at<f32>(at<Bytes<16>>(row_of_a(row)) + (chunk * (kChunkValues / 4) + quad)));
      const Reg<f32> factor = scales_.factor(row);
      const auto pair = [&](u32 i) {
        return parts::narrow_pair(k_, ElementType::kF16, four[i] * factor, four[i + 1] * factor);
      };
      st_shared_v2(at<u32>(assume_aligned<8>(a_tile_ + (row * kPitch + quad * 4u))), {pair(0), pair(2)});
    });
  }

  void stage_weights(const Reg<u32>& chunk, u32 blocks) const {
    k_.for_(k_.tid_x(), edge_ * blocks * kParts, threads_, [&](const Reg<u32>& index) {
      const Reg<u32> row = index / (blocks * kParts);
      const Reg<u32> block = index / kParts % blocks;
      const auto place = F::template place<kWidth>(index % kParts);
      const Reg<u64> row_of_n = cvt<u64>((min)(tile_.first_n + row, g_.n - 1));
      const auto raw = F::template load<kWidth>(
          weights_ + row_of_n * u64{g_.k / kInfo.block_values} + (chunk * kChunkBlocks + block), place);
      const formats::Part<kWidth> part = F::decode(raw, place, formats::Packing::kInPlace);
      const HalfScales<F> scales(k_, part);
      const auto target = w_tile_ + (row * kPitch + block * kInfo.block_values + place.base.index().value());
      for (u32 run = 0; run < F::kRuns; ++run) {
        for (u32 word = 0; word < kWidth / 4; ++word) {
          const auto four = scales.four(run, part.runs[run].q[word]);
          st_shared_v2(at<u32>(assume_aligned<8>(target + (run * F::kRunStride + word * 4))),
                       {bitcast<u32>(four[0]), bitcast<u32>(four[1])});
        }
      }
    });
  }

  void store() const {
    const auto c = k_.param(&Gemm::Args::c);
    k_.for_(k_.tid_x(), edge_ * edge_, threads_, [&](const Reg<u32>& index) {
      const Reg<u32> row = tile_.first_m + index / edge_;
      const Reg<u32> column = tile_.first_n + index % edge_;
      k_.if_(row < m_ && column < g_.n, [&] {
        const Reg<f32> sum = ld_shared(sums_ + index);
        const Reg<f32> inverse = scales_.inverse(index / edge_);
        st_global(c + (cvt<u64>(row) * u64{g_.n} + cvt<u64>(column)), sum * inverse);
      });
    });
  }

  KernelBuilder& k_;
  const Gemm& g_;
  const u32 edge_, threads_;
  const Reg<u32> m_;
  const GlobalPtr<const f32, 16> a_;
  const GlobalPtr<const Bytes<kInfo.block_bytes>, kInfo.alignment> weights_;
  const Tile tile_;
  const SharedPtr<f16, 32> a_tile_, w_tile_;
  const SharedPtr<f32, 32> sums_;
  const RowScales scales_;
};

}  // namespace

Shape wmma_shape(const Gemm& g) {
  const u32 warps = warps_along(g);
  return {kEdge * warps, kEdge * warps, 32 * warps * warps};
}

void build_wmma(KernelBuilder& k, const Gemm& g) {
  const Shape shape = wmma_shape(g);
  k.maxntid(shape.threads);
  if (g.schedule == GemmSchedule::kWmmaMultiWarp) k.maxnreg(kMostRegisters);
  formats::with_format(g.format, [&]<class F>(std::type_identity<F>) { WmmaKernel<F>(k, g, shape).build(); });
}

}  // namespace ptxgen::gemm
