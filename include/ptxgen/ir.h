// A kernel as data: instructions in regions. The builder writes it, the code generators read it.
//
// A region lists its effects (loads, stores, barriers, branches, assignments ...) in program order. Between
// two effects lies a gap; a pure value belongs to the gap in which it was written. The schedule of a gap is
// canonical: values in order of their first later use, operands left to right, unused values absent. See
// docs/building_kernels.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptxgen/target.h"
#include "ptxgen/types.h"

namespace ptxgen {

// Every instruction of the table, then the structure that regions add.
enum class Op : u16 {
#define PTXGEN_ROW(form, id, ...) id,
#include "ptxgen/instruction_table.inc"
  kVarRead,   // operand 0: variable; a value, the variable's content in the gap where it was written
  kVarWrite,  // operand 0: variable, 1: value
  kIf,        // operand 0: condition; regions: then, else
  kLoop,      // operand 0: whether the first iteration runs; region: body, which yields whether to run again
  kWhile,     // regions: condition (yields), body
  kYield,     // operand 0: the predicate a region ends with
};
inline constexpr u32 kNumRows = static_cast<u32>(Op::kVarRead);

enum class Kind : u8 {
  Pure,
  Thread,  // pure, and different from thread to thread
  Load,
  StrongLoad,  // volatile, relaxed, acquire: each thread may see another value (PTX ISA 8.6)
  Store,
  Atomic,
  Convergent,      // exchanges between the lanes of a warp
  Aligned,         // the same by all 32 lanes together: tensor cores
  Warpgroup,       // the same by all four warps of a warpgroup: wgmma, setmaxnreg
  Barrier,         // every thread of the CTA must arrive
  CountedBarrier,  // as many threads as it says
  Fence,
  MBarrier,   // an operation on an mbarrier: each thread may find it in another phase
  AsyncCopy,  // starts or groups copies that go on by themselves
  Hint,       // changes no value
  Clock,
  Control,
};
constexpr bool is_effect(Kind kind) {
  return kind != Kind::Pure && kind != Kind::Thread;
}

// What an operand or a result of a row is, relative to the instruction's type T and, in conversions, its
// result type D.
enum class Rule : u16 {
  None,
  T,
  W,  // twice as wide as T
  D,
  V,  // T, as many as the vector modifier says
  P,  // a 32-bit register of elements of type T: f16x2 where T is f16, u32 where it is u8
  pred,
  u16,
  u32,
  s32,
  u64,
  f16,
  bf16,
  f16x2,
  f32,
  imm,             // a u32 that PTX takes as a literal only
  symbol,          // a parameter or shared array
  global,          // an address in global memory ...
  shared,          // ... in shared memory ...
  shared_cluster,  // ... in the shared memory of any CTA of the cluster ...
  addr,            // ... in the space that the modifiers say
  // The same of an asynchronous copy: a multiple of so many bytes, read (in) or written (out).
  global_in4,
  global_in8,
  global_in16,
  global_out16,
  shared_in16,
  shared_out4,
  shared_out8,
  shared_out16,
  shared_in128,
  shared_out128,
  cluster_out16,
  tensor_map,        // the address of a TensorMap
  cluster_mbarrier,  // the address of an MBarrier of any CTA of the cluster ...
  mbarrier,          // ... of the CTA's own
  // A u32 whose literals are checked; see literal_range.
  arrivals,
  tx_bytes,
  bulk_bytes,
  parity,
  upto4,
  upto8,
  upto16,
  cta_rank,
  maxnreg,  // a literal only
};
// `count` registers that PTX writes as one operand, in braces: a fragment of a matrix.
constexpr Rule group(Rule element, u8 count) {
  return static_cast<Rule>(static_cast<ptxgen::u16>(element) | (count - 1) << 8);
}
// Variables that the instruction reads and writes in place (Operand::Form::kVariable), as many as the vector
// modifier says: the accumulators of wgmma.
constexpr Rule in_out(Rule element) {
  return static_cast<Rule>(static_cast<ptxgen::u16>(element) | 0x80);
}
constexpr bool is_in_out(Rule rule) {
  return (static_cast<ptxgen::u16>(rule) & 0x80) != 0;
}
constexpr Rule element_of(Rule rule) {
  return static_cast<Rule>(static_cast<ptxgen::u16>(rule) & 0x7f);
}
constexpr u32 count_of(Rule rule) {
  return (static_cast<ptxgen::u16>(rule) >> 8) + 1;
}
// Whether the vector modifier says how many registers the rule stands for; count_of() is 1 then.
constexpr bool is_vector(Rule rule) {
  return rule == Rule::V || is_in_out(rule);
}

// What T may be, and D.
struct RowTypes {
  TypeSet t, d;
  constexpr RowTypes(TypeSet types) : t(types) {}  // NOLINT: the table writes a TypeSet where there is no D
  constexpr RowTypes(TypeSet to, TypeSet from) : t(from), d(to) {}
};

enum class Space : u8 { kGlobal, kShared, kSharedCluster };
enum class Scope : u8 { kCta, kCluster, kGpu, kSys };

// Cache operators (PTX ISA 9.7.9 "Cache Operators"); kCs marks data that is used once.
enum class CacheOp : u8 { kNone, kCa, kCg, kCs };
// Eviction priority in L1 and prefetch size into L2 (PTX ISA 9.7.9, ld).
enum class L1 : u8 { kNone, kNoAllocate, kEvictFirst, kEvictLast, kEvictNormal };
enum class L2 : u8 { kNone, kPrefetch64B, kPrefetch128B, kPrefetch256B };

// How a matrix lies in memory: row-major or column-major.
enum class Layout : u8 { kRow, kCol };

// Which index of an operand of wgmma is contiguous in shared memory: k, or m of a and n of b (PTX ISA,
// "Asynchronous Warpgroup Level Matrix Shared Memory Layout").
enum class Major : u8 { kK, kMn };
// What wgmma multiplies the elements of a, or of b, with.
enum class ImmScale : s8 { kOne = 1, kMinusOne = -1 };

struct MemoryHints {
  CacheOp op = CacheOp::kNone;
  L1 l1 = L1::kNone;
  L2 l2 = L2::kNone;
  bool operator==(const MemoryHints&) const = default;
};

// What the row's spelling leaves open besides the types.
struct Modifiers {
  MemoryHints hints;
  Scope scope = Scope::kGpu;
  Space space = Space::kGlobal;
  u8 vector = 1;                                          // registers of a vector operand
  Layout layout = Layout::kRow, layout_b = Layout::kRow;  // wmma: of the matrix, or of a and b
  Major major_a = Major::kK, major_b = Major::kK;         // wgmma
  ImmScale scale_a = ImmScale::kOne, scale_b = ImmScale::kOne;
  bool operator==(const Modifiers&) const = default;
};

using ValueId = u32;
inline constexpr ValueId kNoValue = ~ValueId{0};
inline constexpr u32 kNone = ~u32{0};

struct Operand {
  enum class Form : u8 {
    kValue,    // value, plus the byte offset `bits` where the operand is an address
    kInteger,  // bits, two's complement
    kF32,      // the low 32 bits
    kF64,
    kSymbol,    // a parameter or shared array: index `bits`
    kVariable,  // index `bits`; of a row's instruction: read and written in place
  };
  s64 bits = 0;
  ValueId value = kNoValue;
  Form form = Form::kValue;
  bool operator==(const Operand&) const = default;
};

struct Instruction {
  Op op = Op::ret;
  Type type = Type::kNone;  // T
  Type to = Type::kNone;    // D
  Modifiers modifiers;
  u8 num_operands = 0;
  u8 num_results = 0;
  u32 operands = 0;     // index of the first in Kernel::operands
  ValueId results = 0;  // the first; further ones follow
  u32 region = 0;
  u32 gap = 0;                    // the gap a pure value belongs to, or that an effect ends
  u32 next = kNone;               // the next effect of the region, or the next value of the gap's schedule
  u32 inner[2] = {kNone, kNone};  // regions of kIf, kLoop, kWhile
};

struct Region {
  u32 first = kNone, last = kNone;  // effects
  u32 parent = kNone;
  u32 loop = 0;  // identifies the innermost loop around it
  bool open = true;
};

// The scheduled values of a gap.
struct Gap {
  u32 first = kNone, last = kNone;
};

struct Value {
  u32 definition = kNone;  // instruction
  Type type = Type::kNone;
  u32 uses = 0;
  bool copied =
      false;  // a kVarRead whose variable changes while the value lives: it needs a register of its own
};

struct Parameter {
  std::string name;
  Type type = Type::kNone;  // kNone: a TensorMap
};

struct SharedArray {
  std::string name;
  u32 bytes = 0;  // 0: dynamic, sized at launch
  u32 alignment = 1;
};

// Performance directives; 0 means not given (PTX ISA 11.4).
struct LaunchBounds {
  u32 maxntid[3] = {0, 0, 0};
  u32 minnctapersm = 0;
  u32 maxnreg = 0;
  u32 cluster[3] = {0, 0, 0};  // PTX ISA 11.4, "Cluster Dimension Directives"
};

struct Kernel {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<SharedArray> shared;
  LaunchBounds bounds;

  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<Value> values;
  std::vector<Type> variables;
  std::vector<Region> regions;  // 0 is the kernel's body
  std::vector<Gap> gaps;

  // What the instructions used need at least.
  PtxIsa isa = kBaseIsa;
  Target target = kBaseTarget;

  u32 static_shared_bytes() const;
};

}  // namespace ptxgen
