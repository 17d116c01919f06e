#include "tools/ptxgen/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "ptxgen/strings.h"

namespace ptxgen::tool {
namespace {

// Told apart also by people who do not see all colours (Okabe and Ito, "Color Universal Design", 2008), and
// by their markers.
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#000000"};
constexpr const char* kReferenceColour = "#999999";
constexpr double kFont = 12, kLetter = 0.62 * kFont;  // width of a letter, on the safe side

std::string escaped(std::string_view text) {
  std::string shown;
  for (const char c : text) shown += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return absl::StrReplaceAll(shown, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// The least of 1, 2, 5, 10, ... that makes at most `most` steps up to `top`.
double step_for(double top, int most) {
  double step = std::pow(10, std::floor(std::log10(top / most)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (top / step <= most) break;
    step *= factor;
  }
  return step;
}

class Svg {
 public:
  Svg(double width, double height) {
    absl::StrAppendFormat(
        &text_,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
        "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"%.0f\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        width, height, width, height, kFont);
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    absl::StrAppendFormat(&text_, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
                          x1, y1, x2, y2, colour);
  }
  void rect(double x, double y, double width, double height, const char* colour) {
    absl::StrAppendFormat(&text_,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y,
                          width, height, colour);
  }
  // `anchor` is start, middle or end: where (x, y) lies in the text.
  void label(double x, double y, const char* anchor, std::string_view text, double turned = 0) {
    absl::StrAppendFormat(&text_, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"", x, y, anchor);
    if (turned != 0) absl::StrAppendFormat(&text_, " transform=\"rotate(%.0f %.1f %.1f)\"", turned, x, y);
    str_append(&text_, ">", escaped(text), "</text>\n");
  }
  void polyline(const std::vector<std::pair<double, double>>& points, const char* colour, bool dashed) {
    absl::StrAppendFormat(&text_, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s points=\"",
                          colour, dashed ? " stroke-dasharray=\"5 4\"" : "");
    for (const auto& [x, y] : points) absl::StrAppendFormat(&text_, "%.1f,%.1f ", x, y);
    text_ += "\"/>\n";
  }
  // The first shapes are the plainest.
  void marker(double x, double y, std::size_t shape, const char* colour) {
    constexpr double kSize = 3.5;
    switch (shape % 3) {
      case 0:
        absl::StrAppendFormat(&text_, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\"/>\n", x, y,
                              kSize, colour);
        break;
      case 1: rect(x - kSize, y - kSize, 2 * kSize, 2 * kSize, colour); break;
      case 2:
        absl::StrAppendFormat(&text_, "<path d=\"M%.1f %.1f l%.1f %.1f h%.1f z\" fill=\"%s\"/>\n", x,
                              y - 1.2 * kSize, 1.2 * kSize, 2.2 * kSize, -2.4 * kSize, colour);
        break;
    }
  }
  std::string finish() { return std::move(text_) + "</svg>\n"; }

 private:
  std::string text_;
};

std::string number(double value) {
  return absl::StrFormat("%.4g", value);
}

std::size_t longest_name(const auto& named) {
  std::size_t letters = 0;
  for (const auto& one : named) letters = std::max(letters, one.name.size());
  return letters;
}

// Of a page on which `title` begins at `left`.
double width_of(const std::string& title, double left) {
  return left + kLetter * static_cast<double>(title.size()) + 10;
}

// Where a plot's lines lie on the page.
class Area {
 public:
  Area(const LinePlot& plot) {
    bool first = true;
    for (const Series& series : plot.series) {
      for (const auto& [x, y] : series.points) {
        low_ = first ? x : std::min(low_, x);
        high_ = first ? x : std::max(high_, x);
        top_ = first ? y : std::max(top_, y);
        first = false;
      }
    }
    if (first || top_ <= 0) top_ = 1;
    step_ = step_for(top_, 8);
    top_ = std::ceil(top_ / step_) * step_;
    low_ /= 1.1;  // so that no marker lies on the frame
    high_ *= 1.1;
  }
  double x(double value) const {
    return kLeft + (kRight - kLeft) * std::log(value / low_) / std::log(high_ / low_);
  }
  double y(double value) const { return kBottom - (kBottom - kTop) * value / top_; }

  void draw_axes(Svg& svg) const {
    for (int i = 0; i * step_ <= top_ * 1.0001; ++i) {
      svg.line(kLeft, y(i * step_), kRight, y(i * step_), "#dddddd");
      svg.label(kLeft - 6, y(i * step_) + 4, "end", number(i * step_));
    }
    const bool crowded = high_ / low_ > 1000;
    for (double decade = std::pow(10, std::floor(std::log10(low_))); decade <= high_; decade *= 10) {
      for (const double digit : {1, 2, 5}) {
        const double tick = decade * digit;
        if (tick < low_ || tick > high_ || (crowded && digit != 1)) continue;
        svg.line(x(tick), kTop, x(tick), kBottom, "#dddddd");
        svg.label(x(tick), kBottom + 16, "middle", number(tick));
      }
    }
    svg.line(kLeft, kBottom, kRight, kBottom, "black");
    svg.line(kLeft, kTop, kLeft, kBottom, "black");
  }

  static constexpr double kLeft = 70, kRight = 640, kTop = 40, kBottom = 420;

 private:
  double low_ = 1, high_ = 1, top_ = 1, step_ = 1;
};

}  // namespace

void LinePlot::add(const std::string& name, bool dashed, double x, double y) {
  auto found = std::find_if(series.begin(), series.end(),
                            [&](const Series& s) { return s.name == name && s.dashed == dashed; });
  if (found == series.end()) found = series.insert(found, Series{name, {}, dashed});
  const std::pair point(x, y);
  found->points.insert(std::upper_bound(found->points.begin(), found->points.end(), point), point);
}

std::string to_svg(const LinePlot& plot) {
  constexpr double kLegend = Area::kRight + 20, kLegendLine = 18;
  const double height =
      std::max(470.0, Area::kTop + kLegendLine * (static_cast<double>(plot.series.size()) + 1));
  Svg svg(std::max(kLegend + 40 + kLetter * static_cast<double>(longest_name(plot.series)),
                   width_of(plot.title, Area::kLeft)),
          height);
  svg.label(Area::kLeft, 22, "start", plot.title);
  svg.label((Area::kLeft + Area::kRight) / 2, Area::kBottom + 36, "middle", plot.x_label);
  svg.label(18, (Area::kTop + Area::kBottom) / 2, "middle", plot.y_label, -90);
  const Area area(plot);
  area.draw_axes(svg);
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const Series& series = plot.series[i];
    const char* colour = series.dashed ? kReferenceColour : kColours[i % kColours.size()];
    const std::size_t shape = i / kColours.size() + (series.dashed ? i : 0);
    std::vector<std::pair<double, double>> points;
    for (const auto& [x, y] : series.points) points.emplace_back(area.x(x), area.y(y));
    svg.polyline(points, colour, series.dashed);
    for (const auto& [x, y] : points) svg.marker(x, y, shape, colour);
    const double y = Area::kTop + kLegendLine * static_cast<double>(i);
    svg.polyline({{kLegend, y}, {kLegend + 24, y}}, colour, series.dashed);
    svg.marker(kLegend + 12, y, shape, colour);
    svg.label(kLegend + 32, y + 4, "start", series.name);
  }
  return svg.finish();
}

std::string to_svg(const BarPlot& plot) {
  constexpr double kTop = 40, kRow = 22, kWidth = 500, kValue = 70;
  const double left = 16 + kLetter * static_cast<double>(longest_name(plot.bars));
  const double bottom = kTop + kRow * static_cast<double>(plot.bars.size());
  double top = 0;
  for (const Bar& bar : plot.bars) top = std::max(top, bar.value);
  if (top <= 0) top = 1;
  Svg svg(std::max(left + kWidth + kValue, width_of(plot.title, left)), bottom + 50);
  svg.label(left, 22, "start", plot.title);
  svg.label(left + kWidth / 2, bottom + 38, "middle", plot.x_label);
  const double step = step_for(top, 8);
  for (int i = 0; i * step <= top; ++i) {
    const double x = left + kWidth * i * step / top;
    svg.line(x, kTop, x, bottom, "#dddddd");
    svg.label(x, bottom + 16, "middle", number(i * step));
  }
  for (std::size_t i = 0; i < plot.bars.size(); ++i) {
    const Bar& bar = plot.bars[i];
    const double y = kTop + kRow * static_cast<double>(i), length = kWidth * bar.value / top;
    svg.rect(left, y + 3, length, kRow - 6, bar.reference ? kReferenceColour : kColours[0]);
    svg.label(left - 6, y + kRow / 2 + 4, "end", bar.name);
    svg.label(left + length + 6, y + kRow / 2 + 4, "start", number(bar.value));
  }
  svg.line(left, kTop, left, bottom, "black");
  return svg.finish();
}

}  // namespace ptxgen::tool
