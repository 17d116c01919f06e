#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
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

// The oldest target that the kernel can be built for.
Target lowest_target(const KernelType& kernel) {
  for (const TargetInfo& t : kTargets) {
    if (absl::StatusOr<Kernel> built = build_kernel(*kernel, {t.target}); built.ok()) return built->target;
  }
  return {};
}

template <class D>
KernelFamily family(const D& defaults, std::string summary, std::vector<std::string> original_names = {}) {
  const KernelType kernel(defaults);
  return {kernel->name(),        std::move(summary),    std::move(original_names),
          field_infos(defaults), lowest_target(kernel), kernel,
          &make_kernel<D>};
}

// A name of the Rust original that stands for a family with some constants given: they are no longer to
// choose.
KernelFamily alias(std::string name, KernelFamily base, const FieldValues& given, std::string original_name) {
  base.defaults = *base.maker(base.defaults, given);
  const auto is_given = [&](const FieldInfo& field) {
    return std::any_of(given.begin(), given.end(), [&](const auto& g) { return g.first == field.name; });
  };
  base.fields.erase(std::remove_if(base.fields.begin(), base.fields.end(), is_given), base.fields.end());
  base.summary = str_cat(base.name, " with");
  for (const auto& [field, value] : given) str_append(&base.summary, " ", field, "=", value);
  base.name = std::move(name);
  base.original_names = {std::move(original_name)};
  return base;
}

KernelFamily dequant_family(const FormatInfo& format, std::vector<std::string> original_names) {
  KernelFamily all =
      family(Dequant{.format = format.format},
             str_cat("dequantises ", format.ggml_name, " blocks, row after row"), std::move(original_names));
  for (FieldInfo& field : all.fields) {  // Dequant::validate(): whole blocks in a row
    if (field.name == "k") field.bounds.min = field.bounds.multiple = format.block_values;
  }
  return all;
}

std::vector<KernelFamily> make_families() {
  std::vector<KernelFamily> all;
  for (const FormatInfo& f : kFormats) {
    std::vector<std::string> original_names;
    if (f.format == Format::kQ4_K) original_names = {"Q4KDequant"};
    if (f.format == Format::kQ6_K) original_names = {"Q6KDequant"};
    all.push_back(dequant_family(f, std::move(original_names)));
  }
  all.push_back(alias("q4k_dequant_fp16", dequant_family(info(Format::kQ4_K), {}), {{"out_type", "f16"}},
                      "Q4KDequantFp16"));
  all.push_back(family(Copy{}, "copies memory, the yardstick for kernels bound by memory"));
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
