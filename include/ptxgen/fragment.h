// Tiles of matrices as the tensor-core instructions take them: spread over the registers of the 32 lanes of a
// warp, or of the 128 threads of a warpgroup. `mma` and `wgmma_mma_async` multiply fragments whose shapes and
// types an instruction has; nothing else compiles.
#pragma once

#include <array>
#include <utility>

#include "ptxgen/value.h"

namespace ptxgen {

// The place of a matrix in d = a * b + c; kC is that of c and d, the accumulators.
enum class Matrix : u8 { kA, kB, kC };

namespace detail {

// The type of the 32-bit registers that hold elements of type T, the first in the low bits.
template <class T>
struct Packed {};
#define PTXGEN_PACKED(element, register_type) \
  template <>                                 \
  struct Packed<element> {                    \
    using type = register_type;               \
  };
PTXGEN_PACKED(u8, u32)
PTXGEN_PACKED(s8, u32)
PTXGEN_PACKED(e4m3, u32)
PTXGEN_PACKED(e5m2, u32)
PTXGEN_PACKED(u16, u32)
PTXGEN_PACKED(f16, f16x2)
PTXGEN_PACKED(bf16, bf16x2)
PTXGEN_PACKED(tf32, f32)
PTXGEN_PACKED(f32, f32)
PTXGEN_PACKED(s32, s32)
PTXGEN_PACKED(u32, u32)
#undef PTXGEN_PACKED
template <class T>
using packed_t = typename Packed<T>::type;

template <class T, std::size_t N>
void append_registers(const std::array<Reg<T>, N>& registers, Input*& out) {
  for (const Reg<T>& r : registers) *out++ = {{0, r.id(), Operand::Form::kValue}, r.kernel()};
}

}  // namespace detail

// A tile of Rows x Columns elements of type T. Lane `lane` holds kElements of them in kRegisters registers,
// the first in the low bits of the first; place() says which. With g = lane / 4, t = lane % 4 and E elements
// to a register (4 of 8 bits, 2 of 16, 1 of 32), element e of register r is (PTX ISA, "Matrix Fragments for
// mma")
//
//   A, 16 rows   row g + 8 * (r % 2)   column (r / 2) * 4E + t * E + e
//   A, 8 rows    row g                 column  r      * 4E + t * E + e
//   B, 8 columns row r * 4E + t * E + e                        column g
//   C            row g + 8 * (i / 2)   column t * 2 + i % 2    with i = r * E + e
//
// so in A of 16x32 bytes a lane holds four bytes of row g, four of row g + 8, and the same 16 columns
// further.
//
// A and C of 64 rows are those of wgmma: warp w of the warpgroup holds rows 16w to 16w + 15, as it would 16
// rows of mma, and of C every 8 columns one after another (PTX ISA, "Register Fragments for
// wgmma.mma_async"):
//
//   C, 64 rows   row 16w + g + 8 * (i / 2 % 2)   column i / 4 * 8 + t * 2 + i % 2
template <Matrix M, class T, u32 Rows, u32 Columns>
class Fragment {
 public:
  using value_type = T;
  using Register = Reg<detail::packed_t<T>>;
  static constexpr Matrix kMatrix = M;
  static constexpr u32 kPerRegister = sizeof(u32) / sizeof(T);
  static constexpr u32 kThreads = M != Matrix::kB && Rows == 64 ? 128 : 32;
  static constexpr u32 kElements = Rows * Columns / kThreads;
  static constexpr u32 kRegisters = kElements / kPerRegister;

  struct Place {
    u32 row, column;
    bool operator==(const Place&) const = default;
  };
  // Where element `element` of `lane` stands in the matrix. Of a warpgroup, lanes are numbered 0 to 127.
  static constexpr Place place(u32 lane, u32 element) {
    constexpr u32 kDown = (Rows < 16 ? Rows : 16) / 8;  // registers below each other
    const u32 group = lane / 32 * 16 + lane % 32 / 4, thread = lane % 4;
    if constexpr (M == Matrix::kC) {
      return {group + 8 * (element / 2 % kDown), element / 2 / kDown * 8 + thread * 2 + element % 2};
    } else {
      const u32 r = element / kPerRegister;
      const u32 along = thread * kPerRegister + element % kPerRegister;
      if constexpr (M == Matrix::kB) return {r * 4 * kPerRegister + along, group};
      return {group + 8 * (r % kDown), r / kDown * 4 * kPerRegister + along};
    }
  }

  // From the registers of each lane. ldmatrix fills them in this order from 8x8 tiles of 16-bit elements
  // (8x16 of bytes): down the rows first, then along the columns.
  explicit Fragment(const std::array<Register, kRegisters>& registers) : registers_(registers) {}

  const std::array<Register, kRegisters>& registers() const { return registers_; }
  const Register& operator[](std::size_t i) const { return registers_[i]; }
  KernelBuilder* kernel() const { return registers_[0].kernel(); }
  void append_to(detail::Input*& out) const { detail::append_registers(registers_, out); }

 private:
  std::array<Register, kRegisters> registers_;
};

// A tile as the wmma instructions keep it, of a multiplication m x n x k. Which lane holds which element is
// left open by the PTX ISA and differs from GPU to GPU: a kernel may only do the same to all registers. L is
// the layout in which a or b was loaded, which belongs to the multiplication too; accumulators (kC) have
// none.
template <Matrix M, class T, u32 m, u32 n, u32 k, Layout L = Layout::kRow>
class WmmaFragment {
 public:
  using value_type = T;
  using Register = Reg<detail::packed_t<T>>;
  static constexpr Matrix kMatrix = M;
  static constexpr u32 kRegisters = M == Matrix::kC && sizeof(T) == 2 ? 4 : 8;
  // What the address of a tile in memory is a multiple of: the lane's share of the tile (PTX ISA, "Matrix
  // Storage for WMMA"). Its lines are multiples of 16 bytes apart.
  static constexpr std::size_t kAlign = kRegisters * sizeof(u32);

  explicit WmmaFragment(const std::array<Register, kRegisters>& registers) : registers_(registers) {}

  const std::array<Register, kRegisters>& registers() const { return registers_; }
  const Register& operator[](std::size_t i) const { return registers_[i]; }
  KernelBuilder* kernel() const { return registers_[0].kernel(); }
  void append_to(detail::Input*& out) const { detail::append_registers(registers_, out); }

 private:
  std::array<Register, kRegisters> registers_;
};

// A fragment that can be assigned, as a Var can: acc = mma(a, b, acc); wgmma_mma_async(acc, a, b, true) adds
// to it in place.
template <class F>
class FragmentVar {
 public:
  using Element = typename F::Register::value_type;
  static constexpr u32 kRegisters = F::kRegisters;

  // Zeros.
  explicit FragmentVar(KernelBuilder& kernel)
      : variables_(make_variables(kernel, std::make_index_sequence<F::kRegisters>{})) {}
  explicit FragmentVar(const F& initial)
      : variables_(make_variables(initial, std::make_index_sequence<F::kRegisters>{})) {}

  void operator=(const F& value) {
    for (u32 i = 0; i < F::kRegisters; ++i) variables_[i] = value[i];
  }
  operator F() const { return read(std::make_index_sequence<F::kRegisters>{}); }  // NOLINT: as Var to Reg
  // The present content of one register.
  Reg<Element> operator[](std::size_t i) const { return variables_[i]; }
  // The variables themselves, for an instruction that reads and writes them in place.
  void append_variables(detail::Input*& out) const {
    for (const Var<Element>& v : variables_) *out++ = v.variable();
  }

 private:
  using Variables = std::array<Var<Element>, F::kRegisters>;

  template <std::size_t... Index>
  static Variables make_variables(KernelBuilder& kernel, std::index_sequence<Index...>) {
    return {((void)Index, Var<Element>(&kernel, Element{}))...};  // braces: left to right
  }
  template <std::size_t... Index>
  static Variables make_variables(const F& initial, std::index_sequence<Index...>) {
    return {Var<Element>(initial.kernel(), initial[Index])...};
  }
  template <std::size_t... Index>
  F read(std::index_sequence<Index...>) const {
    return F({Reg<Element>(variables_[Index])...});
  }

  Variables variables_;
};
template <class T, u32 Rows, u32 Columns>
using Accumulator = FragmentVar<Fragment<Matrix::kC, T, Rows, Columns>>;
template <class T, u32 m, u32 n, u32 k>
using WmmaAccumulator = FragmentVar<WmmaFragment<Matrix::kC, T, m, n, k>>;

namespace detail {

// m, n and k of an instruction, from its spelling: "mma.sync.aligned.m16n8k32...".
struct MatrixShape {
  u32 m = 0, n = 0, k = 0;
};
constexpr MatrixShape matrix_shape(std::string_view spelling) {
  MatrixShape shape;
  std::size_t at = spelling.find(".m") + 2;
  const auto number = [&] {
    u32 value = 0;
    for (; spelling[at] >= '0' && spelling[at] <= '9'; ++at)
      value = value * 10 + static_cast<u32>(spelling[at] - '0');
    return value;
  };
  while (spelling[at] < '0' || spelling[at] > '9') at = spelling.find(".m", at) + 2;
  shape.m = number();
  ++at;
  shape.n = number();
  ++at;
  shape.k = number();
  return shape;
}

}  // namespace detail
}  // namespace ptxgen
