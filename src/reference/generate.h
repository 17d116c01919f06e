// Blocks made up from a seed: the same bytes on every machine, with every compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ptxgen/format.h"

namespace ptxgen::reference {

// `count` valid blocks of `format` whose values betray a decoder's mistakes: quants random; scales (and mins)
// of a block's sub-blocks non-zero and all different (q2_K's sixteen 4-bit ones: neighbours different); the
// block's f16 scales of both signs, between 2^-8 and 1 in magnitude, in every eighth block subnormal. Every
// value is finite, in f16 too.
std::vector<std::byte> random_blocks(Format format, std::size_t count, std::uint64_t seed);

// Brings the f16 scales of whole blocks to between 2^-8 and 2^-7 in magnitude: those in a row of a model lie
// close together, and kernels may be the faster for it.
void level_scales(Format format, absl::Span<std::byte> blocks);

// `count` blocks of arbitrary bytes: f16 scales include NaN, Inf, zeros and subnormals (every fourth block
// has one of these for certain), so values may be NaN or Inf.
std::vector<std::byte> random_bytes(Format format, std::size_t count, std::uint64_t seed);

// `count` activations, in blocks of 32 with magnitudes of their own from 2^-5 to 2^3; in every sixteenth all
// zero, in another below the normal range.
std::vector<float> random_activations(std::size_t count, std::uint64_t seed);

// Blocks and activations like these, of any length from any place: what lies at a place does not depend on
// where a piece begins. `first` counts blocks, and values by whole blocks of 32.
void random_blocks_at(Format format, std::uint64_t seed, std::uint64_t first, absl::Span<std::byte> blocks);
void random_activations_at(std::uint64_t seed, std::uint64_t first, absl::Span<float> values);

}  // namespace ptxgen::reference
