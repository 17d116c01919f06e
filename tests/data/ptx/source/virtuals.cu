// Virtual functions: tables of addresses in memory, objects on the stack.
struct Shape {
  __device__ virtual unsigned area() const = 0;
  __device__ virtual unsigned scaled(unsigned by) const { return area() * by; }
};
struct Square : Shape {
  unsigned side;
  __device__ explicit Square(unsigned s) : side(s) {}
  __device__ unsigned area() const override { return side * side; }
};
struct Box : Shape {
  unsigned x, y;
  __device__ Box(unsigned a, unsigned b) : x(a), y(b) {}
  __device__ unsigned area() const override { return x * y; }
  __device__ unsigned scaled(unsigned by) const override { return area() + by; }
};
__device__ __noinline__ unsigned measure(const Shape* shape, unsigned by) { return shape->scaled(by) + shape->area(); }

extern "C" __global__ void k(const unsigned* in, unsigned* out, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Square square(in[i] & 0xff);
  Box box(in[i] & 0xf, i);
  const Shape* shape = in[i] % 2 ? static_cast<const Shape*>(&square) : &box;
  out[i] = measure(shape, 3);
}
