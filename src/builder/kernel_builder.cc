#include "ptxgen/kernel_builder.h"

#include <algorithm>
#include <limits>

#include "absl/container/inlined_vector.h"
#include "absl/strings/escaping.h"
#include "ptxgen/strings.h"
#include "src/builder/divergence.h"
#include "src/builder/instruction_table.h"
#include "src/builder/schedule.h"

namespace ptxgen {
namespace {

constexpr u32 kMaxCtasPerSm = [] {
  u32 most = 0;
  for (const TargetInfo& info : kTargets) most = std::max(most, info.limits.ctas_per_sm);
  return most;
}();
// What ptxas can be held to: it raises a lower limit to 24.
constexpr u32 kMinRegistersPerThread = 24;

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '$';
  });
}

u64 hash_of(const Instruction& instruction, const Operand* operands) {
  constexpr u64 kMultiplier = 0x9e3779b97f4a7c15;
  u64 hash = static_cast<u64>(instruction.op) * kMultiplier;
  for (u8 i = 0; i < instruction.num_operands; ++i) {
    hash = (hash ^ (static_cast<u64>(operands[i].bits) + operands[i].value)) * kMultiplier;
    hash ^= hash >> 29;
  }
  return hash;
}

// Dynamic shared memory begins behind the static arrays, and a linker (cuLinkComplete of CUDA 13.0) places it
// there without regard to its own alignment. So these fill a multiple of that, in whatever order they lie.
void pad_static(std::vector<SharedArray>& arrays) {
  u32 dynamic = 1, largest = 1;
  for (const SharedArray& array : arrays) {
    u32& alignment = array.bytes == 0 ? dynamic : largest;
    alignment = std::max(alignment, array.alignment);
  }
  const auto round_up = [](u32 bytes, u32 multiple) { return (bytes + multiple - 1) / multiple * multiple; };
  u32 total = 0;
  SharedArray* last = nullptr;
  for (SharedArray& array : arrays) {
    if (array.bytes == 0 || dynamic == 1) continue;
    array.bytes = round_up(array.bytes, largest);
    total += array.bytes;
    last = &array;
  }
  if (last) last->bytes += round_up(total, dynamic) - total;
}

}  // namespace

u32 Kernel::static_shared_bytes() const {
  u32 end = 0;
  for (const SharedArray& array : shared) {
    if (array.bytes == 0) continue;
    end = (end + array.alignment - 1) / array.alignment * array.alignment + array.bytes;
  }
  return end;
}

KernelBuilder::KernelBuilder(std::string name, const BuildOptions& options, SourceLocation where)
    : options_(options), bounds_where_(where) {
  constexpr std::size_t kTypicalInstructions = 512;
  kernel_.name = std::move(name);
  kernel_.instructions.reserve(kTypicalInstructions);
  kernel_.operands.reserve(3 * kTypicalInstructions);
  kernel_.values.reserve(kTypicalInstructions);
  kernel_.gaps.reserve(kTypicalInstructions / 4);
  kernel_.regions.emplace_back();
  kernel_.gaps.emplace_back();
  if (!is_identifier(kernel_.name)) {
    mistake(where, str_cat("the kernel name '", absl::CHexEscape(kernel_.name),
                           "' is not an identifier; use ASCII letters, digits, _ and $, starting "
                           "with a letter"));
  }
  need(kBaseIsa, kBaseTarget, "every kernel", where);
}

void KernelBuilder::mistake(SourceLocation where, std::string message) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      str_cat("kernel ", kernel_.name, ": ", where.file_name(), ":", where.line(), ": ", message));
}

// ---- Instructions ----

void KernelBuilder::need(PtxIsa isa, Target target, std::string_view what, SourceLocation where) {
  if (!options_.target.supports(target)) {
    return mistake(where,
                   str_cat(what, " needs ", target.to_string(), "; the kernel is built for ",
                           options_.target.to_string(), ". Choose another instruction for this target"));
  }
  isa = std::max(isa, first_isa(target));
  if (isa > options_.max_isa) {
    return mistake(where,
                   str_cat(what, " needs PTX ISA ", isa.to_string(), "; the driver accepts at most ",
                           options_.max_isa.to_string(), ". Use a newer driver or another instruction"));
  }
  kernel_.isa = std::max(kernel_.isa, isa);
  kernel_.target = std::max(kernel_.target, target);
}

bool KernelBuilder::check_input(const detail::Input& input, SourceLocation where) {
  if (!input.exact) {
    mistake(where, "a literal cannot be represented in the operand's type; write it in that type");
    return false;
  }
  if (input.operand.form != Operand::Form::kValue) return true;
  if (input.kernel != this) {
    mistake(where, "an operand belongs to another kernel; a value is used only in the kernel that made it");
    return false;
  }
  use(input.operand.value, where);
  return true;
}

void KernelBuilder::check_hints(const MemoryHints& hints, Kind kind, SourceLocation where) {
  for (const ModifierRow* modifier : {&row(hints.op), &row(hints.l1), &row(hints.l2)}) {
    need(modifier->isa, modifier->target, modifier->spelling, where);
  }
  if (hints.op != CacheOp::kNone && hints.l1 != L1::kNone) {
    mistake(where, "a cache operator and an L1 eviction priority exclude each other; give one of them");
  }
  if (kind == Kind::Store && (hints.op == CacheOp::kCa || hints.l2 != L2::kNone)) {
    mistake(
        where,
        "a store takes the cache operators .cg and .cs or an L1 eviction priority; .ca and the L2 prefetch "
        "sizes are for loads");
  }
}

void KernelBuilder::check_literal(const Operand& operand, Rule rule, SourceLocation where) {
  const LiteralRange* range = literal_range(rule);
  if (!range || operand.form != Operand::Form::kInteger || range->contains(operand.bits)) return;
  mistake(where, str_cat(range->what, " is ", operand.bits, "; it lies in ", range->low, " to ", range->high,
                         range->multiple == 1 ? "" : str_cat(" and is a multiple of ", range->multiple)));
}

// An address whose offset does not fit the 32 signed bits of an address operand (PTX ISA 6.4.1).
Operand KernelBuilder::far_address(const Operand& address, SourceLocation where) {
  if (info(kernel_.values[address.value].type).bytes != sizeof(u64)) {
    mistake(where, str_cat("an offset of ", address.bits,
                           " bytes leaves shared memory; its addresses have 32 bits"));
    return Operand{};
  }
  detail::Input sum[2];
  sum[0] = {{0, address.value, Operand::Form::kValue}, this};
  sum[1].operand = {address.bits, kNoValue, Operand::Form::kInteger};
  return {0, detail::emit(Op::add, Type::kU64, Type::kNone, {}, sum, 2, where, this), Operand::Form::kValue};
}

// A value lives in its region and those inside it. The content of a variable can stand in the variable's own
// register as long as no assignment lies between the read and the use, also around a loop.
void KernelBuilder::use(ValueId id, SourceLocation where) {
  Value& value = kernel_.values[id];
  const Instruction& definition = kernel_.instructions[value.definition];
  if (!kernel_.regions[definition.region].open) {
    return mistake(
        where,
        "a value is used outside the region (if_, for_, while_ body) that made it; carry it out in a Var");
  }
  if (definition.op == Op::kVarRead) {
    const Operand& variable = kernel_.operands[definition.operands];
    value.copied |= variables_[static_cast<std::size_t>(variable.bits)].version != variable.value ||
                    kernel_.regions[definition.region].loop != kernel_.regions[region_].loop;
  }
}

ValueId KernelBuilder::append(Instruction& instruction, const Operand* operands, Kind kind) {
  const u32 gap = static_cast<u32>(kernel_.gaps.size() - 1);
  const u32 index = static_cast<u32>(kernel_.instructions.size());
  if (!is_effect(kind)) {
    u32& newest = newest_[hash_of(instruction, operands) % newest_.size()];
    const bool stale = newest >= index || kernel_.instructions[newest].gap != gap;
    for (u32 i = stale ? kNone : newest; i != kNone; i = older_[i]) {
      const Instruction& other = kernel_.instructions[i];
      if (other.op == instruction.op && other.type == instruction.type && other.to == instruction.to &&
          other.modifiers == instruction.modifiers && other.num_operands == instruction.num_operands &&
          std::equal(operands, operands + instruction.num_operands, &kernel_.operands[other.operands])) {
        return other.results;
      }
    }
    older_.resize(index, kNone);
    older_.push_back(stale ? kNone : newest);
    newest = index;
  }
  instruction.operands = static_cast<u32>(kernel_.operands.size());
  instruction.results = static_cast<ValueId>(kernel_.values.size());
  instruction.region = region_;
  instruction.gap = gap;
  kernel_.operands.insert(kernel_.operands.end(), operands, operands + instruction.num_operands);
  if (is_effect(kind)) {
    Region& region = kernel_.regions[region_];
    (region.last == kNone ? region.first : kernel_.instructions[region.last].next) = index;
    region.last = index;
    kernel_.gaps.emplace_back();
  }
  kernel_.instructions.push_back(instruction);
  return instruction.results;
}

ValueId detail::emit(Op op, Type type, Type to, const Modifiers& modifiers, const Input* inputs, u32 count,
                     SourceLocation where, KernelBuilder* kernel) {
  KernelBuilder& k = *kernel;
  const Row& r = row(op);
  if (r.isa > k.kernel_.isa || !k.kernel_.target.supports(r.target)) k.need(r.isa, r.target, r.method, where);
  if (modifiers.hints != MemoryHints{}) k.check_hints(modifiers.hints, r.kind, where);
  if (modifiers.scope == Scope::kCluster || modifiers.space == Space::kSharedCluster) {
    k.need(row(Scope::kCluster).isa, row(Scope::kCluster).target, "the cluster", where);
  }

  absl::InlinedVector<Operand, 8> operands;
  for (const Input* input = inputs; input != inputs + count; ++input) {
    Operand operand = input->operand;
    if (operand.form == Operand::Form::kVariable) {
      operand.bits = k.in_place(*input, where);
    } else if (operand.form == Operand::Form::kValue) {
      if (!k.check_input(*input, where)) operand = Operand{};
      if (!std::in_range<s32>(operand.bits)) operand = k.far_address(operand, where);
    } else if (k.check_input(*input, where) && input->in_register != Type::kNone && op != Op::mov) {
      operand = {0, emit(Op::mov, input->in_register, Type::kNone, {}, input, 1, where, kernel),
                 Operand::Form::kValue};
    }
    operands.push_back(operand);
  }
  if (const u32 wanted = r.operands.count(modifiers.vector); count != wanted) {
    k.mistake(where, str_cat(r.method, " has ", wanted, " operands, not ", count));
  } else if (r.operands.ranged) {
    for (u32 i = 0; i < count; ++i) k.check_literal(operands[i], r.operands.rules[i], where);
  }
  Instruction instruction;
  instruction.op = op;
  instruction.type = type;
  instruction.to = to;
  instruction.modifiers = modifiers;
  instruction.num_operands = static_cast<u8>(count);
  instruction.num_results = static_cast<u8>(r.results.count(modifiers.vector));
  const u32 next = static_cast<u32>(k.kernel_.instructions.size());
  const ValueId results = k.append(instruction, operands.data(), r.kind);
  if (k.kernel_.instructions.size() != next) {
    for (const Rule rule : r.results.rules) {
      if (rule == Rule::None) break;
      const Type register_type = resolve(rule, type, to);
      const u32 registers = rule == Rule::V ? modifiers.vector : count_of(rule);
      for (u32 i = 0; i < registers; ++i) k.kernel_.values.push_back({next, register_type});
    }
  }
  const bool together = r.kind == Kind::Barrier || r.kind == Kind::Aligned || r.kind == Kind::Warpgroup;
  if (together && k.region_ != 0) k.together_.emplace_back(next, where);
  if (op == Op::setmaxnreg_inc || op == Op::setmaxnreg_dec) {
    k.adjusts_registers_ = true;
  } else if (r.kind == Kind::Warpgroup) {
    k.follow_wgmma(instruction);
  }
  return results;
}

// ---- Variables ----

u32 detail::add_variable(KernelBuilder& k, Type type) {
  k.kernel_.variables.push_back(type);
  k.variables_.push_back({0, k.region_});
  return static_cast<u32>(k.variables_.size() - 1);
}

ValueId detail::read_variable(KernelBuilder& k, u32 variable, SourceLocation where) {
  variable = k.check_variable(variable, where);
  k.check_not_in_flight(variable, false, where);
  Instruction read;
  read.op = Op::kVarRead;
  read.type = k.kernel_.variables[variable];
  read.num_operands = 1;
  read.num_results = 1;
  const Operand content = {variable, k.variables_[variable].version, Operand::Form::kVariable};
  const u32 next = static_cast<u32>(k.kernel_.instructions.size());
  const ValueId id = k.append(read, &content, Kind::Pure);
  if (k.kernel_.instructions.size() != next) k.kernel_.values.push_back({next, read.type});
  return id;
}

void detail::write_variable(KernelBuilder& k, u32 variable, const Input& value, SourceLocation where) {
  variable = k.check_variable(variable, where);
  k.check_not_in_flight(variable, true, where);
  Operand operands[] = {{variable, kNoValue, Operand::Form::kVariable}, value.operand};
  k.check_input(value, where);
  Instruction write;
  write.op = Op::kVarWrite;
  write.type = k.kernel_.variables[variable];
  write.num_operands = 2;
  k.append(write, operands, Kind::Control);
  ++k.variables_[variable].version;
}

// The variable, or some other one after a mistake.
u32 KernelBuilder::check_variable(u32 variable, SourceLocation where) {
  if (variable == kNone) {
    mistake(where, "a Var is used that was moved from; copy it, or exchange contents through a Reg");
    return 0;
  }
  if (!kernel_.regions[variables_[variable].region].open) {
    mistake(
        where,
        "a Var is used outside the region (if_, for_, while_ body) that made it; make it before the region");
  }
  return variable;
}

// A variable that the instruction reads and writes.
u32 KernelBuilder::in_place(const detail::Input& input, SourceLocation where) {
  if (input.kernel != this) {
    mistake(where, "a Var belongs to another kernel; it is used only in the kernel that made it");
    return 0;
  }
  return check_variable(static_cast<u32>(input.operand.bits), where);
}

// ---- Parameters and shared memory ----

void KernelBuilder::add_parameter(std::string_view name, Type type, SourceLocation where) {
  const bool taken = std::any_of(kernel_.parameters.begin(), kernel_.parameters.end(),
                                 [&](const Parameter& p) { return p.name == name; });
  if (!kernel_.shared.empty())
    mistake(where, "declare_parameters and tensor_map come before shared memory is declared");
  if (!is_identifier(name) || taken) {
    mistake(where, str_cat("the argument name '", absl::CHexEscape(std::string(name)),
                           "' is taken or not an identifier; give every argument its own ASCII name"));
  }
  kernel_.parameters.push_back({std::string(name), type});
}

TensorMapPtr KernelBuilder::tensor_map(SourceLocation where) {
  const u32 index = static_cast<u32>(kernel_.parameters.size());
  constexpr std::string_view kName = "tensor_map";
  if (index > 0 && kernel_.parameters.back().name == kName)
    mistake(where, "tensor_map is called twice; a launch makes one TensorMap, of the descriptor's tensor()");
  add_parameter(kName, detail::ArgumentTraits<TensorMap>::kType, where);
  return {this, parameter_address(index, where)};
}

u32 KernelBuilder::check_parameter(u32 index, SourceLocation where) {
  if (index < kernel_.parameters.size()) return index;
  mistake(where, "param: the member is not in the field list of Args; list it in Args::fields()");
  return 0;
}

ValueId KernelBuilder::load_parameter(u32 index, Type type, SourceLocation where) {
  detail::Input symbol;
  symbol.operand = {check_parameter(index, where), kNoValue, Operand::Form::kSymbol};
  return detail::emit(Op::ld_param, type, Type::kNone, {}, &symbol, 1, where, this);
}

ValueId KernelBuilder::parameter_address(u32 index, SourceLocation where) {
  detail::Input address;
  address.operand = {check_parameter(index, where), kNoValue, Operand::Form::kSymbol};
  address = {{0, detail::emit(Op::mov_param, Type::kNone, Type::kNone, {}, &address, 1, where, this),
              Operand::Form::kValue},
             this};
  return detail::emit(Op::cvta_param, Type::kNone, Type::kNone, {}, &address, 1, where, this);
}

ValueId KernelBuilder::shared_array(u64 bytes, u32 alignment, SourceLocation where) {
  u32 index = static_cast<u32>(kernel_.shared.size());
  if (bytes == 0) {  // one dynamic array, whatever it is called: every use sees the same memory
    const auto dynamic = std::find_if(kernel_.shared.begin(), kernel_.shared.end(),
                                      [](const SharedArray& array) { return array.bytes == 0; });
    if (dynamic != kernel_.shared.end()) {
      dynamic->alignment = std::max(dynamic->alignment, alignment);
      index = static_cast<u32>(dynamic - kernel_.shared.begin());
    }
  }
  if (index == kernel_.shared.size()) {
    const u32 stored = static_cast<u32>(std::min<u64>(bytes, std::numeric_limits<u32>::max()));
    kernel_.shared.push_back(
        {bytes ? str_cat("_shared_", index) : str_cat("_", kernel_.name, "_dynamic_shared"), stored,
         alignment});
    if (bytes > kMaxStaticSharedBytes || kernel_.static_shared_bytes() > kMaxStaticSharedBytes) {
      mistake(where,
              str_cat("static shared memory would take ", bytes, " bytes here and passes the limit of ",
                      kMaxStaticSharedBytes, " bytes a CTA; use dynamic_shared() for more"));
    }
  }
  detail::Input symbol;
  symbol.operand = {static_cast<s64>(kernel_.parameters.size()) + index, kNoValue, Operand::Form::kSymbol};
  return detail::emit(Op::mov_symbol, Type::kU32, Type::kNone, {}, &symbol, 1, where, this);
}

// ---- Control flow ----

u32 KernelBuilder::open_region(bool is_loop) {
  Region region;
  region.parent = region_;
  region.loop = is_loop ? ++num_loops_ : kernel_.regions[region_].loop;
  kernel_.regions.push_back(region);
  wgmma_at_open_.push_back(wgmma_.instructions);
  region_ = static_cast<u32>(kernel_.regions.size() - 1);
  return region_;
}

void KernelBuilder::close_region() {
  kernel_.regions[region_].open = false;
  if (wgmma_.instructions != wgmma_at_open_.back()) wgmma_.pending = ++wgmma_.open;
  wgmma_at_open_.pop_back();
  region_ = kernel_.regions[region_].parent;
  kernel_.gaps.emplace_back();
}

u32 KernelBuilder::begin_control(Op op, const Operand* operands, u8 count) {
  Instruction control;
  control.op = op;
  control.num_operands = count;
  append(control, operands, Kind::Control);
  return static_cast<u32>(kernel_.instructions.size() - 1);
}

void KernelBuilder::yield(const Pred& again, SourceLocation where) {
  const detail::Input input = {{0, again.id(), Operand::Form::kValue}, again.kernel()};
  check_input(input, where);
  begin_control(Op::kYield, &input.operand, 1);
}

void KernelBuilder::if_(const Pred& condition, absl::FunctionRef<void()> then, SourceLocation where) {
  const detail::Input input = {{0, condition.id(), Operand::Form::kValue}, condition.kernel()};
  check_input(input, where);
  const u32 control = begin_control(Op::kIf, &input.operand, 1);
  kernel_.instructions[control].inner[0] = open_region(false);
  then();
  close_region();
}

void KernelBuilder::if_(const Pred& condition, absl::FunctionRef<void()> then,
                        absl::FunctionRef<void()> otherwise, SourceLocation where) {
  const u32 control = static_cast<u32>(kernel_.instructions.size());
  if_(condition, then, where);
  const u32 branch = open_region(false);
  kernel_.instructions[control].inner[1] = branch;
  otherwise();
  close_region();
}

void KernelBuilder::loop(const Operand& first, absl::FunctionRef<Pred()> body, SourceLocation where) {
  if (first.form == Operand::Form::kValue) use(first.value, where);
  const u32 control = begin_control(Op::kLoop, &first, 1);
  kernel_.instructions[control].inner[0] = open_region(true);
  yield(body(), where);
  close_region();
}

void KernelBuilder::while_(absl::FunctionRef<Pred()> condition, absl::FunctionRef<void()> body,
                           SourceLocation where) {
  const u32 control = begin_control(Op::kWhile, nullptr, 0);
  const u32 test = open_region(true);
  const u32 loop_id = kernel_.regions[test].loop;
  yield(condition(), where);
  close_region();
  const u32 inside = open_region(false);
  kernel_.regions[inside].loop = loop_id;
  body();
  close_region();
  kernel_.instructions[control].inner[0] = test;
  kernel_.instructions[control].inner[1] = inside;
}

void KernelBuilder::mbarrier_wait_parity_cluster(const SharedPtr<MBarrier>& barrier, const In<u32>& parity,
                                                 SourceLocation where) {
  Operand enter;
  enter.form = Operand::Form::kInteger;
  enter.bits = 1;
  loop(
      enter, [&] { return !mbarrier_try_wait_parity_cluster(barrier, parity, where); }, where);
}

void KernelBuilder::mbarrier_wait_parity(const SharedPtr<MBarrier>& barrier, const In<u32>& parity,
                                         SourceLocation where) {
  const Row& suspending = row(Op::mbarrier_try_wait_parity);
  const bool suspends = options_.target.supports(suspending.target) && options_.max_isa >= suspending.isa;
  Operand enter;
  enter.form = Operand::Form::kInteger;
  enter.bits = 1;
  loop(
      enter,
      [&] {
        const Pred complete = suspends ? mbarrier_try_wait_parity(barrier, parity, where)
                                       : mbarrier_test_wait_parity(barrier, parity, where);
        return !complete;
      },
      where);
}

// ---- Directives and the end ----

void KernelBuilder::maxntid(u32 x, u32 y, u32 z, SourceLocation where) {
  const u64 threads = static_cast<u64>(x) * y * z;
  if (threads == 0 || x > kMaxBlock.x || y > kMaxBlock.y || z > kMaxBlock.z || threads > kMaxThreadsPerCta) {
    mistake(where, str_cat("maxntid(", x, ", ", y, ", ", z, "): a CTA has 1 to ", kMaxThreadsPerCta,
                           " threads, at most ", kMaxBlock.z, " of them in z"));
  }
  kernel_.bounds.maxntid[0] = x;
  kernel_.bounds.maxntid[1] = y;
  kernel_.bounds.maxntid[2] = z;
}

void KernelBuilder::minnctapersm(u32 ctas, SourceLocation where) {
  if (ctas == 0 || ctas > kMaxCtasPerSm) {
    mistake(where, str_cat("minnctapersm(", ctas, "): an SM holds 1 to ", kMaxCtasPerSm, " CTAs"));
  }
  kernel_.bounds.minnctapersm = ctas;
  bounds_where_ = where;
}

void KernelBuilder::maxnreg(u32 registers, SourceLocation where) {
  if (registers < kMinRegistersPerThread || registers > kMaxRegistersPerThread) {
    mistake(where, str_cat("maxnreg(", registers, "): a thread can be held to ", kMinRegistersPerThread,
                           " to ", kMaxRegistersPerThread, " registers"));
  }
  kernel_.bounds.maxnreg = registers;
}

void KernelBuilder::cluster(u32 x, u32 y, u32 z, SourceLocation where) {
  const u64 ctas = static_cast<u64>(x) * y * z;
  if (ctas == 0 || x > kMaxClusterCtas || y > kMaxClusterCtas || z > kMaxClusterCtas ||
      ctas > kMaxClusterCtas) {
    mistake(where, str_cat("cluster(", x, ", ", y, ", ", z, "): a cluster has 1 to ", kMaxClusterCtas,
                           " CTAs, more than ", kMaxPortableClusterCtas,
                           " where LaunchOptions::non_portable_cluster allows it"));
  }
  need({7, 8}, kHopper, "cluster()", where);
  kernel_.bounds.cluster[0] = x;
  kernel_.bounds.cluster[1] = y;
  kernel_.bounds.cluster[2] = z;
}

absl::StatusOr<Kernel> KernelBuilder::finish() {
  if (kernel_.bounds.minnctapersm && !kernel_.bounds.maxntid[0]) {
    mistake(bounds_where_, "minnctapersm needs maxntid: ptxas ignores it without (PTX ISA 11.4.5)");
  }
  if (adjusts_registers_ && !kernel_.bounds.maxnreg && !kernel_.bounds.minnctapersm) {
    mistake(
        bounds_where_,
        "setmaxnreg needs maxnreg, or maxntid and minnctapersm: ptxas ignores it where it does not know the "
        "registers that a thread begins with");
  }
  if (!status_.ok()) return status_;
  pad_static(kernel_.shared);
  schedule(kernel_);
  for (const u32 found : reached_divergently(kernel_, together_)) {
    const auto& [instruction, where] = together_[found];
    const Row& r = row(kernel_.instructions[instruction].op);
    mistake(
        where,
        r.kind == Kind::Barrier
            ? "a barrier stands in control flow that may differ between the threads of a CTA, so some may "
              "never arrive; move it out, or use bar_sync(id, count) for the warps that do"
        : r.kind == Kind::Warpgroup
            ? str_cat(r.method,
                      " stands in control flow that may differ between the four warps of a warpgroup, which "
                      "execute it together; move it out, or let the condition be one for a warpgroup "
                      "(tid_x() >> 7, tid_x() >> 5 < 8, what all threads load)")
            : str_cat(r.method,
                      " stands in control flow that may differ between the lanes of a warp, which execute "
                      "it together; move it out and mask what it computes with, or let the condition be "
                      "one for a warp (tid_x() >> 5, vote_sync_any, shfl_sync_idx from a fixed lane)"));
  }
  if (!status_.ok()) return status_;
  return std::move(kernel_);
}

}  // namespace ptxgen
