#include "tools/ptxgen/verify_report.h"

#include "absl/strings/str_format.h"

namespace ptxgen::tool {
namespace {

Cell agreement(const Verified& verified) {
  if (!verified.bounded) return Cell("equal");
  return {Json("within bounds"), absl::StrFormat("within bounds (the worst at %.2g of it)", verified.worst)};
}

}  // namespace

void VerifyReport::add(const Subject& subject, const absl::StatusOr<Verified>& verified) {
  if (!verified.ok()) {
    ++failed_;
    const std::string reason(verified.status().message());
    return add_row(subject, {}, {Json("failed"), "failed: " + reason}, reason);
  }
  const bool equal = verified->mismatches == 0;
  bounded_ |= verified->bounded;
  ++(equal ? agree_ : differ_);
  values_ += verified->values;
  mismatches_ += verified->mismatches;
  add_row(subject, *verified,
          equal ? agreement(*verified) : Cell(Json("differs"), "differs: " + verified->difference),
          verified->difference);
}

void VerifyReport::skip(const Subject& subject, const std::string& reason) {
  ++skipped_;
  add_row(subject, {}, {Json("skipped"), "skipped: " + reason}, reason);
}

void VerifyReport::add_row(const Subject& s, const std::optional<Verified>& v, Cell result,
                           const std::string& detail) {
  table_.add({s.tensor, s.format, s.shape, s.kernel, s.descriptor, v ? Json(v->values) : Json(),
              v ? Json(v->mismatches) : Json(),
              v ? Cell(Json(v->ms), absl::StrFormat("%.2f ms", v->ms)) : Cell(Json()), std::move(result),
              v && v->bounded ? Json(v->worst) : Json(), detail.empty() ? Json() : Json(detail)});
}

std::string VerifyReport::summary(double seconds) const {
  std::string line = verified()                        ? str_cat("verified: all ", agree_, " agree ",
                                          bounded_ ? "bit for bit or within their bounds" : "bit for bit")
                     : agree_ + differ_ + failed_ == 0 ? str_cat("NOTHING WAS VERIFIED: ", nothing_)
                                                       : str_cat("NOT VERIFIED: ", differ_, " differ, ",
                                                                 failed_, " failed, ", agree_, " agree");
  return str_cat(line, "; ", values_, " values compared, ", mismatches_, " mismatches, ", skipped_,
                 " skipped, ", absl::StrFormat("%.1f s", seconds));
}

Json VerifyReport::to_json(const Device& device, double seconds) const {
  return {{"verified", verified()},
          {"device", device.description()},
          {"reason", device.reason()},
          {"tensors", table_.json()},
          {"summary",
           {{"equal", agree_},
            {"different", differ_},
            {"failed", failed_},
            {"skipped", skipped_},
            {"values", values_},
            {"mismatches", mismatches_},
            {"seconds", seconds}}}};
}

Outcome VerifyReport::outcome(const Device& device, double seconds, bool json) const {
  const int exit_status = verified() ? kSuccess : kNotVerified;
  if (json) return {to_text(to_json(device, seconds)), exit_status};
  return {str_cat(device.description(), "\n(", printable(device.reason()), ")\n", table_.empty() ? "" : "\n",
                  table_.empty() ? "" : table_.text(), "\n", summary(seconds), "\n"),
          exit_status};
}

}  // namespace ptxgen::tool
