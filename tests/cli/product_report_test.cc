#include "tools/ptxgen/product_report.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"
#include "tests/support/xml.h"

namespace ptxgen::tool {
namespace {

using testing::contains;
using testing::parse_xml;
using testing::XmlElement;

ProductRow measured(u32 m, const std::string& path, double us, u32 n = 4096) {
  ProductRow row{.product = {.shape = {.n = n, .k = 4096, .m = m}}};
  if (path != "auto") row.product.path.variant = *GemmVariant::parse(path);
  row.ran = {path == "auto" ? "wgmma tile_m=64" : path, "because", {"q4k_gemm k=4096"}};
  row.calls = 120;
  row.time = {us, us - 0.5, us + 1};
  row.over_read_dependent = us / 2;
  row.over_read = us / 4;
  return row;
}

ProductRow cublas_row(u32 m, double us, u32 n = 4096) {
  return {.product = {.shape = {.n = n, .k = 4096, .m = m}}, .calls = 25, .time = {us, us, us}};
}

// Two paths at 16, 17 and 512 rows, and one that is refused.
ProductReport report() {
  ProductReport report{.device = "CUDA device 0: <H200>"};
  for (const auto& [m, us] : {std::pair(16u, 10.0), std::pair(17u, 12.5), std::pair(512u, 40.0)}) {
    report.rows.push_back(measured(m, "auto", us));
    report.rows.push_back(measured(m, "mma", 2 * us));
  }
  ProductRow refused{.product = {.shape = {.m = 16}}, .refused = "tiled takes f32"};
  refused.product.path.variant = GemmVariant{.schedule = GemmSchedule::kTiled};
  refused.product.shape.a_type = ProductInputs::kPrepared;
  report.rows.push_back(refused);
  report.floors = {{.kernel = "read vectors=1", .dependent = true, .bytes = 9437184, .time = {5, 5, 5}}};
  report.cublas = {cublas_row(16, 20), cublas_row(512, 25)};
  return report;
}

std::vector<XmlElement> elements(const std::string& svg) {
  INFO(svg);
  auto parsed = parse_xml(svg);
  REQUIRE(parsed);
  return *std::move(parsed);
}

std::vector<std::string> labels(const std::vector<XmlElement>& all) {
  std::vector<std::string> texts;
  for (const XmlElement& element : all) {
    if (element.name == "text") texts.push_back(element.text);
  }
  return texts;
}

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// The line of `text` that has all parts.
bool has_line(const std::string& text, const std::vector<std::string>& parts) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](const std::string& part) { return line.find(part) != line.npos; });
  });
}

TEST_CASE("the table of products has paths, times, rates and ratios", "[cli]") {
  ProductReport all = report();
  const std::string text = all.text();
  INFO(text);
  CHECK(has_line(text, {"format", " n ", " k ", " m ", "path", "ran", "us", "TFLOP/s", "GB/s", "/ read, PDL",
                        "calls", "refused because"}));
  CHECK_FALSE(contains(text, "/ cuBLAS f16"));
  CHECK_FALSE(contains(text, "us prepared"));
  CHECK_FALSE(contains(text, "scratch"));
  CHECK(has_line(text, {"q4k", " 512 ", "auto", "wgmma tile_m=64", " 40.00 ", " 39.50 ", " 41.00 ", " 429.5 ",
                        " 236 ", " 20.000 ", " 120 "}));
  CHECK(has_line(text, {"tiled", "prepared", "tiled takes f32"}));
  CHECK(has_line(text, {"read vectors=1", "PDL"}));
  CHECK(has_line(text, {"cuBLAS, f16 weights and activations, f32 results"}));
  CHECK(has_line(text, {"4096", "512", " 25.00 ", " 687.2 "}));
  all.rows[0].prepared = 9.25;
  all.rows[0].ran.scratch_bytes = 4711;
  all.rows[0].over_cublas = 0.5;
  CHECK(has_line(all.text(), {"us prepared", "/ cuBLAS f16", "scratch"}));
  CHECK(has_line(all.text(), {" 9.25 ", " 0.500 "}));
}

TEST_CASE("products as JSON", "[cli]") {
  ProductReport all = report();
  all.rows[0].over_cublas = 0.5;
  all.no_cublas = "there is none";
  const Json json = all.json();
  REQUIRE(json["rows"].size() == 7);
  const Json& row = json["rows"][0];
  CHECK(row["format"] == "q4k");
  CHECK(row["m"] == 16);
  CHECK(row["path"] == "auto");
  CHECK(row["ran"] == "wgmma tile_m=64");
  CHECK(row["reason"] == "because");
  CHECK(row["kernels"] == Json::array({"q4k_gemm k=4096"}));
  CHECK(row["a_type"] == "f32");
  CHECK(row["microseconds"] == 10);
  CHECK(row["weight_bytes"] == 4096 * 4096 / 256 * 144);
  CHECK(row["teraflops"] == 2.0 * 16 * 4096 * 4096 / 10 * 1e-6);
  CHECK(row["over_read_pdl"] == 5);
  CHECK(row["over_cublas"] == 0.5);
  CHECK(row["phases"].is_null());
  CHECK(row["refused"].is_null());
  CHECK(json["rows"][6]["refused"] == "tiled takes f32");
  CHECK(json["rows"][6]["microseconds"].is_null());
  CHECK(json["floors"][0]["microseconds"] == 5);
  CHECK(json["cublas"][1]["m"] == 512);
  CHECK(json["no_cublas"] == "there is none");
  CHECK(contains(all.text(), "not measured: cuBLAS f16: there is none"));
}

TEST_CASE("a trace has the phases, their sum and the whole", "[cli]") {
  ProductReport all = report();
  all.rows[0].phases = {{"prepare activations f16", 1, 1.5}, {"q4k_gemm k=4096", 2, 8}};
  const std::string text = all.text();
  INFO(text);
  CHECK(has_line(text, {"auto", "prepare activations f16", " 1.50"}));
  CHECK(has_line(text, {"auto", "q4k_gemm k=4096", " 2  ", " 8.00"}));
  CHECK(has_line(text, {"auto", "sum of the phases, each alone", " 9.50"}));
  CHECK(has_line(text, {"auto", "the whole", " 10.00"}));
  const Json json = all.json();
  CHECK(json["rows"][0]["phases"] ==
        Json::parse(R"([{"kernel": "prepare activations f16", "launches": 1, "microseconds": 1.5},
                                                     {"kernel": "q4k_gemm k=4096", "launches": 2, "microseconds": 8}])"));
  CHECK(json["rows"][0]["phases_microseconds"] == 9.5);
}

TEST_CASE("a cliff is where the choice for one more row takes over a fifth longer", "[cli]") {
  ProductReport all = report();
  REQUIRE(all.cliffs().size() == 1);  // 16 to 17: of path auto, and only that
  CHECK(all.cliffs()[0].rise() == Approx(0.25));
  CHECK(has_line(all.text(), {"q4k 4096x4096: m = 16 to 17 takes 25 % longer, 10.00 to 12.50 us"}));
  const Json cliffs = all.json()["cliffs"];
  REQUIRE(cliffs.size() == 1);
  CHECK(cliffs[0]["m"] == Json::array({16, 17}));
  CHECK(cliffs[0]["microseconds"] == Json::array({10, 12.5}));

  all.rows[2].time.median = 11.9;
  CHECK(all.has_neighbours());
  CHECK(all.cliffs().empty());
  CHECK(contains(all.text(), "no cliffs: from m to m + 1 no time of path auto rises by more than 20 %"));
  std::reverse(all.rows.begin(), all.rows.end());  // in whatever order they come
  all.rows[4].time.median = 12.1;
  CHECK(all.cliffs().size() == 1);
  all.rows[4].product.shape.n = 8192;  // another matrix
  CHECK_FALSE(all.has_neighbours());
  CHECK(all.cliffs().empty());
  CHECK_FALSE(contains(all.text(), "cliff"));
  all = report();
  all.rows[2].refused = "no";
  CHECK_FALSE(all.has_neighbours());
}

TEST_CASE("products are plotted as TFLOP/s over m, or as bars where there is one m", "[cli]") {
  ProductReport all = report();
  std::vector<XmlElement> svg = elements(all.svg());
  std::vector<std::string> texts = labels(svg);
  for (const char* text : {"gemm on CUDA device 0: <H200>", "m", "TFLOP/s", "auto", "mma", "cuBLAS f16"}) {
    CAPTURE(text);
    CHECK(has(texts, text));
  }
  CHECK_FALSE(has(texts, "tiled"));
  const auto lines =
      std::count_if(svg.begin(), svg.end(), [](const auto& e) { return e.name == "polyline"; });
  CHECK(lines == 2 * 3);

  all.rows = {measured(64, "auto", 10), measured(64, "mma", 20), measured(64, "auto", 30, 14336)};
  all.cublas = {cublas_row(64, 20), cublas_row(64, 25, 14336)};
  svg = elements(all.svg());
  texts = labels(svg);
  for (const char* text : {"microseconds of a call", "n=4096, auto", "n=4096, mma", "n=14336, auto",
                           "cuBLAS f16, n=4096, k=4096", "cuBLAS f16, n=14336, k=4096"}) {
    CAPTURE(text);
    CHECK(has(texts, text));
  }
  all.rows.clear();
  all.cublas.clear();
  elements(all.svg());
}

}  // namespace
}  // namespace ptxgen::tool
