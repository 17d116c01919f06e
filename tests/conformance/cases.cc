#include "tests/conformance/cases.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ptxgen/strings.h"
#include "tests/conformance/kernel_text.h"

namespace ptxgen::testing {
namespace {

constexpr unsigned kOperandThreads = 4096;
constexpr unsigned kApproximateThreads = 2048;
constexpr unsigned kMatrixThreads = 64 * 32;

constexpr Type kTypes[] = {Type::kPred,   Type::kU8,     Type::kS8,     Type::kU16,  Type::kS16,
                           Type::kU32,    Type::kS32,    Type::kU64,    Type::kS64,  Type::kF16,
                           Type::kBf16,   Type::kF16x2,  Type::kBf16x2, Type::kF32,  Type::kF64,
                           Type::kE4m3x2, Type::kE5m2x2, Type::kTf32,   Type::kE4m3, Type::kE5m2};
static_assert(std::size(kTypes) == static_cast<std::size_t>(Type::kNone));

// ---- The cases of a row ----

bool is_address(Rule rule) {
  return rule == Rule::global || rule == Rule::shared || rule == Rule::shared_cluster || rule == Rule::addr;
}
bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}
bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool accumulates_in_place(const Row& r) {
  return std::any_of(r.operands.rules.begin(), r.operands.rules.end(), is_in_out);
}

class CaseMaker {
 public:
  explicit CaseMaker(std::vector<ConformanceCase>& all) : all_(all) {}

  void add(Op op) {
    const Row& r = row(op);
    if (!exempt(op).empty()) return;
    const auto with_types = [&](Type t, Type d) {
      if (is_address(r.operands.rules[0])) return add_memory(op, t);
      if (starts_with(r.method, "wmma_mma")) return add_wmma(op);
      if (accumulates_in_place(r)) return add_wgmma(op, t, d);
      if (r.operands.rules[3] == Rule::imm) {  // lop3's truth table
        for (const unsigned literal : {0x00u, 0x1bu, 0x80u, 0x96u, 0xcau, 0xe8u, 0xffu})
          add_value(op, t, d, str_cat(literal));
        return;
      }
      add_value(op, t, d, "");
    };
    for_each(r.types.t, [&](Type t) { for_each(r.types.d, [&](Type d) { with_types(t, d); }); });
  }

 private:
  // The types of a set, or kNone once where there are none.
  template <class F>
  static void for_each(TypeSet set, F&& f) {
    if (set.bits == 0) return f(Type::kNone);
    for (const Type type : kTypes) {
      if (set.contains(type)) f(type);
    }
  }

  ConformanceCase start(Op op, Type t, std::string_view suffix) const {
    const Row& r = row(op);
    ConformanceCase c;
    c.op = op;
    c.type = t;
    c.name = std::string(r.id);
    if (t != Type::kNone) str_append(&c.name, ".", info(t).name);
    c.name += suffix;
    c.chapter = std::string(r.section.substr(0, r.section.find(' ')));
    c.entry_name = str_cat("k", all_.size());
    c.approximate = has(r.method, "approx") || has(r.method, "_full");
    c.threads = c.approximate ? kApproximateThreads : kOperandThreads;
    return c;
  }
  void finish(ConformanceCase& c, KernelText& text) {
    c.entry = text.entry();
    all_.push_back(c);
  }

  // What an operand's register is filled with: elements of matrices, halves of a pair, or itself.
  static LoadedRegister filling(const Row& r, std::size_t slot, Rule rule, Type t, Type d) {
    if (r.method.substr(0, 3) == "mma" && slot < 2) {
      const Type element = slot == 0 && d != Type::kNone ? d : t;
      return {element, 4u / bytes_of(element)};
    }
    switch (resolve(rule, t, d)) {
      case Type::kF16x2: return {Type::kF16, 2};
      case Type::kBf16x2: return {Type::kBf16, 2};
      case Type::kE4m3x2: return {Type::kE4m3, 2};
      case Type::kE5m2x2: return {Type::kE5m2, 2};
      default: return {resolve(rule, t, d), 1};
    }
  }

  // An instruction on registers.
  void add_value(Op op, Type t, Type d, std::string_view literal) {
    const Row& r = row(op);
    std::string suffix;
    if (d != Type::kNone) str_append(&suffix, ".to.", info(d).name);
    if (!literal.empty()) str_append(&suffix, ".", literal);
    ConformanceCase c = start(op, t, suffix);
    if (r.kind == Kind::Aligned) {
      c.inputs = Inputs::kMatrix;
      c.threads = kMatrixThreads;
      c.open = r.results.rules[0] != group(Rule::s32, 4) && r.results.rules[0] != group(Rule::s32, 2);
    }
    KernelText text(c);
    Call call{r, t, d};
    std::size_t last = 0;
    while (last + 1 < Slots::kMax && r.operands.rules[last + 1] != Rule::None) ++last;
    for (std::size_t slot = 0; slot < Slots::kMax && r.operands.rules[slot] != Rule::None; ++slot) {
      const Rule rule = r.operands.rules[slot];
      if (rule == Rule::imm) {
        call.operands.emplace_back(literal);
      } else if (r.kind == Kind::Barrier && slot == 0) {
        call.operands.emplace_back("0");
      } else if (r.kind == Kind::Convergent && slot == last && has(r.method, "sync")) {
        call.operands.emplace_back("-1");  // the member mask
      } else {
        const LoadedRegister fill = filling(r, slot, rule, t, d);
        for (u32 i = 0; i < count_of(rule); ++i) {
          call.operands.push_back(text.loaded(resolve(rule, t, d), fill.element, fill.per));
        }
      }
    }
    std::vector<Type> types;
    for (const Rule rule : r.results.rules) {
      if (rule == Rule::None) break;
      for (u32 i = 0; i < count_of(rule); ++i) {
        types.push_back(resolve(rule, t, d));
        call.results.push_back(text.fresh(types.back()));
      }
    }
    text.line(text_of(call));
    for (std::size_t i = 0; i < types.size(); ++i) text.stored(types[i], call.results[i]);
    finish(c, text);
  }

  void add_memory(Op op, Type t) {
    const Row& r = row(op);
    if (starts_with(r.method, "ldmatrix") || starts_with(r.method, "stmatrix")) return add_tiles(op, t);
    if (r.kind == Kind::Atomic) {
      for (const Space space : {Space::kGlobal, Space::kShared}) add_atomic(op, t, space);
      return;
    }
    for (const unsigned vector : {1u, 2u, 4u}) {
      if (vector * bytes_of(t) > 16) continue;
      r.kind == Kind::Store ? add_store(op, t, vector) : add_load(op, t, vector);
    }
  }

  static Call memory_call(const Row& r, Type t, unsigned vector, Space space) {
    Call call{r, t};
    call.modifiers.vector = static_cast<u8>(vector);
    call.modifiers.space = space;
    call.modifiers.scope = space == Space::kShared ? Scope::kCta : Scope::kGpu;
    return call;
  }
  static Space space_of(const Row& r) {
    return r.operands.rules[0] == Rule::global ? Space::kGlobal : Space::kShared;
  }

  // From 16 bytes of the thread's own.
  void add_load(Op op, Type t, unsigned vector) {
    const Row& r = row(op);
    ConformanceCase c = start(op, t, vector > 1 ? str_cat(".v", vector) : "");
    KernelText text(c);
    c.registers = {{Type::kU64, 1}, {Type::kU64, 1}};
    c.input_bytes = 16;
    Call call = memory_call(r, t, vector, space_of(r));
    if (call.modifiers.space == Space::kShared) {
      text.use_shared();
      text.copy16("global", "[%in]", "shared", "[%s]");
    }
    call.operands = {call.modifiers.space == Space::kShared ? "[%s]" : "[%in]"};
    for (unsigned i = 0; i < vector; ++i) call.results.push_back(text.fresh(t));
    text.line(text_of(call));
    for (const std::string& result : call.results) text.stored(t, result);
    finish(c, text);
  }

  void add_store(Op op, Type t, unsigned vector) {
    const Row& r = row(op);
    ConformanceCase c = start(op, t, vector > 1 ? str_cat(".v", vector) : "");
    KernelText text(c);
    Call call = memory_call(r, t, vector, space_of(r));
    const bool shared = call.modifiers.space == Space::kShared;
    call.operands = {shared ? "[%s]" : "[%out]"};
    for (unsigned i = 0; i < vector; ++i) call.operands.push_back(text.loaded(t, t, 1));
    if (shared) {
      text.use_shared();
      text.copy16("global", "[%out]", "shared", "[%s]");  // zeros, of which a part stays
    }
    text.line(text_of(call));
    if (shared) text.copy16("shared", "[%s]", "global", "[%out]");
    c.output_bytes = 16;
    finish(c, text);
  }

  // On a cell of the thread's own: the result, then what the cell holds.
  void add_atomic(Op op, Type t, Space space) {
    const Row& r = row(op);
    ConformanceCase c = start(op, t, space == Space::kShared ? ".shared" : ".global");
    KernelText text(c);
    Call call = memory_call(r, t, 1, space);
    const LoadedRegister fill = filling(r, 1, Rule::T, t, Type::kNone);
    const std::string initial = text.loaded(t, fill.element, fill.per);
    const std::string_view cell = space == Space::kShared ? "[%s]" : "[%out]";
    const std::string_view name = space == Space::kShared ? "shared" : "global";
    call.operands = {std::string(cell)};
    for (std::size_t slot = 1; slot < Slots::kMax && r.operands.rules[slot] != Rule::None; ++slot) {
      call.operands.push_back(text.loaded(t, fill.element, fill.per));
    }
    if (space == Space::kShared) text.use_shared();
    text.line(str_cat("st.", name, ".", info(t).bits, " ", cell, ", ", initial));
    if (r.results.registers) call.results = {text.fresh(t)};
    text.line(text_of(call));
    c.output_bytes = 8;
    const std::string after = text.fresh(t);
    text.line(str_cat("ld.", name, ".", info(t).bits, " ", after, ", ", cell));
    text.stored(t, after);
    if (r.results.registers) text.stored(t, call.results[0]);
    finish(c, text);
  }

  // Every lane's row is its own 16 bytes.
  void add_tiles(Op op, Type t) {
    const Row& r = row(op);
    ConformanceCase c = start(op, t, "");
    c.threads = kMatrixThreads;
    KernelText text(c);
    const bool load = r.kind == Kind::Aligned && r.results.registers > 0;
    Call call{r, t};
    call.operands = {"[%s]"};
    c.registers = {{Type::kU64, 1}, {Type::kU64, 1}};
    c.input_bytes = 16;
    const std::string before = "[%in]";
    text.use_shared();
    text.copy16("global", before, "shared", "[%s]");
    text.line("bar.sync 0");
    const unsigned tiles = std::max(r.results.registers, static_cast<u8>(r.operands.registers - 1));
    const Type type = resolve(Rule::P, t, Type::kNone);
    for (unsigned i = 0; i < tiles; ++i) {
      load ? call.results.push_back(text.fresh(type))
           : call.operands.push_back(text.loaded(type, Type::kU32, 1));
    }
    text.line(text_of(call));
    if (load) {
      for (const std::string& result : call.results) text.stored(type, result);
    } else {
      text.line("bar.sync 0");
      text.copy16("shared", "[%s]", "global", "[%out]");
      c.output_bytes = 16;
    }
    finish(c, text);
  }

  // Loads, multiplies and stores: which lane holds what is the GPU's affair. The warp's input is a, b, c one
  // after another with lines of no padding, its output d.
  void add_wmma(Op op) {
    const Row& r = row(op);
    const std::string_view shape = r.id.substr(9, r.id.rfind('_') - 9);
    const std::string_view type = r.id.substr(r.id.rfind('_') + 1);
    const unsigned m = number_after(shape, 'm'), n = number_after(shape, 'n'), k = number_after(shape, 'k');
    const unsigned c_bytes = type == "f32" ? 4 : 2, registers = type == "f32" ? 8 : 4;
    for (unsigned layouts = 0; layouts < 4; ++layouts) {
      const bool a_col = layouts & 1, b_col = layouts & 2;
      ConformanceCase c = start(op, Type::kNone, str_cat(a_col ? ".col" : ".row", b_col ? ".col" : ".row"));
      c.inputs = Inputs::kMatrix;
      c.threads = kMatrixThreads / 4;
      KernelText text(c);
      // A thread's share of the three, as registers of their elements.
      const auto share = [&](unsigned bytes, Type element) {
        for (unsigned i = 0; i < bytes / 32 / 8; ++i) c.registers.push_back({element, 8 / bytes_of(element)});
        c.input_bytes += bytes / 32;
      };
      share(2 * m * k, Type::kF16);
      share(2 * k * n, Type::kF16);
      share(c_bytes * m * n, type == "f32" ? Type::kF32 : Type::kF16);
      c.output_bytes = c_bytes * m * n / 32;
      // The beginning of the warp's input and output.
      text.line("and.b32 %i, %t, 31");
      text.line(str_cat("mul.lo.u32 %i, %i, -", c.input_bytes));
      text.line("cvt.s64.s32 %rd1, %i; add.s64 %in, %in, %rd1");
      text.line("and.b32 %i, %t, 31");
      text.line(str_cat("mul.lo.u32 %i, %i, -", c.output_bytes));
      text.line("cvt.s64.s32 %rd1, %i; add.s64 %out, %out, %rd1");
      text.fresh(Type::kU64);
      const auto fragment = [&](unsigned count) {
        std::string names = "{";
        for (unsigned i = 0; i < count; ++i) str_append(&names, i ? ", " : "", text.fresh(Type::kU32));
        return names + "}";
      };
      const std::string a = fragment(8), b = fragment(8), sum = fragment(registers);
      const auto load = [&](std::string_view which, bool col, unsigned offset, unsigned stride,
                            std::string_view element, std::string_view into) {
        text.line(str_cat("wmma.load.", which, ".sync.aligned.", col ? "col." : "row.", shape, ".global.",
                          element, " ", into, ", [%in+", offset, "], ", stride));
      };
      load("a", a_col, 0, a_col ? m : k, "f16", a);
      load("b", b_col, 2 * m * k, b_col ? k : n, "f16", b);
      load("c", a_col, 2 * m * k + 2 * k * n, a_col ? m : n, type, sum);
      text.line(str_cat("wmma.mma.sync.aligned.", a_col ? "col." : "row.", b_col ? "col." : "row.", shape,
                        ".", type, ".", type, " ", sum, ", ", a, ", ", b, ", ", sum));
      text.line(str_cat("wmma.store.d.sync.aligned.", b_col ? "col." : "row.", shape, ".global.", type,
                        " [%out], ", sum, ", ", b_col ? m : n));
      finish(c, text);
    }
  }

  // 8 columns. The threads' first 16 bytes are b, their second a where it lies in shared memory too; both
  // K-major without a swizzle, 8 rows by 32 bytes one after another.
  void add_wgmma(Op op, Type t, Type d) {
    const Row& r = row(op);
    ConformanceCase c = start(op, t, d == Type::kNone ? "" : str_cat(".to.", info(d).name));
    const Type a = d == Type::kNone ? t : d;
    const Type accumulator = resolve(r.operands.rules[3], t, d);
    const bool halves = accumulator == Type::kF16x2, a_in_shared = count_of(r.operands.rules[0]) == 1;
    c.inputs = Inputs::kMatrix;
    c.threads = kMatrixThreads;
    c.open = accumulator != Type::kS32;
    KernelText text(c);
    for (const Type element : {t, a}) {
      c.registers.insert(c.registers.end(), 2, {element, 8 / bytes_of(element)});
      c.input_bytes += 16;
    }
    text.use_shared(2);
    text.copy16("global", "[%in]", "shared", "[%s]");
    text.copy16("global", "[%in+16]", "shared", str_cat("[%s+", KernelText::kPieceBytes, "]"));
    text.line("fence.proxy.async");
    text.line("bar.sync 0");
    const auto descriptor = [&](unsigned piece) {
      const std::string name = text.fresh(Type::kU64);
      text.line("mov.u32 %i, tile");
      text.line(str_cat("cvt.u64.u32 ", name, ", %i"));
      text.line(str_cat("shr.u64 ", name, ", ", name, ", 4"));
      text.line(str_cat("add.u64 ", name, ", ", name, ", ",
                        u64{256 / 16} << 32 | 128 / 16 << 16 | piece * KernelText::kPieceBytes / 16));
      return name;
    };
    Call call{r, t, d};
    call.modifiers.vector = halves ? 2 : 4;
    if (a_in_shared) {
      call.operands = {descriptor(1)};
    } else {
      const Type type = resolve(Rule::P, a, Type::kNone);
      for (unsigned i = 0; i < 4; ++i) call.operands.push_back(text.loaded(type, a, 4 / bytes_of(a)));
    }
    call.operands.push_back(descriptor(0));
    call.operands.emplace_back("1");
    std::vector<std::string> sums;
    for (unsigned i = 0; i < call.modifiers.vector; ++i)
      sums.push_back(text.loaded(accumulator, halves ? Type::kF16 : accumulator, halves ? 2 : 1));
    call.operands.insert(call.operands.end(), sums.begin(), sums.end());
    text.line("wgmma.fence.sync.aligned");
    text.line(text_of(call));
    text.line("wgmma.commit_group.sync.aligned");
    text.line("wgmma.wait_group.sync.aligned 0");
    for (const std::string& sum : sums) text.stored(accumulator, sum);
    finish(c, text);
  }

  static unsigned number_after(std::string_view text, char letter) {
    unsigned value = 0;
    for (std::size_t i = text.find(letter) + 1; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
      value = value * 10 + static_cast<unsigned>(text[i] - '0');
    }
    return value;
  }

  std::vector<ConformanceCase>& all_;
};

}  // namespace

std::string_view exempt(Op op) {
  const Row& r = row(op);
  switch (r.kind) {
    case Kind::Clock: return "a clock";
    case Kind::Fence:
    case Kind::Hint: return "no result";
    case Kind::CountedBarrier: return "no result";
    case Kind::Control: return "every kernel branches";
    case Kind::MBarrier:
    case Kind::AsyncCopy: return "its effect comes later";
    default: break;
  }
  if (starts_with(r.method, "wmma_load") || starts_with(r.method, "wmma_store"))
    return "part of the cases of wmma_mma";
  if (r.method == "mapa") return "an address of its own";
  if (r.operands.rules[0] == Rule::symbol || r.operands.rules[0] == Rule::tensor_map)
    return "every kernel reads parameters and addresses";
  if (r.method == "smid" || r.method == "nsmid") return "the GPU's own";
  if (starts_with(r.method, "createpolicy") || starts_with(r.method, "mbarrier")) return "an opaque value";
  if (r.results.registers == 0 && !r.results.vector && r.kind != Kind::Store && r.kind != Kind::Atomic &&
      !accumulates_in_place(r) && !starts_with(r.method, "stmatrix")) {
    return "no result";
  }
  return "";
}

const std::vector<ConformanceCase>& conformance_cases() {
  static const auto& cases = *[] {
    auto* all = new std::vector<ConformanceCase>;
    CaseMaker maker(*all);
    for (u32 i = 0; i < kNumRows; ++i) maker.add(static_cast<Op>(i));
    return all;
  }();
  return cases;
}

std::string conformance_module(absl::Span<const ConformanceCase> cases) {
  std::string text = ".version 8.7\n.target sm_90a\n.address_size 64\n";
  for (const ConformanceCase& c : cases) text += c.entry;
  return text;
}

}  // namespace ptxgen::testing
