#include "src/runtime/lt_multiplier.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ptxgen/strings.h"

namespace ptxgen::internal {
namespace {

// An object of the library's, which ends with this one.
template <class T>
class Owned {
 public:
  explicit Owned(LtStatus (*destroy)(T)) : destroy_(destroy) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (object_ != nullptr) destroy_(object_);
  }
  T* out() { return &object_; }
  T get() const { return object_; }

 private:
  LtStatus (*destroy_)(T);
  T object_ = nullptr;
};

// The largest power of two, at most 256, that divides the address.
u32 alignment_of(u64 address) {
  return static_cast<u32>(1) << std::min(std::countr_zero(address | 256), 8);
}

void* pointer(u64 address) {
  return reinterpret_cast<void*>(address);
}

const char* text_of(LtType type) {
  return type == LtType::kF32 ? "f32" : type == LtType::kF16 ? "f16" : "e4m3";
}

bool read_emulated(void* device, u64 address, void* to, std::size_t bytes) {
  return static_cast<Backend*>(device)->copy_out(to, address, bytes, nullptr).ok();
}
bool write_emulated(void* device, u64 address, const void* from, std::size_t bytes) {
  return static_cast<Backend*>(device)->copy_in(address, from, bytes, nullptr).ok();
}

}  // namespace

std::string LtProduct::to_string() const {
  return str_cat("cublaslt m=", m, " n=", n, " k=", k, " type=", text_of(type));
}

// The library's matrices lie column after column: its D is c transposed, n by m, its A is w transposed, its B
// is a.
class LtMultiplier::Description {
 public:
  explicit Description(const CublasLt& lt)
      : lt_(lt),
        desc_(lt.cublasLtMatmulDescDestroy),
        w_(lt.cublasLtMatrixLayoutDestroy),
        a_(lt.cublasLtMatrixLayoutDestroy),
        c_(lt.cublasLtMatrixLayoutDestroy) {}

  absl::Status make(const LtProduct& p) {
    const bool on_device = p.type == LtType::kF16 && p.a_scale != 0;
    absl::Status s = lt_.status(lt_.cublasLtMatmulDescCreate(desc_.out(), LtCompute::kF32, LtType::kF32),
                                "describing a product");
    if (s.ok()) s = set(LtAttribute::kTransA, kLtTranspose);
    if (s.ok() && on_device) s = set(LtAttribute::kPointerMode, kLtPointersOnDevice);
    if (s.ok() && !on_device && p.w_scale) s = set(LtAttribute::kAScale, pointer(p.w_scale));
    if (s.ok() && !on_device && p.a_scale) s = set(LtAttribute::kBScale, pointer(p.a_scale));
    if (s.ok()) s = layout(w_, p.type, p.k, p.n, p.k);
    if (s.ok()) s = layout(a_, p.type, p.k, p.m, p.k);
    if (s.ok()) s = layout(c_, LtType::kF32, p.n, p.m, p.ldc);
    return s;
  }

  LtMatmulDesc desc() const { return desc_.get(); }
  LtLayout w() const { return w_.get(); }
  LtLayout a() const { return a_.get(); }
  LtLayout c() const { return c_.get(); }

 private:
  template <class T>
  absl::Status set(LtAttribute attribute, const T& value) {
    return lt_.status(lt_.cublasLtMatmulDescSetAttribute(desc_.get(), attribute, &value, sizeof(value)),
                      "describing a product");
  }
  absl::Status layout(Owned<LtLayout>& layout, LtType type, u64 rows, u64 columns, u64 leading) {
    return lt_.status(
        lt_.cublasLtMatrixLayoutCreate(layout.out(), type, rows, columns, static_cast<std::int64_t>(leading)),
        "describing a matrix");
  }

  const CublasLt& lt_;
  Owned<LtMatmulDesc> desc_;
  Owned<LtLayout> w_, a_, c_;
};

template <class Work>
absl::Status LtMultiplier::enqueue(Handle stream, Work work) {
  return device_->backend().enqueue(stream, [this, self = weak_from_this().lock(), work = std::move(work)] {
    if (lt_.emulated_memory == nullptr) return work();
    const bool emulated = device_->backend().properties().kind == DeviceKind::kEmulator;
    const EmulatedMemory memory = {&device_->backend(), read_emulated, write_emulated};
    lt_.emulated_memory(emulated ? &memory : nullptr);
    const absl::Status status = work();
    lt_.emulated_memory(nullptr);
    return status;
  });
}

absl::StatusOr<std::shared_ptr<LtMultiplier>> LtMultiplier::create(const CublasLt& lt,
                                                                   std::shared_ptr<DeviceState> device) {
  std::shared_ptr<LtMultiplier> made(new LtMultiplier(lt, std::move(device)));
  const absl::Status s = made->enqueue(
      nullptr, [&] { return lt.status(lt.cublasLtCreate(&made->handle_), "beginning with cuBLASLt"); });
  if (!s.ok()) return s;
  return made;
}

LtMultiplier::~LtMultiplier() {
  if (handle_ == nullptr) return;
  device_->release([&lt = lt_, handle = handle_](Backend& backend) {
    (void)backend.enqueue(nullptr, [&] { return lt.status(lt.cublasLtDestroy(handle), "ending"); });
  });
}

absl::StatusOr<LtAlgo> LtMultiplier::ask(const Key& key, const Description& description) const {
  Owned<LtPreference> preference(lt_.cublasLtMatmulPreferenceDestroy);
  absl::Status s =
      lt_.status(lt_.cublasLtMatmulPreferenceCreate(preference.out()), "asking for an algorithm");
  const auto prefer = [&](LtPreferenceAttribute attribute, const auto& value) {
    if (!s.ok()) return;
    s = lt_.status(
        lt_.cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)),
        "asking for an algorithm");
  };
  prefer(LtPreferenceAttribute::kMaxWorkspaceBytes, kWorkspaceBytes);
  prefer(LtPreferenceAttribute::kAlignmentA, key.w_alignment);
  prefer(LtPreferenceAttribute::kAlignmentB, key.a_alignment);
  prefer(LtPreferenceAttribute::kAlignmentC, key.c_alignment);
  prefer(LtPreferenceAttribute::kAlignmentD, key.c_alignment);
  if (!s.ok()) return s;
  LtHeuristicResult result = {};
  int count = 0;
  s = lt_.status(lt_.cublasLtMatmulAlgoGetHeuristic(handle_, description.desc(), description.w(),
                                                    description.a(), description.c(), description.c(),
                                                    preference.get(), 1, &result, &count),
                 "asking for an algorithm");
  if (s.ok() && count > 0) s = lt_.status(result.state, "asking for an algorithm");
  if (s.ok() && count == 0) s = absl::UnimplementedError(str_cat(lt_.name, " has no algorithm"));
  if (!s.ok()) return s;
  return result.algo;
}

absl::StatusOr<LtAlgo> LtMultiplier::algorithm(const LtProduct& p) {
  constexpr std::size_t kMost = 4096;
  const Key key = {
      p.type, p.m, p.n, p.k, p.ldc, alignment_of(p.a), alignment_of(p.w), alignment_of(p.c), p.a_scale != 0};
  const std::lock_guard lock(mutex_);
  if (const auto found = algorithms_.find(key); found != algorithms_.end()) return found->second;
  Description description(lt_);
  if (absl::Status s = description.make(p); !s.ok()) return s;
  absl::StatusOr<LtAlgo> answer = absl::UnknownError("");
  const absl::Status asked = enqueue(nullptr, [&] {
    answer = ask(key, description);
    return absl::OkStatus();
  });
  if (!asked.ok()) return asked;
  if (!answer.ok() && !absl::IsUnimplemented(answer.status())) return answer;
  if (algorithms_.size() >= kMost) algorithms_.clear();
  return algorithms_.emplace(key, answer).first->second;
}

absl::Status LtMultiplier::multiply(Handle stream, const LtProduct& product, u64 workspace) {
  const absl::StatusOr<LtAlgo> algo = algorithm(product);
  if (!algo.ok())
    return absl::Status(algo.status().code(), str_cat(product.to_string(), ": ", algo.status().message()));
  return enqueue(stream, [this, product, workspace, stream, algo = *algo] {
    Description description(lt_);
    if (absl::Status s = description.make(product); !s.ok()) return s;
    const f32 one = 1, zero = 0;
    const bool on_device = product.type == LtType::kF16 && product.a_scale != 0;
    const void* alpha = on_device ? pointer(product.a_scale) : &one;
    const void* beta = on_device ? pointer(product.zero) : &zero;
    return lt_.status(lt_.cublasLtMatmul(handle_, description.desc(), alpha, pointer(product.w),
                                         description.w(), pointer(product.a), description.a(), beta,
                                         pointer(product.c), description.c(), pointer(product.c),
                                         description.c(), &algo, pointer(workspace), kWorkspaceBytes, stream),
                      product.to_string());
  });
}

absl::Status LtMultiplier::copy_columns(Handle stream, u64 from, u32 ld, u64 to, u32 m, u32 n) {
  return enqueue(stream, [=, this] {
    constexpr std::string_view kDoing = "copying columns";
    Owned<LtTransformDesc> desc(lt_.cublasLtMatrixTransformDescDestroy);
    Owned<LtLayout> padded(lt_.cublasLtMatrixLayoutDestroy), plain(lt_.cublasLtMatrixLayoutDestroy);
    absl::Status s = lt_.status(lt_.cublasLtMatrixTransformDescCreate(desc.out(), LtType::kF32), kDoing);
    if (s.ok()) s = lt_.status(lt_.cublasLtMatrixLayoutCreate(padded.out(), LtType::kF32, n, m, ld), kDoing);
    if (s.ok()) s = lt_.status(lt_.cublasLtMatrixLayoutCreate(plain.out(), LtType::kF32, n, m, n), kDoing);
    if (!s.ok()) return s;
    const f32 one = 1, zero = 0;
    return lt_.status(lt_.cublasLtMatrixTransform(handle_, desc.get(), &one, pointer(from), padded.get(),
                                                  &zero, nullptr, nullptr, pointer(to), plain.get(), stream),
                      kDoing);
  });
}

}  // namespace ptxgen::internal
