// Random programs over values, variables, branches and loops, evaluated twice: in plain C++ and as a
// generated kernel on the emulator. What a wrong alias, a lost copy or a value in the wrong place would
// change is stored and compared.

#include <algorithm>
#include <optional>
#include <random>

#include "tests/builder/building.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

constexpr u32 kThreads = 32;
constexpr u32 kInputs = 16;
constexpr u32 kSlots = 24;  // words of output a thread

struct Source {
  enum Form { kValue, kVar, kLiteral } form = kLiteral;
  u32 index = 0;  // of the value or variable, or the literal
};

struct Statement {
  enum Kind {
    kOperation,  // value = a op b
    kNested,     // value = (a op b) op2 (b op c): operands that a compiler may evaluate in either order
    kRead,       // value = the variable's content now
    kLoad,       // value = in[a % kInputs]
    kNewVar,     // var = a (a copy where a is a variable)
    kAssign,     // var = a op b
    kMove,       // var = a
    kStore,      // out[index] = a
    kIf,         // if (a < b) body else otherwise
    kFor,        // for (value = 0; value < (a & 3); ++value) body
    kForConstant,
    kWhile,  // var = a & 3; while (var != 0) { body; var = var - 1 }
  } kind = kOperation;
  u32 target = 0;
  u32 operation = 0, operation2 = 0;
  Source a, b, c;
  std::vector<Statement> body, otherwise;
};

// ---- Operations, on both sides ----

constexpr u32 kNumOperations = 9;

u32 apply(u32 operation, u32 a, u32 b) {
  switch (operation) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a & b;
    case 4: return a | b;
    case 5: return a ^ b;
    case 6: return std::min(a, b);
    case 7: return b < 32 ? a << b : 0;
    default: return b < 32 ? a >> b : 0;
  }
}
template <class A, class B>
Reg<u32> emit(u32 operation, const A& a, const B& b) {
  switch (operation) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a & b;
    case 4: return a | b;
    case 5: return a ^ b;
    case 6: return min(a, b);
    case 7: return a << b;
    default: return a >> b;
  }
}

// ---- Generation ----

class Generator {
 public:
  explicit Generator(u32 seed) : random_(seed) {}

  std::vector<Statement> program() {
    num_values_ = 3;  // the thread's index, n, and a value loaded at the start
    values_ = {0, 1, 2};
    std::vector<Statement> statements;
    for (u32 i = 0; i < 3; ++i) statements.push_back(new_var());
    block(statements, 14, 0);
    u32 slot = kSlots;
    for (const u32 v : vars_) {
      if (slot > kSlots / 2) statements.push_back(store(--slot, {Source::kVar, v}));
    }
    return statements;
  }
  u32 num_values() const { return num_values_; }
  u32 num_vars() const { return num_vars_; }

 private:
  u32 below(u32 limit) { return static_cast<u32>(random_() % limit); }
  u32 pick(const std::vector<u32>& from) { return from[below(static_cast<u32>(from.size()))]; }
  Source source() {
    switch (below(8)) {
      case 0: return {Source::kLiteral, below(40)};
      case 1:
      case 2:
      case 3: return {Source::kVar, pick(vars_)};
      default: return {Source::kValue, pick(values_)};
    }
  }
  // A source that is no literal: at least one operand of an operation is on the device.
  Source device_source() {
    for (;;) {
      const Source s = source();
      if (s.form != Source::kLiteral) return s;
    }
  }
  Statement new_var() {
    Statement s;
    s.kind = Statement::kNewVar;
    s.a = vars_.empty() ? Source{Source::kValue, pick(values_)} : source();
    s.target = num_vars_++;
    vars_.push_back(s.target);
    return s;
  }
  static Statement store(u32 slot, Source a) {
    Statement s;
    s.kind = Statement::kStore;
    s.target = slot;
    s.a = a;
    return s;
  }

  void block(std::vector<Statement>& statements, u32 length, u32 depth) {
    const std::size_t values = values_.size(), vars = vars_.size();
    for (u32 i = 0; i < length; ++i) statements.push_back(statement(depth));
    if (depth == 0) return;
    values_.resize(values);  // what a region made ends with it
    vars_.resize(vars);
  }

  Statement statement(u32 depth) {
    constexpr u32 kMaxDepth = 3;
    Statement s;
    s.kind = static_cast<Statement::Kind>(below(depth < kMaxDepth ? Statement::kWhile + 1 : Statement::kIf));
    if (s.kind == Statement::kNewVar) return new_var();
    s.operation = below(kNumOperations);
    s.operation2 = below(kNumOperations);
    s.a = device_source();
    s.b = device_source();
    s.c = source();
    switch (s.kind) {
      case Statement::kRead: s.a = {Source::kVar, pick(vars_)}; break;
      case Statement::kAssign:
      case Statement::kMove: s.target = pick(vars_); return s;
      case Statement::kStore: s.target = below(kSlots / 2); return s;
      case Statement::kIf:
        block(s.body, 1 + below(5), depth + 1);
        if (below(2)) block(s.otherwise, 1 + below(4), depth + 1);
        return s;
      case Statement::kWhile:
        s.target = num_vars_++;
        block(s.body, 1 + below(5), depth + 1);
        return s;
      case Statement::kFor:
      case Statement::kForConstant:
        s.target = num_values_++;
        values_.push_back(s.target);
        block(s.body, 1 + below(5), depth + 1);
        values_.pop_back();
        return s;
      default: break;
    }
    s.target = num_values_++;
    values_.push_back(s.target);
    return s;
  }

  std::mt19937 random_;
  u32 num_values_ = 0, num_vars_ = 0;
  std::vector<u32> values_, vars_;  // alive
};

// ---- In plain C++ ----

class Evaluator {
 public:
  Evaluator(const Generator& g, const std::vector<u32>& in, u32* out)
      : values_(g.num_values()), vars_(g.num_vars()), in_(in), out_(out) {}

  void run(const std::vector<Statement>& program, u32 thread, u32 n) {
    values_[0] = thread;
    values_[1] = n;
    values_[2] = in_[thread % kInputs];
    block(program);
  }

 private:
  u32 get(const Source& s) const {
    return s.form == Source::kValue ? values_[s.index] : s.form == Source::kVar ? vars_[s.index] : s.index;
  }
  void block(const std::vector<Statement>& statements) {
    for (const Statement& s : statements) one(s);
  }
  void one(const Statement& s) {
    switch (s.kind) {
      case Statement::kOperation: values_[s.target] = apply(s.operation, get(s.a), get(s.b)); break;
      case Statement::kNested:
        values_[s.target] = apply(s.operation2, apply(s.operation, get(s.a), get(s.b)),
                                  apply(s.operation, get(s.b), get(s.c)));
        break;
      case Statement::kRead: values_[s.target] = get(s.a); break;
      case Statement::kLoad: values_[s.target] = in_[get(s.a) % kInputs]; break;
      case Statement::kNewVar:
      case Statement::kMove: vars_[s.target] = get(s.a); break;
      case Statement::kAssign: vars_[s.target] = apply(s.operation, get(s.a), get(s.b)); break;
      case Statement::kStore: out_[s.target] = get(s.a); break;
      case Statement::kIf: block(get(s.a) < get(s.b) ? s.body : s.otherwise); break;
      case Statement::kFor:
      case Statement::kForConstant: {
        const u32 trips = s.kind == Statement::kFor ? get(s.a) & 3 : 2;
        for (u32 i = 0; i < trips; ++i) {
          values_[s.target] = i;
          block(s.body);
        }
        break;
      }
      case Statement::kWhile:
        for (vars_[s.target] = get(s.a) & 3; vars_[s.target] != 0; --vars_[s.target]) block(s.body);
        break;
    }
  }

  std::vector<u32> values_, vars_;
  const std::vector<u32>& in_;
  u32* out_;
};

// ---- As a kernel ----

class Emitter {
 public:
  Emitter(const Generator& g, KernelBuilder& k)
      : k_(k),
        in_(k.param(&Args::in)),
        out_(k.param(&Args::out) + k.tid_x() * kSlots),
        values_(g.num_values()),
        vars_(g.num_vars()) {}

  void run(const std::vector<Statement>& program) {
    values_[0] = k_.tid_x();
    values_[1] = k_.param(&Args::n);
    values_[2] = ld_global(in_ + k_.tid_x() % kInputs);
    block(program);
  }

 private:
  // Calls f with what the source is in C++: Reg, Var or u32.
  template <class F>
  auto with(const Source& s, F&& f) {
    switch (s.form) {
      case Source::kValue: return f(*values_[s.index]);
      case Source::kVar: return f(*vars_[s.index]);
      default: return f(k_.constant<u32>(s.index));
    }
  }
  template <class F>
  auto with(const Source& a, const Source& b, F&& f) {
    return with(a, [&](const auto& x) { return with(b, [&](const auto& y) { return f(x, y); }); });
  }
  void block(const std::vector<Statement>& statements) {
    for (const Statement& s : statements) one(s);
  }
  void one(const Statement& s) {
    switch (s.kind) {
      case Statement::kOperation:
        values_[s.target] =
            with(s.a, s.b, [&](const auto& a, const auto& b) { return emit(s.operation, a, b); });
        break;
      case Statement::kNested:
        values_[s.target] = with(s.a, s.b, [&](const auto& a, const auto& b) {
          return with(s.c, [&](const auto& c) {
            return emit(s.operation2, emit(s.operation, a, b), emit(s.operation, b, c));
          });
        });
        break;
      case Statement::kRead: values_[s.target] = Reg<u32>(*vars_[s.a.index]); break;
      case Statement::kLoad:
        values_[s.target] = with(s.a, [&](const auto& a) { return ld_global(in_ + a % kInputs); });
        break;
      case Statement::kNewVar:
        with(s.a, [&]<class A>(const A& a) {
          if constexpr (std::is_same_v<A, Var<u32>>) {
            vars_[s.target].emplace(a);  // a copy
          } else {
            vars_[s.target].emplace(k_.var(a));
          }
        });
        break;
      case Statement::kMove: with(s.a, [&](const auto& a) { *vars_[s.target] = a; }); break;
      case Statement::kAssign:
        with(s.a, s.b, [&](const auto& a, const auto& b) { *vars_[s.target] = emit(s.operation, a, b); });
        break;
      case Statement::kStore:
        with(s.a, [&](const auto& a) { st_global(out_ + static_cast<int>(s.target), a); });
        break;
      default: control(s);
    }
  }
  void control(const Statement& s) {
    const auto body = [&] { block(s.body); };
    if (s.kind == Statement::kIf) {
      const Pred condition = with(s.a, s.b, [&](const auto& a, const auto& b) { return a < b; });
      if (s.otherwise.empty()) {
        k_.if_(condition, body);
      } else {
        k_.if_(condition, body, [&] { block(s.otherwise); });
      }
    } else if (s.kind == Statement::kWhile) {
      with(s.a, [&](const auto& a) { vars_[s.target].emplace(k_.var(a & 3)); });
      Var<u32>& left = *vars_[s.target];
      k_.while_([&] { return left != 0; },
                [&] {
                  body();
                  left = left - 1;
                });
    } else {
      const auto counted = [&](const Reg<u32>& i) {
        values_[s.target] = i;
        body();
      };
      if (s.kind == Statement::kForConstant) {
        k_.for_(0u, 2u, 1, counted);
      } else {
        k_.for_(0u, with(s.a, [&](const auto& a) { return a & 3; }), 1, counted);
      }
    }
  }

  KernelBuilder& k_;
  GlobalPtr<const u32> in_;
  GlobalPtr<u32> out_;
  std::vector<std::optional<Reg<u32>>> values_;
  std::vector<std::optional<Var<u32>>> vars_;
};

// Of the programs 1 to `programs`: compares what `generate` makes of each with what C++ computes.
template <class Generate>
void check_programs(u32 programs, const Generate& generate) {
  constexpr u32 kN = 5;
  std::vector<u32> in(kInputs);
  for (u32 i = 0; i < kInputs; ++i) in[i] = 0x9e3779b9u * (i + 1) >> (i % 3 * 12);
  for (u32 seed = 1; seed <= programs; ++seed) {
    Generator generator(seed);
    const std::vector<Statement> program = generator.program();
    std::vector<u32> expected(kThreads * kSlots, 0xdeadbeef);
    for (u32 t = 0; t < kThreads; ++t) {
      Evaluator(generator, in, &expected[t * kSlots]).run(program, t, kN);
    }
    const absl::StatusOr<Kernel> kernel =
        build([&](KernelBuilder& k) { Emitter(generator, k).run(program); });
    INFO("seed " << seed << "\n" << kernel.status().message());
    REQUIRE(kernel.ok());
    const absl::StatusOr<std::string> ptx = generate(*kernel);
    INFO(ptx.status().message() << (ptx.ok() ? *ptx : ""));
    REQUIRE(ptx.ok());
    const absl::StatusOr<std::vector<u32>> out =
        run_ptx(*ptx, kernel->name, kThreads, in, kN, expected.size());
    INFO(out.status().message());
    REQUIRE(out.ok());
    REQUIRE(*out == expected);
  }
}

}  // namespace

TEST_CASE("random programs compute on the emulator what C++ computes", "[builder]") {
  check_programs(400, [](const Kernel& kernel) -> absl::StatusOr<std::string> { return print_ptx(kernel); });
}

TEST_CASE("random programs compute through LLVM what C++ computes", "[builder][llvm]") {
  check_programs(100, [](const Kernel& kernel) {
    return compile_with_llvm(absl::MakeConstSpan(&kernel, 1), kernel.target, kernel.isa);
  });
}

}  // namespace ptxgen::testing
