// Puts the values of every gap into their canonical order.
#pragma once

#include "ptxgen/ir.h"

namespace ptxgen {

// Fills Kernel::gaps and the use counts: walks the effects in the order they are printed, visits their
// operands left to right, and appends each value, after its own operands, to the gap it was written in.
// Values nobody uses stay out.
void schedule(Kernel& kernel);

// Calls f(region) for the regions inside `control`, in the order they are printed.
template <class F>
void for_each_inner(const Instruction& control, F&& f) {
  const bool condition_last = control.op == Op::kWhile;
  for (const u32 region : {control.inner[condition_last], control.inner[!condition_last]}) {
    if (region != kNone) f(region);
  }
}

}  // namespace ptxgen
