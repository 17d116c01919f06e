#!/usr/bin/env bash
# Makes the PTX beside this folder from the sources in it: tests/data/ptx/source/make.sh
# Needs nvcc, libnvrtc (nvrtc.cc says how), clang and llc with NVPTX. What it prints is checked in.
set -euo pipefail
cd "$(dirname "$0")"
nvcc=${NVCC:-/usr/local/cuda/bin/nvcc} clang=${CLANG:-clang} llc=${LLC:-llc} out=..

ptx() { "$nvcc" -ptx -std=c++17 "${@:3}" -o "$out/$1.$2.ptx" "$1.cu"; }
for name in recursion structs pointers virtuals tables switches local wide reduce messages; do
  ptx $name sm_75_O3 -arch=compute_75
done
for name in recursion structs pointers virtuals tables local wide; do
  ptx $name sm_90_G -arch=compute_90 -G
done
for name in structs switches local messages; do ptx $name sm_120_O1 -arch=compute_120 -Xcicc -O1; done
for name in pointers tables virtuals; do ptx $name sm_80_rdc -arch=compute_80 -rdc=true -lineinfo; done
for name in reduce wide; do ptx $name sm_100_fast -arch=compute_100 -use_fast_math; done

c++ -std=c++17 -I"$(dirname "$nvcc")/../include" nvrtc.cc -o /tmp/nvrtc_ptx -L"$(dirname "$nvcc")/../lib64" -lnvrtc \
  -Wl,-rpath,"$(dirname "$nvcc")/../lib64"
for name in recursion structs switches wide; do /tmp/nvrtc_ptx $name.cu compute_89 > $out/$name.nvrtc.ptx; done
for name in tables local; do /tmp/nvrtc_ptx $name.cu compute_90 -G > $out/$name.nvrtc_G.ptx; done

for level in O0 O2; do
  "$clang" --target=nvptx64-nvidia-cuda -$level -Xclang -disable-O0-optnone -ffreestanding -S -emit-llvm scalar.c \
    -o /tmp/scalar.ll
  echo '!nvvm.annotations = !{!900}
!900 = !{void (i32*, i32*, i32)* @k, !"kernel", i32 1}' >> /tmp/scalar.ll
  for sm in sm_50 sm_80; do
    "$llc" -march=nvptx64 -mcpu=$sm -$level /tmp/scalar.ll -o $out/scalar.llvm_${sm}_$level.ptx
  done
done

# Debug information names files by their paths; the folder of a checkout is nobody's business.
sed -i "s#$PWD/##" $out/*.ptx
