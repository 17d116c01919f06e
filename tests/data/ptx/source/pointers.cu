// Functions called through tables: some threads of a warp call one, some another.
__device__ __noinline__ unsigned add(unsigned a, unsigned b) { return a + b; }
__device__ __noinline__ unsigned multiply(unsigned a, unsigned b) { return a * b; }
__device__ __noinline__ unsigned mix(unsigned a, unsigned b) { return (a ^ b) * 2654435761u; }
using Function = unsigned (*)(unsigned, unsigned);
__device__ Function table[3] = {add, multiply, mix};

extern "C" __global__ void k(const unsigned* in, unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = table[in[i] % 3](in[i], i) + table[i % 2](i, 5);
}
