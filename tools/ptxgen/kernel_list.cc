#include "tools/ptxgen/kernel_list.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "ptxgen/executor.h"
#include "ptxgen/gemm.h"
#include "ptxgen/gguf.h"
#include "tools/ptxgen/files.h"

namespace ptxgen::tool {
namespace {

constexpr u64 kMaxListBytes = 64 << 20;

void add(KernelList& list, std::set<std::string>& texts, const KernelType& kernel) {
  if (texts.insert(kernel->text()).second) list.kernels.push_back(kernel);
}

bool has_field(const KernelFamily& family, std::string_view name) {
  return std::any_of(family.fields.begin(), family.fields.end(),
                     [&](const FieldInfo& field) { return field.name == name; });
}

// Which kernel a product gets is a policy's business.
bool is_product(const KernelType& kernel) {
  return kernel.get_if<Gemv>() || kernel.get_if<BatchedGemv>() || kernel.get_if<FusedGemv>() ||
         kernel.get_if<Gemm>();
}

// The other kernels for rows of a format: "q4k_dequant" for q4_K, and no other name of one of them.
std::vector<const KernelFamily*> families_of(Format format) {
  const std::string prefix = str_cat(info(format).name, "_");
  std::vector<const KernelFamily*> families;
  for (const KernelFamily& family : kernel_families()) {
    if (family.name.starts_with(prefix) && family.defaults->name() == family.name && has_field(family, "k") &&
        has_field(family, "n") && !is_product(family.defaults)) {
      families.push_back(&family);
    }
  }
  return families;
}

// What prepare() of an executor would compile for a matrix, activations prepared or not.
std::vector<Preparation> products_of(const gguf::Tensor& tensor) {
  const auto narrow = [](std::uint64_t extent) {  // one too large stays so, and is refused
    return static_cast<u32>(std::min<std::uint64_t>(extent, std::numeric_limits<u32>::max()));
  };
  GemvShape shape = {*tensor.format(), narrow(tensor.n()), narrow(tensor.k()), kMostGemvRows};
  std::vector<Preparation> products = {shape};
  shape.x_type = Activations::kQ8_1;
  products.emplace_back(shape);
  products.emplace_back(QuantizeQ8_1{.k = shape.k});
  return products;
}

absl::StatusOr<KernelList> of_model(const std::string& path, const FieldValues& constants,
                                    const DeviceProperties& device) {
  const absl::StatusOr<gguf::File> file = gguf::File::open(path);
  if (!file.ok()) return file.status();
  const DevicePolicy policy(device, {}, {});
  KernelList list;
  std::set<std::string> texts;
  std::set<std::string> used;  // of the constants
  const auto note = [&](std::string_view what, const gguf::Tensor& tensor, const absl::Status& status) {
    list.notes.push_back(str_cat(what, " for ", tensor.name, ": ", std::string(status.message())));
  };
  for (const gguf::Tensor& tensor : file->tensors()) {
    if (!tensor.format()) continue;
    for (const KernelFamily* family : families_of(*tensor.format())) {
      FieldValues values;
      for (const auto& constant : constants) {
        if (!has_field(*family, constant.first)) continue;
        values.push_back(constant);
        used.insert(constant.first);
      }
      values.emplace_back("k", str_cat(tensor.k()));
      values.emplace_back("n", str_cat(tensor.n()));
      const absl::StatusOr<KernelType> kernel = family->make(values);
      if (kernel.ok()) {
        add(list, texts, *kernel);
      } else {
        note(family->name, tensor, kernel.status());
      }
    }
    for (const Preparation& product : products_of(tensor)) {
      const absl::StatusOr<std::vector<KernelType>> kernels = kernels_of(policy, product);
      if (!kernels.ok()) {
        note("products", tensor, kernels.status());
        continue;
      }
      for (const KernelType& kernel : *kernels) add(list, texts, kernel);
    }
  }
  for (const auto& [name, value] : constants) {
    if (used.count(name) == 0) {
      return absl::InvalidArgumentError(
          str_cat("--constant ", name, ": no kernel for this model has a constant of that name"));
    }
  }
  if (list.kernels.empty() && list.notes.empty())
    return absl::InvalidArgumentError(
        str_cat("'", path, "' has no quantised tensor that ptxgen has kernels for"));
  return list;
}

absl::StatusOr<KernelList> of_list(const std::string& path) {
  const absl::StatusOr<std::string> text = read_text(path, kMaxListBytes);
  if (!text.ok()) return text.status();
  KernelList list;
  std::set<std::string> texts;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const absl::StatusOr<KernelType> kernel = parse_kernel({line.data(), line.size()});
    if (!kernel.ok()) {
      return absl::InvalidArgumentError(
          str_cat("'", path, "', line ", number, ": ", std::string(kernel.status().message())));
    }
    add(list, texts, *kernel);
  }
  if (list.kernels.empty()) return absl::InvalidArgumentError(str_cat("'", path, "' lists no kernel"));
  return list;
}

}  // namespace

absl::StatusOr<KernelType> parse_kernel(std::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(absl::string_view(text.data(), text.size()),
                                                        absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  if (words.empty()) return absl::InvalidArgumentError("no kernel is named");
  const absl::StatusOr<const KernelFamily*> family = find_kernel(words[0]);
  if (!family.ok()) return family.status();
  FieldValues values;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals == 0 || equals == words[i].npos) {
      return absl::InvalidArgumentError(str_cat("'", words[i], "' is no constant; write NAME=VALUE, as in '",
                                                (*family)->defaults->text(), "'"));
    }
    values.emplace_back(words[i].substr(0, equals), words[i].substr(equals + 1));
  }
  return (*family)->make(values);
}

KernelListOptions::KernelListOptions(CLI::App& app)
    : gguf_option_(app.add_option("--gguf", gguf_, "the kernels for every quantised tensor of this model")
                       ->type_name("FILE")),
      list_option_(app.add_option("--list", list_,
                                  "the kernels of this file, one a line, as 'q4k_dequant k=4096 n=11008'")
                       ->type_name("FILE")),
      constants_(
          app, "--constant", "VALUE",
          "with --gguf: a constant of all kernels that have it, as out_type=f16; default: the kernel's") {}

absl::StatusOr<KernelList> KernelListOptions::kernels(const DeviceProperties& device) const {
  const bool gguf = gguf_option_->count() > 0, list = list_option_->count() > 0;
  if (gguf == list) {
    return absl::InvalidArgumentError(
        str_cat(gguf ? "--gguf and --list are both given" : "no kernels are given",
                "; give either --gguf FILE or --list FILE"));
  }
  if (list && constants_.any())
    return absl::InvalidArgumentError("--constant is given with --list; write the constants into its lines");
  if (list) return of_list(list_);
  const absl::StatusOr<FieldValues> constants = constants_.parse();
  if (!constants.ok()) return constants.status();
  return of_model(gguf_, *constants, device);
}

}  // namespace ptxgen::tool
