// printf and assert, on paths that only some inputs take.
#ifndef __CUDACC_RTC__
#include <assert.h>
#include <stdio.h>
#endif
extern "C" __global__ void k(const unsigned* in, unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (in[i] == 1000001) printf("value %u of thread %u\n", in[i], i);
  assert(in[i] != 1000002);
  if (in[i] == 1000003) __trap();
  out[i] = in[i] + 1;
}
