#include "tests/builder/rows.h"

namespace ptxgen::testing {

// u32, s32, f16x2, bf16x2, f32
#define SHFL "(b32|b32|b32|b32|b32)"
// the same with u64, s64, f64, in the order of enum Type
#define MATCH "(b32|b32|b64|b64|b32|b32|b32|b64)"

void add_warp_rows(RowSuite& suite) {
  ROW(shfl_sync_idx, shfl_sync_idx(a, b, c, e), "shfl.sync.idx." SHFL " d, a, b, c, e")
  ROW(shfl_sync_up, shfl_sync_up(a, b, c, e), "shfl.sync.up." SHFL " d, a, b, c, e")
  ROW(shfl_sync_down, shfl_sync_down(a, b, c, e), "shfl.sync.down." SHFL " d, a, b, c, e")
  ROW(shfl_sync_bfly, shfl_sync_bfly(a, b, c, e), "shfl.sync.bfly." SHFL " d, a, b, c, e")
  ROW(shfl_sync_idx_p, shfl_sync_idx_p(a, b, c, e), "shfl.sync.idx." SHFL " d0|d1, a, b, c, e")
  ROW(shfl_sync_up_p, shfl_sync_up_p(a, b, c, e), "shfl.sync.up." SHFL " d0|d1, a, b, c, e")
  ROW(shfl_sync_down_p, shfl_sync_down_p(a, b, c, e), "shfl.sync.down." SHFL " d0|d1, a, b, c, e")
  ROW(shfl_sync_bfly_p, shfl_sync_bfly_p(a, b, c, e), "shfl.sync.bfly." SHFL " d0|d1, a, b, c, e")
  ROW(vote_sync_all, vote_sync_all(a, b), "vote.sync.all.pred d, a, b")
  ROW(vote_sync_any, vote_sync_any(a, b), "vote.sync.any.pred d, a, b")
  ROW(vote_sync_uni, vote_sync_uni(a, b), "vote.sync.uni.pred d, a, b")
  ROW(vote_sync_ballot, vote_sync_ballot(a, b), "vote.sync.ballot.b32 d, a, b")
  ROW(match_any_sync, match_any_sync(a, b), "match.any.sync." MATCH " d, a, b")
  ROW(match_all_sync, match_all_sync(a, b), "match.all.sync." MATCH " d0|d1, a, b")
  ROW(redux_sync_add, redux_sync_add(a, b), "redux.sync.add.(u32|s32) d, a, b")
  ROW(redux_sync_min, redux_sync_min(a, b), "redux.sync.min.(u32|s32) d, a, b")
  ROW(redux_sync_max, redux_sync_max(a, b), "redux.sync.max.(u32|s32) d, a, b")
  ROW(redux_sync_and, redux_sync_and(a, b), "redux.sync.and.b32 d, a, b")
  ROW(redux_sync_or, redux_sync_or(a, b), "redux.sync.or.b32 d, a, b")
  ROW(redux_sync_xor, redux_sync_xor(a, b), "redux.sync.xor.b32 d, a, b")
  ROW(activemask, k.activemask(), "activemask.b32 d")
  ROW(bar_warp_sync, k.bar_warp_sync(a), "bar.warp.sync a")
}

}  // namespace ptxgen::testing
