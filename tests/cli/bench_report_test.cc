#include "tools/ptxgen/bench_report.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "tests/support/catch.h"
#include "tests/support/xml.h"

namespace ptxgen::tool {
namespace {

using testing::parse_xml;
using testing::XmlElement;

BenchRow measured(std::string k, std::string schedule, double us, u64 bytes) {
  return {.kernel = "q4k_gemv k=" + k + " n=4096 schedule=" + schedule,
          .constants = {{"k", k}, {"schedule", schedule}},
          .dependent = schedule == "stream",
          .calls = 120,
          .bytes = bytes,
          .time = {us, us - 0.25, us + 0.5},
          .footprint = {52, 64, 98304, 2, 0},
          .over_read = us / 3.66,
          .over_read_dependent = us / 2.28};
}

BenchRow floor_row(bool dependent, double us, u64 bytes) {
  return {
      .kernel = "read vectors=1", .dependent = dependent, .calls = 120, .bytes = bytes, .time = {us, us, us}};
}

// Two schedules on the same bytes, and one that is refused.
BenchReport one_size() {
  BenchReport report{"CUDA device 0: <H200> & \"friends\"", {}, {}};
  report.rows = {measured("4096", "stream", 2.95, 9437184),
                 measured("4096", "warp", 7.5, 9437184),
                 {.kernel = "q4k_gemv k=4096 schedule=tiled",
                  .constants = {{"k", "4096"}, {"schedule", "tiled"}},
                  .refused = "tiled needs more shared memory"}};
  report.floors = {floor_row(true, 2.28, 9437184), floor_row(false, 3.66, 9437184)};
  return report;
}

BenchReport two_sizes() {
  BenchReport report = one_size();
  report.rows.push_back(measured("14336", "stream", 8.5, 33030144));
  report.rows.push_back(measured("14336", "warp", 25, 33030144));
  return report;
}

std::vector<std::string> lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

std::vector<XmlElement> elements(const std::string& svg) {
  INFO(svg);
  auto parsed = parse_xml(svg);
  REQUIRE(parsed);
  return *std::move(parsed);
}

std::vector<XmlElement> called(const std::vector<XmlElement>& all, std::string_view name) {
  std::vector<XmlElement> found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found),
               [&](const XmlElement& element) { return element.name == name; });
  return found;
}

const XmlElement& labelled(const std::vector<XmlElement>& all, std::string_view text) {
  CAPTURE(std::string(text));
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const XmlElement& e) { return e.name == "text" && e.text == text; });
  REQUIRE(found != all.end());
  return *found;
}

double number(const XmlElement& element, const std::string& attribute) {
  return std::stod(element.attributes.at(attribute));
}

TEST_CASE("the table has a line for each row and floor, refusals with their reason", "[cli]") {
  const std::vector<std::string> table = lines(one_size().text());
  REQUIRE(table.size() == 1 + 1 + 3 + 2);
  CHECK(table[0] == "CUDA device 0: <H200> & \"friends\"");
  for (const char* title :
       {"kernel", "launch", "us", "fastest", "slowest", "bytes", "GB/s", "/ read, PDL", "/ read", "registers",
        "static shared", "dynamic", "CTAs/SM", "spilled", "calls", "refused because"}) {
    CAPTURE(title);
    CHECK(has(table[1], title));
  }
  CHECK_FALSE(has(table[1], "copy"));
  for (const char* cell : {"schedule=stream", " PDL ", " 2.95 ", " 2.70 ", " 3.45 ", " 9437184 ", " 3199 ",
                           " 1.294 ", " 0.806 ", " 52 ", " 64 ", " 98304 ", " 120 "}) {
    CAPTURE(cell);
    CHECK(has(table[2], cell));
  }
  CHECK(has(table[3], " plain "));
  CHECK(has(table[4], "tiled needs more shared memory"));
  CHECK(has(table[5], "read vectors=1"));

  BenchReport copies = one_size();
  copies.rows.pop_back();
  copies.rows[0].over_copy = 1.5;
  CHECK(has(lines(copies.text())[1], "/ copy"));
  CHECK(has(lines(copies.text())[2], " 1.500 "));
  CHECK_FALSE(has(lines(copies.text())[1], "refused"));

  BenchReport packs = one_size();
  CHECK_FALSE(has(lines(packs.text())[1], "code from"));
  packs.rows[1].origin = KernelOrigin::kPack;
  CHECK(has(lines(packs.text())[1], "code from"));
  CHECK(has(lines(packs.text())[2], " compiled"));
  CHECK(has(lines(packs.text())[3], " pack"));

  BenchReport products = one_size();
  CHECK_FALSE(has(lines(products.text())[1], "TFLOP/s"));
  products.rows[0].operations = 2ull * 512 * 4096 * 4096;
  CHECK(has(lines(products.text())[1], "TFLOP/s"));
  CHECK(has(lines(products.text())[2], " 5823.7 "));  // 17.18 billion in 2.95 us
  CHECK(products.json()["rows"][1]["teraflops"].is_null());
}

TEST_CASE("JSON has the numbers as they are", "[cli]") {
  const Json json = one_size().json();
  CHECK(json["device"] == one_size().device);
  REQUIRE(json["rows"].size() == 3);
  REQUIRE(json["floors"].size() == 2);
  const Json& row = json["rows"][0];
  CHECK(row["constants"] == Json({{"k", 4096}, {"schedule", "stream"}}));
  CHECK(row["launch"] == "PDL");
  CHECK(row["microseconds"] == 2.95);
  CHECK(row["gigabytes_per_second"] == 9437184 / 2.95 * 1e-3);
  CHECK(row["over_read_pdl"] == 2.95 / 2.28);
  CHECK(row["over_copy"].is_null());
  CHECK(row["registers"] == 52);
  CHECK(row["local_bytes"] == 0);
  CHECK(row["refused"].is_null());
  CHECK(json["rows"][2]["microseconds"].is_null());
  CHECK(json["rows"][2]["refused"] == "tiled needs more shared memory");
}

TEST_CASE("calls of one size are plotted as bars in proportion to their times", "[cli]") {
  const std::vector<XmlElement> svg = elements(one_size().svg());
  CHECK(svg[0].name == "svg");
  CHECK(svg[0].attributes.at("xmlns") == "http://www.w3.org/2000/svg");
  const std::vector<XmlElement> bars = called(svg, "rect");
  REQUIRE(bars.size() == 1 + 2 + 2);  // the background, and no bar for what was refused
  CHECK(number(bars[2], "width") / number(bars[1], "width") == Approx(7.5 / 2.95).epsilon(0.01));
  CHECK(number(bars[3], "width") / number(bars[1], "width") == Approx(2.28 / 2.95).epsilon(0.01));
  CHECK(bars[3].attributes.at("fill") != bars[1].attributes.at("fill"));
  labelled(svg, "q4k_gemv on CUDA device 0: <H200> & \"friends\"");
  for (const char* label : {"stream", "warp", "read, PDL", "read", "2.95", "7.5", "2.28", "3.66"})
    labelled(svg, label);
}

TEST_CASE("calls of several sizes are plotted as lines over their bytes", "[cli]") {
  const std::vector<XmlElement> svg = elements(two_sizes().svg());
  const std::vector<XmlElement> lines = called(svg, "polyline");
  REQUIRE(lines.size() == 2 * 4);  // each in the plot and in the legend
  for (const char* label : {"stream", "warp", "read, PDL", "read", "MB of a call", "GB/s"})
    labelled(svg, label);
  const auto points = [](const XmlElement& line) {
    std::vector<std::pair<double, double>> all;
    for (const auto point : absl::StrSplit(line.attributes.at("points"), ' ', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> xy = absl::StrSplit(point, ',');
      all.emplace_back(std::stod(xy.first), std::stod(xy.second));
    }
    return all;
  };
  const auto stream = points(lines[0]), warp = points(lines[2]);
  REQUIRE(stream.size() == 2);
  REQUIRE(warp.size() == 2);
  CHECK(stream[0].first < stream[1].first);
  CHECK(stream[0].first == warp[0].first);
  CHECK(stream[0].second < warp[0].second);  // faster is higher, and higher is less in SVG
  CHECK(stream[1].second < stream[0].second);
  CHECK(lines[4].attributes.count("stroke-dasharray") == 1);
  CHECK(lines[0].attributes.count("stroke-dasharray") == 0);
}

TEST_CASE("matrix products are plotted as TFLOP/s over their operations", "[cli]") {
  BenchReport products = two_sizes();
  products.rows.erase(products.rows.begin() + 2);  // the refused one
  for (std::size_t i = 0; i < products.rows.size(); ++i) {
    BenchRow& row = products.rows[i];
    const u64 m = i < 2 ? 16 : 512;
    row.bytes = 9437184;  // as many for every m
    row.constants[0] = {"m", std::to_string(m)};
    row.operations = 2 * m * 4096 * 4096;
  }
  const std::vector<XmlElement> svg = elements(products.svg());
  REQUIRE(called(svg, "polyline").size() == 2 * 2);  // no floor multiplies anything
  for (const char* label : {"stream", "warp", "GFLOP of a call", "TFLOP/s"}) labelled(svg, label);
  products.rows.resize(2);
  labelled(elements(products.svg()), "microseconds of a call");
}

TEST_CASE("a plot stays on its page", "[cli]") {
  BenchReport many = two_sizes();
  for (int i = 0; i < 40; ++i) {
    many.rows.push_back(
        measured("256", "schedule_with_a_long_name_" + std::to_string(i), 1 + i, 1000 + 7 * i));
  }
  for (const std::vector<XmlElement>& svg : {elements(many.svg()), elements(one_size().svg())}) {
    const double width = number(svg[0], "width"), height = number(svg[0], "height");
    for (const XmlElement& element : svg) {
      for (const char* name : {"x", "x1", "x2", "cx"}) {
        if (element.attributes.count(name))
          CHECK((number(element, name) >= 0 && number(element, name) <= width));
      }
      for (const char* name : {"y", "y1", "y2", "cy"}) {
        if (element.attributes.count(name))
          CHECK((number(element, name) >= 0 && number(element, name) <= height));
      }
    }
  }
}

TEST_CASE("one point, or none, is a plot too", "[cli]") {
  BenchReport report = one_size();
  report.rows.resize(1);
  report.rows[0].time = {1e-3, 1e-3, 1e-3};
  report.floors.clear();
  elements(report.svg());
  report.rows.clear();
  elements(report.svg());
  elements(to_svg(LinePlot{"", "", "", {{"a", {{1, 1}}}, {"b", {}}}}));
}

}  // namespace
}  // namespace ptxgen::tool
