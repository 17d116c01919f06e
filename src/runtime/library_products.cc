#include "src/runtime/library_products.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ptxgen/environment.h"
#include "ptxgen/kernels.h"
#include "ptxgen/strings.h"
#include "src/runtime/unprepared.h"

namespace ptxgen::internal {
namespace {

constexpr u32 kE4m3Rows = 16;  // of which the library takes a multiple
constexpr std::size_t kAligned = 16;

constexpr u64 rounded(u64 value, u64 multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

bool dequantises_each_time(GemmPath path) {
  return path == GemmPath::kSgemm || path == GemmPath::kDequantHgemm;
}

// What a path makes of weights, and of activations.
ElementType type_of(GemmPath path) {
  if (path == GemmPath::kSgemm) return ElementType::kF32;
  return path == GemmPath::kFp8 ? ElementType::kE4m3 : ElementType::kF16;
}
LtType lt_type(GemmPath path) {
  if (path == GemmPath::kSgemm) return LtType::kF32;
  return path == GemmPath::kFp8 ? LtType::kE4m3 : LtType::kF16;
}
Activations rows_of(GemmPath path) {
  return path == GemmPath::kFp8 ? Activations::kE4m3 : Activations::kF16Rows;
}
// What dequantisation gives on the way there.
ElementType part_type(GemmPath path) {
  return type_of(path) == ElementType::kF16 ? ElementType::kF16 : ElementType::kF32;
}

absl::StatusOr<u64> budget_of(const Device& device, std::optional<u64> asked) {
  if (asked) return *asked;
  const absl::StatusOr<std::optional<u64>> written = env::copies_max_bytes();
  if (!written.ok()) return written.status();
  const u64 memory = device.properties().memory_bytes;
  return written->value_or(memory == 0 ? ~u64{0} : memory / 2);
}

u64 address_of_row(const WeightMatrix& weights, u32 row) {
  const FormatInfo& f = info(weights.format());
  return weights.address() + u64{row} * weights.k() / f.block_values * f.block_bytes;
}

// Activations, and weights of path fp8.
constexpr Absmax kAbsmaxOfRows = {.from = ElementType::kF32, .parts = kAbsmaxParts};
constexpr Convert convert_rows(ElementType to) {
  return {ElementType::kF32, to, ConvertScale::kDevice, kAbsmaxParts};
}
constexpr Convert kConvertWeights = {ElementType::kF32, ElementType::kE4m3, ConvertScale::kDevice};

// Values by the scale that `scalars` has.
Convert::Args scaled(u64 src, u64 dst, u64 count, u64 scalars) {
  Convert::Args args;
  args.src = {src}, args.dst = {dst}, args.count = count;
  args.absmax = {scalars + kAbsmaxAt}, args.scale = {scalars + kScaleAt};
  return args;
}

// As many rows of weights as half of the L2 has room for, beside the operands that pass through the rest.
u32 rows_at_once(const DeviceProperties& device, u32 n, u32 k, ElementType type) {
  constexpr u64 kEmulatedL2Bytes = 1 << 20, kMultiple = 64;
  const u64 l2 = device.l2_bytes ? device.l2_bytes : kEmulatedL2Bytes;
  const u64 rows = l2 / 2 / (u64{k} * bytes_of(type));
  return static_cast<u32>(std::min<u64>(n, std::max(rows / kMultiple * kMultiple, kMultiple)));
}

}  // namespace

std::vector<KernelType> library_kernels(const DeviceProperties& device, GemmPath path,
                                        const GemmShape& shape) {
  std::vector<KernelType> all;
  const ElementType type = type_of(path), part = part_type(path);
  const u32 at_once = rows_at_once(device, shape.n, shape.k, part);
  const auto dequant = [&](u32 rows) {
    all.push_back(Dequant{.format = shape.format, .k = shape.k, .n = rows, .out_type = part});
  };
  dequant(at_once);
  if (shape.n % at_once != 0) dequant(shape.n % at_once);
  if (path == GemmPath::kHgemm && at_once != shape.n) dequant(shape.n);
  if (path == GemmPath::kSgemm) return all;
  all.push_back(Absmax{part});
  all.push_back(kAbsmaxOfRows);
  all.push_back(convert_rows(type));
  if (path == GemmPath::kFp8) all.push_back(kConvertWeights);
  return all;
}

LibraryProducts::LibraryProducts(KernelCache& cache, ScratchPool& scratch, const std::string& library,
                                 std::optional<u64> copies_max_bytes, bool dependent)
    : cache_(cache),
      library_(library),
      copies_max_bytes_(budget_of(cache.device(), copies_max_bytes)),
      dependent_(dependent),
      copies_(cache.device(), copies_max_bytes_.value_or(0)),
      scratch_(scratch) {}

// ---- The library, and launches

absl::StatusOr<const CublasLt*> LibraryProducts::library() const {
  const bool emulated = cache_.device().kind() == DeviceKind::kEmulator;
  const auto refuse = [](std::string_view what) {
    return absl::FailedPreconditionError(str_cat("an emulated device cannot run ", what,
                                                 ": use a CUDA device, or name a stand-in that exports "
                                                 "ptxgen_emulated_memory in ",
                                                 env::kCublasLt.name));
  };
  if (emulated && library_.empty() && env::text(env::kCublasLt).empty()) return refuse("libcublasLt");
  const absl::StatusOr<const CublasLt*> lt = open_cublaslt(library_);
  if (lt.ok() && emulated && !(*lt)->emulated_memory) return refuse((*lt)->name);
  return lt;
}

absl::StatusOr<std::shared_ptr<LtMultiplier>> LibraryProducts::multiplier() {
  const std::lock_guard lock(mutex_);
  if (multiplier_ != nullptr) return multiplier_;
  if (!copies_max_bytes_.ok()) return copies_max_bytes_.status();
  const absl::StatusOr<const CublasLt*> lt = library();
  if (!lt.ok()) return lt.status();
  const std::shared_ptr<DeviceState>& device = DeviceAccess::state(cache_.device());
  if (absl::Status s = device->refuse_while_recording("beginning with cuBLASLt"); !s.ok())
    return unprepared(s);
  absl::StatusOr<Buffer> zero = cache_.device().allocate(sizeof(f32), "a zero");
  if (!zero.ok()) return zero.status();
  if (absl::Status s = zero->fill(0); !s.ok()) return s;
  absl::StatusOr<std::shared_ptr<LtMultiplier>> made = LtMultiplier::create(**lt, device);
  if (!made.ok()) return made;
  zero_ = *std::move(zero);
  multiplier_ = *made;
  return made;
}

bool LibraryProducts::recording() const {
  return DeviceAccess::state(cache_.device())->this_thread_records();
}

template <class D>
absl::Status LibraryProducts::launch(const Stream& stream, const D& kernel, const typename D::Args& args,
                                     std::vector<std::string>& kernels) {
  const absl::StatusOr<CompiledKernelOf<D>> compiled = cache_.get(kernel);
  if (!compiled.ok()) return unprepared(compiled.status());
  kernels.push_back(compiled->descriptor().text());
  const bool early = dependent_ && compiled->generated().waits_for_predecessor;
  return compiled->launch(stream, args, {.programmatic_dependent_launch = early});
}

absl::Status LibraryProducts::zero(const Stream& stream, u64 address, u64 bytes) const {
  return DeviceAccess::state(cache_.device())->backend().fill(address, 0, bytes, stream.native());
}

// ---- Parts and scratch

std::vector<LibraryProducts::Part> LibraryProducts::parts_of(const WeightMatrix& weights,
                                                             ElementType type) const {
  const u32 at_once = rows_at_once(cache_.device().properties(), weights.n(), weights.k(), type);
  std::vector<Part> parts;
  for (u32 first = 0; first < weights.n(); first += at_once)
    parts.push_back({first, std::min(at_once, weights.n() - first)});
  return parts;
}

LibraryProducts::Layout LibraryProducts::layout_of(GemmPath path, const GemmShape& shape, bool padded) const {
  constexpr u64 kPiece = 256;
  Layout at;
  const auto take = [&](u64 bytes) { return std::exchange(at.bytes, at.bytes + rounded(bytes, kPiece)); };
  at.workspace = take(LtMultiplier::kWorkspaceBytes);
  if (shape.a_type == Activations::kF32 && path != GemmPath::kSgemm)
    at.rows = take(scaled_rows_bytes(rows_of(path), shape.k, shape.m));
  if (dequantises_each_time(path)) {
    const ElementType type = part_type(path);
    at.part = take(u64{rows_at_once(cache_.device().properties(), shape.n, shape.k, type)} * shape.k *
                   bytes_of(type));
  }
  if (padded) at.padded = take(u64{shape.m} * rounded(shape.n, kE4m3Rows) * sizeof(f32));
  return at;
}

absl::Status LibraryProducts::prepare(GemmPath path, const GemmShape& shape) {
  if (absl::Status s = multiplier().status(); !s.ok()) return s;
  const bool padded = path == GemmPath::kFp8 && shape.n % kE4m3Rows != 0;
  return scratch_.prepare(layout_of(path, shape, padded).bytes);
}

// ---- Activations and weights

absl::Status LibraryProducts::scale_rows(const Stream& stream, u64 x, u64 count, Activations type, u64 to,
                                         std::vector<std::string>& kernels) {
  const ElementType into = type == Activations::kE4m3 ? ElementType::kE4m3 : ElementType::kF16;
  const Absmax::Args largest = {.src = {x}, .absmax = {to + kAbsmaxAt}, .count = count};
  if (absl::Status s = launch(stream, kAbsmaxOfRows, largest, kernels); !s.ok()) return s;
  return launch(stream, convert_rows(into), scaled(x, to + kRowsAt, count, to), kernels);
}

absl::Status LibraryProducts::dequantise(const Stream& stream, const WeightMatrix& weights, Part part,
                                         ElementType type, u64 to, std::vector<std::string>& kernels) {
  const Dequant kernel = {.format = weights.format(), .k = weights.k(), .n = part.rows, .out_type = type};
  return launch(stream, kernel, {.weights = {address_of_row(weights, part.first)}, .out = {to}}, kernels);
}

// Of all values, dequantised to f16 a part at a time.
absl::StatusOr<f32> LibraryProducts::largest_as_f16(const Stream& stream, const WeightMatrix& weights) {
  constexpr ElementType kF16 = ElementType::kF16;
  const u64 k = weights.k();
  const u32 at_once = rows_at_once(cache_.device().properties(), weights.n(), weights.k(), kF16);
  absl::StatusOr<Scratch> scratch = scratch_.take(stream, kRowsAt + at_once * k * sizeof(f16));
  if (!scratch.ok()) return scratch.status();
  const u64 absmax = scratch->address() + kAbsmaxAt, part_at = scratch->address() + kRowsAt;
  std::vector<std::string> kernels;
  absl::Status s = zero(stream, absmax, sizeof(f32));
  for (const Part& part : parts_of(weights, kF16)) {
    if (s.ok()) s = dequantise(stream, weights, part, kF16, part_at, kernels);
    const Absmax::Args args = {.src = {part_at}, .absmax = {absmax}, .count = part.rows * k};
    if (s.ok()) s = launch(stream, Absmax{kF16}, args, kernels);
  }
  f32 largest = 0;
  Backend& backend = DeviceAccess::state(cache_.device())->backend();
  if (s.ok()) s = backend.copy_out(&largest, absmax, sizeof(largest), stream.native());
  s.Update(stream.synchronize());
  if (!s.ok()) return s;
  return largest;
}

// Values beyond f16 would become infinities, and products of them nothing. Asked once a matrix.
absl::Status LibraryProducts::check_f16(const Stream& stream, const WeightMatrix& weights) {
  std::optional<f32> largest = copies_.largest(weights);
  if (!largest && recording()) {
    return absl::FailedPreconditionError(
        "whether f16 has the values of these weights is not known, and a thread that records a stream cannot "
        "wait for the answer: call Executor::prepare_weights() before begin_capture()");
  }
  if (!largest) {
    const absl::StatusOr<f32> found = largest_as_f16(stream, weights);
    if (!found.ok()) return found.status();
    copies_.set_largest(weights, *found);
    largest = *found;
  }
  if (std::isfinite(*largest)) return absl::OkStatus();
  return absl::OutOfRangeError("the weights have values beyond f16, which would become infinities");
}

absl::Status LibraryProducts::fill_f16(const Stream& stream, const WeightMatrix& weights, const Buffer& to) {
  std::vector<std::string> kernels;
  absl::Status s =
      dequantise(stream, weights, {0, weights.n()}, ElementType::kF16, to.address() + kRowsAt, kernels);
  s.Update(stream.synchronize());
  return s;
}

absl::Status LibraryProducts::fill_e4m3(const Stream& stream, const WeightMatrix& weights, const Buffer& to) {
  const u64 k = weights.k(), begin = to.address(), rows = begin + kRowsAt;
  absl::StatusOr<Scratch> scratch = scratch_.take(
      stream, rows_at_once(cache_.device().properties(), weights.n(), weights.k(), ElementType::kF32) * k *
                  sizeof(f32));
  if (!scratch.ok()) return scratch.status();
  const u64 part_at = scratch->address();
  std::vector<std::string> kernels;
  absl::Status s = zero(stream, begin, kRowsAt);
  const std::vector<Part> parts = parts_of(weights, ElementType::kF32);
  for (const Part& part : parts) {
    if (s.ok()) s = dequantise(stream, weights, part, ElementType::kF32, part_at, kernels);
    if (s.ok())
      s = launch(stream, Absmax{}, {.src = {part_at}, .absmax = {begin + kAbsmaxAt}, .count = part.rows * k},
                 kernels);
  }
  for (const Part& part : parts) {
    if (s.ok()) s = dequantise(stream, weights, part, ElementType::kF32, part_at, kernels);
    if (s.ok())
      s = launch(stream, kConvertWeights, scaled(part_at, rows + part.first * k, part.rows * k, begin),
                 kernels);
  }
  const u64 past = rounded(weights.n(), kE4m3Rows) - weights.n();
  if (s.ok() && past > 0) s = zero(stream, rows + weights.n() * k, past * k);
  s.Update(stream.synchronize());
  return s;
}

// The copy that a path reads; nullptr: it reads none.
absl::StatusOr<WeightCopyPtr> LibraryProducts::weights_for(const Stream& stream, GemmPath path,
                                                           const WeightMatrix& weights) {
  if (type_of(path) == ElementType::kF16) {
    if (absl::Status s = check_f16(stream, weights); !s.ok()) return s;
  }
  if (dequantises_each_time(path)) return nullptr;
  const ElementType type = type_of(path);
  if (WeightCopyPtr copy = copies_.find(weights, type)) return copy;
  if (recording()) {
    return absl::FailedPreconditionError(str_cat(
        "there is no copy of the weights as ", detail::field_text(type), ", and none can be made ",
        "while this thread records a stream: call Executor::prepare_weights() before begin_capture()"));
  }
  const u64 rows = path == GemmPath::kFp8 ? rounded(weights.n(), kE4m3Rows) : weights.n();
  return copies_.find_or_make(
      weights, type, kRowsAt + rows * weights.k() * bytes_of(type), [&](const Buffer& to) {
        return type == ElementType::kF16 ? fill_f16(stream, weights, to) : fill_e4m3(stream, weights, to);
      });
}

absl::Status LibraryProducts::prepare_weights(const Stream& stream, const WeightMatrix& weights,
                                              GemmPath path) {
  if (!copies_max_bytes_.ok()) return copies_max_bytes_.status();
  return weights_for(stream, path, weights).status();
}

// ---- Products

absl::Status LibraryProducts::multiply_parts(const Stream& stream, const LibraryProduct& p, LtMultiplier& by,
                                             LtProduct whole, u64 scratch, const Layout& at,
                                             std::vector<std::string>& kernels) {
  const u64 c = whole.c;
  for (const Part& part : parts_of(p.weights, part_type(p.path))) {
    absl::Status s = dequantise(stream, p.weights, part, part_type(p.path), scratch + at.part, kernels);
    whole.w = scratch + at.part;
    whole.n = part.rows;
    whole.c = c + u64{part.first} * sizeof(f32);
    if (s.ok()) s = by.multiply(stream.native(), whole, scratch + at.workspace);
    if (!s.ok()) return s;
    kernels.push_back(whole.to_string());
  }
  return absl::OkStatus();
}

absl::Status LibraryProducts::multiply(const Stream& stream, const LibraryProduct& p, LtMultiplier& by,
                                       LtProduct whole, u64 scratch, const Layout& at,
                                       std::vector<std::string>& kernels) {
  if (p.path != GemmPath::kSgemm) {
    u64 rows = p.a;
    if (p.a_type == Activations::kF32) {
      rows = scratch + at.rows;
      const u64 count = u64{p.m} * p.weights.k();
      if (absl::Status s = scale_rows(stream, p.a, count, rows_of(p.path), rows, kernels); !s.ok()) return s;
    }
    whole.a = rows + kRowsAt;
    whole.a_scale = rows + kScaleAt;
    whole.zero = zero_.address();
  }
  if (dequantises_each_time(p.path)) return multiply_parts(stream, p, by, whole, scratch, at, kernels);
  const u32 n = p.weights.n();
  if (at.padded != 0) {
    whole.n = whole.ldc = static_cast<u32>(rounded(n, kE4m3Rows));
    whole.c = scratch + at.padded;
  }
  if (absl::Status s = by.multiply(stream.native(), whole, scratch + at.workspace); !s.ok()) return s;
  kernels.push_back(whole.to_string());
  if (at.padded == 0) return absl::OkStatus();
  kernels.push_back(str_cat("cublaslt copy m=", p.m, " n=", n));
  return by.copy_columns(stream.native(), whole.c, whole.ldc, p.c, p.m, n);
}

absl::StatusOr<GemmReport> LibraryProducts::run(const Stream& stream, const LibraryProduct& p) {
  const absl::StatusOr<std::shared_ptr<LtMultiplier>> by = multiplier();
  if (!by.ok()) return by.status();
  const absl::StatusOr<WeightCopyPtr> copy = weights_for(stream, p.path, p.weights);
  if (!copy.ok()) return copy.status();
  const u32 n = p.weights.n(), k = p.weights.k();
  const bool padded = p.path == GemmPath::kFp8 && (n % kE4m3Rows != 0 || p.c % kAligned != 0);
  const Layout at = layout_of(p.path, {p.weights.format(), n, k, p.m, p.a_type}, padded);
  absl::StatusOr<Scratch> scratch = scratch_.take(stream, at.bytes);
  if (!scratch.ok()) return scratch.status();
  LtProduct whole = {.type = lt_type(p.path), .m = p.m, .n = n, .k = k, .ldc = n, .a = p.a, .w = 0, .c = p.c};
  if (*copy != nullptr) {
    whole.w = (*copy)->memory().address() + kRowsAt;
    if (p.path == GemmPath::kFp8) whole.w_scale = (*copy)->memory().address() + kScaleAt;
  }
  GemmReport report = {detail::field_text(p.path), "", {}, at.bytes};
  absl::Status s = multiply(stream, p, **by, whole, scratch->address(), at, report.kernels);
  // Even of one that failed, a part may have been added.
  s.Update(scratch->done(stream));
  if (*copy != nullptr) s.Update((*copy)->read_by(stream, recording()));
  if (!s.ok()) return s;
  return report;
}

}  // namespace ptxgen::internal
