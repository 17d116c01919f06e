// Programmatic dependent launch (PTX ISA, griddepcontrol; sm_90 and later): the next kernel of a stream may
// start while this one runs, and this one while the kernel before it does.
#pragma once

#include "ptxgen/kernel_builder.h"

namespace ptxgen::parts {

inline bool has_dependent_launch(const KernelBuilder& k) {
  return k.target().supports(kHopper);
}
inline void launch_dependents(KernelBuilder& k) {
  if (has_dependent_launch(k)) k.griddepcontrol_launch_dependents();
}
// Nothing that an earlier kernel writes may be read before: so only weights are, which none in the stream may
// write. What is read after is read by ld.global, not by the read-only path, since it changes while the
// kernel lives.
inline void wait_for_predecessor(KernelBuilder& k) {
  if (has_dependent_launch(k)) k.griddepcontrol_wait();
}

}  // namespace ptxgen::parts
