#include "tools/ptxgen/product_report.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_format.h"

namespace ptxgen::tool {
namespace {

FieldValues constants_of(const Product& product) {
  FieldValues values;
  for_each_field(product.shape, [&](const auto& f, const auto& holder) {
    values.emplace_back(std::string(f.name), detail::field_text(holder.*f.member));
  });
  values.emplace_back("path", product.path.to_string());
  return values;
}

// Format, n, k, m and path, which every table of rows begins with.
const std::vector<Column> kProductColumns = {
    {"format", "format"}, {"n", "n"}, {"k", "k"}, {"m", "m"}, {"path", "path"}};

std::vector<Cell> cells_of(const Product& product) {
  const ProductShape& shape = product.shape;
  return {detail::field_text(shape.format), shape.n, shape.k, shape.m, product.path.to_string()};
}

Json to_json(const std::vector<Phase>& phases) {
  Json array = Json::array();
  for (const Phase& phase : phases)
    array.push_back(
        {{"kernel", phase.name}, {"launches", phase.launches}, {"microseconds", phase.microseconds}});
  return array;
}

// Columns that have nothing to show are left out of the text.
struct Shown {
  bool prepared = false, plain_floor = false, cublas = false, scratch = false, refusals = false;

  explicit Shown(const std::vector<ProductRow>& rows) {
    for (const ProductRow& row : rows) {
      prepared |= row.prepared.has_value();
      plain_floor |= row.over_read && !row.over_read_dependent;
      cublas |= row.over_cublas.has_value();
      scratch |= row.ran.scratch_bytes > 0;
      refusals |= !row.refused.empty();
    }
  }
};

Table empty_table(const Shown& shown) {
  std::vector<Column> columns = kProductColumns;
  columns.insert(columns.end(), {{"a_type", "a"},
                                 {"ran", "ran"},
                                 {"reason", ""},
                                 {"kernels", ""},
                                 {"microseconds", "us"},
                                 {"fastest", "fastest"},
                                 {"slowest", "slowest"},
                                 {"prepared_microseconds", shown.prepared ? "us prepared" : ""},
                                 {"weight_bytes", ""},
                                 {"teraflops", "TFLOP/s"},
                                 {"gigabytes_per_second", "GB/s"},
                                 {"over_read_pdl", "/ read, PDL"},
                                 {"over_read", shown.plain_floor ? "/ read" : ""},
                                 {"over_cublas", shown.cublas ? "/ cuBLAS f16" : ""},
                                 {"scratch_bytes", shown.scratch ? "scratch" : ""},
                                 {"phases", ""},
                                 {"phases_microseconds", ""},
                                 {"calls", "calls"},
                                 {"refused", shown.refusals ? "refused because" : ""}});
  return Table(std::move(columns));
}

void add_row(Table& table, const ProductRow& row) {
  std::vector<Cell> cells = cells_of(row.product);
  if (!row.refused.empty()) {
    cells.emplace_back(detail::field_text(row.product.shape.a_type));
    cells.resize(table.columns() - 1, Cell(Json()));
    cells.emplace_back(row.refused);
    return table.add(std::move(cells));
  }
  const Json phases = row.phases.empty() ? Json() : to_json(row.phases);
  const Json sum = row.phases.empty() ? Json() : Json(row.sum_of_phases());
  cells.insert(
      cells.end(),
      {detail::field_text(row.a_type), row.ran.path, row.ran.reason, Json(row.ran.kernels),
       rounded(row.time.median, 2), rounded(row.time.fastest, 2), rounded(row.time.slowest, 2),
       rounded(row.prepared, 2), row.weight_bytes(), rounded(row.teraflops(), 1),
       rounded(row.gigabytes_per_second(), 0), rounded(row.over_read_dependent, 3), rounded(row.over_read, 3),
       rounded(row.over_cublas, 3), row.ran.scratch_bytes, phases, sum, row.calls, Json()});
  table.add(std::move(cells));
}

Table table_of(const std::vector<ProductRow>& rows) {
  Table table = empty_table(Shown(rows));
  for (const ProductRow& row : rows) add_row(table, row);
  return table;
}

Table cublas_table(const std::vector<ProductRow>& rows) {
  Table table({{"n", "n"},
               {"k", "k"},
               {"m", "m"},
               {"microseconds", "us"},
               {"fastest", "fastest"},
               {"slowest", "slowest"},
               {"teraflops", "TFLOP/s"},
               {"calls", "calls"}});
  for (const ProductRow& row : rows) {
    const ProductShape& shape = row.product.shape;
    table.add({shape.n, shape.k, shape.m, rounded(row.time.median, 2), rounded(row.time.fastest, 2),
               rounded(row.time.slowest, 2), rounded(row.teraflops(), 1), row.calls});
  }
  return table;
}

std::string text_of_phases(const std::vector<ProductRow>& rows) {
  std::vector<Column> columns = kProductColumns;
  columns.push_back({"", "phase"});
  columns.push_back({"", "launches"});
  columns.push_back({"", "us"});
  Table table(std::move(columns));
  const auto add = [&](const ProductRow& row, const std::string& name, Cell launches, double microseconds) {
    std::vector<Cell> cells = cells_of(row.product);
    cells.emplace_back(name);
    cells.push_back(std::move(launches));
    cells.push_back(rounded(microseconds, 2));
    table.add(std::move(cells));
  };
  for (const ProductRow& row : rows) {
    if (row.phases.empty()) continue;
    for (const Phase& phase : row.phases) add(row, phase.name, phase.launches, phase.microseconds);
    add(row, "sum of the phases, each alone", Json(), row.sum_of_phases());
    add(row, "the whole", Json(), row.time.median);
  }
  return table.empty() ? std::string() : str_cat("\n", table.text());
}

std::string text_of(const std::vector<Cliff>& cliffs) {
  std::string text;
  for (const Cliff& cliff : cliffs) {
    const ProductShape& shape = cliff.before->product.shape;
    str_append(&text, detail::field_text(shape.format), " ", shape.n, "x", shape.k, ": m = ", shape.m, " to ",
               cliff.behind->product.shape.m, " takes ", absl::StrFormat("%.0f", 100 * cliff.rise()),
               " % longer, ",
               absl::StrFormat("%.2f to %.2f us", cliff.before->time.median, cliff.behind->time.median), ": ",
               cliff.before->ran.path, " to ", cliff.behind->ran.path, "\n");
  }
  return text;
}

Json to_json(const std::vector<Cliff>& cliffs) {
  Json array = Json::array();
  for (const Cliff& cliff : cliffs) {
    const ProductShape& shape = cliff.before->product.shape;
    array.push_back({{"format", detail::field_text(shape.format)},
                     {"n", shape.n},
                     {"k", shape.k},
                     {"m", {shape.m, cliff.behind->product.shape.m}},
                     {"microseconds", {cliff.before->time.median, cliff.behind->time.median}},
                     {"ran", {cliff.before->ran.path, cliff.behind->ran.path}},
                     {"rise", cliff.rise()}});
  }
  return array;
}

// Calls visit(before, behind) for each two rows of path auto that have neighbouring m, and nothing else that
// differs.
template <class Visit>
void for_each_neighbours(const std::vector<ProductRow>& rows, Visit visit) {
  for (const ProductRow& before : rows) {
    if (!before.refused.empty() || before.product.path.variant.index() != 0) continue;
    ProductShape next = before.product.shape;
    ++next.m;
    const auto behind = std::find_if(rows.begin(), rows.end(), [&](const ProductRow& row) {
      return row.refused.empty() && row.product.path.variant.index() == 0 &&
             equal_fields(row.product.shape, next);
    });
    if (behind != rows.end()) visit(before, *behind);
  }
}

std::string label_of(const ProductRow& row, const std::vector<FieldValues>& all, bool bars) {
  std::vector<std::string_view> left_out;
  if (!bars) left_out.push_back("m");
  const std::string label = tool::label_of(constants_of(row.product), all, left_out);
  return label.empty() ? row.product.path.to_string() : label;
}

std::string cublas_label(const ProductRow& row, const std::vector<ProductRow>& rows) {
  const auto same = [&](const ProductRow& other) {
    return other.product.shape.n == row.product.shape.n && other.product.shape.k == row.product.shape.k;
  };
  if (std::all_of(rows.begin(), rows.end(), same)) return "cuBLAS f16";
  return str_cat("cuBLAS f16, n=", row.product.shape.n, ", k=", row.product.shape.k);
}

}  // namespace

u64 ProductRow::weight_bytes() const {
  const ProductShape& shape = product.shape;
  return Gemm{.format = shape.format, .k = shape.k, .n = shape.n}.weight_bytes({});
}

u64 ProductRow::operations() const {
  return u64{2} * product.shape.m * product.shape.n * product.shape.k;
}

double ProductRow::sum_of_phases() const {
  return std::accumulate(phases.begin(), phases.end(), 0.0,
                         [](double sum, const Phase& phase) { return sum + phase.microseconds; });
}

std::vector<Cliff> ProductReport::cliffs() const {
  std::vector<Cliff> all;
  for_each_neighbours(rows, [&](const ProductRow& before, const ProductRow& behind) {
    const Cliff cliff{&before, &behind};
    if (cliff.rise() > kSteepest) all.push_back(cliff);
  });
  return all;
}

bool ProductReport::has_neighbours() const {
  bool any = false;
  for_each_neighbours(rows, [&](const ProductRow&, const ProductRow&) { any = true; });
  return any;
}

std::string ProductReport::text() const {
  std::string text = str_cat(device, "\n", table_of(rows).text(), text_of_phases(rows));
  if (!floors.empty()) str_append(&text, "\n", tool::table_of(floors).text());
  if (!cublas.empty())
    str_append(&text, "\ncuBLAS, f16 weights and activations, f32 results\n", cublas_table(cublas).text());
  if (!no_cublas.empty()) str_append(&text, "\nnot measured: cuBLAS f16: ", printable(no_cublas), "\n");
  if (!has_neighbours()) return text;
  const std::vector<Cliff> steep = cliffs();
  return str_cat(text, "\n",
                 steep.empty()
                     ? str_cat("no cliffs: from m to m + 1 no time of path auto rises by more than ",
                               100 * kSteepest, " %\n")
                     : str_cat("cliffs, where the time of path auto rises by more than ", 100 * kSteepest,
                               " %\n", text_of(steep)));
}

Json ProductReport::json() const {
  return {{"device", device},
          {"rows", table_of(rows).json()},
          {"floors", tool::table_of(floors).json()},
          {"cublas", cublas_table(cublas).json()},
          {"no_cublas", no_cublas.empty() ? Json() : Json(no_cublas)},
          {"cliffs", to_json(cliffs())}};
}

std::string ProductReport::svg() const {
  std::vector<const ProductRow*> shown;
  std::vector<FieldValues> all;
  for (const ProductRow& row : rows) {
    if (!row.refused.empty()) continue;
    shown.push_back(&row);
    all.push_back(constants_of(row.product));
  }
  const std::string kind = rows.empty() ? "" : detail::field_text(rows[0].product.kind);
  const std::string title = str_cat(kind, " on ", device);
  const bool bars = std::all_of(shown.begin(), shown.end(), [&](const ProductRow* row) {
    return row->product.shape.m == shown[0]->product.shape.m;
  });
  if (bars) {
    BarPlot plot{title, "microseconds of a call", {}};
    for (const ProductRow* row : shown) plot.bars.push_back({label_of(*row, all, true), row->time.median});
    for (const ProductRow& row : cublas)
      plot.bars.push_back({cublas_label(row, cublas), row.time.median, true});
    return to_svg(plot);
  }
  LinePlot plot{title, "m", "TFLOP/s", {}};
  for (const ProductRow* row : shown)
    plot.add(label_of(*row, all, false), false, row->product.shape.m, row->teraflops());
  for (const ProductRow& row : cublas)
    plot.add(cublas_label(row, cublas), true, row.product.shape.m, row.teraflops());
  return to_svg(plot);
}

}  // namespace ptxgen::tool
