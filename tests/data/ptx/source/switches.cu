// A dense switch, which becomes an indexed branch, in a loop.
extern "C" __global__ void k(const unsigned* in, unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned state = in[i], steps = 0, sum = 0;
  while (steps < 20) {
    switch (state % 9) {
      case 0: sum += 3; state = state * 5 + 1; break;
      case 1: sum ^= state; state += 7; break;
      case 2: sum -= state >> 3; state = ~state; break;
      case 3: sum = sum << 1 | sum >> 31; state ^= 0x1234567; break;
      case 4: sum *= 9; state = state / 3 + 1; break;
      case 5: sum += state % 11; state += sum; break;
      case 6: sum |= 16; state -= 2; break;
      case 7: sum = ~sum; state *= 3; break;
      default: sum += 100; state >>= 1; ++steps;
    }
    ++steps;
  }
  out[i] = sum;
}
