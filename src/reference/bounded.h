// A result that is not determined to the bit.
#pragma once

namespace ptxgen::reference {

// A result within `bound` of `value` is right. A NaN must be NaN, an infinite value must come as infinity or
// NaN, and where the bound is infinite anything is right.
struct Bounded {
  double value = 0;
  double bound = 0;

  bool admits(double actual) const;
};

}  // namespace ptxgen::reference
