// 64- and 128-bit products, sums and quotients: chains of carries.
extern "C" __global__ void k(const unsigned* in, unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned long long a = in[i] * 0x9e3779b97f4a7c15ull, b = (in[(i + 1) % n] | 1ull) * 0xc2b2ae3d27d4eb4full;
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b + a;
  const unsigned __int128 square = product * product - b;
  const unsigned long long folded = static_cast<unsigned long long>(square >> 64) ^ static_cast<unsigned long long>(square);
  const long long quotient = static_cast<long long>(a) / static_cast<long long>(b >> 20);
  out[i] = static_cast<unsigned>(folded ^ folded >> 32) + static_cast<unsigned>(quotient) + static_cast<unsigned>(a % (b >> 40)) +
           __popcll(a) + __clzll(static_cast<long long>(b)) + static_cast<unsigned>(__umul64hi(a, b));
}
