// What the instructions of the tensor cores share: they are .aligned, all 32 lanes of a warp execute them
// together.
#pragma once

#include "src/emulator/machine.h"

namespace ptxgen::emulator {

// True when the whole warp is at the instruction. Otherwise the lanes wait for the others, or the CTA has
// faulted because some can never come.
bool whole_warp(Warp& warp, const Op& op, LaneMask mask);

}  // namespace ptxgen::emulator
