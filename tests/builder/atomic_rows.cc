#include "tests/builder/rows.h"

namespace ptxgen::testing {

#define WORDS "(u32|s32|u64|s64)"
#define WORD_BITS "(b32|b32|b64|b64)"

void add_atomic_rows(RowSuite& suite) {
  ROW(atom_add, atom_global_add(p, a), "atom.relaxed.gpu.global.add.(u32|s32|u64) d, [p], a")
  ROW(atom_add, atom_global_add(p, a, Scope::kSys), "atom.relaxed.sys.global.add.(u32|s32|u64) d, [p], a")
  ROW(atom_add, atom_shared_add(s, a, Scope::kCta), "atom.relaxed.cta.shared.add.(u32|s32|u64) d, [s], a")
  ROW(atom_add_f32, atom_global_add(p, a), "atom.relaxed.gpu.global.add.(f32|f64) d, [p], a")
  ROW(atom_add, atom_global_add(p, a, Scope::kCluster),
      "atom.relaxed.cluster.global.add.(u32|s32|u64) d, [p], a")
  ROW(atom_add, atom_shared_cluster_add(CLUSTER_SHARED, a, Scope::kCluster),
      "atom.relaxed.cluster.shared::cluster.add.(u32|s32|u64) d, [s], a")
  ROW(atom_add_f32, atom_shared_add(s, a, Scope::kCta), "atom.relaxed.cta.shared.add.(f32|f64) d, [s], a")
  ROW(atom_add_f16, atom_global_add(p, a), "atom.relaxed.gpu.global.add.noftz.f16 d, [p], a")
  ROW(atom_add_f16, atom_shared_add(s, a, Scope::kCta), "atom.relaxed.cta.shared.add.noftz.f16 d, [s], a")
  ROW(atom_add_f16x2, atom_global_add(p, a), "atom.relaxed.gpu.global.add.noftz.f16x2 d, [p], a")
  ROW(atom_add_f16x2, atom_shared_add(s, a, Scope::kCta), "atom.relaxed.cta.shared.add.noftz.f16x2 d, [s], a")
  ROW(atom_add_bf16, atom_global_add(p, a), "atom.relaxed.gpu.global.add.noftz.(bf16|bf16x2) d, [p], a")
  ROW(atom_add_bf16, atom_shared_add(s, a), "atom.relaxed.gpu.shared.add.noftz.(bf16|bf16x2) d, [s], a")
  ROW(atom_min, atom_global_min(p, a), "atom.relaxed.gpu.global.min." WORDS " d, [p], a")
  ROW(atom_min, atom_shared_min(s, a), "atom.relaxed.gpu.shared.min." WORDS " d, [s], a")
  ROW(atom_max, atom_global_max(p, a), "atom.relaxed.gpu.global.max." WORDS " d, [p], a")
  ROW(atom_max, atom_shared_max(s, a), "atom.relaxed.gpu.shared.max." WORDS " d, [s], a")
  ROW(atom_exch, atom_global_exch(p, a), "atom.relaxed.gpu.global.exch.(b32|b32|b64|b64|b32|b64) d, [p], a")
  ROW(atom_exch, atom_shared_exch(s, a), "atom.relaxed.gpu.shared.exch.(b32|b32|b64|b64|b32|b64) d, [s], a")
  ROW(atom_and, atom_global_and(p, a), "atom.relaxed.gpu.global.and." WORD_BITS " d, [p], a")
  ROW(atom_or, atom_global_or(p, a), "atom.relaxed.gpu.global.or." WORD_BITS " d, [p], a")
  ROW(atom_xor, atom_shared_xor(s, a), "atom.relaxed.gpu.shared.xor." WORD_BITS " d, [s], a")
  ROW(atom_acq_rel_add, atom_global_acq_rel_add(p, a), "atom.acq_rel.gpu.global.add.(u32|s32|u64) d, [p], a")
  ROW(atom_acq_rel_exch, atom_global_acq_rel_exch(p, a),
      "atom.acq_rel.gpu.global.exch." WORD_BITS " d, [p], a")
  ROW(atom_cas, atom_global_cas(p, a, b), "atom.relaxed.gpu.global.cas." WORD_BITS " d, [p], a, b")
  ROW(atom_cas, atom_shared_cas(s, a, b), "atom.relaxed.gpu.shared.cas." WORD_BITS " d, [s], a, b")
  ROW(atom_cas_16, atom_global_cas(p, a, b), "atom.relaxed.gpu.global.cas.b16 d, [p], a, b")
  ROW(atom_acq_rel_cas, atom_global_acq_rel_cas(p, a, b),
      "atom.acq_rel.gpu.global.cas." WORD_BITS " d, [p], a, b")
  ROW(red_add, red_global_add(p, a), "red.relaxed.gpu.global.add.(u32|s32|u64|f32|f64) [p], a")
  ROW(red_add, red_shared_add(s, a, Scope::kCta), "red.relaxed.cta.shared.add.(u32|s32|u64|f32|f64) [s], a")
  ROW(red_add, red_shared_cluster_add(CLUSTER_SHARED, a, Scope::kGpu),
      "red.relaxed.gpu.shared::cluster.add.(u32|s32|u64|f32|f64) [s], a")
  ROW(red_add_f16, red_global_add(p, a), "red.relaxed.gpu.global.add.noftz.f16 [p], a")
  ROW(red_add_f16x2, red_global_add(p, a), "red.relaxed.gpu.global.add.noftz.f16x2 [p], a")
  ROW(red_add_bf16, red_global_add(p, a), "red.relaxed.gpu.global.add.noftz.(bf16|bf16x2) [p], a")
  ROW(red_min, red_global_min(p, a), "red.relaxed.gpu.global.min." WORDS " [p], a")
  ROW(red_max, red_global_max(p, a), "red.relaxed.gpu.global.max." WORDS " [p], a")
  ROW(red_and, red_global_and(p, a), "red.relaxed.gpu.global.and." WORD_BITS " [p], a")
  ROW(red_or, red_global_or(p, a), "red.relaxed.gpu.global.or." WORD_BITS " [p], a")
  ROW(red_xor, red_global_xor(p, a), "red.relaxed.gpu.global.xor." WORD_BITS " [p], a")
}

}  // namespace ptxgen::testing
