// Activations of schedule `mma`: quantised by all consumers together, read as B operands.
#pragma once

#include "src/kernels/gemv/mma.h"
#include "src/kernels/gemv/mma_layout.h"
#include "src/kernels/gemv/x_units.h"
#include "src/kernels/parts/dependence.h"

namespace ptxgen::gemv {

template <class F>
class MmaActivations {
  using L = MmaLayout<F>;

 public:
  // `x` begins with the CTA's first row, of which it has `rows`; they come to lie at `shared`.
  MmaActivations(KernelBuilder& k, const Mma& s, const MmaGeometry& g, const GlobalPtr<const std::byte, 4>& x,
                 const Reg<u32>& rows, const SharedPtr<std::byte, 16>& shared)
      : k_(k),
        g_(g),
        x_type_(s.x_type),
        units_(s.k / kUnit),
        x_(x),
        rows_(rows),
        words_(shared),
        entries_(assume_aligned<16>(shared + g.word_bytes)) {}

  // Waits for the kernel before this one, and brings the activations into shared memory, quantised. Rows that
  // x does not have are zeros. A thread takes the same units of all rows, so it finds their place once.
  void stage() const {
    parts::wait_for_predecessor(k_);
    k_.for_(0u, units_, g_.threads, [&](const Reg<u32>& first) {
      const Reg<u32> wanted = first + k_.tid_x();
      // Whole warps stay together for the shuffles.
      const Reg<u32> unit = units_ % g_.threads == 0 ? wanted : (min)(wanted, units_ - 1);
      const Place at_place = place(unit);
      k_.for_(0u, g_.groups * kMmaColumns, rows_at_once(), [&](const Reg<u32>& row) {
        const std::vector<Unit> units = load(row, unit);
        const auto put = [&] { store(at_place, row, units); };
        if (units_ % g_.threads == 0) return put();
        k_.if_(wanted < units_, put);
      });
    });
    k_.bar_sync(1, g_.threads);
  }

  // Of the steps of one block, the lane's part.
  struct Block {
    SharedPtr<u32, L::kLaneBytes> words;
    SharedPtr<u32, 16> entries;
  };
  Block block(const Reg<u32>& index, const Reg<u32>& lane) const {
    const u32 steps = L::kSteps * g_.groups;
    const auto words = words_ + index * (steps * L::kStepBytes) + lane * L::kLaneBytes;
    const auto entries = entries_ + index * (steps * L::kStepEntryBytes) + (lane & 3u) * 16u;
    return {at<u32>(assume_aligned<L::kLaneBytes>(words)), at<u32>(assume_aligned<16>(entries))};
  }

  // The B registers of all products of a step, for one group of 8 rows of x.
  static std::vector<Reg<u32>> words(const Block& b, u32 step) {
    const auto p = assume_aligned<L::kLaneBytes>(b.words + step * (L::kStepBytes / 4));
    const auto loaded = parts::load_words<L::kLaneBytes / 4>(p);
    return {loaded.begin(), loaded.end()};
  }
  // d and the sum or start of rows 2 t and 2 t + 1, t = lane % 4.
  struct Entries {
    std::array<Reg<u32>, 2> d, sum;
  };
  static Entries entries(const Block& b, u32 step, u32 product) {
    const u32 offset = step * L::kStepEntryBytes + product * 8 * L::kEntryBytes;
    const auto four = ld_shared_v4(assume_aligned<16>(b.entries + offset / 4));
    return {{four[0], four[2]}, {four[1], four[3]}};
  }

 private:
  // Where a unit of a row lies: its first word is word `word` of the product in lane `thread` of a column's
  // four; of parts of 4 bytes, the second word is the next lane's. `leads` marks a product's first unit.
  struct Place {
    Reg<u32> step, product, thread, word;
    Pred leads;
  };
  Place place(const Reg<u32>& unit) const {
    const Reg<u32> zero = k_.constant<u32>(0);
    if constexpr (L::kSixteen) {
      const Reg<u32> thread = (unit & 1u) * 2u;
      return {(unit >> 4) * 2u + (unit >> 1 & 1u), unit >> 2 & 3u, thread, zero, thread == 0u};
    } else if constexpr (L::kPaired) {
      return {unit >> 2, zero, (unit & 1u) * 2u, unit >> 1 & 1u, (unit & 3u) == 0u};
    } else {
      const Reg<u32> sub_block = unit >> 2;
      return {sub_block / F::kRuns, sub_block % F::kRuns, unit & 3u, zero, (unit & 3u) == 0u};
    }
  }

  // So many loads are under way together that their latency is met seldom, as registers allow.
  u32 rows_at_once() const { return x_type_ == Activations::kQ8_1 ? 8 : 4; }

  // 8 values of a row, and the sum of those of a product that they belong to.
  struct Unit {
    parts::Quantized values;
    Reg<s32> sum;
  };

  // Unit `unit` of the rows from `first_row` on.
  std::vector<Unit> load(const Reg<u32>& first_row, const Reg<u32>& unit) const {
    std::vector<GlobalPtr<const std::byte, 4>> rows;
    for (u32 i = 0; i < rows_at_once(); ++i) {
      const Reg<u32> row = (min)(first_row + i, rows_ - 1u);
      rows.push_back(assume_aligned<4>(x_ + cvt<u64>(row) * activation_bytes(x_type_, units_ * kUnit)));
    }
    std::vector<Unit> units;
    for (const parts::Quantized& values : quantize(rows, unit)) {
      const Pred exists = first_row + static_cast<u32>(units.size()) < rows_;
      const auto if_exists = [&](const Reg<u32>& word) { return selp(word, k_.constant<u32>(0), exists); };
      const Reg<u32> sum = if_exists(bitcast<u32>(sum_of(values)));
      units.push_back(
          {{{if_exists(values.q[0]), if_exists(values.q[1])}, if_exists(values.d)}, bitcast<s32>(sum)});
    }
    return units;
  }
  std::vector<parts::Quantized> quantize(const std::vector<GlobalPtr<const std::byte, 4>>& rows,
                                         const Reg<u32>& unit) const {
    std::vector<parts::Quantized> quantized;
    if (x_type_ == Activations::kQ8_1) {
      for (const auto& row : rows) quantized.push_back(load_quantized(row, unit));
      return quantized;
    }
    std::vector<Eight> values;
    for (const auto& row : rows) values.push_back(parts::load_eight(at<f32>(assume_aligned<16>(row)), unit));
    for (const Eight& eight : values) quantized.push_back(parts::quantize(eight));
    return quantized;
  }
  Reg<s32> sum_of(const parts::Quantized& values) const {
    // A product of 32 values is a block of q8_1, whose header has the sum.
    if (L::kK == 32 && x_type_ == Activations::kQ8_1) return bitcast<s32>(values.d) >> 16;
    return parts::sum_over_lanes(parts::sum_of_bytes(values.q), L::kK / kUnit);
  }

  // The units of one place, of the rows from `row` on, which belong to one group.
  void store(const Place& at_place, const Reg<u32>& row, const std::vector<Unit>& units) const {
    const auto lane = words_ + at_place.step * (g_.groups * L::kStepBytes) + at_place.thread * L::kLaneBytes;
    const auto words = lane + at_place.product * (4 * L::kProductWords) + at_place.word * 4u;
    static_assert(L::kStepBytes == kMmaColumns * 4 * L::kLaneBytes,
                  "the rows of all groups are evenly spaced");
    const auto of_row = words + row * (4 * L::kLaneBytes);
    for (u32 i = 0; i < units.size(); ++i) {
      const auto two = at<u32>(assume_aligned<4>(of_row + i * (4 * L::kLaneBytes)));
      if constexpr (L::kWidth == 8) {
        st_shared_v2(assume_aligned<8>(two), units[i].values.q);
      } else {
        st_shared(two, units[i].values.q[0]);
        st_shared(two + L::kLaneBytes / 4, units[i].values.q[1]);
      }
    }
    k_.if_(at_place.leads, [&] {
      const Reg<u32> step = at_place.step * g_.groups + row / kMmaColumns;
      const auto column = (at_place.product * 8u + row % kMmaColumns) * L::kEntryBytes;
      const auto first = entries_ + step * L::kStepEntryBytes + column;
      for (u32 i = 0; i < units.size(); ++i) {
        const auto entry = at<u32>(assume_aligned<8>(first + i * L::kEntryBytes));
        store_entry(entry, at_place.product, units[i].values, units[i].sum);
      }
    });
  }

  void store_entry(const SharedPtr<u32, 8>& entry, const Reg<u32>& product, const parts::Quantized& values,
                   const Reg<s32>& sum) const {
    constexpr u32 kBits = L::kPacking == formats::Packing::kInPlace ? F::kFieldBits : 0;
    constexpr u32 kOne = 127u << 23;  // 1.f
    const Reg<f32> d = parts::d_of(values.d);
    // Over the product's unit, a power of two.
    const Reg<f32> unit_d = kBits == 0 ? d : d * bitcast<f32>(kOne - (product * kBits << 23));
    if constexpr (F::kBias != 0) {
      static_assert(kBits == 0, "a bias in the run's unit is not needed so far");
      st_shared_v2(entry, {bitcast<u32>(unit_d), bitcast<u32>(parts::start_of<F>(sum, 1))});
    } else {
      st_shared_v2(entry, {bitcast<u32>(unit_d), bitcast<u32>(cvt_rn<f32>(sum) * d)});
    }
  }

  KernelBuilder& k_;
  const MmaGeometry& g_;
  const Activations x_type_;
  const u32 units_;
  const GlobalPtr<const std::byte, 4> x_;
  const Reg<u32> rows_;
  const SharedPtr<std::byte, 16> words_, entries_;
};

}  // namespace ptxgen::gemv
