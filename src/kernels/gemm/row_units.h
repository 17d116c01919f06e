// Weights as f16 in units of their row, for schedules that keep a row's sums in registers.
//
// A byte q below eight zero bits is, as f16, the number q 2^-24. One fma makes a weight of it,
//
//   q 2^-24 * f16(d scale 2^u) + f16(min 2^-24 * m 2^u) = w 2^(u - 24),
//
// with 2^u the row's, which brings the largest d * scale that the first block can have, by its d, or its m if
// that is larger and there are mins, to [2^9, 2^10): so the last bit of a weight is worth 2^-9 of that, or
// less. (The first of those that the same warps add up.) Where a later block has d * scale * 2^u or m * 2^u
// above 2^15, which f16 might not hold, the CTA makes a second pass, with a unit by the largest block for
// each such row.
#pragma once

#include <vector>

#include "src/kernels/formats/format.h"
#include "src/kernels/gemm/half_weights.h"

namespace ptxgen::gemm {

inline constexpr f32 kStoredUnit = 0x1p-24f;  // of the last bit of an f16

// The 2^u of a lane's rows.
template <class F>
class RowUnits {
  // Of d * scale * 2^u, by the first block and by the largest.
  static constexpr u32 kFirstExponent = 9, kLastExponent = 11;
  static constexpr f32 kMost = 0x1p15f;
  static constexpr f32 kUnset = 0x1p71f;

 public:
  RowUnits(KernelBuilder& k, u32 rows) : k_(k) {
    for (u32 r = 0; r < rows; ++r) {
      units_.push_back(k.var<f32>(kUnset));
      largest_.push_back(k.var<f32>(0.f));
    }
  }

  u32 rows() const { return static_cast<u32>(units_.size()); }
  Reg<f32> unit(u32 row) const { return units_[row]; }
  // Sums of weights in units times this are sums of weights.
  Reg<f32> inverse(u32 row) const { return reciprocal(units_[row]) * (1 / kStoredUnit); }

  // Where `other_rows` come next: as in the beginning.
  void forget(const Pred& other_rows) {
    for (u32 r = 0; r < rows(); ++r) {
      const Reg<f32> unit = units_[r], largest = largest_[r];
      units_[r] = selp(k_.constant<f32>(kUnset), unit, other_rows);
      largest_[r] = selp(k_.constant<f32>(0.f), largest, other_rows);
    }
  }

  // After a sweep over all blocks: whether a unit does not fit. From now on they all do, and those that did
  // are as they were, whatever other rows need.
  Pred refit() {
    std::optional<Pred> misfit;
    for (u32 r = 0; r < rows(); ++r) {
      const Reg<f32> unit = units_[r], largest = largest_[r];
      const Pred of_row = largest * unit > kMost / F::kMostScale;
      misfit = misfit ? *misfit || of_row : of_row;
      units_[r] = selp(fitting(largest, kLastExponent), unit, of_row);
    }
    return *misfit;
  }

  // Before weights of a block are made, of which each row has a part. `begins`: this is the first block, from
  // which rows have their units, unless an earlier pass has found them.
  template <u32 W>
  void see(const std::vector<formats::Part<W>>& parts, const std::optional<Pred>& begins) {
    std::vector<Reg<f32>> before;
    for (u32 r = 0; r < rows(); ++r) {
      before.push_back(largest_[r]);
      largest_[r] = (max)(before[r], bound(parts[r]));
    }
    if (!begins) return;
    k_.if_(*begins, [&] {
      for (u32 r = 0; r < rows(); ++r) {
        const Reg<f32> unit = units_[r];
        units_[r] = selp(fitting(largest_[r], kFirstExponent), unit, before[r] == 0.f);
      }
    });
  }

 private:
  static constexpr u32 kBias = 127, kMantissa = 23;

  // Of a power of two between 2^-126 and 2^126.
  static Reg<f32> reciprocal(const Reg<f32>& power) {
    return bitcast<f32>((2 * kBias << kMantissa) - bitcast<u32>(power));
  }
  // What must fit into f16 of a part, in units of F::kMostScale: its scales, and its m, or m in the unit of
  // what is stored where there are no mins to multiply it with.
  template <u32 W>
  static Reg<f32> bound(const formats::Part<W>& part) {
    const Reg<f32> d = abs(part.d);
    return part.m ? (max)(d, abs(*part.m) * ((F::kMostMin > 1 ? 1 : kStoredUnit) / F::kMostScale)) : d;
  }
  // 2^u for a row with this bound.
  static Reg<f32> fitting(const Reg<f32>& bound, u32 exponent) {
    const Reg<f32> least = (max)(bound * F::kMostScale, 0x1p-50f);
    return bitcast<f32>(((2 * kBias + exponent) << kMantissa) - (bitcast<u32>(least) & (0xffu << kMantissa)));
  }

  KernelBuilder& k_;
  std::vector<Var<f32>> units_, largest_;
};

// A pass over a CTA's part of the weights, in one tile or in turns, and a second one over those where units
// did not fit.
class Passes {
 public:
  Passes(KernelBuilder& k, u32 threads) : k_(k), threads_(threads), second_(k.shared<u32>(1)) {}

  // By one thread, ahead of a barrier in the first pass.
  void init() const { st_shared(second_, 0u); }
  // By any thread that needs a second pass: over all, or over turn `turn`. In the second nobody listens.
  void request() const { red_shared_or(second_, 1u, Scope::kCta); }
  void request(const Reg<u32>& turn) const { red_shared_or(second_, bit_of(turn), Scope::kCta); }

  // Which of the two passes it is, and what it is over.
  class Pass {
   public:
    Pass(const Reg<u32>& left, const Reg<u32>& turns) : left_(left), turns_(turns) {}
    Pred second() const { return left_ == 1u; }
    Pred has(const Reg<u32>& turn) const { return (turns_ & bit_of(turn)) != 0u; }

   private:
    Reg<u32> left_, turns_;
  };

  // By all threads, in whatever roles: pass(Pass), and where some thread has requested it again(),
  // pass(Pass). What a pass stores the second one stores again.
  template <class Each, class Again>
  void run(Each&& pass, Again&& again) const {
    Var<u32> left = k_.var<u32>(2u), turns = k_.var<u32>(~0u);
    k_.while_([&] { return left > 0u; },
              [&] {
                pass(Pass(left, turns));
                k_.bar_sync(kBarrier, threads_);
                // From one lane, so that an assembler sees that warps branch together.
                const Reg<u32> own = ld_shared(second_);
                const Reg<u32> second = shfl_sync_idx(own, 0u, 0x1fu, 0xffffffffu);
                turns = second;
                left = selp(left - 1u, k_.constant<u32>(0), second != 0u);
                k_.if_(left > 0u, again);
              });
  }

 private:
  static constexpr u32 kBarrier = 2;

  // The last one is that of all later turns.
  static Reg<u32> bit_of(const Reg<u32>& turn) { return turn.kernel()->constant<u32>(1) << (min)(turn, 31u); }

  KernelBuilder& k_;
  u32 threads_;
  SharedPtr<u32> second_;
};

// Multiplies what a lane has of two rows in accumulators of `sums`, four to each group of 8 columns: two of
// the upper row, two of the lower (fragment.h, C).
template <class F>
void scale_rows(FragmentVar<F>& sums, const Reg<f32>& upper, const Reg<f32>& lower) {
  sums = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return F({sums[I] * (I % 4 < 2 ? upper : lower)...});
  }
  (std::make_index_sequence<F::kRegisters>{});
}

// The weights of a part in its row's units.
template <class F>
class UnitWeights {
  static constexpr u32 kBias = F::kBias + (F::kSigned ? 128 : 0);

 public:
  template <u32 W>
  UnitWeights(KernelBuilder& k, const formats::Part<W>& part, const Reg<f32>& unit) : k_(k) {
    const Reg<f32> d = part.d * unit;
    for (u32 run = 0; run < F::kRuns; run += kTogether) add_scales(part, run, d);
    if (part.m) {
      for (u32 run = 0; run < F::kRuns; run += kTogether) add_offsets(part, run, *part.m * unit);
    } else if (kBias) {
      for (u32 run = 0; run < F::kRuns; ++run) {
        const f16 minus_bias = {static_cast<u16>(0x8000 | kBias * unit_of(run))};  // as q is stored
        offsets_.push_back(scales_[run] * k_.constant<f16x2>(f16x2{minus_bias, minus_bias}));
      }
    }
  }

  // Four values of a run from their bytes: the first and third, the second and last.
  std::array<Reg<f16x2>, 2> four(u32 run, const Reg<u32>& bytes) const {
    const Reg<u32> stored = F::kSigned ? bytes ^ 0x80808080u : bytes;
    const u32 mask = formats::field_mask<F>(run) * 0x00010001u;
    return {weights(run, stored & mask), weights(run, stored >> 8 & mask)};
  }

 private:
  static constexpr u32 kTogether = std::min(F::kRuns, 2u);  // runs, whose scales may be bytes of one word

  static u32 unit_of(u32 run) { return formats::unit_of<F>(run, formats::Packing::kUnmasked); }

  Reg<f16x2> both(const Reg<f32>& value) const { return pair(value, value); }
  Reg<f16x2> pair(const Reg<f32>& low, const Reg<f32>& high) const {
    return bitcast<f16x2>(parts::narrow_pair(k_, ElementType::kF16, low, high));
  }
  // Two bytes as halves, below byte 0 of `above`.
  static Reg<f16x2> halves(const formats::BiasedByte& low, const formats::BiasedByte& high, u32 above) {
    return bitcast<f16x2>(prmt(low.bytes, above, 0x4040u | low.index | high.index << 8));
  }
  // Each half twice.
  static void push_halves(std::vector<Reg<f16x2>>& to, const Reg<f16x2>& pair) {
    const auto [low, high] = unpack(pair);
    to.push_back(pack<f16x2>(low, low));
    to.push_back(pack<f16x2>(high, high));
  }

  // Of kTogether runs from `run` on; `d` in the row's unit.
  template <u32 W>
  void add_scales(const formats::Part<W>& part, u32 run, const Reg<f32>& d) {
    const auto own = [&](u32 i) { return unit_of(i) == 1 ? d : d * (1.f / static_cast<f32>(unit_of(i))); };
    const std::optional<formats::Small>& scale = part.runs[run].scale;
    if (scale && scale->byte) {
      constexpr u32 k1024 = 0x64;  // above a byte: the last bit of such an f16 counts ones
      const Reg<f16x2> raised = halves(*scale->byte, *part.runs[run + 1].scale->byte, k1024);
      const f32 offset = -1024.f - static_cast<f32>(scale->byte->bias);
      const Reg<f16x2> scales = add_rn(raised, k_.constant<f16x2>(gemm::both(offset)));
      return push_halves(scales_, scales * pair(own(run), own(run + 1)));
    }
    for (u32 i = run; i < run + kTogether; ++i) {
      const std::optional<formats::Small>& small = part.runs[i].scale;
      scales_.push_back(both(small ? small->value() * own(i) : own(i)));
    }
  }
  // `m` in the row's unit.
  template <u32 W>
  void add_offsets(const formats::Part<W>& part, u32 run, const Reg<f32>& m) {
    if (!part.runs[run].min) {
      offsets_.insert(offsets_.end(), kTogether, both(m * kStoredUnit));
      return;
    }
    const Reg<f16x2> stored = halves(*part.runs[run].min->byte, *part.runs[run + 1].min->byte, 0);
    push_halves(offsets_, stored * both(m));
  }

  Reg<f16x2> weights(u32 run, const Reg<u32>& q) const {
    const Reg<f16x2> stored = bitcast<f16x2>(q);
    return offsets_.empty() ? stored * scales_[run] : fma_rn(stored, scales_[run], offsets_[run]);
  }

  KernelBuilder& k_;
  std::vector<Reg<f16x2>> scales_, offsets_;
};

}  // namespace ptxgen::gemm
