// Descriptors: a plain struct with everything that changes a kernel's PTX. What a type needs to be one:
//
//   struct Scale {                                          // out[i] = factor * in[i]
//     u32 n = 1;                                            // its constants, with bounds, in one list
//     static constexpr auto fields() { return std::tuple(field("n", &Scale::n, "values", {1, 1u << 30})); }
//
//     struct Args {                                         // what varies per launch, in one list
//       DevicePtr<const f32> in;
//       DevicePtr<f32> out;
//       f32 factor;
//       static constexpr auto fields() {
//         return std::tuple(input("in", &Args::in, &Scale::bytes), output("out", &Args::out, &Scale::bytes),
//                           scalar("factor", &Args::factor));
//       }
//     };
//     u64 bytes(const Args&) const { return u64{n} * sizeof(f32); }
//
//     std::string name() const { return "scale"; }          // of the entry; the same for all constants
//     LaunchShape launch_shape(const Args&) const { return {.grid = (n + 255) / 256, .block = 256}; }
//     void build(KernelBuilder& k) const;
//   };
//
// Optional: `absl::Status validate() const` for rules that bounds cannot say; `std::optional<TiledTensor>
// tensor(const Args&) const` for a kernel that copies boxes of one of its buffers: every launch makes a
// TensorMap of it, which the kernel has as one more parameter (KernelBuilder::tensor_map()). Whether there is
// one is a matter of the constants alone.
#pragma once

#include <array>
#include <concepts>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/codegen.h"
#include "ptxgen/fields.h"
#include "ptxgen/kernel_builder.h"
#include "ptxgen/launch_shape.h"
#include "ptxgen/tensor_map.h"

namespace ptxgen {

template <class D>
concept KernelDescriptor = requires(const D& d, const typename D::Args& args, KernelBuilder& k) {
  D::fields();
  D::Args::fields();
  { d.name() } -> std::convertible_to<std::string>;
  { d.launch_shape(args) } -> std::same_as<LaunchShape>;
  d.build(k);
};

// One argument of a kernel, as ArgValues orders them.
struct ArgInfo {
  std::string_view name;
  Direction direction = Direction::kScalar;
  Type type = Type::kNone;    // of a scalar; kU64 for a buffer's address
  std::size_t alignment = 1;  // bytes that a buffer's address must be a multiple of
  u64 bytes = 0;              // what the kernel may touch of a buffer, for these values
};

// The arguments of a kernel, in order. A launch makes them without allocating.
using ArgInfos = absl::InlinedVector<ArgInfo, 8>;

// The arguments of a launch in the order of Args::fields(): an address or a scalar's bits, little-endian.
using ArgValues = absl::Span<const u64>;

// A descriptor whose type is not known.
class PTXGEN_API Descriptor {
 public:
  virtual ~Descriptor() = default;
  virtual std::string name() const = 0;
  // Name and constants: "q4k_dequant k=4096 n=11008 out_type=f16". Equal texts are equal descriptors.
  virtual std::string text() const = 0;
  virtual bool equals(const Descriptor& other) const = 0;
  virtual std::size_t hash() const = 0;
  // The constants are legal, or a status that names the field, its value and the rule.
  virtual absl::Status validate() const = 0;
  virtual void build(KernelBuilder& k) const = 0;
  virtual std::size_t num_arguments() const = 0;
  virtual ArgInfos arguments(ArgValues values) const = 0;
  // Of Args{}: null buffers, and scalars as their member initialisers have them.
  virtual std::vector<u64> default_arguments() const = 0;
  virtual LaunchShape launch_shape(ArgValues values) const = 0;
  // What the parameter behind the arguments is a TensorMap of; nothing: there is none.
  virtual std::optional<TiledTensor> tensor(ArgValues values) const = 0;
  std::size_t num_parameters() const { return num_arguments() + (tensor(default_arguments()) ? 1 : 0); }
  virtual std::shared_ptr<const Descriptor> clone() const = 0;
};

namespace detail {

// How many members an aggregate has: the most initialisers that it takes.
struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT: stands for an initialiser of any type
};
template <class T, class... Members>
constexpr std::size_t count_members() {
  if constexpr (requires { T{Members{}..., AnyMember{}}; }) {
    return count_members<T, Members..., AnyMember>();
  } else {
    return sizeof...(Members);
  }
}
template <class T>
inline constexpr bool kListsAllMembers = count_members<T>() == std::tuple_size_v<decltype(T::fields())>;

template <class Args>
inline constexpr std::size_t kNumArgs = std::tuple_size_v<decltype(Args::fields())>;

template <class Args>
std::array<u64, kNumArgs<Args>> to_values(const Args& args) {
  std::array<u64, kNumArgs<Args>> values{};
  std::size_t i = 0;
  std::apply(
      [&](const auto&... argument) {
        (std::memcpy(&values[i++], &(args.*argument.member), sizeof(args.*argument.member)), ...);
      },
      Args::fields());
  return values;
}

template <class Args>
Args from_values(ArgValues values) {
  Args args{};
  std::size_t i = 0;
  std::apply(
      [&](const auto&... argument) {
        (std::memcpy(static_cast<void*>(&(args.*argument.member)), &values[i++],
                     sizeof(args.*argument.member)),
         ...);
      },
      Args::fields());
  return args;
}

}  // namespace detail

// The Descriptor of a type D. It lives on the stack where a call needs one, so asking a cache allocates
// nothing.
template <KernelDescriptor D>
class DescriptorOf final : public Descriptor {
  static_assert(detail::kListsAllMembers<D>,
                "every member of a descriptor stands in its fields(): they are its identity");
  static_assert(detail::kListsAllMembers<typename D::Args>, "every member of Args stands in its fields()");

 public:
  explicit DescriptorOf(const D& value) : value_(value) {}
  const D& value() const { return value_; }

  std::string name() const override { return value_.name(); }
  std::string text() const override {
    const std::string fields = text_of_fields(value_);
    return fields.empty() ? name() : str_cat(name(), " ", fields);
  }
  bool equals(const Descriptor& other) const override {
    return typeid(other) == typeid(DescriptorOf) &&  // final, so as good as a dynamic_cast, and faster
           equal_fields(value_, static_cast<const DescriptorOf&>(other).value_);
  }
  std::size_t hash() const override {
    static const std::size_t type = typeid(D).hash_code();  // which reads the whole name of the type
    return absl::HashOf(type, hash_fields(value_));
  }
  absl::Status validate() const override {
    if (absl::Status status = check_fields(value_); !status.ok()) return status;
    if constexpr (requires { value_.validate(); }) return value_.validate();
    return absl::OkStatus();
  }
  void build(KernelBuilder& k) const override {
    k.template declare_parameters<Args>();
    value_.build(k);
  }
  std::size_t num_arguments() const override { return detail::kNumArgs<Args>; }
  std::vector<u64> default_arguments() const override {
    const auto values = detail::to_values(Args{});
    return {values.begin(), values.end()};
  }
  ArgInfos arguments(ArgValues values) const override {
    const Args args = detail::from_values<Args>(values);
    ArgInfos infos;
    std::apply([&](const auto&... argument) { (infos.push_back(info_of(argument, args)), ...); },
               Args::fields());
    return infos;
  }
  LaunchShape launch_shape(ArgValues values) const override {
    return value_.launch_shape(detail::from_values<Args>(values));
  }
  std::optional<TiledTensor> tensor(ArgValues values) const override {
    if constexpr (requires(const Args& args) { value_.tensor(args); })
      return value_.tensor(detail::from_values<Args>(values));
    return std::nullopt;
  }
  std::shared_ptr<const Descriptor> clone() const override { return std::make_shared<DescriptorOf>(value_); }

 private:
  using Args = typename D::Args;

  template <class A>
  ArgInfo info_of(const A& argument, const Args& args) const {
    using Traits = detail::ArgumentTraits<std::remove_cvref_t<decltype(args.*argument.member)>>;
    ArgInfo info{argument.name, argument.direction, Traits::kType, Traits::kAlign, 0};
    if constexpr (Traits::kIsPointer) info.bytes = (value_.*argument.bytes)(args);
    if constexpr (!std::is_null_pointer_v<decltype(argument.alignment)>)
      info.alignment = (value_.*argument.alignment)();
    return info;
  }

  D value_;
};

// A descriptor of any type, held by value; copies are cheap.
class KernelType {
 public:
  template <KernelDescriptor D>
  KernelType(const D& descriptor)  // NOLINT: any descriptor is a KernelType
      : descriptor_(std::make_shared<DescriptorOf<D>>(descriptor)) {}
  explicit KernelType(const Descriptor& descriptor) : descriptor_(descriptor.clone()) {}

  const Descriptor& operator*() const { return *descriptor_; }
  const Descriptor* operator->() const { return descriptor_.get(); }
  // The descriptor as type D, or nullptr when it is of another.
  template <KernelDescriptor D>
  const D* get_if() const {
    const auto* held = dynamic_cast<const DescriptorOf<D>*>(descriptor_.get());
    return held ? &held->value() : nullptr;
  }

  bool operator==(const KernelType& other) const { return descriptor_->equals(*other.descriptor_); }
  template <class H>
  friend H AbslHashValue(H state, const KernelType& type) {
    return H::combine(std::move(state), type.descriptor_->hash());
  }

 private:
  std::shared_ptr<const Descriptor> descriptor_;
};

struct CodegenOptions {
  BuildOptions build;
  Codegen codegen = Codegen::kDirect;
};

struct GeneratedKernel {
  std::string ptx;
  std::string entry;
  PtxIsa isa;     // what the code needs at least ...
  Target target;  // ... of driver and device
  u32 static_shared_bytes = 0;
  // It waits, by griddepcontrol.wait, for the kernel before it in the stream: only then may it be launched
  // before that one has ended (LaunchOptions::programmatic_dependent_launch).
  bool waits_for_predecessor = false;
};

// Validates the descriptor, builds its kernel and prints it.
PTXGEN_API absl::StatusOr<Kernel> build_kernel(const Descriptor& descriptor, const BuildOptions& options);
PTXGEN_API absl::StatusOr<GeneratedKernel> generate(const Descriptor& descriptor,
                                                    const CodegenOptions& options);

}  // namespace ptxgen
