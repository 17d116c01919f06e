// Every constant in a kernel's PTX is changed, one at a time, and each change must be noticed by the blocks
// that the kernels are tested with: the emulator stops, a result stays unwritten, or a value differs. What
// cannot be noticed, because no value depends on it, is listed with the reason; and the list must be right.

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_format.h"
#include "ptxgen/emulator.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/mutants.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

enum class Outcome { kSame, kOtherValues, kStopped, kUnwritten, kNoPtx };

// What the emulator makes of `ptx`, which is the text of `kernel` or nearly.
Outcome outcome_of(const std::string& ptx, const Dequant& kernel, absl::Span<const std::byte> blocks,
                   absl::Span<const std::byte> expected) {
  const auto program = emulator::Program::parse(ptx);
  if (!program.ok()) return Outcome::kNoPtx;
  emulator::Memory memory;
  const auto weights = memory.allocate(blocks.size(), "weights");
  const auto out = memory.allocate(expected.size(), "out");
  REQUIRE((weights.ok() && out.ok() && memory.write(*weights, blocks).ok()));
  const std::array<u64, 2> arguments = {*weights, *out};
  const LaunchShape shape = kernel.launch_shape({});
  const emulator::LaunchConfig config = {
      .grid = {static_cast<u32>(shape.grid.x)},
      .block = {static_cast<u32>(shape.block.x)},
      .params = absl::MakeConstSpan(reinterpret_cast<const std::byte*>(arguments.data()), sizeof(arguments))};
  emulator::Options options;
  options.workers = 1;
  if (!emulator::launch(**program, kernel.name(), config, memory, options).ok()) return Outcome::kStopped;
  std::vector<std::byte> actual(expected.size());
  if (!memory.read(*out, absl::MakeSpan(actual), true).ok()) return Outcome::kUnwritten;
  return same_values(kernel, expected, actual) ? Outcome::kSame : Outcome::kOtherValues;
}

// A change that no value depends on, wherever its place occurs in the kernels of these formats and types.
struct Equivalent {
  std::string_view formats;
  std::string_view out_types;
  std::string_view place;
  std::vector<std::string> changes;
  std::string_view reason;
};

const Equivalent kEquivalents[] = {
    {"q4_0 q4_1 q5_0 q5_1 q4k q5k",
     "f32 f16",
     "shr.u32 _, _, 4; and.b32 _, _, 0xf0f0f0f",
     {"bit 28"},
     "a right shift by 4 has cleared it"},
    {"q2k q3k",
     "f32 f16",
     "shr.u32 _, _, 6; and.b32 _, _, 0x3030303",
     {"bit 26"},
     "a right shift by 6 has cleared it"},
    {"q6k",
     "f32 f16",
     "shr.u32 _, _, 2; and.b32 _, _, 0x33333333",
     {"bit 30"},
     "a right shift by 2 has cleared it"},
    // Scales and mins of a half's sub-blocks lie in all four bytes, those of one thread in bytes 0 and 2.
    {"q2k",
     "f32 f16",
     "shr.u32 _, _, _; and.b32 _, _, 0xf0f0f0f",
     {"bit 8", "bit 9", "bit 10", "bit 11", "bit 12", "bit 24", "bit 25", "bit 26", "bit 27", "bit 28"},
     "a scale is taken from byte 0 or 2"},
    {"q2k",
     "f32 f16",
     "shr.u32 _, _, 4; and.b32 _, _, 0xf0f0f0f",
     {"bit 8", "bit 9", "bit 10", "bit 11", "bit 12", "bit 24", "bit 25", "bit 26", "bit 27", "bit 28"},
     "a min is taken from byte 0 or 2"},

    // Four bits are spread by a multiplication: bit i goes to i + 4, i + 11, i + 18 and i + 25, and of these
    // 4, 12, 20 and 28 are kept.
    {"q5_0 q5_1",
     "f32 f16",
     "shr.u32 _, _, _; and.b32 _, _, 15",
     {"bit 4"},
     "it goes to 8, 15, 22 and 29, where no other bit goes and nothing is kept"},
    {"q5_0 q5_1",
     "f32 f16",
     "and.b32 _, _, 15; mul.lo.u32 _, _, 0x2040810",
     {"33818640 -> 33818641"},
     "adds a copy in bits 0..3, where no other bit goes and nothing is kept"},
    {"q5_0 q5_1",
     "f32 f16",
     "mul.lo.u32 _, _, 0x2040810; and.b32 _, _, 0x10101010",
     {"bit 29"},
     "no bit goes to 29"},

    // The W bytes of part p begin at byte b = W p, W = 4 for f32 and 8 for f16 and bf16; runs are stored at
    // multiples of W.
    {"q2k q3k q4k q5k q6k",
     "f32",
     "mul.lo.u32 _, _, 4; and.b32 _, _, 31",
     {"bit 0", "bit 1"},
     "b is a multiple of 4"},
    {"q2k q3k q4k q5k q6k",
     "f16",
     "mul.lo.u32 _, _, 8; and.b32 _, _, 31",
     {"bit 0", "bit 1", "bit 2"},
     "b is a multiple of 8"},
    {"q2k q3k q6k",
     "f16",
     "mul.lo.u32 _, _, 4; mul.lo.u32 _, _, 32",
     {"32 -> 33"},
     "adds b / 32 * 4, 0 or 4, to a multiple of 8, which is divided by 8"},
    {"q4k q5k",
     "f16",
     "mul.lo.u32 _, _, 2; mul.lo.u32 _, _, 32",
     {"32 -> 33"},
     "adds b / 32 * 2, 0 to 6, to a multiple of 8, which is divided by 8"},
    {"q4_0 q4_1",
     "f32",
     "and.b32 _, _, 3; mul.lo.u32 _, _, 4",
     {"4 -> 5"},
     "5 p / 4 = p for p = 0..3; b is used for nothing else"},
    {"q4_0 q4_1",
     "f16",
     "and.b32 _, _, 1; mul.lo.u32 _, _, 8",
     {"8 -> 9"},
     "9 p / 8 = p for p = 0, 1; b is used for nothing else"},
    {"q8_0",
     "f16 bf16",
     "and.b32 _, _, 3; mul.lo.u32 _, _, 8",
     {"8 -> 9"},
     "9 p / 8 = p for p = 0..3; b is used for nothing else"},
    {"q2k q3k q6k",
     "f16",
     "and.b32 _, _, 7; mul.lo.u32 _, _, 8",
     {"8 -> 9"},
     "9 p and 8 p are in the same 8 bytes of the same 32 for p = 0..7"},

    {"q8_0",
     "bf16",
     "add.u32 _, _, _; selp.b32 _, 0x7fff0000, _, _",
     {"2147418112 -> 2147418113"},
     "the upper half is stored"},
};

// Whether `word` is one of `words`.
bool has_word(std::string_view words, std::string_view word) {
  return str_cat(" ", words, " ").find(str_cat(" ", word, " ")) != std::string::npos;
}

// "place: change" of what is listed for the kernel, with the reasons.
std::map<std::string, std::string_view> equivalents_of(const Dequant& kernel) {
  const std::string_view out_type = kEnumNames<ElementType>[static_cast<std::size_t>(kernel.out_type)];
  std::map<std::string, std::string_view> all;
  for (const Equivalent& e : kEquivalents) {
    if (!has_word(e.formats, info(kernel.format).name) || !has_word(e.out_types, out_type)) continue;
    for (const std::string& change : e.changes) all[str_cat(e.place, ": ", change)] = e.reason;
  }
  return all;
}

struct Tally {
  std::map<Outcome, std::size_t> outcomes;
  std::map<std::string, std::map<bool, std::size_t>> places;  // "place: change": noticed or not, how often
  std::map<std::size_t, std::size_t> constants;               // noticed changes of each

  std::string to_string() const {
    const auto of = [&](Outcome o) { return outcomes.count(o) ? outcomes.at(o) : 0; };
    const std::size_t noticed = of(Outcome::kOtherValues) + of(Outcome::kStopped) + of(Outcome::kUnwritten);
    return absl::StrFormat(
        "%d changes of %d constants: %d noticed (%d other values, %d stopped, %d "
        "unwritten), %d without effect",
        noticed + of(Outcome::kSame), constants.size(), noticed, of(Outcome::kOtherValues),
        of(Outcome::kStopped), of(Outcome::kUnwritten), of(Outcome::kSame));
  }
};

Tally plant_faults(const Dequant& kernel, absl::Span<const std::byte> blocks) {
  const std::string ptx = generated_for(kernel, kBaseTarget).ptx;
  const auto expected = expected_output(kernel, blocks);
  REQUIRE(outcome_of(ptx, kernel, blocks, expected) == Outcome::kSame);
  Tally tally;
  for (const Mutant& mutant : mutants_of(ptx)) {
    CAPTURE(mutant.place, mutant.change);
    const Outcome outcome = outcome_of(mutant.ptx, kernel, blocks, expected);
    REQUIRE(outcome != Outcome::kNoPtx);
    const bool noticed = outcome != Outcome::kSame;
    ++tally.outcomes[outcome];
    ++tally.places[mutant.place + ": " + mutant.change][noticed];
    tally.constants[mutant.constant] += noticed;
  }
  return tally;
}

// Three CTAs, the last one block short of full: one that starts too early leaves the last block to nobody.
Dequant three_ctas(Format format, ElementType type) {
  Dequant kernel = {format, info(format).block_values, 1, type};
  while (kernel.launch_shape({}).grid.x < 4) ++kernel.n;
  kernel.n -= 2;
  return kernel;
}

void check_faults(const Dequant& kernel, absl::Span<const std::byte> blocks) {
  const Tally tally = plant_faults(kernel, blocks);
  SUCCEED(KernelType(kernel)->text() << ": " << tally.to_string());
  for (const auto& [constant, noticed] : tally.constants) CHECK(noticed > 0);
  std::map<std::string, std::string_view> equivalent = equivalents_of(kernel);
  for (const auto& [change, counts] : tally.places) {
    INFO(KernelType(kernel)->text() << ": " << change);
    const bool listed = equivalent.erase(change) > 0;
    CHECK(counts.count(listed) == 0);
  }
  for (const auto& [change, reason] : equivalent) {
    FAIL_CHECK(KernelType(kernel)->text() << " has no " << change << " (" << reason << ")");
  }
}

TEST_CASE("no constant of a decoder can change unnoticed", "[kernels][emulator]") {
  for (const FormatInfo& format : kFormats) {
    for (const ElementType type : {ElementType::kF32, ElementType::kF16}) {
      const Dequant kernel = three_ctas(format.format, type);
      check_faults(kernel, random_input(kernel, 5));
    }
  }
}

// Before sm_80 rounding to bf16 is integer arithmetic with constants of its own. Values halfway between two
// take part in it, and NaN and Inf.
TEST_CASE("no constant of the rounding to bf16 can change unnoticed", "[kernels][emulator]") {
  const Dequant kernel = three_ctas(Format::kQ8_0, ElementType::kBf16);
  std::vector<std::byte> blocks = halfway_input(kernel, 6);
  const std::vector<std::byte> arbitrary = arbitrary_input(kernel, 7);
  std::copy_n(arbitrary.begin(), arbitrary.size() / 2, blocks.begin());
  check_faults(kernel, blocks);
}

}  // namespace
}  // namespace ptxgen::testing
