#include "src/emulator/decode.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "absl/container/flat_hash_map.h"
#include "src/emulator/call.h"
#include "src/emulator/lanes.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

// ".rn, .rz"
std::string dotted_list(const auto& names) {
  std::string list;
  for (std::string_view n : names) str_append(&list, list.empty() ? "." : ", .", n);
  return list;
}

using MnemonicTable = absl::flat_hash_map<std::string_view, std::vector<Mnemonic>>;

const MnemonicTable& mnemonics() {
  static const auto& table = *new MnemonicTable([] {
    MnemonicTable all;
    const std::pair<std::string_view, absl::Span<const Mnemonic>> families[] = {
        {"integer arithmetic", integer_mnemonics()},
        {"logic and shift", bit_mnemonics()},
        {"floating point", float_mnemonics()},
        {"comparison", compare_mnemonics()},
        {"conversion", conversion_mnemonics()},
        {"move", move_mnemonics()},
        {"load and store", memory_mnemonics()},
        {"atomic", atomic_mnemonics()},
        {"warp exchange", warp_mnemonics()},
        {"control and barrier", control_mnemonics()},
        {"matrix", mma_mnemonics()},
        {"matrix load and store", matrix_load_mnemonics()},
        {"wmma", wmma_mnemonics()},
        {"wgmma", wgmma_mnemonics()},
        {"mbarrier", mbarrier_mnemonics()},
        {"asynchronous copy", async_copy_mnemonics()},
        {"registers", register_mnemonics()},
    };
    for (const auto& [kind, family] : families) {
      for (const Mnemonic& m : family) {
        all[m.opcode].push_back(m);
        all[m.opcode].back().kind = kind;
      }
    }
    return all;
  }());
  return table;
}

const Instruction& return_instruction() {
  static const Instruction instruction{
      .line = 0, .text = "ret", .guard = {}, .opcode = "ret", .modifiers = {}, .operands = {}};
  return instruction;
}

}  // namespace

// ---- modifiers ----

bool Decoder::accept(std::string_view modifier) {
  for (std::size_t i = 0; i < in_->modifiers.size(); ++i) {
    if (!consumed_[i] && in_->modifiers[i] == modifier) return consumed_[i] = true;
  }
  return false;
}

int Decoder::accept_one(std::initializer_list<std::string_view> modifiers) {
  int index = 0;
  for (std::string_view m : modifiers) {
    if (accept(m)) return index;
    ++index;
  }
  return -1;
}

int Decoder::expect_one(std::initializer_list<std::string_view> modifiers, std::string_view what) {
  const int index = accept_one(modifiers);
  if (index < 0) fail(str_cat(in_->opcode, " needs ", what, ": one of ", dotted_list(modifiers)));
  return std::max(index, 0);
}

std::optional<Type> Decoder::optional_type(TypeSet allowed) {
  for (std::size_t i = 0; i < in_->modifiers.size(); ++i) {
    if (consumed_[i]) continue;
    const std::optional<Type> type = find_type(in_->modifiers[i]);
    if (!type) continue;
    if (!(only(*type) & allowed)) return std::nullopt;
    consumed_[i] = true;
    return type;
  }
  return std::nullopt;
}

Type Decoder::type(TypeSet allowed) {
  if (std::optional<Type> type = optional_type(allowed)) return *type;
  std::vector<std::string_view> names;
  for (unsigned i = 0; i < 32; ++i) {
    if (allowed >> i & 1) names.push_back(name(static_cast<Type>(i)));
  }
  fail(str_cat(in_->opcode, " with these modifiers takes a type from ", dotted_list(names)));
  return static_cast<Type>(std::countr_zero(allowed));
}

std::optional<Space> Decoder::space() {
  constexpr std::pair<std::string_view, Space> kNames[] = {
      {"global", Space::kGlobal},           {"shared", Space::kShared},     {"shared::cta", Space::kShared},
      {"shared::cluster", Space::kCluster}, {"const", Space::kConst},       {"param", Space::kParam},
      {"param::entry", Space::kParam},      {"param::func", Space::kLocal}, {"local", Space::kLocal},
  };
  for (const auto& [text, space] : kNames) {
    if (accept(text)) return space;
  }
  return std::nullopt;
}

Space Decoder::accessed_space(const Operand& address) {
  const bool param = std::find(in_->modifiers.begin(), in_->modifiers.end(), "param") != in_->modifiers.end();
  const Space named = space().value_or(Space::kGeneric);
  if (!param || address.elements.empty()) return named;
  const Operand& base = address.elements[0];
  if (base.kind == Operand::Kind::kVariable) return module_.variables[base.index].space;
  return base.kind == Operand::Kind::kParam || function_->is_entry ? Space::kParam : Space::kLocal;
}

std::optional<Rounding> Decoder::rounding() {
  switch (accept_one({"rn", "rz", "rm", "rp"})) {
    case 0: return Rounding::kNearestEven;
    case 1: return Rounding::kZero;
    case 2: return Rounding::kDown;
    case 3: return Rounding::kUp;
    default: return std::nullopt;
  }
}

std::string Decoder::spelling() const {
  std::string all(in_->opcode);
  for (std::string_view m : in_->modifiers) str_append(&all, ".", m);
  return all;
}

// ---- output ----

void Decoder::fail(std::string_view what) {
  if (status_.ok()) status_ = parse_error(module_, in_->line, what);
}

void Decoder::shared_access(unsigned bytes) {
  code_.shared_granule = std::min(code_.shared_granule, bytes);
}

Op& Decoder::emit(Execute run, std::vector<Slot> dst, std::vector<Slot> src) {
  Op& op = emit_helper(run, std::move(dst), std::move(src));
  op.counted = true;
  return op;
}

Op& Decoder::emit_helper(Execute run, std::vector<Slot> dst, std::vector<Slot> src) {
  if (!run) fail(str_cat(spelling(), " is not an instruction of the emulator"));
  Pending& p = pending_.emplace_back();
  p.op.run = run;
  p.op.instruction = index_;
  if (in_->guard) {
    p.op.guarded = true;
    p.op.guard_negated = in_->guard->negated;
    p.op.guard = register_slot(in_->guard->index);
  }
  p.dst = std::move(dst);
  p.src = std::move(src);
  return p.op;
}

void Decoder::instruction(std::uint32_t index) {
  in_ = &function_->instructions[index];
  index_ = function_code_->first_instruction + index;
  code_.instructions.push_back(in_);
  code_.kinds.emplace_back();
  first_op_.push_back(static_cast<std::uint32_t>(pending_.size()));
  consumed_.assign(in_->modifiers.size(), false);
  after_.clear();
  auto found = mnemonics().find(in_->opcode);
  if (found == mnemonics().end()) {
    fail(str_cat("unknown instruction '", in_->opcode, "'"));
    return;
  }
  std::optional<Type> first_type;
  for (std::string_view m : in_->modifiers) {
    if (!first_type) first_type = find_type(m);
  }
  const Mnemonic* row = nullptr;
  for (const Mnemonic& m : found->second) {
    if (m.types == 0 || (first_type && (m.types & only(*first_type)))) row = &m;
  }
  if (!row) {
    TypeSet all = 0;
    for (const Mnemonic& m : found->second) all |= m.types;
    type(all);  // fails with the list of them
    return;
  }
  code_.kinds.back() = row->kind;
  row->decode(*this);
  for (Pending& after : after_) emit_helper(after.op.run, std::move(after.dst), std::move(after.src));
  for (std::size_t i = 0; i < consumed_.size(); ++i) {
    if (!consumed_[i]) fail(str_cat("'.", in_->modifiers[i], "' does not belong to ", in_->opcode, " here"));
  }
}

// Sized variables first, in the order of their declaration; the dynamic array begins after them.
void Decoder::place_shared_variables() {
  std::vector<bool> used(module_.variables.size());
  const auto visit = [&](const auto& self, const Operand& o) -> void {
    if (o.kind == Operand::Kind::kVariable) used[o.index] = true;
    for (const Operand& element : o.elements) self(self, element);
  };
  for (const FunctionCode& f : code_.functions) {
    for (const Instruction& in : f.function->instructions) {
      for (const Operand& o : in.operands) visit(visit, o);
    }
  }
  std::uint64_t end = 0, dynamic_alignment = 16;
  for (std::uint32_t i = 0; i < module_.variables.size(); ++i) {
    const Variable& v = module_.variables[i];
    if (!used[i] || v.space != Space::kShared) continue;
    if (v.external) {
      dynamic_alignment = std::max(dynamic_alignment, v.alignment);
      continue;
    }
    const std::uint64_t offset = (end + v.alignment - 1) & ~(v.alignment - 1);
    shared_offsets_[i] = offset;
    code_.shared.push_back({i, offset});
    end = offset + v.bytes;
  }
  code_.static_shared_bytes = end;
  code_.dynamic_shared_offset = (end + dynamic_alignment - 1) & ~(dynamic_alignment - 1);
  for (std::uint32_t i = 0; i < module_.variables.size(); ++i) {
    const Variable& v = module_.variables[i];
    if (used[i] && v.space == Space::kShared && v.external) {
      shared_offsets_[i] = code_.dynamic_shared_offset;
      code_.shared.push_back({i, code_.dynamic_shared_offset});
    }
  }
}

void Decoder::finish() {
  std::size_t total = 0;
  for (const Pending& p : pending_) total += p.dst.size() + p.src.size();
  code_.operands.reserve(total);  // Op::dst and Op::src point into it
  for (Pending& p : pending_) {
    p.op.dst = code_.operands.data() + code_.operands.size();
    p.op.dst_count = static_cast<std::uint16_t>(p.dst.size());
    code_.operands.insert(code_.operands.end(), p.dst.begin(), p.dst.end());
    p.op.src = code_.operands.data() + code_.operands.size();
    p.op.src_count = static_cast<std::uint16_t>(p.src.size());
    code_.operands.insert(code_.operands.end(), p.src.begin(), p.src.end());
    code_.ops.push_back(p.op);
  }
  code_.frame_bytes = (code_.frame_bytes + 63) & ~std::size_t{63};
}

// ---- functions ----

std::uint32_t Decoder::callee(const Operand& operand) const {
  std::uint32_t index = operand.index;
  while (module_.functions[index]->alias) index = *module_.functions[index]->alias;
  return index;
}

// Whom the function calls; a call through a register may reach every function of the module.
std::vector<std::uint32_t> Decoder::callees(const Function& function) const {
  std::vector<std::uint32_t> all;
  for (const Instruction& in : function.instructions) {
    if (in.opcode != "call") continue;
    bool direct = false;
    for (const Operand& o : in.operands) {
      if (o.kind != Operand::Kind::kFunction) continue;
      all.push_back(callee(o));
      direct = true;
    }
    for (std::uint32_t i = 0; !direct && i < module_.functions.size(); ++i) {
      if (!module_.functions[i]->is_entry) all.push_back(i);
    }
  }
  return all;
}

void Decoder::order(std::uint32_t index) {
  std::vector<bool> seen(module_.functions.size());
  // Depth first, without recursion: a module may have any number of functions.
  struct Frame {
    std::uint32_t index;
    std::vector<std::uint32_t> callees;
  };
  std::vector<Frame> stack;
  const auto enter = [&](std::uint32_t i) {
    if (seen[i]) return;
    seen[i] = true;
    if (module_.functions[i]->defined) stack.push_back({i, callees(*module_.functions[i])});
  };
  enter(index);
  while (!stack.empty()) {
    if (!stack.back().callees.empty()) {
      const std::uint32_t next = stack.back().callees.back();
      stack.back().callees.pop_back();
      enter(next);
      continue;
    }
    const std::uint32_t done = stack.back().index;
    stack.pop_back();
    code_.function_of[done] = static_cast<std::uint32_t>(code_.functions.size());
    code_.functions.emplace_back().function = module_.functions[done].get();
  }
}

// Callees stand before their callers unless they call each other, which bounds nothing.
void Decoder::place_frames() {
  std::vector<std::uint64_t> needs;
  bool bounded = true;
  for (const FunctionCode& f : code_.functions) {
    std::uint64_t deepest = 0;
    for (const std::uint32_t index : callees(*f.function)) {
      const std::uint32_t other = code_.function_of[index];
      if (other == ~0u) continue;
      if (other >= needs.size()) {
        bounded = false;
      } else {
        deepest = std::max(deepest, needs[other]);
      }
    }
    needs.push_back(frame_of(*f.function) + deepest);
  }
  code_.local_bytes =
      needs.size() == 1 ? code_.function->local_bytes : needs.back() + (bounded ? 0 : kRecursionBytes);
}

void Decoder::begin_function(FunctionCode& code) {
  function_ = code.function;
  function_code_ = &code;
  code.begin = static_cast<std::uint32_t>(pending_.size());
  code.first_instruction = static_cast<std::uint32_t>(code_.instructions.size());
  registers_.assign(function_->registers.size(), std::nullopt);
  condition_code_.reset();
  first_op_.clear();
  in_ = &return_instruction();  // for messages until there is an instruction
  if (function_->is_entry) return;
  code.base = new_slot(64);
  code.registers.push_back({true, code.base, 0, 8});
  for (const Formal& f : function_->signature.results) code.results.push_back(passed_formal(f));
  for (const Formal& f : function_->signature.parameters) code.parameters.push_back(passed_formal(f));
}

// Falling off the end of the body is a return; labels there lead to it too.
void Decoder::end_function(FunctionCode& code) {
  in_ = &return_instruction();
  consumed_.clear();
  index_ = static_cast<std::uint32_t>(code_.instructions.size());
  first_op_.push_back(static_cast<std::uint32_t>(pending_.size()));
  code_.instructions.push_back(function_->instructions.empty() ? in_ : &function_->instructions.back());
  code_.kinds.emplace_back();
  decode_ret(*this);
  pending_.back().op.counted = false;  // it stands in no line
  for (std::size_t i = code.begin; i < pending_.size(); ++i) {
    std::uint32_t& target = pending_[i].op.target;  // until here an index into Function::labels
    if (target != kNoTarget) target = first_op_[*function_->labels[target].target];
  }
  for (std::size_t i = first_table_; i < code_.branch_tables.size(); ++i) {
    for (std::uint32_t& target : code_.branch_tables[i])
      target = first_op_[*function_->labels[target].target];
  }
  first_table_ = code_.branch_tables.size();
  if (condition_code_) code.registers.push_back({true, *condition_code_, 0, 0});
  for (std::uint32_t i = 0; i < registers_.size(); ++i) {
    const unsigned width = bits(function_->registers[i].type);
    if (registers_[i])
      code.registers.push_back({true, *registers_[i], 0, width == 1 ? 0 : std::max(width / 8, 2u)});
  }
}

absl::StatusOr<Executable> Decoder::run(const Function& entry) {
  code_.function = &entry;
  code_.function_of.assign(module_.functions.size(), ~0u);
  for (std::uint32_t i = 0; i < module_.functions.size(); ++i) {
    if (module_.functions[i].get() == &entry) order(i);
  }
  place_shared_variables();
  place_frames();
  for (FunctionCode& f : code_.functions) {
    begin_function(f);
    for (std::uint32_t i = 0; i < function_->instructions.size() && status_.ok(); ++i) instruction(i);
    if (!status_.ok()) return status_;
    end_function(f);
  }
  finish();
  if (!status_.ok()) return status_;
  return std::move(code_);
}

absl::StatusOr<std::unique_ptr<Code>> decode_module(std::unique_ptr<const Module> module) {
  static std::atomic<std::uint64_t> next_id{1};
  auto code = std::make_unique<Code>();
  code->id = next_id.fetch_add(1, std::memory_order_relaxed);
  for (const auto& function : module->functions) {
    if (!function->is_entry || !function->defined) continue;
    absl::StatusOr<Executable> entry = Decoder(*module).run(*function);
    if (!entry.ok()) return entry.status();
    EntryInfo info = function->info;
    info.static_shared_bytes = entry->static_shared_bytes;
    code->infos.push_back(std::move(info));
    code->entries.push_back(*std::move(entry));
  }
  code->module = std::move(module);
  return code;
}

}  // namespace ptxgen::emulator
