#include "tools/ptxgen/why.h"

#include <vector>

#include "absl/strings/str_split.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {
namespace {

// One line a difference.
std::vector<std::string> differences(const StoredKernel& kept, const KernelKey& key, const std::string& ptx) {
  std::vector<std::string> lines;
  for (const KernelKey::Field& field : KernelKey::kFields) {
    if (kept.key.*field.member != key.*field.member)
      lines.push_back(str_cat(field.name, ": kept is '", kept.key.*field.member, "', wanted is '",
                              key.*field.member, "'"));
  }
  if (!lines.empty() || kept.ptx == ptx) return lines;  // another key's text may differ
  const std::vector<std::string> a = absl::StrSplit(kept.ptx, '\n'), b = absl::StrSplit(ptx, '\n');
  std::size_t line = 0;
  while (line < a.size() && line < b.size() && a[line] == b[line]) ++line;
  const auto text = [&](const std::vector<std::string>& t) {
    return line < t.size() ? t[line] : std::string("(end)");
  };
  lines.push_back(str_cat("PTX: line ", line + 1, " kept is '", text(a), "', wanted is '", text(b), "'"));
  return lines;
}

struct Nearest {
  std::vector<std::string> differences;  // empty: there is no entry of the kernel's name
  u64 damaged = 0;
};

Nearest nearest_to(const std::vector<CubinStore::Entry>& entries, const KernelKey& key,
                   const std::string& ptx) {
  const auto name = [](const std::string& descriptor) { return descriptor.substr(0, descriptor.find(' ')); };
  Nearest nearest;
  for (const CubinStore::Entry& entry : entries) {
    nearest.damaged += !entry.kernel.ok();
    if (!entry.kernel.ok() || name(entry.kernel->key.descriptor) != name(key.descriptor)) continue;
    std::vector<std::string> lines = differences(*entry.kernel, key, ptx);
    if (nearest.differences.empty() || lines.size() < nearest.differences.size())
      nearest.differences = std::move(lines);
  }
  return nearest;
}

}  // namespace

absl::StatusOr<Outcome> explain_miss(const CubinStore& store, const KernelType& kernel, const Device& device,
                                     bool json) {
  if (device.kind() != DeviceKind::kCuda) {
    return absl::FailedPreconditionError(
        str_cat("this is the ", device.description(),
                ", for which nothing is compiled or kept; choose a GPU with --device cuda"));
  }
  const absl::StatusOr<GeneratedKernel> generated =
      generate(*kernel, {.build = {.target = device.target(), .max_isa = device.highest_isa()}});
  if (!generated.ok()) return generated.status();
  KernelKey key = KernelKey::of_device(device.properties(), detail::field_text(Codegen::kDirect));
  key.descriptor = kernel->text();
  const auto entries = store.entries();
  if (!entries.ok()) return entries.status();

  const bool kept = store.find(key, generated->ptx).has_value();
  Nearest nearest;
  if (!kept) nearest = nearest_to(*entries, key, generated->ptx);
  const int exit_status = kept ? kSuccess : kNotVerified;
  if (json) {
    return Outcome{to_text({{"key", key.to_string()},
                            {"kept", kept},
                            {"differences", nearest.differences},
                            {"damaged", nearest.damaged}}),
                   exit_status};
  }
  std::string text = str_cat(key.to_string(), "\n");
  if (kept) return Outcome{text + "is kept: it is loaded without compiling\n"};
  str_append(&text, nearest.differences.empty() ? "is not kept, and neither is any kernel of that name\n"
                                                : "is not kept; the nearest that is differs in\n");
  for (const std::string& line : nearest.differences) str_append(&text, "  ", printable(line), "\n");
  if (nearest.damaged > 0)
    str_append(&text, nearest.damaged,
               " damaged: it may have been among them; `ptxgen cache verify` lists them\n");
  return Outcome{std::move(text), exit_status};
}

}  // namespace ptxgen::tool
