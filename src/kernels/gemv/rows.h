// The schedules in which warps own rows: each is one or two ideas away from `warp`.
#pragma once

#include "ptxgen/gemv.h"

namespace ptxgen::gemv {

enum class XFrom : u8 { kGlobal, kShared, kSharedChunks };

struct RowPlan {
  u32 width = 1;  // bytes of quantised values in a load
  u32 warps_per_row = 1;
  u32 rows_per_cta = 1;
  XFrom x_from = XFrom::kGlobal;
  bool shared_headers = false;  // lanes load a block's header together and broadcast it
  bool int8 = false;            // dp4a on q8_1 activations

  u32 threads() const { return 32 * warps_per_row * rows_per_cta; }
};

// Any schedule but `stream`.
RowPlan row_plan(const Gemv& gemv);
absl::Status check_rows(const Gemv& gemv);
u64 row_shared_bytes(const Gemv& gemv);  // dynamic
void build_rows(KernelBuilder& k, const Gemv& gemv);

}  // namespace ptxgen::gemv
