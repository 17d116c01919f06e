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

// A kernel of the Rust original: a family with these constants given.
struct Original {
  std::string_view name;
  std::string_view family;
  FieldValues given = {};
};

std::vector<Original> originals() {
  return {{"Q4KDequant", "q4k_dequant"},
          {"Q6KDequant", "q6k_dequant"},
          {"Q4KDequantFp16", "q4k_dequant", {{"out_type", "f16"}}}};
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

// The family under the original's name; what the original gives is no longer to choose.
absl::StatusOr<KernelFamily> alias(const Original& original, KernelFamily base) {
  absl::StatusOr<KernelType> defaults = base.make(original.given);
  if (!defaults.ok()) return defaults.status();
  const auto is_given = [&](const FieldInfo& field) {
    return std::any_of(original.given.begin(), original.given.end(),
                       [&](const auto& given) { return given.first == field.name; });
  };
  base.fields.erase(std::remove_if(base.fields.begin(), base.fields.end(), is_given), base.fields.end());
  base.defaults = *std::move(defaults);
  base.summary =
      original.given.empty() ? str_cat("another name of ", base.name) : str_cat(base.name, " with");
  for (const auto& [field, value] : original.given) str_append(&base.summary, " ", field, "=", value);
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
