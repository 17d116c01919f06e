// Structures by value, in and out, and pointers to variables of the caller.
struct Pair {
  unsigned short low;
  unsigned long long high;
};
struct Big {
  unsigned words[9];
  unsigned char tail;
};
__device__ __noinline__ Pair swap(Pair p, unsigned char add) {
  return {static_cast<unsigned short>(p.high), static_cast<unsigned long long>(p.low) + add};
}
__device__ __noinline__ unsigned pick(Big big, unsigned index) { return big.words[index % 9] + big.tail; }
__device__ __noinline__ void twice(unsigned* value, Big* big) {
  *value *= 2;
  big->tail += 1;
}

extern "C" __global__ void k(const unsigned* in, unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Big big;
  for (unsigned w = 0; w < 9; ++w) big.words[w] = in[i] * (w + 1);
  big.tail = static_cast<unsigned char>(in[i]);
  unsigned value = in[i];
  twice(&value, &big);
  const Pair p = swap({static_cast<unsigned short>(in[i]), in[i] >> 4}, 3);
  out[i] = value + pick(big, i) + p.low * 7u + static_cast<unsigned>(p.high);
}
