// Plots as SVG text.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ptxgen::tool {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by x
  bool dashed = false;
};

// Lines with a marker at each point, and a legend. x is logarithmic and greater than 0; y begins at 0.
struct LinePlot {
  std::string title, x_label, y_label;
  std::vector<Series> series;

  // A point of the series of that name, which begins with its first; points may come in any order.
  void add(const std::string& name, bool dashed, double x, double y);
};
std::string to_svg(const LinePlot& plot);

struct Bar {
  std::string name;
  double value = 0;
  bool reference = false;  // drawn lighter: a yardstick
};

// Horizontal bars from 0, each with its name before it and its value behind it.
struct BarPlot {
  std::string title, x_label;
  std::vector<Bar> bars;
};
std::string to_svg(const BarPlot& plot);

}  // namespace ptxgen::tool
