// call, ret of a .func, brx.idx (PTX ISA, "Control Flow Instructions").
#include "src/emulator/call.h"

#include <algorithm>
#include <bit>

#include "src/emulator/decode.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {

Warp::Warp() = default;
Warp::Warp(Warp&&) noexcept = default;
Warp::~Warp() = default;

void CallStacks::reset() {
  for (Lane& lane : lanes) {
    lane.activations.clear();
    lane.saved.clear();
  }
  std::fill(active.begin(), active.end(), LaneMask{0});
}

std::uint32_t CallStacks::function(const Executable& code, unsigned lane) const {
  const auto& all = lanes[lane].activations;
  return all.empty() ? static_cast<std::uint32_t>(code.functions.size() - 1) : all.back().function;
}

std::uint64_t CallStacks::base(unsigned lane) const {
  const auto& all = lanes[lane].activations;
  return all.empty() ? 0 : all.back().base;
}

namespace {

// One lane of a warp, and where it keeps what a call passes.
class Lane {
 public:
  Lane(Warp& warp, unsigned lane)
      : warp_(warp), lane_(lane), bit_(LaneMask{1} << lane), stack_(warp.calls->lanes[lane]) {}

  // Appends the bytes of `from` to the scratch, each with its flag; frames are at `base`.
  void take(const std::vector<Passed>& from, std::uint64_t base) {
    std::vector<std::byte>& scratch = warp_.calls->passed;
    scratch.clear();
    for (const Passed& p : from) {
      const bool set = p.in_register && (warp_.written[p.slot.id] & bit_);
      const std::byte* data = p.in_register ? in_register(p) : local(base + p.offset);
      const std::byte* flags = p.in_register ? nullptr : written(base + p.offset);
      for (std::uint64_t i = 0; i < p.bytes; ++i) {
        scratch.push_back(data[i]);
        scratch.push_back(flags ? flags[i] : std::byte{set});
      }
    }
  }

  void put(const std::vector<Passed>& to, std::uint64_t base) {
    const std::byte* next = warp_.calls->passed.data();
    for (const Passed& p : to) {
      std::byte* data = p.in_register ? in_register(p) : local(base + p.offset);
      std::byte* flags = p.in_register ? nullptr : written(base + p.offset);
      bool all = true;
      for (std::uint64_t i = 0; i < p.bytes; ++i) {
        data[i] = *next++;
        all &= *next != std::byte{0};
        if (flags) flags[i] = *next;
        ++next;
      }
      if (p.in_register) set_written(p.slot, all);
    }
  }

  // Puts the values of the function's registers aside: each with its flag.
  void save(const FunctionCode& function) {
    for (const Passed& r : function.registers) {
      const bool set = warp_.written[r.slot.id] & bit_;
      if (r.bytes == 0) {
        stack_.saved.push_back(std::byte{(warp_.predicate(r.slot) & bit_) != 0});
      } else {
        stack_.saved.insert(stack_.saved.end(), in_register(r), in_register(r) + r.bytes);
      }
      stack_.saved.push_back(std::byte{set});
    }
  }

  void restore(const FunctionCode& function) {
    for (auto r = function.registers.rbegin(); r != function.registers.rend(); ++r) {
      set_written(r->slot, stack_.saved.back() != std::byte{0});
      stack_.saved.pop_back();
      if (r->bytes == 0) {
        LaneMask& p = warp_.predicate(r->slot);
        p = stack_.saved.back() != std::byte{0} ? p | bit_ : p & ~bit_;
        stack_.saved.pop_back();
      } else {
        std::memcpy(in_register(*r), stack_.saved.data() + stack_.saved.size() - r->bytes, r->bytes);
        stack_.saved.resize(stack_.saved.size() - r->bytes);
      }
    }
  }

  // Nothing of the activation is written yet but where its frame is.
  void open(const FunctionCode& function, std::uint64_t base) {
    for (const Passed& r : function.registers) warp_.written[r.slot.id] &= ~bit_;
    if (function.function->local_bytes != 0) std::memset(written(base), 0, function.function->local_bytes);
    warp_.lanes<std::uint64_t>(function.base)[lane_] = base;
    set_written(function.base, true);
  }

  CallStacks::Lane& stack() { return stack_; }

 private:
  std::byte* in_register(const Passed& p) { return warp_.frame + p.slot.offset + lane_ * p.bytes; }
  std::uint64_t place(std::uint64_t offset) const {
    return warp_.thread(lane_) * warp_.cta->launch->code->local_bytes + offset;
  }
  std::byte* local(std::uint64_t offset) { return warp_.cta->local.get() + place(offset); }
  std::byte* written(std::uint64_t offset) { return warp_.cta->local_written.get() + place(offset); }
  void set_written(Slot slot, bool set) {
    LaneMask& mask = warp_.written[slot.id];
    mask = set ? mask | bit_ : mask & ~bit_;
  }

  Warp& warp_;
  unsigned lane_;
  LaneMask bit_;
  CallStacks::Lane& stack_;
};

// ---- call ----

bool enter(Warp& warp, const Op& op, unsigned lane, const CallSite& site, std::uint32_t index) {
  const Executable& code = *warp.cta->launch->code;
  const FunctionCode& callee = code.functions[index];
  CallStacks& calls = *warp.calls;
  Lane self(warp, lane);
  const std::uint64_t caller_base = calls.base(lane);
  const Function& caller = *code.functions[calls.function(code, lane)].function;
  const std::uint64_t base = caller_base + frame_of(caller);
  const bool recursive = calls.active[index] >> lane & 1;
  self.take(site.arguments, caller_base);
  if (recursive) self.save(callee);
  if (base + frame_of(*callee.function) + self.stack().saved.size() > code.local_bytes) {
    warp.fault(op, lane,
               str_cat("the stack of ", code.local_bytes, " bytes overflows at ",
                       self.stack().activations.size() + 1,
                       " calls of functions in each other, this one of '", callee.function->info.name, "'"));
    return false;
  }
  self.open(callee, base);
  self.put(callee.parameters, base);
  self.stack().activations.push_back({warp.current.pc, index, base, recursive});
  calls.active[index] |= LaneMask{1} << lane;
  return true;
}

bool same_sizes(const std::vector<Passed>& a, const std::vector<Passed>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Passed& x, const Passed& y) { return x.bytes == y.bytes; });
}

// The function whose address the lane's register holds, or ~0 after a fault.
std::uint32_t target_of(Warp& warp, const Op& op, unsigned lane, const CallSite& site) {
  const Launch& launch = *warp.cta->launch;
  const std::uint64_t address = warp.lanes<std::uint64_t>(op.src[0])[lane];
  const std::uint64_t number = (address - kCodeWindow) / kCodeStride - 1;
  if (address % kCodeStride != 0 || number >= launch.module->functions.size()) {
    warp.fault(op, lane, str_cat("calls ", hex(address), ", which is the address of no function"));
    return ~0u;
  }
  const Function& function = *launch.module->functions[number];
  const std::uint32_t index = launch.code->function_of[number];
  if (index == ~0u) {
    warp.fault(op, lane, str_cat("calls '", function.info.name, "', which this module only declares"));
    return ~0u;
  }
  if (!site.targets.empty() &&
      std::find(site.targets.begin(), site.targets.end(), number) == site.targets.end()) {
    warp.fault(op, lane, str_cat("calls '", function.info.name, "', which is none of its .calltargets"));
    return ~0u;
  }
  const FunctionCode& code = launch.code->functions[index];
  if (!same_sizes(code.parameters, site.arguments) || !same_sizes(code.results, site.results)) {
    warp.fault(op, lane,
               str_cat("calls '", function.info.name,
                       "', whose results or parameters are others than this call passes"));
    return ~0u;
  }
  return index;
}

void call(Warp& warp, const Op& op, LaneMask mask) {
  const Executable& code = *warp.cta->launch->code;
  const CallSite& site = code.calls[op.mode];
  const auto first = static_cast<unsigned>(std::countr_zero(mask));
  if (!site.undefined.empty()) {
    return warp.fault(
        op, first,
        str_cat("calls '", site.undefined, "', which this module only declares; the emulator has no ",
                "device library, so link its definition into the module"));
  }
  std::uint32_t index = site.function;
  LaneMask entering = mask;
  if (index == ~0u) {
    index = target_of(warp, op, first, site);
    if (index == ~0u) return;
    const std::uint64_t* addresses = warp.lanes<std::uint64_t>(op.src[0]);
    for (LaneMask left = mask; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (addresses[lane] != addresses[first]) entering &= ~(LaneMask{1} << lane);
    }
  }
  for (LaneMask left = entering; left != 0; left &= left - 1) {
    if (!enter(warp, op, static_cast<unsigned>(std::countr_zero(left)), site, index)) return;
  }
  warp.jump(mask);  // those that call another function do it next
  warp.send(entering, code.functions[index].begin);
}

void check_passed(Decoder& d, std::string_view what, std::size_t given, std::size_t needed,
                  std::string_view name) {
  if (given == needed) return;
  d.fail(str_cat("the call passes ", given, " ", what, "; '", name, "' has ", needed));
}

std::vector<Passed> passed_list(Decoder& d, const Operand* list, const std::vector<Formal>& formals) {
  std::vector<Passed> all;
  if (!list) return all;
  for (std::size_t i = 0; i < list->elements.size() && i < formals.size(); ++i)
    all.push_back(d.passed(list->elements[i], formals[i].bytes));
  return all;
}

// The operands of `call {(results),} callee {, (arguments)} {, table}`.
struct CallOperands {
  const Operand *results = nullptr, *callee = nullptr, *arguments = nullptr, *table = nullptr;
};

CallOperands operands_of(Decoder& d) {
  CallOperands all;
  std::size_t i = 0;
  const auto next = [&](bool wanted) { return i < d.count() && wanted ? &d.operand(i++) : nullptr; };
  const auto is_list = [&] { return i < d.count() && d.operand(i).kind == Operand::Kind::kList; };
  all.results = next(is_list());
  all.callee = next(true);
  all.arguments = next(is_list());
  all.table = next(i < d.count() && d.operand(i).kind == Operand::Kind::kTable);
  if (!all.callee || i != d.count()) d.fail("call takes (results), a function, (arguments), and a table");
  return all;
}

// A call through a register: whom it may call, and what it passes.
const Signature* signature_behind(Decoder& d, const CallOperands& operands, CallSite& site) {
  const Table* table = operands.table ? &d.function().tables[operands.table->index] : nullptr;
  if (!table || table->kind == Table::Kind::kBranchTargets) {
    d.fail("a call through a register names a .callprototype or .calltargets");
    return nullptr;
  }
  if (table->kind == Table::Kind::kPrototype) return &table->prototype;
  site.targets = table->targets;
  return &d.module().functions[table->targets[0]]->signature;
}

}  // namespace

void decode_call(Decoder& d) {
  d.accept("uni");
  const CallOperands operands = operands_of(d);
  if (d.failed()) return;
  CallSite site;
  const Signature* signature = nullptr;
  std::vector<Slot> src;
  std::string_view name = operands.callee->name;
  if (operands.callee->kind == Operand::Kind::kFunction) {
    const std::uint32_t index = d.callee(*operands.callee);
    const Function& function = *d.module().functions[index];
    if (function.is_entry) return d.fail(str_cat("'", name, "' is an .entry, which nobody calls"));
    site.function = d.code().function_of[index];
    if (!function.defined) site.undefined = function.info.name;
    signature = &function.signature;
  } else {
    src.push_back(d.src(*operands.callee, Type::kB64));
    signature = signature_behind(d, operands, site);
  }
  if (d.failed()) return;
  check_passed(d, "results", operands.results ? operands.results->elements.size() : 0,
               signature->results.size(), name);
  check_passed(d, "arguments", operands.arguments ? operands.arguments->elements.size() : 0,
               signature->parameters.size(), name);
  site.results = passed_list(d, operands.results, signature->results);
  site.arguments = passed_list(d, operands.arguments, signature->parameters);
  for (const Passed& p : site.arguments) {
    if (p.in_register) src.push_back(p.slot);
  }
  Op& op = d.emit(&call, {}, std::move(src));
  op.branches = true;
  op.mode = static_cast<std::uint32_t>(d.code().calls.size());
  d.code().calls.push_back(std::move(site));
}

// ---- ret ----

namespace {

// Sends each lane to its place.
void scatter(Warp& warp, LaneMask mask, const std::uint32_t (&places)[kWarpSize]) {
  warp.jump(mask);
  while (mask != 0) {
    const std::uint32_t place = places[std::countr_zero(mask)];
    LaneMask together = 0;
    for (LaneMask left = mask; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (places[lane] == place) together |= LaneMask{1} << lane;
    }
    mask &= ~together;
    warp.send(together, place);
  }
}

// Returns one lane; the operation that it goes on with.
std::uint32_t leave(Warp& warp, unsigned lane) {
  const Executable& code = *warp.cta->launch->code;
  CallStacks& calls = *warp.calls;
  Lane self(warp, lane);
  const Activation done = self.stack().activations.back();
  const FunctionCode& callee = code.functions[done.function];
  self.take(callee.results, done.base);
  self.stack().activations.pop_back();
  if (done.recursive) {
    self.restore(callee);
  } else {
    calls.active[done.function] &= ~(LaneMask{1} << lane);
  }
  self.put(code.calls[code.ops[done.call].mode].results, calls.base(lane));
  return done.call + 1;
}

void ret(Warp& warp, const Op&, LaneMask mask) {
  std::uint32_t places[kWarpSize];
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    places[lane] = leave(warp, lane);
  }
  scatter(warp, mask, places);
}

// ---- brx.idx ----

void brx(Warp& warp, const Op& op, LaneMask mask) {
  const std::vector<std::uint32_t>& table = warp.cta->launch->code->branch_tables[op.mode];
  const std::uint32_t* index = warp.lanes<std::uint32_t>(op.src[0]);
  std::uint32_t places[kWarpSize];
  for (LaneMask left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    if (index[lane] >= table.size()) {
      return warp.fault(op, lane, str_cat("branches to target ", index[lane], " of ", table.size()));
    }
    places[lane] = table[index[lane]];
  }
  scatter(warp, mask, places);
}

}  // namespace

void decode_ret(Decoder& d) {
  d.accept("uni");
  d.expect_operands(0);
  Op& op = d.emit(d.function().is_entry ? &exit_threads : &ret, {}, {});
  op.branches = !d.function().is_entry;
}

void decode_brx(Decoder& d) {
  if (!d.accept("idx")) d.fail("brx is brx.idx");
  d.accept("uni");
  d.expect_operands(2);
  if (d.failed()) return;
  const Operand& table = d.operand(1);
  if (table.kind != Operand::Kind::kTable ||
      d.function().tables[table.index].kind != Table::Kind::kBranchTargets) {
    return d.fail(str_cat("'", table.name, "' is no label of .branchtargets"));
  }
  Op& op = d.emit(&brx, {}, {d.src(0, Type::kU32)});
  op.branches = true;
  op.mode = static_cast<std::uint32_t>(d.code().branch_tables.size());
  d.code().branch_tables.push_back(d.function().tables[table.index].targets);
}

}  // namespace ptxgen::emulator
