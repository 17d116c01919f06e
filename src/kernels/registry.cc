#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "ptxgen/convert.h"
#include "ptxgen/gemm.h"
#include "ptxgen/kernels.h"

namespace ptxgen {
namespace {

template <class D>
absl::StatusOr<KernelType> make_kernel(const KernelType& defaults, const FieldValues& values) {
  D descriptor = *defaults.get_if<D>();
  for (const auto& [name, text] : values) {
    if (absl::Status status = set_field(descriptor, name, text); !status.ok()) return status;
  }
  KernelType kernel(descriptor);
  if (absl::Status status = kernel->validate(); !status.ok()) return status;
  return kernel;
}

template <class D>
KernelFamily family(const D& defaults, std::string summary) {
  const KernelType kernel(defaults);
  return {.name = kernel->name(),
          .summary = std::move(summary),
          .original_names = {},
          .fields = field_infos(defaults),
          .defaults = kernel,
          .maker = &make_kernel<D>};
}

// A kernel of the Rust original: a family with constants that make the kernel what it is, and with others to
// begin with. A name that is the family's own leaves all of them to choose.
struct Original {
  std::string_view name;
  std::string_view family;
  FieldValues given = {};
  FieldValues start = {};
};

std::vector<Original> originals() {
  const auto schedule = [](std::string value) { return FieldValues{{"schedule", std::move(value)}}; };
  return {{"Q4KDequant", "q4k_dequant"},
          {"Q6KDequant", "q6k_dequant"},
          {"Q4KDequantFp16", "q4k_dequant", {{"out_type", "f16"}}},
          {"Q4KGemv", "q4k_gemv", schedule("warp")},
          {"Q5KGemv", "q5k_gemv", schedule("warp")},
          {"Q6KGemv", "q6k_gemv", schedule("warp")},
          {"Q8_0Gemv", "q8_0_gemv", schedule("warp")},
          {"Q5_0Gemv", "q5_0_gemv", schedule("warp")},
          {"Q4_0Gemv", "q4_0_gemv", schedule("warp")},
          {"Q4_1Gemv", "q4_1_gemv", schedule("warp")},
          {"TiledQ4KGemv", "q4k_gemv", schedule("tiled")},
          {"ChunkedTiledQ4KGemv", "q4k_gemv", schedule("chunked_tiled")},
          {"CoalescedQ4KGemv", "q4k_gemv", schedule("coalesced")},
          {"CoalescedQ6KGemv", "q6k_gemv", schedule("coalesced")},
          {"WideQ4KGemv", "q4k_gemv", schedule("wide")},
          {"VectorizedQ4KGemv", "q4k_gemv", schedule("vectorized")},
          {"MwvQ4KGemv", "q4k_gemv", schedule("multi_warp")},
          {"MwvQ6KGemv", "q6k_gemv", schedule("multi_warp")},
          {"MwvDp4aQ4KGemv", "q4k_gemv", schedule("multi_warp_dp4a")},
          {"Dp4aQ6KGemv", "q6k_gemv", schedule("multi_warp_dp4a")},
          {"HwDp4aQ4KGemv", "q4k_gemv", schedule("half_warp_dp4a")},
          {"HwDp4aQ6KGemv", "q6k_gemv", schedule("half_warp_dp4a")},
          {"InlineQ8Dp4aQ4KGemv", "q4k_gemv", {{"schedule", "half_warp_dp4a"}, {"x_type", "f32"}}},
          {"BatchedQ4KGemv", "q4k_batched_gemv"},
          {"BatchedQ6KGemv", "q6k_batched_gemv"},
          {"BatchedHwDp4aQ4KGemv", "q4k_batched_gemv"},
          {"MultiWarpBatchedQ4KGemv", "q4k_batched_gemv"},
          {"FusedRmsNormQ4KGemv", "q4k_fused_gemv", {{"norm", "rms"}}},
          {"FusedGateUpSwigluHwDp4aQ4KGemv", "q4k_fused_gemv", {{"combine", "swiglu"}}, {{"n_b", "4096"}}},
          {"FusedKVHwDp4aQ4KGemv", "q4k_fused_gemv", {}, {{"n_b", "4096"}}},
          {"QuantizedGemmGgmlTiled", "q4k_gemm", schedule("tiled")},
          {"Dp4aQ4KGemm", "q4k_gemm", schedule("dp4a")},
          {"TensorCoreQ4KGemm", "q4k_gemm", schedule("wmma")},
          {"MultiWarpTensorCoreQ4KGemm", "q4k_gemm", schedule("wmma_multi_warp")},
          {"Q8Quantize", "quantize_q8_1"},
          {"f32_to_f16", "convert", {{"from", "f32"}, {"to", "f16"}, {"scale", "none"}}},
          {"f16_to_f32", "convert", {{"from", "f16"}, {"to", "f32"}, {"scale", "none"}}},
          {"f32_to_e4m3", "convert", {{"from", "f32"}, {"to", "e4m3"}, {"scale", "none"}}},
          {"f32_to_e4m3_scaled", "convert", {{"from", "f32"}, {"to", "e4m3"}, {"scale", "value"}}},
          {"f32_to_e4m3_device_scaled", "convert", {{"from", "f32"}, {"to", "e4m3"}, {"scale", "device"}}},
          {"f16_to_f32_act_scaled", "convert", {{"from", "f16"}, {"to", "f32"}, {"scale", "factor"}}},
          {"absmax_reduce", "absmax", {{"from", "f32"}}}};
}

// "q4k_dequant_fp16" for "Q4KDequantFp16".
std::string snake_case(std::string_view camel_case) {
  std::string name;
  for (std::size_t i = 0; i < camel_case.size(); ++i) {
    const auto lower = [&](std::size_t at) {
      return at < camel_case.size() && absl::ascii_islower(static_cast<unsigned char>(camel_case[at]));
    };
    const auto letter = static_cast<unsigned char>(camel_case[i]);
    const bool begins_word = i > 0 && absl::ascii_isupper(letter) && (lower(i - 1) || lower(i + 1));
    if (begins_word && name.back() != '_') name += '_';
    name += absl::ascii_tolower(letter);
  }
  return name;
}

// "schedule=warp x_type=f32"
std::string text_of(const FieldValues& values) {
  std::string text;
  for (const auto& [field, value] : values) str_append(&text, text.empty() ? "" : " ", field, "=", value);
  return text;
}

// The family under the original's name; what the original gives is no longer to choose.
absl::StatusOr<KernelFamily> alias(const Original& original, KernelFamily base) {
  FieldValues values = original.given;
  values.insert(values.end(), original.start.begin(), original.start.end());
  absl::StatusOr<KernelType> defaults = base.make(values);
  if (!defaults.ok()) return defaults.status();
  base.summary =
      values.empty() ? str_cat("another name of ", base.name) : str_cat(base.name, " with ", text_of(values));
  base.defaults = *std::move(defaults);
  for (FieldInfo& field : base.fields) {
    for (const auto& [name, value] : original.start) {
      if (field.name == name) field.default_value = value;
    }
  }
  const auto is_given = [&](const FieldInfo& field) {
    return std::any_of(original.given.begin(), original.given.end(),
                       [&](const auto& given) { return given.first == field.name; });
  };
  base.fields.erase(std::remove_if(base.fields.begin(), base.fields.end(), is_given), base.fields.end());
  base.name = snake_case(original.name);
  base.original_names = {std::string(original.name)};
  return base;
}

// Enters the original's name: with its family where both are called the same, else as an alias. A row that
// its family refuses enters nothing; the test of the registry looks for every name.
void add(const Original& original, std::vector<KernelFamily>& all) {
  const auto base = std::find_if(all.begin(), all.end(),
                                 [&](const KernelFamily& family) { return family.name == original.family; });
  if (base == all.end()) return;
  if (snake_case(original.name) == original.family) {
    base->original_names.emplace_back(original.name);
    if (!original.given.empty())
      str_append(&base->summary, "; ", original.name, " is ", text_of(original.given));
  } else if (absl::StatusOr<KernelFamily> named = alias(original, *base); named.ok()) {
    all.push_back(*std::move(named));
  }
}

std::vector<KernelFamily> make_families() {
  std::vector<KernelFamily> all;
  for (const FormatInfo& f : kFormats) {
    all.push_back(
        family(Dequant{.format = f.format}, str_cat("dequantises ", f.ggml_name, " blocks, row after row")));
  }
  for (const FormatInfo& f : kFormats) {
    all.push_back(family(Gemv{.format = f.format},
                         str_cat("multiplies a matrix of ", f.ggml_name, " blocks by a vector")));
  }
  for (const FormatInfo& f : kFormats) {
    all.push_back(family(BatchedGemv{.format = f.format},
                         str_cat("multiplies a matrix of ", f.ggml_name, " blocks by a few vectors")));
  }
  for (const FormatInfo& f : kFormats) {
    all.push_back(
        family(FusedGemv{.format = f.format, .format_b = f.format, .format_c = f.format},
               str_cat("multiplies up to three matrices of ", f.ggml_name, " blocks by one vector")));
  }
  for (const FormatInfo& f : kFormats) {
    all.push_back(family(Gemm{.format = f.format},
                         str_cat("multiplies a matrix of ", f.ggml_name, " blocks by any number of vectors")));
  }
  all.push_back(family(StageF16{}, "prepares activations as f16 for products on tensor cores"));
  all.push_back(family(QuantizeQ8_1{}, "quantises activations to int8, 32 values a block"));
  all.push_back(family(Convert{}, "converts numbers from one type to another, scaled where wanted"));
  all.push_back(family(Absmax{}, "finds the largest absolute value"));
  all.push_back(family(Copy{}, "copies memory, the yardstick for kernels bound by memory"));
  all.push_back(family(Read{}, "reads memory and keeps nothing, the floor for kernels that write little"));
  for (const Original& original : originals()) add(original, all);
  return all;
}

// How far `given` is from the beginning of `name` that is nearest to it: Levenshtein's distance, with the
// rest of the name for free, so that "q4kk" is near "q4k_dequant". Case and underscores do not count: ggml
// writes q4_K.
std::size_t distance(std::string_view name, std::string_view given) {
  const auto letters = [](std::string_view text) {
    std::string kept;
    for (const char c : text) {
      if (c != '_') kept += absl::ascii_tolower(static_cast<unsigned char>(c));
    }
    return kept;
  };
  const std::string a = letters(given), b = letters(name);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return *std::min_element(row.begin(), row.end());
}

}  // namespace

Target KernelFamily::lowest_target() const {
  for (const TargetInfo& t : kTargets) {
    if (absl::StatusOr<Kernel> built = build_kernel(*defaults, {t.target}); built.ok()) return built->target;
  }
  return {};
}

absl::StatusOr<KernelType> KernelFamily::make(const FieldValues& values) const {
  for (const auto& [name, text] : values) {
    const auto is_called = [&, n = std::string_view(name)](const FieldInfo& field) {
      return field.name == n;
    };
    if (std::none_of(fields.begin(), fields.end(), is_called)) {
      std::string message = str_cat(this->name, " has no constant '", name, "'; it has ");
      for (const FieldInfo& field : fields)
        str_append(&message, &field == fields.data() ? "" : ", ", field.name);
      return absl::InvalidArgumentError(message);
    }
  }
  return maker(defaults, values);
}

absl::Span<const KernelFamily> kernel_families() {
  static const std::vector<KernelFamily>& families = *new std::vector<KernelFamily>(make_families());
  return families;
}

absl::StatusOr<const KernelFamily*> find_kernel(std::string_view name) {
  const absl::Span<const KernelFamily> families = kernel_families();
  for (const KernelFamily& family : families) {
    if (family.name == name) return &family;
  }
  std::vector<std::string_view> nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const KernelFamily& family : families) {
    const std::size_t d = distance(family.name, name);
    if (d < least) nearest.clear();
    least = std::min(least, d);
    if (d == least) nearest.push_back(family.name);
  }
  std::string message = str_cat("no kernel is called '", name, "'; did you mean ");
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    const std::string_view separator = i == 0 ? "" : i + 1 == nearest.size() ? " or " : ", ";
    str_append(&message, separator, "'", nearest[i], "'");
  }
  return absl::NotFoundError(message + "? `ptxgen list` shows all");
}

}  // namespace ptxgen
