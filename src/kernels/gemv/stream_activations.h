// Activations of schedule `stream`: quantised by all consumers together, read by each lane for its columns.
#pragma once

#include "src/kernels/gemv/stream.h"
#include "src/kernels/gemv/stream_layout.h"
#include "src/kernels/gemv/x_units.h"
#include "src/kernels/parts/dependence.h"
#include "src/kernels/parts/q8_1.h"
#include "src/kernels/parts/reduce.h"

namespace ptxgen::gemv {

template <class F>
class StagedActivations {
  static constexpr u32 W = kPartBytes<F>;

 public:
  // By `threads` threads, which named barrier 1 brings together; they lie at `shared`, row after row.
  StagedActivations(KernelBuilder& k, const Stream& s, const StreamGeometry& g,
                    const StreamPointers& pointers, const SharedPtr<std::byte, 16>& shared, u32 threads)
      : k_(k), s_(s), g_(g), pointers_(pointers), shared_(shared), threads_(threads), units_(s.k / kUnit) {}

  // Waits for the kernel before this one, and brings the activations into shared memory, quantised.
  void stage() const {
    parts::wait_for_predecessor(k_);
    std::vector<Work> work;
    for (u32 m = 0; m < s_.max_m; ++m) {
      const Row row = row_of(m);
      const auto of_row = work_of(row, s_.norm ? std::optional(norm_factor(row)) : std::nullopt);
      work.insert(work.end(), of_row.begin(), of_row.end());
    }
    for_groups(work, [&](const std::vector<Work>& group) { stage_units(group); });
    k_.bar_sync(1, threads_);
  }

  // A lane's activations for one part of a row, one Int8Run a run; zeros where `real` is false.
  std::vector<parts::Int8Run<W>> load(u32 m, const Reg<u32>& part, const Pred& real) const {
    std::vector<parts::Int8Run<W>> x;
    for (u32 r = 0; r < F::kRuns; ++r) {
      std::vector<Reg<u32>> q;
      for (u32 p = 0; p < W / 16; ++p) {
        const auto four = ld_shared_v4(plane(m, part, r * (W / 16) + p));
        q.insert(q.end(), four.begin(), four.end());
      }
      const auto headers = parts::load_words<kRunHeaders<F>>(header(m, part, r));
      const formats::Words<W> words = [&]<std::size_t... I>(std::index_sequence<I...>) {
        return formats::Words<W>{q[I]...};
      }
      (std::make_index_sequence<W / 4>{});
      x.push_back(run_of(words, headers, r, real));
    }
    return x;
  }

 private:
  static parts::Int8Run<W> run_of(const formats::Words<W>& q,
                                  const std::array<Reg<u32>, kRunHeaders<F>>& headers, u32 run,
                                  const Pred& real) {
    KernelBuilder& k = *real.kernel();
    const Reg<f32> d = parts::d_of(selp(headers[0], k.constant<u32>(0), real));
    Reg<s32> sum = k.constant<s32>(F::kBias ? 0 : parts::kMagicBits);
    // The first of the two bytes meets d, the second the sum.
    for (const Reg<u32>& header : headers) sum = dp2a_lo(bitcast<s32>(header), k.constant<s32>(0x0100), sum);
    constexpr u32 kBits = F::kFieldBits;
    const u32 unit = 1u << kBits * run;
    const Reg<f32> unit_d = unit == 1 ? d : d * (1.f / static_cast<f32>(unit));
    if constexpr (F::kBias != 0) return {q, unit_d, k.constant<f32>(0.f), parts::start_of<F>(sum, unit)};
    return {q, unit_d, (bitcast<f32>(sum) - parts::kMagicFloat) * d, k.constant<s32>(parts::kMagicBits)};
  }

  struct Row {
    u32 m;                                // its place in shared memory
    GlobalPtr<const std::byte, 4> begin;  // of x
  };
  Row row_of(u32 m) const {
    const u64 bytes = s_.x_type == Activations::kF32 ? u64{s_.k} * 4 : u64{s_.k} / 32 * sizeof(BlockQ8_1);
    if (m == 0) return {m, pointers_.x};
    if (!pointers_.m) return {m, assume_aligned<4>(pointers_.x + bytes * m)};
    // Rows that x does not have are the last one again.
    return {m,
            assume_aligned<4>(pointers_.x + cvt<u64>((min)(k_.constant<u32>(m), *pointers_.m - 1u)) * bytes)};
  }

  Eight load_eight(const Row& row, const Reg<u32>& unit) const {
    return parts::load_eight(at<f32>(assume_aligned<16>(row.begin)), unit);
  }

  // The units from `first` on, one a thread; those past the end repeat the last. `row` begins with the first
  // of them, so what they have in common are constant offsets.
  struct Work {
    Row row;
    u32 first;
    Reg<u32> index;
    std::optional<Reg<f32>> factor = {};
  };
  std::vector<Work> work_of(const Row& row, const std::optional<Reg<f32>>& factor = {}) const {
    const u64 block_bytes = s_.x_type == Activations::kF32 ? 32 * 4 : sizeof(BlockQ8_1);
    std::vector<Work> work;
    for (u32 first = 0; first < units_; first += threads_) {
      const Reg<u32> tid = k_.tid_x();
      const auto begin = assume_aligned<4>(row.begin + first / 4 * block_bytes);
      work.push_back({{row.m, begin}, first, within(first) ? tid : (min)(tid, units_ - first - 1), factor});
    }
    return work;
  }
  bool within(u32 first) const { return first + threads_ <= units_; }
  template <class Body>
  void if_within(u32 first, Body&& body) const {
    if (within(first)) return body();
    k_.if_(k_.tid_x() < units_ - first, body);
  }

  // So many loads are under way together that their latency is met once, as registers allow.
  template <class Body>
  void for_groups(const std::vector<Work>& work, Body&& body) const {
    const std::size_t at_once = s_.x_type == Activations::kQ8_1 ? 8 : 4;
    for (std::size_t i = 0; i < work.size(); i += at_once)
      body(std::vector<Work>(work.begin() + i, work.begin() + std::min(work.size(), i + at_once)));
  }

  void stage_units(const std::vector<Work>& group) const {
    if (s_.x_type == Activations::kQ8_1) {
      stage_units(
          group, [&](const Work& w) { return load_quantized(w.row.begin, w.index); },
          [](const parts::Quantized& loaded, const Work&) { return loaded; });
    } else {
      stage_units(
          group, [&](const Work& w) { return load_eight(w.row, w.index); },
          [&](const Eight& loaded, const Work& w) {
            return parts::quantize(w.factor ? normalised(loaded, w) : loaded);
          });
    }
  }
  template <class Load, class Quantize>
  void stage_units(const std::vector<Work>& group, const Load& load, const Quantize& quantize) const {
    std::vector<decltype(load(group[0]))> loaded;
    for (const Work& w : group) loaded.push_back(load(w));
    const auto quantized = [&](std::size_t i) { return quantize(loaded[i], group[i]); };
    const auto put = [&](std::size_t i, const parts::Quantized& q) {
      store(group[i].row.m, group[i].first, q);
    };
    // Of several rows with fewer units than threads, whole warps quantise nothing.
    if (group.size() > 1 && units_ < threads_ && units_ % 32 == 0) {
      // From one lane, so that an assembler sees that warps branch together.
      const Reg<u32> first_tid = shfl_sync_idx(k_.tid_x(), 0u, 0x1fu, 0xffffffffu);
      return k_.if_(first_tid < units_, [&] {
        for (std::size_t i = 0; i < group.size(); ++i) put(i, quantized(i));
      });
    }
    std::vector<parts::Quantized> all;
    for (std::size_t i = 0; i < group.size(); ++i) all.push_back(quantized(i));
    for (std::size_t i = 0; i < group.size(); ++i) if_within(group[i].first, [&] { put(i, all[i]); });
  }

  // ---- RMSNorm: x * gamma / sqrt(mean of x^2 + epsilon)

  Reg<f32> norm_factor(const Row& row) const {
    Var<f32> squares = k_.var<f32>(0.f);
    for_groups(work_of(row), [&](const std::vector<Work>& group) {
      std::vector<Eight> values;
      for (const Work& w : group) values.push_back(load_eight(w.row, w.index));
      for (std::size_t i = 0; i < group.size(); ++i) {
        Reg<f32> sum = values[i][0] * values[i][0];
        for (u32 j = 1; j < kUnit; ++j) sum = fma_rn(values[i][j], values[i][j], sum);
        if_within(group[i].first, [&] { squares = squares + sum; });
      }
    });
    const auto sums = k_.shared<f32>(threads_ / 32);
    const Reg<f32> of_warp = parts::lane_sum(squares);
    k_.if_((k_.tid_x() & 31u) == 0u, [&] { st_shared(sums + (k_.tid_x() >> 5), of_warp); });
    k_.bar_sync(1, threads_);
    Reg<f32> total = ld_shared(sums);
    for (u32 i = 1; i < threads_ / 32; ++i) {
      const Reg<f32> next = ld_shared(sums + i);
      total = total + next;
    }
    return rsqrt_approx(fma_rn(total, 1.f / static_cast<f32>(s_.k), *pointers_.epsilon));
  }
  Eight normalised(const Eight& x, const Work& w) const {
    const auto gamma = at<parts::Bytes<kUnit * 4>>(*pointers_.gamma) + w.first + w.index;
    const auto low = ld_global_nc_v4(at<f32>(gamma));
    const auto high = ld_global_nc_v4(at<f32, 16>(gamma));
    const auto scaled = [&](u32 i) { return x[i] * *w.factor * (i < 4 ? low[i] : high[i - 4]); };
    return {scaled(0), scaled(1), scaled(2), scaled(3), scaled(4), scaled(5), scaled(6), scaled(7)};
  }

  // ---- In shared memory

  // Those of 32 parts, a group, repeat at constant distances.
  static constexpr u32 kGroupBytes = kPlanes<F> * kPlanePitch,
                       kGroupHeaderBytes = F::kRuns * kHeaderPitch<F> * 4;
  static constexpr u32 kHeaderBytes = kRunHeaders<F> * 4;

  template <class Index>
  SharedPtr<u32, 16> plane(u32 m, const Reg<u32>& part, const Index& plane) const {
    const auto group = shared_ + m * g_.activation_bytes + (part >> 5) * kGroupBytes;
    return at<u32>(assume_aligned<16>(group + (part & 31u) * 16u + plane * kPlanePitch));
  }
  template <class Index>
  SharedPtr<u32, kHeaderBytes> header(u32 m, const Reg<u32>& part, const Index& run) const {
    const auto group = shared_ + (m * g_.activation_bytes + g_.q_bytes) + (part >> 5) * kGroupHeaderBytes;
    return at<u32>(
        assume_aligned<kHeaderBytes>(group + (part & 31u) * kHeaderBytes + run * (kHeaderPitch<F> * 4)));
  }

  // Parts lie in groups of kRunStride / W, whose runs alternate: value i of the row belongs to run
  // i / kRunStride % kRuns of part i / (kRuns * kRunStride) * (kRunStride / W) + i % kRunStride / W.
  void store(u32 m, u32 first, const parts::Quantized& values) const {
    constexpr u32 kStride = F::kRunStride / kUnit, kWidth = W / kUnit, kGroupUnits = 32 * F::kRuns * kWidth;
    const u32 group = first / kGroupUnits;
    const Reg<u32> unit = k_.tid_x() + first % kGroupUnits;
    const Reg<u32> part = unit / (F::kRuns * kStride) * (kStride / kWidth) + unit % kStride / kWidth;
    const Reg<u32> run = unit / kStride % F::kRuns;
    const Reg<u32> in_run = unit % kWidth;
    const auto bytes = plane(m, part, run * (W / 16) + in_run / 2u) + in_run % 2u * 2u;
    st_shared_v2(assume_aligned<8>(bytes + group * kGroupBytes / 4), {values.q[0], values.q[1]});
    const Reg<u32> sum = bitcast<u32>(parts::sum_of_bytes(values.q));
    st_shared(header(m, part, run) + in_run + group * kGroupHeaderBytes / 4, prmt(values.d, sum, 0x5410));
  }

  KernelBuilder& k_;
  const Stream& s_;
  const StreamGeometry& g_;
  const StreamPointers& pointers_;
  const SharedPtr<std::byte, 16> shared_;
  const u32 threads_, units_;
};

}  // namespace ptxgen::gemv
