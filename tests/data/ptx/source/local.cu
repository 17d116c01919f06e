// Arrays of the thread's own that are indexed at run time: a sort, and a stack of ranges.
__device__ __noinline__ void sort(unsigned char* values, int count) {
  int stack[16], top = 0;
  stack[top++] = 0;
  stack[top++] = count - 1;
  while (top) {
    const int high = stack[--top], low = stack[--top];
    if (low >= high) continue;
    int place = low;
    for (int j = low; j < high; ++j) {
      if (values[j] < values[high]) {
        const unsigned char t = values[j];
        values[j] = values[place];
        values[place++] = t;
      }
    }
    const unsigned char t = values[high];
    values[high] = values[place];
    values[place] = t;
    stack[top++] = low;
    stack[top++] = place - 1;
    stack[top++] = place + 1;
    stack[top++] = high;
  }
}

extern "C" __global__ void k(const unsigned* in, unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned char values[8];
  for (int j = 0; j < 8; ++j) values[j] = static_cast<unsigned char>(in[i] * (j + 1) >> (j % 5));
  sort(values, 8);
  unsigned hash = 0;
  for (int j = 0; j < 8; ++j) hash = hash * 31 + values[j];
  out[i] = hash;
}
