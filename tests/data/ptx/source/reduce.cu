// A sum over each CTA: shuffles, shared memory, votes, an atomic. out[i] is the sum and the thread's share of it.
__device__ unsigned total;
extern "C" __global__ void k(const unsigned* in, unsigned* out, unsigned n) {
  __shared__ unsigned partial[32];
  extern __shared__ unsigned staged[];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  unsigned value = i < n ? in[i] : 0;
  staged[threadIdx.x] = value;
  for (unsigned by = 16; by; by /= 2) value += __shfl_xor_sync(~0u, value, by);
  if (lane == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  unsigned sum = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += partial[w];
  const unsigned odd = __ballot_sync(~0u, staged[blockDim.x - 1 - threadIdx.x] & 1);
  if (threadIdx.x == 0) atomicAdd(&total, sum);
  if (i < n) out[i] = sum + __popc(odd);
}
