// What a verification found: a line for each subject, and what they add up to.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/compare.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {

class VerifyReport {
 public:
  // What there would have been to verify, for when there is nothing.
  explicit VerifyReport(std::string nothing) : nothing_(std::move(nothing)) {}

  struct Subject {
    std::string tensor, format, shape;
    Json kernel;      // name; null when there is none
    Json descriptor;  // in full
  };
  void add(const Subject& subject, const absl::StatusOr<Verified>& verified);
  void skip(const Subject& subject, const std::string& reason);

  // As text or as JSON, with the exit status.
  Outcome outcome(const Device& device, double seconds, bool json) const;

 private:
  bool verified() const { return agree_ > 0 && differ_ == 0 && failed_ == 0; }
  std::string summary(double seconds) const;
  Json to_json(const Device& device, double seconds) const;
  void add_row(const Subject& subject, const std::optional<Verified>& verified, Cell result,
               const std::string& detail);

  const std::string nothing_;
  Table table_{{{"tensor", "tensor"},
                {"format", "format"},
                {"shape", "shape"},
                {"kernel", "kernel"},
                {"descriptor", ""},
                {"values", "values"},
                {"mismatches", "mismatches"},
                {"time_ms", "time"},
                {"result", "result"},
                {"share_of_bound", ""},
                {"detail", ""}}};
  u64 agree_ = 0, differ_ = 0, failed_ = 0, skipped_ = 0, values_ = 0, mismatches_ = 0;
  bool bounded_ = false;
};

}  // namespace ptxgen::tool
