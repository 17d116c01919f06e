// Programmatic dependent launch: what a kernel says about its neighbours in the stream. Both calls do nothing
// on targets without griddepcontrol (PTX ISA 9.7.13), where a kernel begins when the one before has ended.
#pragma once

#include "ptxgen/kernel_builder.h"

namespace ptxgen::parts {

inline bool has_griddepcontrol(const KernelBuilder& k) {
  return k.target().supports({90, false}) && k.max_isa() >= PtxIsa{7, 8};
}

// From here on the next kernel may start, once every CTA has said so or ended.
inline void launch_dependents(KernelBuilder& k) {
  if (has_griddepcontrol(k)) k.griddepcontrol_launch_dependents();
}

// Waits until the kernel before has ended and its writes can be seen. Nothing that depends on it, and no
// write to what it may still read, comes earlier.
inline void wait_for_predecessor(KernelBuilder& k) {
  if (has_griddepcontrol(k)) k.griddepcontrol_wait();
}

}  // namespace ptxgen::parts
