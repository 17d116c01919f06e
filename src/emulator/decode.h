// From a parsed instruction to operations. Each family of instructions has a table of mnemonics and decoders;
// a decoder consumes modifiers, turns operands into slots, and emits. What it leaves unconsumed is an error.
#pragma once

#include <deque>
#include <initializer_list>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/emulator/machine.h"
#include "src/emulator/numerics.h"

namespace ptxgen::emulator {

class Decoder;

// One row: an opcode and, where several families share it (add.u32, add.f32), the types that are this
// family's; 0 when it is the only one. What counts is the first type among the modifiers.
struct Mnemonic {
  std::string_view opcode;
  void (*decode)(Decoder& decoder);
  TypeSet types = 0;
  std::string_view kind = {};  // of its family, for a profile; decode.cc fills it
};

// The tables of the families; decode.cc joins them.
absl::Span<const Mnemonic> integer_mnemonics();
absl::Span<const Mnemonic> bit_mnemonics();
absl::Span<const Mnemonic> float_mnemonics();
absl::Span<const Mnemonic> compare_mnemonics();
absl::Span<const Mnemonic> conversion_mnemonics();
absl::Span<const Mnemonic> move_mnemonics();
absl::Span<const Mnemonic> memory_mnemonics();
absl::Span<const Mnemonic> atomic_mnemonics();
absl::Span<const Mnemonic> warp_mnemonics();
absl::Span<const Mnemonic> control_mnemonics();
absl::Span<const Mnemonic> mma_mnemonics();
absl::Span<const Mnemonic> matrix_load_mnemonics();
absl::Span<const Mnemonic> wmma_mnemonics();
absl::Span<const Mnemonic> wgmma_mnemonics();
absl::Span<const Mnemonic> mbarrier_mnemonics();
absl::Span<const Mnemonic> async_copy_mnemonics();
absl::Span<const Mnemonic> register_mnemonics();

// The end of threads.
void exit_threads(Warp& warp, const Op& op, LaneMask mask);

// call, ret, brx.idx.
void decode_call(Decoder& decoder);
void decode_ret(Decoder& decoder);
void decode_brx(Decoder& decoder);

// bar.warp.sync, whose opcode is that of the CTA barriers.
void decode_warp_barrier(Decoder& decoder);

// How a register's width must agree with the type an instruction uses it as (PTX ISA, "Operand Size Exceeding
// Instruction-Type Size": ld, st and cvt take wider registers).
enum class Fit : std::uint8_t { kExact, kWider };

struct AddressOperand {
  Slot slot;
  bool wide;            // 64-bit
  std::int64_t offset;  // constant, to add
};

class Decoder {
 public:
  explicit Decoder(const Module& module) : module_(module) {}

  // The entry and all that it may call.
  absl::StatusOr<Executable> run(const Function& entry);

  // ---- modifiers ----

  bool accept(std::string_view modifier);
  // The index of the one of `modifiers` that is there; -1 when none is.
  int accept_one(std::initializer_list<std::string_view> modifiers);
  // The same where one is required; `what` names it in the error.
  int expect_one(std::initializer_list<std::string_view> modifiers, std::string_view what);
  // The next modifier that is a type, which must be one of `allowed`.
  Type type(TypeSet allowed);
  std::optional<Type> optional_type(TypeSet allowed);
  std::optional<Space> space();
  // The same for what ld and st access: `.param` is the entry's parameters, or memory of the thread where the
  // results and parameters of functions are.
  Space accessed_space(const Operand& address);
  // Rounding of a floating-point instruction: rn, rz, rm, rp; nearest even when absent.
  std::optional<Rounding> rounding();
  absl::Span<const std::string_view> modifiers() const { return in_->modifiers; }
  // Modifiers as written, joined: for messages and statistics.
  std::string spelling() const;

  // ---- operands ----

  std::size_t count() const { return in_->operands.size(); }
  void expect_operands(std::size_t least, std::size_t most);
  void expect_operands(std::size_t exactly) { expect_operands(exactly, exactly); }
  const Operand& operand(std::size_t i);
  // Elements of operand i when it is a vector, else operand i itself.
  absl::Span<const Operand> elements(std::size_t i);

  Slot dst(const Operand& operand, Type type, Fit fit = Fit::kExact);
  Slot src(const Operand& operand, Type type, Fit fit = Fit::kExact);
  Slot dst(std::size_t i, Type type, Fit fit = Fit::kExact) { return dst(operand(i), type, fit); }
  Slot src(std::size_t i, Type type, Fit fit = Fit::kExact) { return src(operand(i), type, fit); }
  AddressOperand address(const Operand& operand, Space space);
  // The value of an operand that must be a constant.
  std::uint64_t constant(const Operand& operand, std::string_view what);
  // Type of the register, of the constant (b64) or of the special register (u32) that the operand is.
  Type declared(const Operand& operand) const;
  Slot temporary(Type type);
  Slot condition_code();  // CC of the extended-precision instructions, a predicate
  // A result or argument of a call: a register, a constant of `bytes`, or a .param variable.
  Passed passed(const Operand& operand, std::uint64_t bytes);
  Slot constant_slot(Type type, std::uint64_t value, bool relocated = false);

  // ---- output ----

  Op& emit(Execute run, std::initializer_list<Slot> dst, std::initializer_list<Slot> src) {
    return emit(run, std::vector<Slot>(dst), std::vector<Slot>(src));
  }
  // The emission that counts as the instruction; there is one.
  Op& emit(Execute run, std::vector<Slot> dst, std::vector<Slot> src);
  // A further operation that the instruction needs, before or after the one that counts.
  Op& emit_helper(Execute run, std::vector<Slot> dst, std::vector<Slot> src);
  // Records the first error; decoding of the instruction goes on harmlessly with whatever is returned.
  void fail(std::string_view what);
  bool failed() const { return !status_.ok(); }

  // Facts about the entry that operations bring in.
  void shared_access(unsigned bytes);
  const Module& module() const { return module_; }
  const Function& function() const { return *function_; }
  Executable& code() { return code_; }
  // The function of the module that the operand names, behind an alias.
  std::uint32_t callee(const Operand& operand) const;

 private:
  struct Pending {
    Op op;
    std::vector<Slot> dst, src;
  };

  // Appends what `index` of the module's functions may call, then itself; each once.
  void order(std::uint32_t index);
  std::vector<std::uint32_t> callees(const Function& function) const;
  void place_frames();
  void begin_function(FunctionCode& code);
  void end_function(FunctionCode& code);
  void instruction(std::uint32_t index);
  void place_shared_variables();
  void finish();
  Slot new_slot(unsigned bits, RegisterName name = {{}, Type::kB32});
  Passed passed_formal(const Formal& formal);
  Slot register_slot(std::uint32_t index);
  Slot special(const Operand& operand, Type type);
  Slot resized(Slot from, Type from_type, Type to);
  std::uint64_t variable_address(const Operand& operand, Space& space);
  Slot guard_slot();

  const Module& module_;
  const Function* function_ = nullptr;
  FunctionCode* function_code_ = nullptr;
  Executable code_;
  std::deque<Pending> pending_;  // a deque: Op& stays valid
  std::vector<Pending> after_;   // resizings of results
  std::vector<std::optional<Slot>> registers_;
  std::map<std::pair<unsigned, std::pair<std::uint64_t, bool>>, Slot> constants_;
  std::map<Special, Slot> specials_;
  std::map<std::uint32_t, std::uint64_t> shared_offsets_;  // by variable
  std::vector<std::uint32_t> first_op_;                    // by instruction of the function
  std::size_t first_table_ = 0;                            // of the function, in Executable::branch_tables
  std::optional<Slot> condition_code_;
  const Instruction* in_ = nullptr;
  std::uint32_t index_ = 0;
  std::vector<bool> consumed_;  // of in_->modifiers
  absl::Status status_;
};

// Decodes every entry of a module, with what it calls.
absl::StatusOr<std::unique_ptr<Code>> decode_module(std::unique_ptr<const Module> module);

}  // namespace ptxgen::emulator
