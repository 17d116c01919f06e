#include "ptxgen/tuning.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "ptxgen/environment.h"
#include "ptxgen/kernel_key.h"
#include "ptxgen/strings.h"
#include "src/runtime/field_text.h"
#include "src/runtime/file_system.h"
#include "src/runtime/xxh64.h"

namespace ptxgen {
namespace {

constexpr std::string_view kRoom = "tuning", kSuffix = ".txt", kMagic = "ptxgen tuning 1\n";
constexpr std::size_t kMostBytes = 4096;

absl::Status bad(std::string message) {
  return absl::DataLossError(std::move(message));
}

std::string_view view(absl::string_view text) {
  return {text.data(), text.size()};
}

// "name: value\n" at the beginning of `text`, which loses it.
absl::StatusOr<std::string> take_line(std::string_view& text, std::string_view name) {
  const std::string head = str_cat(name, ": ");
  const std::size_t end = text.find('\n');
  if (!text.starts_with(head) || end == text.npos) return bad(str_cat("it has no ", name));
  std::string value(text.substr(head.size(), end - head.size()));
  text.remove_prefix(end + 1);
  return value;
}

absl::Status parse_microseconds(const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value > 0)
    return absl::OkStatus();
  return bad(str_cat("microseconds is '", text, "'; it must be a number above 0"));
}

// What the two kinds of product differ in.
constexpr std::string_view line_of(const GemvShape&) {
  return "product";
}
constexpr std::string_view line_of(const GemmShape&) {
  return "matrix product";
}
std::string name_of(const GemvShape& shape) {
  return str_cat(info(shape.format).name, "_n", shape.n, "_k", shape.k, "_m", shape.m, "_",
                 detail::field_text(shape.x_type));
}
std::string name_of(const GemmShape& shape) {
  return str_cat(info(shape.format).name, "_gemm_n", shape.n, "_k", shape.k, "_m", shape.m, "_",
                 detail::field_text(shape.a_type));
}
absl::Status check_rows(const GemvShape& shape) {
  if (shape.m >= 1 && shape.m <= kMostGemvRows) return absl::OkStatus();
  return bad(str_cat("m is ", shape.m, "; it must be 1 to ", kMostGemvRows));
}
absl::Status check_rows(const GemmShape& shape) {
  if (shape.m == bucket_rows(shape.m)) return absl::OkStatus();
  return bad(str_cat("m is ", shape.m, "; it must be ", bucket_rows(shape.m), ", which stands for it"));
}

// What a file is named by: a record replaces the one of the same name.
template <class Record>
std::string file_name(const Record& record) {
  const std::string where = str_cat(record.device, "\n", record.compiler, "\n", record.library);
  return str_cat(name_of(record.shape), "-", absl::StrFormat("%016x", internal::xxh64(where)), kSuffix);
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return absl::ascii_iscntrl(c); }, ' ');
  return text;
}

absl::StatusOr<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || !file.is_open()) return absl::UnavailableError("it cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostBytes) return bad(str_cat("it has more than ", kMostBytes, " bytes"));
  return text;
}

template <class Record>
absl::Status read_into(std::vector<Record>& records, std::string_view text) {
  absl::StatusOr<Record> record = Record::parse(text);
  if (record.ok()) records.push_back(*std::move(record));
  return record.status();
}

absl::Status read_record(const std::string& path, TuneRecords& all) {
  const absl::StatusOr<std::string> text = read_text(path);
  if (!text.ok()) return text.status();
  const bool gemm = text->find(str_cat("\n", line_of(GemmShape()), ": ")) != text->npos;
  return gemm ? read_into(all.gemms, *text) : read_into(all.records, *text);
}

template <class Record>
absl::StatusOr<std::string> keep_record(const Record& record, const CacheDirectoryOptions& options) {
  const absl::StatusOr<Record> again = Record::parse(record.to_string());
  if (!again.ok()) {
    return absl::InvalidArgumentError(
        str_cat("the record could not be read again: ", view(again.status().message())));
  }
  const absl::StatusOr<bool> shared = options.shared.has_value() ? *options.shared : env::cache_shared();
  if (!shared.ok()) return shared.status();
  const absl::StatusOr<std::string> folder = cache_directory(kRoom, options);
  if (!folder.ok()) return folder.status();
  std::string path = str_cat(*folder, "/", file_name(record));
  const int result =
      internal::replace_file(internal::FileSystem::real(), path, record.to_string(), *shared ? 0666 : 0600);
  if (result != 0) return absl::ErrnoToStatus(-result, str_cat("cannot write '", path, "'"));
  return path;
}

}  // namespace

template <class Shape, class Variant>
TuneRecordOf<Shape, Variant> TuneRecordOf<Shape, Variant>::of_device(const DeviceProperties& device) {
  const KernelKey key = KernelKey::of_device(device, "");
  TuneRecordOf record;
  record.device = one_line(device.name);
  record.compiler = key.compiler;
  record.library = key.library;
  return record;
}

template <class Shape, class Variant>
std::string TuneRecordOf<Shape, Variant>::to_string() const {
  return str_cat(kMagic, "device: ", device, "\ncompiler: ", compiler, "\nlibrary: ", library, "\n",
                 line_of(shape), ": ", text_of_fields(shape), "\nvariant: ", variant.to_string(),
                 "\nmicroseconds: ", absl::StrFormat("%.3f", microseconds), "\ndate: ", date, "\n");
}

template <class Shape, class Variant>
absl::StatusOr<TuneRecordOf<Shape, Variant>> TuneRecordOf<Shape, Variant>::parse(std::string_view text) {
  if (!text.starts_with(kMagic))
    return bad(str_cat("it does not begin with '", kMagic.substr(0, kMagic.size() - 1), "'"));
  text.remove_prefix(kMagic.size());
  TuneRecordOf record;
  std::string product, variant, microseconds;
  const std::array<std::pair<std::string_view, std::string*>, 7> lines = {{{"device", &record.device},
                                                                           {"compiler", &record.compiler},
                                                                           {"library", &record.library},
                                                                           {line_of(record.shape), &product},
                                                                           {"variant", &variant},
                                                                           {"microseconds", &microseconds},
                                                                           {"date", &record.date}}};
  for (const auto& [name, value] : lines) {
    absl::StatusOr<std::string> line = take_line(text, name);
    if (!line.ok()) return line.status();
    *value = *std::move(line);
  }
  if (!text.empty()) return bad("something follows its date");
  record.shape.m = 0;
  absl::Status status = internal::parse_fields(record.shape, product);
  if (status.ok()) status = record.shape.validate();
  if (status.ok()) status = check_rows(record.shape);
  if (!status.ok()) return bad(str_cat(line_of(record.shape), ": ", view(status.message())));
  const absl::StatusOr<Variant> read = Variant::parse(variant);
  if (!read.ok()) return bad(str_cat("variant ", view(read.status().message())));
  record.variant = *read;
  if (absl::Status s = parse_microseconds(microseconds, record.microseconds); !s.ok()) return s;
  return record;
}

template <class Shape, class Variant>
absl::Status TuneRecordOf<Shape, Variant>::belongs_to(const DeviceProperties& properties) const {
  const TuneRecordOf here = of_device(properties);
  const auto differs = [](std::string_view what, const std::string& its, const std::string& ours) {
    return absl::FailedPreconditionError(
        str_cat("it was measured with ", what, " ", its, ", and this is ", ours));
  };
  if (device != here.device) return differs("device", device, here.device);
  if (compiler != here.compiler) return differs("compiler", compiler, here.compiler);
  if (library != here.library) return differs("library version", library, here.library);
  return absl::OkStatus();
}

TuneRecords TuneRecords::read(const CacheDirectoryOptions& options) {
  TuneRecords all;
  const absl::StatusOr<std::string> folder = cache_directory(kRoom, options);
  if (!folder.ok()) {
    all.ignored.push_back(str_cat("all records: ", view(folder.status().message())));
    return all;
  }
  std::vector<std::string> names;
  if (const int result = internal::FileSystem::real().list(*folder, names); result < 0) {
    all.ignored.push_back(str_cat("all records: ", *folder, " cannot be listed"));
    return all;
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!std::string_view(name).ends_with(kSuffix)) continue;
    if (const absl::Status s = read_record(str_cat(*folder, "/", name), all); !s.ok())
      all.ignored.push_back(str_cat(name, ": ", view(s.message())));
  }
  return all;
}

absl::StatusOr<std::string> keep(const TuneRecord& record, const CacheDirectoryOptions& options) {
  return keep_record(record, options);
}
absl::StatusOr<std::string> keep(const GemmTuneRecord& record, const CacheDirectoryOptions& options) {
  return keep_record(record, options);
}

template struct TuneRecordOf<GemvShape, GemvVariant>;
template struct TuneRecordOf<GemmShape, GemmVariant>;

}  // namespace ptxgen
