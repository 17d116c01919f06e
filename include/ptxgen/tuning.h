// What `ptxgen tune` measured on a device, kept from one process to the next: one small text file for each
// configuration, in the folder `tuning` of the cache directory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptxgen/cache_directory.h"
#include "ptxgen/device.h"
#include "ptxgen/gemm_variant.h"
#include "ptxgen/gemv_variant.h"

namespace ptxgen {

// The variant that was fastest for a product on a device. Device, compiler, library and shape are the
// configuration, of which there is one record.
template <class Shape, class Variant>
struct TuneRecordOf {
  std::string device;    // DeviceProperties::name
  std::string compiler;  // as in KernelKey: "driver 12.4"
  std::string library;   // ptxgen's version
  Shape shape;           // m: the rows that one kernel takes, 1 to 16; of a matrix product bucket_rows(m)
  Variant variant;
  double microseconds = 0;  // of a call, median
  std::string date;         // of the measurement: "2026-11-30"

  // A record of no product yet, for this device and library.
  static TuneRecordOf of_device(const DeviceProperties& device);

  // One line a field, below the format's name and version.
  std::string to_string() const;
  // A status says what is wrong with the text.
  static absl::StatusOr<TuneRecordOf> parse(std::string_view text);

  // Ok, or in what the record differs from this device, its driver or this library.
  absl::Status belongs_to(const DeviceProperties& device) const;
};
using TuneRecord = TuneRecordOf<GemvShape, GemvVariant>;
using GemmTuneRecord = TuneRecordOf<GemmShape, GemmVariant>;
extern template struct PTXGEN_API TuneRecordOf<GemvShape, GemvVariant>;
extern template struct PTXGEN_API TuneRecordOf<GemmShape, GemmVariant>;

struct PTXGEN_API TuneRecords {
  std::vector<TuneRecord> records;
  std::vector<std::string> ignored;  // a line for each file that is no record, with the reason
  std::vector<GemmTuneRecord> gemms = {};

  // The records in the cache directory, in the order of their files' names. Nothing there is no record.
  static TuneRecords read(const CacheDirectoryOptions& options = {});
};

// Keeps the record in place of the one for the same configuration: whoever reads meanwhile finds one of the
// two whole. The path of the file.
PTXGEN_API absl::StatusOr<std::string> keep(const TuneRecord& record,
                                            const CacheDirectoryOptions& options = {});
PTXGEN_API absl::StatusOr<std::string> keep(const GemmTuneRecord& record,
                                            const CacheDirectoryOptions& options = {});

}  // namespace ptxgen
