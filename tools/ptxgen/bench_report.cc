#include "tools/ptxgen/bench_report.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace ptxgen::tool {
namespace {

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

Table empty_table(bool copies, bool operations, bool packs, bool refusals) {
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
                {"origin", packs ? "code from" : ""},
                {"refused", refusals ? "refused because" : ""}});
}

void add_row(Table& table, const BenchRow& row) {
  if (!row.refused.empty()) {
    std::vector<Cell> cells = {row.kernel, to_json(row.constants)};
    cells.resize(table.columns() - 1, Cell(Json()));
    cells.emplace_back(row.refused);
    return table.add(std::move(cells));
  }
  const Footprint& made = row.footprint;
  table.add({row.kernel,
             to_json(row.constants),
             launch_of(row),
             rounded(row.time.median, 2),
             rounded(row.time.fastest, 2),
             rounded(row.time.slowest, 2),
             row.bytes,
             rounded(row.gigabytes_per_second(), 0),
             rounded(row.teraflops(), 1),
             rounded(row.over_read_dependent, 3),
             rounded(row.over_read, 3),
             rounded(row.over_copy, 3),
             made.registers,
             made.static_shared_bytes,
             made.dynamic_shared_bytes,
             made.ctas_per_sm,
             made.local_bytes,
             row.calls,
             Cell(detail::field_text(row.origin)),
             Json()});
}

}  // namespace

Table table_of(const std::vector<BenchRow>& rows, const std::vector<BenchRow>& more) {
  bool copies = false, operations = false, packs = false, refusals = false;
  for (const BenchRow& row : rows) {
    copies |= row.over_copy.has_value();
    operations |= row.operations != 0;
    packs |= row.origin == KernelOrigin::kPack;
    refusals |= !row.refused.empty();
  }
  Table table = empty_table(copies, operations, packs, refusals);
  for (const BenchRow& row : rows) add_row(table, row);
  for (const BenchRow& row : more) add_row(table, row);
  return table;
}

std::string label_of(const FieldValues& values, const std::vector<FieldValues>& all,
                     const std::vector<std::string_view>& left_out) {
  std::string label;
  for (const auto& [name, value] : values) {
    if (std::count(left_out.begin(), left_out.end(), std::string_view(name)) > 0) continue;
    const auto other = [&, n = &name, v = &value](const FieldValues& others) {
      return std::find(others.begin(), others.end(), std::pair(*n, *v)) == others.end();
    };
    if (std::none_of(all.begin(), all.end(), other)) continue;
    str_append(&label, label.empty() ? "" : ", ", is_number(value) ? name + "=" : "", value);
  }
  return label;
}

namespace {

// What tells the row's kernel from the others', or its name. `shape`: the extents of a product count too.
std::string row_label(const BenchRow& row, const std::vector<BenchRow>& rows, bool shape) {
  std::vector<FieldValues> all;
  for (const BenchRow& other : rows) all.push_back(other.constants);
  const std::vector<std::string_view> extents = {"n", "k", "m"};
  const std::string label = label_of(row.constants, all, shape ? std::vector<std::string_view>() : extents);
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

// What a plot's lines stand over: of products their size, of other kernels their bytes.
struct Axes {
  const char *x, *y;
  double (*x_of)(const BenchRow&);
  double (*y_of)(const BenchRow&);
};
constexpr Axes kByBytes = {"MB of a call", "GB/s",
                           [](const BenchRow& row) { return static_cast<double>(row.bytes) * 1e-6; },
                           [](const BenchRow& row) { return row.gigabytes_per_second(); }};
constexpr Axes kByOperations = {
    "GFLOP of a call", "TFLOP/s",
    [](const BenchRow& row) { return static_cast<double>(row.operations) * 1e-9; },
    [](const BenchRow& row) { return row.teraflops().value_or(0); }};

std::string lines_of(const std::string& title, const Axes& axes, const std::vector<BenchRow>& rows,
                     const std::vector<BenchRow>& floors) {
  LinePlot plot{title, axes.x, axes.y, {}};
  for (const BenchRow& row : rows)
    plot.add(row_label(row, rows, false), false, axes.x_of(row), axes.y_of(row));
  for (const BenchRow& floor : floors) plot.add(floor_label(floor), true, axes.x_of(floor), axes.y_of(floor));
  return to_svg(plot);
}

std::string bars_of(const std::string& title, const std::vector<BenchRow>& rows,
                    const std::vector<BenchRow>& floors) {
  BarPlot plot{title, "microseconds of a call", {}};
  for (const BenchRow& row : rows) plot.bars.push_back({row_label(row, rows, true), row.time.median});
  for (const BenchRow& floor : floors) plot.bars.push_back({floor_label(floor), floor.time.median, true});
  return to_svg(plot);
}

}  // namespace

std::string BenchReport::text() const {
  return str_cat(device, "\n", table_of(rows, floors).text());
}

Json BenchReport::json() const {
  return {{"device", device}, {"rows", table_of(rows).json()}, {"floors", table_of(floors).json()}};
}

std::string BenchReport::svg() const {
  const std::vector<BenchRow> shown = measured(rows);
  const std::string kernel = rows.empty() ? "" : rows[0].kernel.substr(0, rows[0].kernel.find(' '));
  const std::string title = str_cat(kernel, " on ", device);
  const bool products =
      std::all_of(shown.begin(), shown.end(), [](const BenchRow& row) { return row.operations != 0; });
  const Axes& axes = products ? kByOperations : kByBytes;
  const bool one_size = std::all_of(
      shown.begin(), shown.end(), [&](const BenchRow& row) { return axes.x_of(row) == axes.x_of(shown[0]); });
  if (one_size) return bars_of(title, shown, floors);
  return lines_of(title, axes, shown, products ? std::vector<BenchRow>() : floors);
}

}  // namespace ptxgen::tool
