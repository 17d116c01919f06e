// Variables with initial values: numbers of every width, strings, addresses of each other.
__constant__ unsigned primes[6] = {2, 3, 5, 7, 11, 13};
__constant__ double halves[3] = {0.5, 1.5, -2.5};
__constant__ float tenths[2] = {0.1f, 1e-3f};
__constant__ signed char bytes[4] = {-1, 2, -3, 4};
__device__ unsigned counters[5] = {10, 20, 30};
__device__ const char* words[2] = {"emulator", "ptx"};
struct Link {
  unsigned value;
  const Link* next;
};
__device__ const Link last = {300, nullptr};
__device__ const Link middle = {20, &last};
__device__ const Link first = {1, &middle};
__device__ unsigned* second = &counters[1];

extern "C" __global__ void k(const unsigned* in, unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned sum = primes[in[i] % 6] + counters[in[i] % 5] + second[1];
  sum += static_cast<unsigned>(static_cast<int>(halves[in[i] % 3] * 4) + bytes[in[i] % 4]);
  sum += static_cast<unsigned>(tenths[i % 2] * 10000.0f + 0.5f);
  for (const char* c = words[i % 2]; *c; ++c) sum += static_cast<unsigned char>(*c);
  for (const Link* l = &first; l; l = l->next) sum += l->value;
  out[i] = sum;
}
