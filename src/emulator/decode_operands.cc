// Operands as slots: registers, constants, special registers, addresses, and the resizings that wider
// registers need.
#include <algorithm>
#include <bit>

#include "src/emulator/decode.h"
#include "src/emulator/lanes.h"
#include "src/emulator/text.h"

namespace ptxgen::emulator {
namespace {

constexpr std::size_t kMaxFrameBytes = std::size_t{1}
                                       << 22;  // 16K 64-bit registers a thread; a GPU has 255 of 32 bits

constexpr std::pair<std::string_view, Special> kSpecials[] = {
    {"%tid.x", Special::kTidX},
    {"%tid.y", Special::kTidY},
    {"%tid.z", Special::kTidZ},
    {"%ntid.x", Special::kNtidX},
    {"%ntid.y", Special::kNtidY},
    {"%ntid.z", Special::kNtidZ},
    {"%ctaid.x", Special::kCtaidX},
    {"%ctaid.y", Special::kCtaidY},
    {"%ctaid.z", Special::kCtaidZ},
    {"%nctaid.x", Special::kNctaidX},
    {"%nctaid.y", Special::kNctaidY},
    {"%nctaid.z", Special::kNctaidZ},
    {"%laneid", Special::kLaneid},
    {"%warpid", Special::kWarpid},
    {"%nwarpid", Special::kNwarpid},
    {"%lanemask_eq", Special::kLanemaskEq},
    {"%lanemask_lt", Special::kLanemaskLt},
    {"%lanemask_le", Special::kLanemaskLe},
    {"%lanemask_gt", Special::kLanemaskGt},
    {"%lanemask_ge", Special::kLanemaskGe},
    {"%smid", Special::kSmid},
    {"%nsmid", Special::kNsmid},
    {"%dynamic_smem_size", Special::kDynamicSmemSize},
    {"%total_smem_size", Special::kTotalSmemSize},
    {"%clusterid.x", Special::kClusteridX},
    {"%clusterid.y", Special::kClusteridY},
    {"%clusterid.z", Special::kClusteridZ},
    {"%nclusterid.x", Special::kNclusteridX},
    {"%nclusterid.y", Special::kNclusteridY},
    {"%nclusterid.z", Special::kNclusteridZ},
    {"%cluster_ctaid.x", Special::kClusterCtaidX},
    {"%cluster_ctaid.y", Special::kClusterCtaidY},
    {"%cluster_ctaid.z", Special::kClusterCtaidZ},
    {"%cluster_nctaid.x", Special::kClusterNctaidX},
    {"%cluster_nctaid.y", Special::kClusterNctaidY},
    {"%cluster_nctaid.z", Special::kClusterNctaidZ},
    {"%cluster_ctarank", Special::kClusterCtarank},
    {"%cluster_nctarank", Special::kClusterNctarank},
};

template <class To, class From>
struct Resize {
  static To apply(From x) { return static_cast<To>(x); }
};

template <class From>
Execute resize_to(Type to) {
  switch (bits(to)) {
    case 64: return map<Resize<std::uint64_t, From>, std::uint64_t(From)>;
    case 32: return map<Resize<std::uint32_t, From>, std::uint32_t(From)>;
    default: return map<Resize<std::uint16_t, From>, std::uint16_t(From)>;
  }
}

// From the bits of a register to a register of another width, sign-extended when `from` is signed.
Execute resize(Type from, Type to) {
  switch (bits(from)) {
    case 64: return resize_to<std::uint64_t>(to);
    case 32: return is_signed(from) ? resize_to<std::int32_t>(to) : resize_to<std::uint32_t>(to);
    default: return is_signed(from) ? resize_to<std::int16_t>(to) : resize_to<std::uint16_t>(to);
  }
}

struct AddImmediate {
  static std::uint64_t apply(const Op& op, std::uint64_t a) { return a + op.immediate; }
};

struct NotPredicate {
  static void run(Warp& warp, const Op& op, LaneMask mask) {
    store_predicate(warp, op.dst[0], ~warp.predicate(op.src[0]), mask);
  }
};

// 8-bit registers are kept in 16 bits.
unsigned stored_bits(Type type) {
  return type == Type::kPred ? 1 : std::max(16u, bits(type));
}

bool is_untyped(Type type) {
  return type >= Type::kB8 && type <= Type::kB128;
}
bool is_integer(Type type) {
  return type >= Type::kU8 && type <= Type::kS64;
}

// PTX ISA, "Type Checking": bits agree with everything of their size, integers with integers, floats with
// themselves.
bool agrees(Type declared, Type used) {
  return declared == used || is_untyped(declared) || is_untyped(used) ||
         (is_integer(declared) && !is_float(used));
}

}  // namespace

void Decoder::expect_operands(std::size_t least, std::size_t most) {
  if (count() >= least && count() <= most) return;
  fail(str_cat(spelling(), " takes ", least, most > least ? str_cat(" to ", most) : "", " operands, not ",
               count()));
}

const Operand& Decoder::operand(std::size_t i) {
  static const Operand kMissing;
  if (i < count()) return in_->operands[i];
  fail(str_cat(spelling(), " lacks operand ", i + 1));
  return kMissing;
}

absl::Span<const Operand> Decoder::elements(std::size_t i) {
  const Operand& o = operand(i);
  return o.kind == Operand::Kind::kVector ? absl::MakeConstSpan(o.elements) : absl::MakeConstSpan(&o, 1);
}

Slot Decoder::new_slot(unsigned width, RegisterName name) {
  const std::size_t bytes = width == 1 ? sizeof(LaneMask) : kWarpSize * width / 8;
  const std::size_t alignment = width == 1 ? sizeof(LaneMask) : 64;
  const std::size_t offset = (code_.frame_bytes + alignment - 1) & ~(alignment - 1);
  code_.frame_bytes = offset + bytes;
  if (code_.frame_bytes > kMaxFrameBytes) fail("this entry uses more registers than the emulator has");
  code_.registers.push_back(name);
  return {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(code_.registers.size() - 1)};
}

Slot Decoder::temporary(Type type) {
  return new_slot(stored_bits(type));
}

Slot Decoder::condition_code() {
  if (!condition_code_) condition_code_ = temporary(Type::kPred);
  return *condition_code_;
}

Slot Decoder::register_slot(std::uint32_t index) {
  std::optional<Slot>& slot = registers_[index];
  const RegisterName& name = function_->registers[index];
  if (!slot) slot = new_slot(stored_bits(name.type), name);
  return *slot;
}

Slot Decoder::constant_slot(Type type, std::uint64_t value, bool relocated) {
  const unsigned width = stored_bits(type);
  if (width > 64) fail("a constant has at most 64 bits");
  if (width < 64) value &= (std::uint64_t{1} << width) - 1;
  auto [found, inserted] = constants_.try_emplace({width, {value, relocated}});
  if (inserted) {
    found->second = new_slot(width);
    code_.constants.push_back({found->second, width / 8, value, relocated});
  }
  return found->second;
}

Type Decoder::declared(const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::kRegister: return function_->registers[operand.index].type;
    case Operand::Kind::kSpecial: return Type::kU32;
    default: return Type::kB64;
  }
}

Slot Decoder::resized(Slot from, Type from_type, Type to) {
  const Slot slot = temporary(to);
  emit_helper(resize(from_type, to), {slot}, {from});
  return slot;
}

Slot Decoder::dst(const Operand& operand, Type type, Fit fit) {
  if (operand.kind == Operand::Kind::kDiscard) return temporary(type);
  if (operand.kind != Operand::Kind::kRegister || operand.negated || operand.offset != 0) {
    fail(str_cat("'", operand.name, "' where a register to write is expected"));
    return temporary(type);
  }
  const Type declared_type = declared(operand);
  const unsigned have = stored_bits(declared_type), need = stored_bits(type);
  if (have == need && agrees(declared_type, type)) return register_slot(operand.index);
  if (fit != Fit::kWider || have < need || need == 1 || (is_float(declared_type) && have != need)) {
    fail(str_cat("register '", operand.name, "' is .", name(declared_type), ", but ", spelling(), " writes .",
                 name(type), " to it"));
    return temporary(type);
  }
  // The operation writes a temporary, and a resizing that follows it fills the register.
  const Slot slot = temporary(type);
  Pending after;
  after.op.run = resize(type, declared_type);
  after.dst = {register_slot(operand.index)};
  after.src = {slot};
  after_.push_back(std::move(after));
  return slot;
}

Slot Decoder::src(const Operand& operand, Type type, Fit fit) {
  const bool wants_predicate = type == Type::kPred;
  switch (operand.kind) {
    case Operand::Kind::kRegister: {
      const Type declared_type = declared(operand);
      const unsigned have = stored_bits(declared_type), need = stored_bits(type);
      const Slot slot = register_slot(operand.index);
      if (operand.offset != 0) break;
      if (operand.negated) {
        if (!wants_predicate || declared_type != Type::kPred) break;
        const Slot inverted = temporary(Type::kPred);
        emit_helper(&NotPredicate::run, {inverted}, {slot});
        return inverted;
      }
      if (have == need && agrees(declared_type, type)) return slot;
      if (fit == Fit::kWider && have > need && need != 1 && !is_float(declared_type)) {
        return resized(slot, declared_type, type);
      }
      fail(str_cat("register '", operand.name, "' is .", name(declared_type), ", but ", spelling(),
                   " reads .", name(type), " from it"));
      return slot;
    }
    case Operand::Kind::kSpecial: return special(operand, type);
    case Operand::Kind::kInteger:
      if (operand.negated) break;
      if (wants_predicate) return constant_slot(type, operand.bits != 0 ? 1 : 0);
      if (is_float(type) || type == Type::kS16x2 || type == Type::kU16x2) break;  // only registers
      return constant_slot(type, operand.bits);
    case Operand::Kind::kFloat32:
      if (bits(type) == 64 && is_float(type)) {
        return constant_slot(type,
                             to_bits(double{std::bit_cast<float>(static_cast<std::uint32_t>(operand.bits))}));
      }
      if (bits(type) != 32) break;
      return constant_slot(type, operand.bits);
    case Operand::Kind::kFloat64:
      if (type == Type::kF32) {
        return constant_slot(type, to_bits(static_cast<float>(std::bit_cast<double>(operand.bits))));
      }
      if (bits(type) != 64) break;
      return constant_slot(type, operand.bits);
    case Operand::Kind::kVariable:
    case Operand::Kind::kParam: {
      if (bits(type) < 32 || bits(type) > 64 || is_float(type)) break;
      Space space;
      const std::uint64_t address = variable_address(operand, space);
      if (space != Space::kLocal || function_->is_entry)
        return constant_slot(type, address, space == Space::kGlobal);
      const Slot sum = temporary(Type::kB64);
      emit_helper(map<AddImmediate, std::uint64_t(std::uint64_t)>, {sum}, {function_code_->base}).immediate =
          address;
      return bits(type) == 64 ? sum : resized(sum, Type::kB64, type);
    }
    case Operand::Kind::kFunction:
      if (bits(type) != 64 || is_float(type)) break;
      return constant_slot(type, code_address(callee(operand)));
    default: break;
  }
  fail(str_cat("'", operand.name, "' where ", spelling(), " reads a .", name(type)));
  return temporary(type);
}

Slot Decoder::special(const Operand& operand, Type type) {
  for (const auto& [text, which] : kSpecials) {
    if (text != operand.name) continue;
    auto [found, inserted] = specials_.try_emplace(which);
    if (inserted) {
      found->second = new_slot(32, {text, Type::kU32});
      code_.specials.push_back({which, found->second});
    }
    if (stored_bits(type) == 32 && !is_float(type)) return found->second;
    if (type == Type::kPred || is_float(type)) break;
    return resized(found->second, Type::kU32, type);
  }
  fail(str_cat("'", operand.name, "' is neither a declared register nor a special register that ", spelling(),
               " can read"));
  return temporary(type);
}

std::uint64_t Decoder::variable_address(const Operand& operand, Space& space) {
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  if (operand.kind == Operand::Kind::kParam) {
    space = Space::kParam;
    return function_->info.params[operand.index].offset + offset;
  }
  const Variable& v = module_.variables[operand.index];
  space = v.space;
  if (v.external && space != Space::kShared)
    fail(str_cat("'", v.name, "' is .extern, and this module does not define it"));
  return (space == Space::kShared ? shared_offsets_[operand.index] : v.offset) + offset;
}

AddressOperand Decoder::address(const Operand& operand, Space space) {
  AddressOperand result{{}, true, operand.offset};
  if (operand.kind != Operand::Kind::kAddress || operand.elements.size() != 1) {
    fail(str_cat("'", operand.name, "' where an address in [ ] is expected"));
    return result;
  }
  const Operand& base = operand.elements[0];
  if (base.kind == Operand::Kind::kRegister) {
    const Type type = declared(base);
    result.wide = bits(type) == 64;
    result.slot = src(base, result.wide ? Type::kB64 : Type::kB32);
  } else if (base.kind == Operand::Kind::kInteger) {
    result.slot = constant_slot(Type::kB64, base.bits);
  } else if (base.kind == Operand::Kind::kVariable || base.kind == Operand::Kind::kParam) {
    Space found;
    std::uint64_t at = variable_address(base, found);
    if (space == Space::kGeneric && found != Space::kGlobal) {
      at += window(found);
    } else if (space != Space::kGeneric && found != (space == Space::kCluster ? Space::kShared : space)) {
      fail(str_cat("'", base.name, "' is in .", name(found), ", not in .", name(space)));
    }
    if (found == Space::kLocal && !function_->is_entry) {
      result.slot = function_code_->base;
      result.offset += static_cast<std::int64_t>(at);
    } else {
      result.slot = constant_slot(Type::kB64, at, found == Space::kGlobal);
    }
  } else {
    fail(str_cat("'", base.name, "' is no address"));
  }
  return result;
}

Passed Decoder::passed(const Operand& operand, std::uint64_t bytes) {
  if (operand.kind == Operand::Kind::kVariable && module_.variables[operand.index].space == Space::kLocal) {
    const Variable& v = module_.variables[operand.index];
    if (v.bytes != bytes || operand.offset != 0) {
      fail(str_cat("'", operand.name, "' has ", v.bytes, " bytes, where ", bytes, " are passed"));
    }
    return {false, {}, v.offset, bytes};
  }
  const Type type = operand.kind == Operand::Kind::kRegister ? declared(operand)
                    : bytes == 8                             ? Type::kB64
                    : bytes == 4                             ? Type::kB32
                                                             : Type::kB16;
  if (type == Type::kPred || stored_bits(type) / 8 != bytes) {
    fail(str_cat("'", operand.name, "' does not have the ", bytes, " bytes that are passed"));
  }
  return {true, src(operand, type), 0, bytes};
}

Passed Decoder::passed_formal(const Formal& formal) {
  if (formal.place.kind == Operand::Kind::kVariable)
    return {false, {}, module_.variables[formal.place.index].offset, formal.bytes};
  return {true, register_slot(formal.place.index), 0, formal.bytes};
}

std::uint64_t Decoder::constant(const Operand& operand, std::string_view what) {
  if (operand.kind != Operand::Kind::kInteger || operand.negated) {
    fail(str_cat("'", operand.name, "' where ", what, ", a constant, is expected"));
  }
  return operand.bits;
}

}  // namespace ptxgen::emulator
