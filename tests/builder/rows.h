// One line a row of the instruction table: the call, and the instruction that it must print.
//
//   ROW(fma_rn, fma_rn(a, b, c), "fma.rn.(f32|f64) d, a, b, c")
//
// The call sees the operands a, b, c, e (parameters of the types that the row asks for), the pointers p
// (global) and s (shared), the tensor map m where the row takes one, the kernel k, and the types T and D. It
// is made once for every T (and D) of the row. The text is written by hand, not derived from the table: (x|y)
// lists what differs from type to type, in the order of enum Type, D before T; a text without is that of all
// types.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptxgen/kernel_builder.h"

namespace ptxgen::testing {

struct RowCase {
  Op op = Op::ret;
  std::string expected;  // "fma.rn.f32 d, a, b, c"
  std::string entry;     // the kernel's text without the module's header
  std::string problem;   // why there is no kernel; empty when there is one
  PtxIsa isa;            // the floors of the row and its modifiers
  Target target;
};

namespace detail {

using ptxgen::detail::resolve_t;
using ptxgen::detail::RuleList;
namespace rows = ptxgen::detail::rows;

// Predicates are no parameters: they are compared from one.
template <class T>
using parameter_t = std::conditional_t<std::is_same_v<T, pred>, u32, T>;

template <class P, class A, class B, class C, class E>
struct OperandArgs {
  DevicePtr<P, 16> p;
  A a;
  B b;
  C c;
  E e;
  static constexpr auto fields() {
    return std::tuple(output("p", &OperandArgs::p, nullptr), scalar("a", &OperandArgs::a),
                      scalar("b", &OperandArgs::b), scalar("c", &OperandArgs::c),
                      scalar("e", &OperandArgs::e));
  }
};

template <class Args>
struct WithTensorMap : Args {
  TensorMap m;
  static constexpr auto fields() {
    return std::tuple_cat(Args::fields(), std::tuple(tensor_map("m", &WithTensorMap::m)));
  }
};

template <class T, class Args, class Member>
Reg<T> operand(KernelBuilder& k, Member Args::*member) {
  if constexpr (std::is_same_v<T, pred>) {
    return setp_ne(k.param(member), 0u);
  } else {
    return k.param(member);
  }
}

// Assigned to variables, so that it is printed.
template <class T>
void keep(KernelBuilder& k, const Reg<T>& value) {
  k.var<T>(value);
}
template <class T, std::size_t Align>
void keep(KernelBuilder& k, const ClusterSharedPtr<T, Align>& p) {
  k.var<u32>(Reg<u32>(&k, p.base()));
}
template <class T, std::size_t N>
void keep(KernelBuilder& k, const std::array<Reg<T>, N>& values) {
  for (const Reg<T>& value : values) k.var<T>(value);
}
template <Matrix M, class T, u32 Rows, u32 Columns>
void keep(KernelBuilder& k, const Fragment<M, T, Rows, Columns>& fragment) {
  keep(k, fragment.registers());
}
template <Matrix M, class T, u32 m, u32 n, u32 k, Layout L>
void keep(KernelBuilder& k_, const WmmaFragment<M, T, m, n, k, L>& fragment) {
  keep(k_, fragment.registers());
}
template <class A, class B>
void keep(KernelBuilder& k, const std::pair<Reg<A>, Reg<B>>& values) {
  k.var<A>(values.first);
  k.var<B>(values.second);
}

template <std::size_t I, class T, class D, Rule... Rs>
auto nth_type(RuleList<Rs...>) {
  if constexpr (I < sizeof...(Rs)) {
    constexpr Rule rules[] = {Rs...};
    if constexpr (rules[I] == Rule::imm || rules[I] == Rule::maxnreg) {
      return std::type_identity<u32>{};
    } else {
      return std::type_identity<resolve_t<rules[I], T, D>>{};
    }
  } else {
    return std::type_identity<u32>{};
  }
}
// What is not an address: addresses are p, s and m.
constexpr bool is_address(Rule rule) {
  return rule == Rule::symbol || (rule >= Rule::global && rule <= Rule::addr) ||
         (rule >= Rule::global_in4 && rule <= Rule::mbarrier);
}
template <Rule... Rs>
constexpr bool takes_tensor_map(RuleList<Rs...>) {
  return ((Rs == Rule::tensor_map || Rs == Rule::symbol) || ...);
}
template <Rule... Kept>
auto values_of(RuleList<>, RuleList<Kept...>) {
  return RuleList<Kept...>{};
}
template <Rule R, Rule... Rs, Rule... Kept>
auto values_of(RuleList<R, Rs...>, RuleList<Kept...>) {
  if constexpr (is_address(R)) {
    return values_of(RuleList<Rs...>{}, RuleList<Kept...>{});
  } else {
    return values_of(RuleList<Rs...>{}, RuleList<Kept..., R>{});
  }
}
template <std::size_t I, class Rules, class T, class D>
using operand_t = typename decltype(nth_type<I, T, D>(values_of(Rules{}, RuleList<>{})))::type;

// Calls f(std::type_identity<T>) for the types of `Set`, in the order of enum Type.
template <TypeSet Set, class F>
void for_each_type(F&& f) {
  const auto each = [&]<class... Ts>(std::type_identity<Ts>... types) {
    const auto one = [&]<class T>(std::type_identity<T> type) {
      if constexpr (Set.contains(type_of<T>)) f(type);
    };
    (one(types), ...);
  };
  using std::type_identity;
  each(type_identity<pred>{}, type_identity<u8>{}, type_identity<s8>{}, type_identity<u16>{},
       type_identity<s16>{}, type_identity<u32>{}, type_identity<s32>{}, type_identity<u64>{},
       type_identity<s64>{}, type_identity<f16>{}, type_identity<bf16>{}, type_identity<f16x2>{},
       type_identity<bf16x2>{}, type_identity<f32>{}, type_identity<f64>{}, type_identity<e4m3x2>{},
       type_identity<e5m2x2>{}, type_identity<tf32>{}, type_identity<e4m3>{}, type_identity<e5m2>{});
}

// Rows of loads and stores have no operand rules.
struct MemoryRow {
  using Operands = RuleList<Rule::T, Rule::T, Rule::T, Rule::T>;
};

}  // namespace detail

class RowSuite {
 public:
  // Makes the call for one T and D.
  template <class Rules, class T, class D, class Call>
  void add(Op op, const Call& call) {
    using A = detail::operand_t<0, Rules, T, D>;
    using B = detail::operand_t<1, Rules, T, D>;
    using C = detail::operand_t<2, Rules, T, D>;
    using E = detail::operand_t<3, Rules, T, D>;
    using Element = std::conditional_t<std::is_void_v<T> || std::is_same_v<T, pred>, u32, T>;
    using Values = detail::OperandArgs<Element, detail::parameter_t<A>, detail::parameter_t<B>,
                                       detail::parameter_t<C>, detail::parameter_t<E>>;
    constexpr bool kTensorMap = detail::takes_tensor_map(Rules{});
    using Args = std::conditional_t<kTensorMap, detail::WithTensorMap<Values>, Values>;
    KernelBuilder k("row_" + std::to_string(cases_.size()), {newest_target(op), {9, 0}});
    k.declare_parameters<Args>();
    const auto map = [&] {
      if constexpr (kTensorMap) {
        return k.param(&Args::m);
      } else {
        return nullptr;
      }
    };
    const auto made = [&] {
      return call.template operator()<T, D>(k, k.param(&Args::p), k.shared<Element, 16>(4),
                                            detail::operand<A>(k, &Args::a), detail::operand<B>(k, &Args::b),
                                            detail::operand<C>(k, &Args::c), detail::operand<E>(k, &Args::e),
                                            map());
    };
    if constexpr (std::is_void_v<decltype(made())>) {
      made();
    } else {
      detail::keep(k, made());
    }
    finish(op, k);
  }

  // Makes the call for every D and T of the row; `expected` lists as many instructions.
  template <class Row, class Call>
  void add_row(Op op, std::string_view expected, const Call& call) {
    const std::size_t first = cases_.size();
    using Rules = typename Row::Operands;
    if constexpr (Row::kTo.bits != 0) {
      detail::for_each_type<Row::kTo>([&]<class D>(std::type_identity<D>) {
        detail::for_each_type<Row::kTypes>(
            [&]<class T>(std::type_identity<T>) { add<Rules, T, D>(op, call); });
      });
    } else if constexpr (Row::kTypes.bits != 0) {
      detail::for_each_type<Row::kTypes>(
          [&]<class T>(std::type_identity<T>) { add<Rules, T, void>(op, call); });
    } else {
      add<Rules, void, void>(op, call);
    }
    expect(first, expected);
  }

  // The same for rows without operand rules: loads, stores, what the builder writes by itself.
  template <TypeSet Set, class Call>
  void add_types(Op op, std::string_view expected, const Call& call) {
    const std::size_t first = cases_.size();
    detail::for_each_type<Set>(
        [&]<class T>(std::type_identity<T>) { add<detail::MemoryRow::Operands, T, void>(op, call); });
    expect(first, expected);
  }

  const std::vector<RowCase>& cases() const { return cases_; }

 private:
  // The newest target that has the row.
  static Target newest_target(Op op);
  void finish(Op op, KernelBuilder& k);
  void expect(std::size_t first, std::string_view expected);

  std::vector<RowCase> cases_;
};

// The texts that a text with (x|y) stands for, the first group varying slowest.
std::vector<std::string> expand_alternatives(std::string_view text);

// The instructions of an entry with registers replaced by what they hold: a parameter's name, s for the
// shared array, and for others d, or d0, d1 ... where an instruction names several.
std::vector<std::string> named_instructions(std::string_view entry);

// One function a family; together they have a line for every row.
void add_integer_rows(RowSuite& suite);
void add_float_rows(RowSuite& suite);
void add_half_rows(RowSuite& suite);
void add_comparison_rows(RowSuite& suite);
void add_logic_rows(RowSuite& suite);
void add_conversion_rows(RowSuite& suite);
void add_memory_rows(RowSuite& suite);
void add_warp_rows(RowSuite& suite);
void add_matrix_rows(RowSuite& suite);
void add_wgmma_rows(RowSuite& suite);
void add_atomic_rows(RowSuite& suite);
void add_cta_rows(RowSuite& suite);
void add_async_rows(RowSuite& suite);
void add_internal_rows(RowSuite& suite);

#define PTXGEN_ROW_CALL(...)                                                                                \
  []<class T, class D>([[maybe_unused]] KernelBuilder& k, [[maybe_unused]] auto p, [[maybe_unused]] auto s, \
                       [[maybe_unused]] auto a, [[maybe_unused]] auto b, [[maybe_unused]] auto c,           \
                       [[maybe_unused]] auto e, [[maybe_unused]] auto m) { return __VA_ARGS__; }
// The shared memory s, as it is seen from the cluster.
#define CLUSTER_SHARED ClusterSharedPtr<typename decltype(s)::element_type, 16>(&k, s.base())
// The call comes in parentheses where it contains a comma outside of any.
#define ROW(id, call, expected) \
  suite.add_row<::ptxgen::detail::rows::id##_row>(Op::id, expected, PTXGEN_ROW_CALL(call));
#define TYPES_ROW(id, types, call, expected) suite.add_types<types>(Op::id, expected, PTXGEN_ROW_CALL(call));

}  // namespace ptxgen::testing
