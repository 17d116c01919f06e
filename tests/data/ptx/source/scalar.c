/* Plain C for LLVM's back end: a structure returned in memory, a call through a pointer, a recursive one, a
   variable-length loop, a switch. `k` is made a kernel by nvvm.annotations in scalar.sh's last step. */
typedef unsigned int u32;
typedef struct { u32 a, b, c; } Triple;

__attribute__((noinline)) static Triple split(u32 x) {
  Triple t = {x & 0xffu, x >> 8 & 0xffu, x >> 16};
  return t;
}
__attribute__((noinline)) static u32 gcd(u32 a, u32 b) { return b == 0 ? a : gcd(b, a % b); }
__attribute__((noinline)) static u32 first(const Triple* t) { return t->a * 3u; }
__attribute__((noinline)) static u32 second(const Triple* t) { return t->b + t->c; }
static u32 (*const table[2])(const Triple*) = {first, second};

__attribute__((noinline)) static u32 step(u32 kind, u32 x) {
  switch (kind % 6u) {
    case 0: return x + 1u;
    case 1: return x * 3u;
    case 2: return x ^ 0x55u;
    case 3: return x >> 1;
    case 4: return ~x;
    default: return x << 2;
  }
}

void k(const u32* in, u32* out, u32 n) {
  u32 i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
  if (i >= n) return;
  Triple t = split(in[i]);
  u32 x = gcd(in[i] % 1000u, i + 1u) + table[in[i] & 1u](&t);
  u32 history[4] = {1, 2, 3, 4};
  for (u32 j = 0; j < in[i] % 9u; ++j) {
    x = step(x + j, x);
    history[x % 4u] += x;
  }
  out[i] = x + history[i % 4u];
}
