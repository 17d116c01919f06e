// Work dealt to the threads of a CTA.
#pragma once

#include "ptxgen/kernel_builder.h"

namespace ptxgen::parts {

// body(i) for every i < count, of which there are at most `most`, by thread i % threads. Where each thread
// has one at most, there is no loop for ptxas to unroll.
template <class Count, class Body>
void for_each_of(KernelBuilder& k, const Count& count, u32 most, u32 threads, Body&& body) {
  if (most > threads) return k.for_(k.tid_x(), count, threads, body);
  k.if_(k.tid_x() < count, [&] { body(k.tid_x()); });
}

}  // namespace ptxgen::parts
