// The schedules of Gemm: who does what is in their files.
#pragma once

#include <optional>

#include "ptxgen/gemm.h"

namespace ptxgen::gemm {

// The outputs of a CTA, and its threads.
struct Shape {
  u32 tile_m, tile_n, threads;
  u64 dynamic_shared_bytes = 0;
  u32 split_k = 1;  // neighbouring CTAs that share the outputs, each with a part of k
};

// Schedules tiled and dp4a: rows.cc.
Shape row_shape(const Gemm& g);
void build_rows(KernelBuilder& k, const Gemm& g);

// Schedules wmma and wmma_multi_warp: wmma.cc.
Shape wmma_shape(const Gemm& g);
void build_wmma(KernelBuilder& k, const Gemm& g);

// Schedule mma: mma.cc.
Shape mma_shape(const Gemm& g);
void build_mma(KernelBuilder& k, const Gemm& g);

// Schedule wgmma: wgmma.cc. Tiles have 128 rows of weights, or kFewRows with up to kMostOfFew rows of a.
inline constexpr u32 kFewRows = 64, kMostOfFew = 16;
Shape wgmma_shape(const Gemm& g);
std::optional<TiledTensor> wgmma_tensor(const Gemm& g, u64 weights);
void build_wgmma(KernelBuilder& k, const Gemm& g);
// Whether CTAs can take tiles of this shape in turn.
bool wgmma_takes_turns(const Gemm& g);

// Which outputs a CTA has: those from row `first_n` of the weights and row `first_m` of a on. CTAs with the
// same weights are neighbours.
struct Tile {
  Reg<u32> first_m, first_n;
};
inline Reg<u32> tiles_of_m(const Shape& shape, const Reg<u32>& m) {
  return (m - 1u) / shape.tile_m + 1u;
}
inline Tile tile_at(const Shape& shape, const Reg<u32>& m, const Reg<u32>& number) {
  const Reg<u32> tiles = tiles_of_m(shape, m);
  const Reg<u32> of_n = number / tiles;
  return {(number - of_n * tiles) * shape.tile_m, of_n * shape.tile_n};
}
inline Reg<u32> number_of_cta(KernelBuilder& k, const Shape& shape) {
  return shape.split_k > 1 ? k.ctaid_x() / shape.split_k : k.ctaid_x();
}
inline Tile tile_of_cta(KernelBuilder& k, const Shape& shape, const Reg<u32>& m) {
  return tile_at(shape, m, number_of_cta(k, shape));
}

}  // namespace ptxgen::gemm
