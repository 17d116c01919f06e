// A pointer that moves on from turn to turn of a loop: an addition at the end, where the loads of the next
// turn do not wait for it.
#pragma once

#include "ptxgen/kernel_builder.h"

namespace ptxgen::parts {

template <class P>
class Walking {
 public:
  explicit Walking(const P& begin)
      : address_(begin.kernel(), Reg<typename P::Index>(begin.kernel(), begin.base())),
        offset_(begin.offset()) {}

  P pointer() const { return {address_.kernel(), Reg<typename P::Index>(address_).id(), offset_}; }
  // By so many, a constant or a value of the address's type.
  template <class Bytes>
  void advance(const Bytes& bytes) {
    address_ = address_ + bytes;
  }

 private:
  Var<typename P::Index> address_;
  s64 offset_;
};

}  // namespace ptxgen::parts
