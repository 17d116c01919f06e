#include "src/emulator/decode.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "absl/container/flat_hash_map.h"
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
    for (absl::Span<const Mnemonic> family :
         {integer_mnemonics(), bit_mnemonics(), float_mnemonics(), compare_mnemonics(),
          conversion_mnemonics(), move_mnemonics(), memory_mnemonics(), atomic_mnemonics(), warp_mnemonics(),
          control_mnemonics(), mma_mnemonics(), matrix_load_mnemonics(), wmma_mnemonics(), wgmma_mnemonics(),
          mbarrier_mnemonics(), async_copy_mnemonics()}) {
      for (const Mnemonic& m : family) all[m.opcode].push_back(m);
    }
    return all;
  }());
  return table;
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
      {"global", Space::kGlobal},          {"shared", Space::kShared}, {"shared::cta", Space::kShared},
      {"shared::cluster", Space::kShared}, {"const", Space::kConst},   {"param", Space::kParam},
      {"param::entry", Space::kParam},     {"local", Space::kLocal},
  };
  for (const auto& [text, space] : kNames) {
    if (accept(text)) return space;
  }
  return std::nullopt;
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
  in_ = &function_.instructions[index];
  index_ = index;
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
  for (const Instruction& in : function_.instructions) {
    for (const Operand& o : in.operands) visit(visit, o);
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
    // A branch's target is an index into Function::labels until here.
    if (p.op.target != kNoTarget) {
      p.op.target = first_op_[*function_.labels[p.op.target].target];
    }
    code_.ops.push_back(p.op);
  }
  code_.frame_bytes = (code_.frame_bytes + 63) & ~std::size_t{63};
}

absl::StatusOr<Executable> Decoder::run() {
  code_.function = &function_;
  registers_.resize(function_.registers.size());
  place_shared_variables();
  for (std::uint32_t i = 0; i < function_.instructions.size(); ++i) {
    instruction(i);
    if (!status_.ok()) return status_;
  }
  // Falling off the end of the body is a return; labels there lead to it too.
  static const Instruction kReturn{
      .line = 0, .text = "ret", .guard = {}, .opcode = "ret", .modifiers = {}, .operands = {}};
  first_op_.push_back(static_cast<std::uint32_t>(pending_.size()));
  in_ = &kReturn;
  consumed_.clear();
  index_ = function_.instructions.empty() ? 0 : static_cast<std::uint32_t>(function_.instructions.size() - 1);
  mnemonics().at("ret").front().decode(*this);
  pending_.back().op.counted = false;  // it stands in no line
  finish();
  return std::move(code_);
}

absl::StatusOr<std::unique_ptr<Code>> decode_module(std::unique_ptr<const Module> module) {
  static std::atomic<std::uint64_t> next_id{1};
  auto code = std::make_unique<Code>();
  code->id = next_id.fetch_add(1, std::memory_order_relaxed);
  for (const auto& function : module->functions) {
    absl::StatusOr<Executable> entry = Decoder(*module, *function).run();
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
