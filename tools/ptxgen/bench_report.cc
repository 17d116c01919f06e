#include "tools/ptxgen/bench_report.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace ptxgen::tool {
namespace {

Cell rounded(double value, int digits) {
  return Cell(Json(value), absl::StrFormat("%.*f", digits, value));
}
Cell rounded(const std::optional<double>& value, int digits) {
  return value ? rounded(*value, digits) : Cell(Json());
}

const char* launch_of(const BenchRow& row) {
  return row.dependent ? "PDL" : "plain";
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

Json to_json(const FieldValues& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) {
    u64 number = 0;
    object[name] = is_number(value) && absl::SimpleAtoi(value, &number) ? Json(number) : Json(value);
  }
  return object;
}

Table empty_table(bool copies, bool operations, bool refusals) {
  return Table({{"kernel", "kernel"},
                {"constants", ""},
                {"launch", "launch"},
                {"microseconds", "us"},
                {"fastest", "fastest"},
                {"slowest", "slowest"},
                {"bytes", "bytes"},
                {"gigabytes_per_second", "GB/s"},
                {"teraflops", operations ? "TFLOP/s" : ""},
                {"over_read_pdl", "/ read, PDL"},
                {"over_read", "/ read"},
                {"over_copy", copies ? "/ copy" : ""},
                {"registers", "registers"},
                {"static_shared_bytes", "static shared"},
                {"dynamic_shared_bytes", "dynamic"},
                {"ctas_per_sm", "CTAs/SM"},
                {"local_bytes", "spilled"},
                {"calls", "calls"},
                {"refused", refusals ? "refused because" : ""}});
}

void add_row(Table& table, const BenchRow& row) {
  if (!row.refused.empty()) {
    std::vector<Cell> cells = {row.kernel, to_json(row.constants)};
    cells.resize(18, Cell(Json()));
    cells.emplace_back(row.refused);
    return table.add(std::move(cells));
  }
  const Footprint& made = row.footprint;
  table.add({row.kernel, to_json(row.constants), launch_of(row), rounded(row.time.median, 2),
             rounded(row.time.fastest, 2), rounded(row.time.slowest, 2), row.bytes,
             rounded(row.gigabytes_per_second(), 0), rounded(row.teraflops(), 1),
             rounded(row.over_read_dependent, 3), rounded(row.over_read, 3), rounded(row.over_copy, 3),
             made.registers, made.static_shared_bytes, made.dynamic_shared_bytes, made.ctas_per_sm,
             made.local_bytes, row.calls, Json()});
}

Table table_of(const std::vector<BenchRow>& rows, const std::vector<BenchRow>& more) {
  bool copies = false, operations = false, refusals = false;
  for (const BenchRow& row : rows) {
    copies |= row.over_copy.has_value();
    operations |= row.operations != 0;
    refusals |= !row.refused.empty();
  }
  Table table = empty_table(copies, operations, refusals);
  for (const BenchRow& row : rows) add_row(table, row);
  for (const BenchRow& row : more) add_row(table, row);
  return table;
}

// What tells the row's kernel from the others', "stream, k=4096": the constants that differ between rows,
// enumerations without their names. `shape`: n and k among them.
std::string label_of(const BenchRow& row, const std::vector<BenchRow>& rows, bool shape) {
  std::string label;
  for (const auto& [name, value] : row.constants) {
    if (!shape && (name == "n" || name == "k")) continue;
    const auto other = [&, n = &name, v = &value](const BenchRow& r) {
      return std::find(r.constants.begin(), r.constants.end(), std::pair(*n, *v)) == r.constants.end();
    };
    if (std::none_of(rows.begin(), rows.end(), other)) continue;
    str_append(&label, label.empty() ? "" : ", ", is_number(value) ? name + "=" : "", value);
  }
  return label.empty() ? row.kernel.substr(0, row.kernel.find(' ')) : label;
}

std::string floor_label(const BenchRow& floor) {
  return str_cat(floor.kernel.substr(0, floor.kernel.find(' ')), floor.dependent ? ", PDL" : "");
}

std::vector<BenchRow> measured(const std::vector<BenchRow>& rows) {
  std::vector<BenchRow> kept;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(kept),
               [](const BenchRow& row) { return row.refused.empty(); });
  return kept;
}

std::string lines_of(const std::string& title, const std::vector<BenchRow>& rows,
                     const std::vector<BenchRow>& floors) {
  LinePlot plot{title, "MB of a call", "GB/s", {}};
  const auto add = [&](const std::string& name, const BenchRow& row, bool dashed) {
    auto series = std::find_if(plot.series.begin(), plot.series.end(),
                               [&](const Series& s) { return s.name == name && s.dashed == dashed; });
    if (series == plot.series.end()) series = plot.series.insert(series, Series{name, {}, dashed});
    series->points.emplace_back(static_cast<double>(row.bytes) * 1e-6, row.gigabytes_per_second());
  };
  for (const BenchRow& row : rows) add(label_of(row, rows, false), row, false);
  for (const BenchRow& floor : floors) add(floor_label(floor), floor, true);
  for (Series& series : plot.series) std::sort(series.points.begin(), series.points.end());
  return to_svg(plot);
}

std::string bars_of(const std::string& title, const std::vector<BenchRow>& rows,
                    const std::vector<BenchRow>& floors) {
  BarPlot plot{title, "microseconds of a call", {}};
  for (const BenchRow& row : rows) plot.bars.push_back({label_of(row, rows, true), row.time.median});
  for (const BenchRow& floor : floors) plot.bars.push_back({floor_label(floor), floor.time.median, true});
  return to_svg(plot);
}

}  // namespace

std::string BenchReport::text() const {
  return str_cat(device, "\n", table_of(rows, floors).text());
}

Json BenchReport::json() const {
  return {{"device", device}, {"rows", table_of(rows, {}).json()}, {"floors", table_of(floors, {}).json()}};
}

std::string BenchReport::svg() const {
  const std::vector<BenchRow> shown = measured(rows);
  const std::string kernel = rows.empty() ? "" : rows[0].kernel.substr(0, rows[0].kernel.find(' '));
  const std::string title = str_cat(kernel, " on ", device);
  const bool one_size = std::all_of(shown.begin(), shown.end(),
                                    [&](const BenchRow& row) { return row.bytes == shown[0].bytes; });
  return one_size ? bars_of(title, shown, floors) : lines_of(title, shown, floors);
}

}  // namespace ptxgen::tool
