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
      const std::optional<Reg<f32>> factor = s_.norm ? std::optional(norm_factor(row)) : std::nullopt;
      for (u32 first = 0; first < units_; first += threads_)
        work.push_back({row, first, unit_of(first), factor});
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
      const auto [d, sum] = ld_shared_v2(scale(m, part, r));
      const Reg<u32> zero = k_.constant<u32>(0);
      const formats::Words<W> words = [&]<std::size_t... I>(std::index_sequence<I...>) {
        return formats::Words<W>{q[I]...};
      }
      (std::make_index_sequence<W / 4>{});
      x.push_back({words, bitcast<f32>(selp(d, zero, real)), bitcast<f32>(selp(sum, zero, real)),
                   F::kBias ? bitcast<s32>(sum) : k_.constant<s32>(parts::kMagicBits)});
    }
    return x;
  }

 private:
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
    return gemv::load_eight(assume_aligned<16>(row.begin), unit);
  }

  // The units from `first` on, one a thread; those past the end repeat the last.
  struct Work {
    Row row;
    u32 first;
    Reg<u32> unit;
    std::optional<Reg<f32>> factor;
  };
  Reg<u32> unit_of(u32 first) const {
    const Reg<u32> unit = k_.tid_x() + first;
    return first + threads_ <= units_ ? unit : (min)(unit, units_ - 1);
  }
  template <class Body>
  void if_within(u32 first, Body&& body) const {
    if (first + threads_ <= units_) return body();
    k_.if_(k_.tid_x() + first < units_, body);
  }

  // So many loads are under way together that their latency is met once, as registers allow.
  template <class Body>
  void for_groups(const std::vector<Work>& work, Body&& body) const {
    const std::size_t at_once = s_.x_type == Activations::kQ8_1 ? 8 : 4;
    for (std::size_t i = 0; i < work.size(); i += at_once)
      body(std::vector<Work>(work.begin() + i, work.begin() + std::min(work.size(), i + at_once)));
  }

  void stage_units(const std::vector<Work>& group) const {
    std::vector<parts::Quantized> quantized;
    if (s_.x_type == Activations::kQ8_1) {
      for (const Work& w : group) quantized.push_back(load_quantized(w.row.begin, w.unit));
    } else {
      std::vector<Eight> values;
      for (const Work& w : group) values.push_back(load_eight(w.row, w.unit));
      for (std::size_t i = 0; i < group.size(); ++i) {
        const Work& w = group[i];
        quantized.push_back(parts::quantize(w.factor ? normalised(values[i], w.unit, *w.factor) : values[i]));
      }
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      const Reg<s32> sum = parts::sum_over_lanes(parts::sum_of_bytes(quantized[i].q), W / kUnit);
      if_within(group[i].first, [&] { store(group[i].row.m, group[i].unit, quantized[i], sum); });
    }
  }

  // ---- RMSNorm: x * gamma / sqrt(mean of x^2 + epsilon)

  Reg<f32> norm_factor(const Row& row) const {
    Var<f32> squares = k_.var<f32>(0.f);
    std::vector<Work> work;
    for (u32 first = 0; first < units_; first += threads_) work.push_back({row, first, unit_of(first), {}});
    for_groups(work, [&](const std::vector<Work>& group) {
      std::vector<Eight> values;
      for (const Work& w : group) values.push_back(load_eight(row, w.unit));
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
  Eight normalised(const Eight& x, const Reg<u32>& unit, const Reg<f32>& factor) const {
    const auto gamma = at<parts::Bytes<kUnit * 4>>(*pointers_.gamma) + unit;
    const auto low = ld_global_nc_v4(at<f32>(gamma));
    const auto high = ld_global_nc_v4(at<f32, 16>(gamma));
    const auto scaled = [&](u32 i) { return x[i] * factor * (i < 4 ? low[i] : high[i - 4]); };
    return {scaled(0), scaled(1), scaled(2), scaled(3), scaled(4), scaled(5), scaled(6), scaled(7)};
  }

  // ---- In shared memory

  SharedPtr<u32, 16> plane(u32 m, const Reg<u32>& part, const In<u32>& plane) const {
    const auto row = assume_aligned<16>(shared_ + m * g_.activation_bytes);
    return at<u32>(at<parts::Bytes<16>>(row) +
                   (((part >> 5) * kPlanes<F> + plane) * (kPlanePitch / 16) + (part & 31u)));
  }
  SharedPtr<u32, 8> scale(u32 m, const Reg<u32>& part, const In<u32>& run) const {
    const auto row = assume_aligned<16>(shared_ + (m * g_.activation_bytes + g_.q_bytes));
    return at<u32>(at<parts::Bytes<kScaleBytes>>(row) +
                   (((part >> 5) * F::kRuns + run) * 32u + (part & 31u)));
  }

  // Parts lie in groups of kRunStride / W, whose runs alternate: value i of the row belongs to run
  // i / kRunStride % kRuns of part i / (kRuns * kRunStride) * (kRunStride / W) + i % kRunStride / W.
  void store(u32 m, const Reg<u32>& unit, const parts::Quantized& values, const Reg<s32>& sum) const {
    constexpr u32 kStride = F::kRunStride / kUnit, kWidth = W / kUnit;
    const Reg<u32> part = unit / (F::kRuns * kStride) * (kStride / kWidth) + unit % kStride / kWidth;
    const Reg<u32> run = unit / kStride % F::kRuns;
    const Reg<u32> in_run = unit % kWidth;
    const auto bytes = plane(m, part, run * (W / 16) + in_run / 2u) + in_run % 2u * 2u;
    st_shared_v2(assume_aligned<8>(bytes), {values.q[0], values.q[1]});
    k_.if_(in_run == 0u, [&] {
      constexpr u32 kBits = F::kFieldBits, kOne = 127u << 23;  // 1.f
      const Reg<f32> d = parts::d_of(values.d);
      // Over the run's unit, a power of two.
      const Reg<f32> unit_d = kBits == 0 ? d : d * bitcast<f32>(kOne - (run * kBits << 23));
      if constexpr (F::kBias != 0) {
        const Reg<s32> bias = bitcast<s32>(k_.constant<u32>(F::kBias) << run * kBits);
        const Reg<s32> start = parts::kMagicBits - sum * bias;
        st_shared_v2(scale(m, part, run), {bitcast<u32>(unit_d), bitcast<u32>(start)});
      } else {
        st_shared_v2(scale(m, part, run), {bitcast<u32>(unit_d), bitcast<u32>(cvt_rn<f32>(sum) * d)});
      }
    });
  }

  KernelBuilder& k_;
  const Stream& s_;
  const StreamGeometry& g_;
  const StreamPointers& pointers_;
  const SharedPtr<std::byte, 16> shared_;
  const u32 threads_, units_;
};

}  // namespace ptxgen::gemv
