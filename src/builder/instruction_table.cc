#include "src/builder/instruction_table.h"

#include <limits>
#include <utility>

namespace ptxgen {
namespace {

// PTX ISA 9.7.13.15.2 "Contents of the mbarrier object" bounds counts; 9.7.9 cp.async, cp.async.bulk the
// sizes.
constexpr s64 kMaxMBarrierCount = (1 << 20) - 1;
constexpr std::pair<Rule, LiteralRange> kLiteralRanges[] = {
    {Rule::arrivals, {1, kMaxMBarrierCount, 1, "the arrival count of an mbarrier"}},
    {Rule::tx_bytes, {0, kMaxMBarrierCount, 1, "the transaction count of an mbarrier"}},
    {Rule::bulk_bytes, {16, std::numeric_limits<u32>::max(), 16, "the size of a bulk copy"}},
    {Rule::parity, {0, 1, 1, "the parity of a phase"}},
    {Rule::upto4, {0, 4, 1, "the part of a copy of 4 bytes that is no zero fill"}},
    {Rule::upto8, {0, 8, 1, "the part of a copy of 8 bytes that is no zero fill"}},
    {Rule::upto16, {0, 16, 1, "the part of a copy of 16 bytes that is no zero fill"}},
    {Rule::cta_rank, {0, kMaxClusterCtas - 1, 1, "the rank of a CTA in its cluster"}},
    {Rule::maxnreg, {24, 256, 8, "the register count of setmaxnreg"}},  // PTX ISA 9.7.19 setmaxnreg
};

constexpr const LiteralRange* range_of(Rule rule) {
  for (const auto& [ranged, range] : kLiteralRanges) {
    if (ranged == rule) return &range;
  }
  return nullptr;
}

template <class... Rules>
constexpr Slots slots(Rules... rules) {
  Slots result{{rules...}, 0, false, false};
  for (const Rule rule : result.rules) {
    result.ranged |= range_of(rule) != nullptr;
    if (is_vector(rule)) {
      result.vector = true;
    } else if (rule != Rule::None) {
      result.registers = static_cast<u8>(result.registers + count_of(rule));
    }
  }
  return result;
}

constexpr PtxIsa isa(int version) {
  return {static_cast<u8>(version / 10), static_cast<u8>(version % 10)};
}
// The sm column: a number for that target and all later ones, PTXGEN_ARCH(90) for sm_90a alone.
struct ArchSpecific {
  u16 sm;
};
constexpr Target sm(u16 number) {
  return {number, false};
}
[[maybe_unused]] constexpr Target sm(ArchSpecific arch) {
  return {arch.sm, true};
}

using namespace type_sets;  // NOLINT: the table writes kU32 | kS32
constexpr TypeSet kNoTypes = {};

constexpr RowTypes to(TypeSet d, TypeSet t) {
  return {d, t};
}

namespace table {
using enum Rule;  // where the rows are expanded, T, W, u32 ... are rules
#define PTXGEN_ARCH(number) \
  ArchSpecific {            \
    number                  \
  }

// Split where the row stands, so that a spelling the printer cannot follow does not compile.
#define PTXGEN_ROW(form, id, method, kind, types, results, operands, spelling, ...) \
  constexpr Spelling kSpelling_##id = split(spelling, (slots results).rules, (slots operands).rules);
#include "ptxgen/instruction_table.inc"

constexpr std::array<Row, kNumRows> kRows = {{
#define PTXGEN_ROW(form, id, method, kind, types, results, operands, spelling, version, target, section) \
  Row{#id,      #method,      Kind::kind, types,   slots results,  slots operands,                       \
      spelling, isa(version), sm(target), section, &kSpelling_##id},
#include "ptxgen/instruction_table.inc"
}};
#undef PTXGEN_ARCH
}  // namespace table

// PTX ISA 9.7.9 "Cache Operators", "Cache Eviction Priority Hints", ld; 8.5 "Scope".
constexpr ModifierRow kCacheOps[] = {
    {"", {1, 0}, {10}}, {".ca", {2, 0}, {20}}, {".cg", {2, 0}, {20}}, {".cs", {2, 0}, {20}}};
constexpr ModifierRow kL1[] = {{"", {1, 0}, {10}},
                               {".L1::no_allocate", {7, 4}, {70}},
                               {".L1::evict_first", {7, 4}, {70}},
                               {".L1::evict_last", {7, 4}, {70}},
                               {".L1::evict_normal", {7, 4}, {70}}};
constexpr ModifierRow kL2[] = {
    {"", {1, 0}, {10}}, {".L2::64B", {7, 4}, {75}}, {".L2::128B", {7, 4}, {75}}, {".L2::256B", {7, 4}, {80}}};
constexpr ModifierRow kScopes[] = {
    {".cta", {6, 0}, {70}}, {".cluster", {7, 8}, {90}}, {".gpu", {6, 0}, {70}}, {".sys", {6, 0}, {70}}};
// 5.1 "State Spaces".
constexpr ModifierRow kSpaces[] = {
    {".global", {1, 0}, {10}}, {".shared", {1, 0}, {10}}, {".shared::cluster", {7, 8}, {90}}};

}  // namespace

const Row& row(Op op) {
  return table::kRows[static_cast<u32>(op)];
}
const ModifierRow& row(CacheOp op) {
  return kCacheOps[static_cast<u32>(op)];
}
const ModifierRow& row(L1 hint) {
  return kL1[static_cast<u32>(hint)];
}
const ModifierRow& row(L2 hint) {
  return kL2[static_cast<u32>(hint)];
}
const ModifierRow& row(Scope scope) {
  return kScopes[static_cast<u32>(scope)];
}
const ModifierRow& row(Space space) {
  return kSpaces[static_cast<u32>(space)];
}

const LiteralRange* literal_range(Rule rule) {
  return range_of(rule);
}

namespace {

// As detail::Packed.
Type packed(Type t) {
  switch (t) {
    case Type::kF16: return Type::kF16x2;
    case Type::kBf16: return Type::kBf16x2;
    case Type::kTf32:
    case Type::kF32: return Type::kF32;
    case Type::kS32: return Type::kS32;
    default: return Type::kU32;
  }
}

}  // namespace

Type resolve(Rule rule, Type t, Type d) {
  switch (element_of(rule)) {
    case Rule::None: return Type::kNone;
    case Rule::T:
    case Rule::V: return t;
    case Rule::D: return d;
    case Rule::P: return packed(t);
    case Rule::pred: return Type::kPred;
    case Rule::u16: return Type::kU16;
    case Rule::u32:
    case Rule::imm:
    case Rule::symbol:
    case Rule::shared:
    case Rule::shared_in16:
    case Rule::shared_out4:
    case Rule::shared_out8:
    case Rule::shared_out16:
    case Rule::shared_in128:
    case Rule::shared_out128:
    case Rule::cluster_out16:
    case Rule::shared_cluster:
    case Rule::cluster_mbarrier:
    case Rule::mbarrier:
    case Rule::cta_rank:
    case Rule::maxnreg:
    case Rule::arrivals:
    case Rule::tx_bytes:
    case Rule::bulk_bytes:
    case Rule::parity:
    case Rule::upto4:
    case Rule::upto8:
    case Rule::upto16: return Type::kU32;
    case Rule::s32: return Type::kS32;
    case Rule::u64:
    case Rule::global:
    case Rule::global_in4:
    case Rule::global_in8:
    case Rule::global_in16:
    case Rule::global_out16:
    case Rule::tensor_map:
    case Rule::addr: return Type::kU64;
    case Rule::f16: return Type::kF16;
    case Rule::bf16: return Type::kBf16;
    case Rule::f16x2: return Type::kF16x2;
    case Rule::f32: return Type::kF32;
    case Rule::W: break;
  }
  switch (t) {  // twice as wide, same signedness
    case Type::kU16: return Type::kU32;
    case Type::kS16: return Type::kS32;
    case Type::kU32: return Type::kU64;
    case Type::kS32: return Type::kS64;
    default: return Type::kNone;
  }
}

}  // namespace ptxgen
