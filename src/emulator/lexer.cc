#include "src/emulator/lexer.h"
#include "src/emulator/text.h"

#include <bit>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace ptxgen::emulator {
namespace {

bool starts_name(char c) {
  return absl::ascii_isalpha(c) || c == '_' || c == '$' || c == '%';
}
bool continues_name(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '$';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  absl::StatusOr<std::vector<Token>> run() {
    for (;;) {
      if (absl::Status s = skip_blanks(); !s.ok()) return s;
      if (at_ == source_.size()) break;
      if (absl::Status s = next(); !s.ok()) return s;
    }
    add(Token::Kind::kEnd, at_);
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  absl::Status error(std::string_view what) const {
    return absl::InvalidArgumentError(
        str_cat("PTX line ", line_, ": ", what, ": '", escaped(line_text(source_, line_)), "'"));
  }

  absl::Status skip_blanks() {
    while (at_ < source_.size()) {
      if (peek() == '\n') ++line_;
      if (absl::ascii_isspace(peek())) {
        ++at_;
      } else if (peek() == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
        ++at_;  // a line goes on in the next
      } else if (peek() == '/' && peek(1) == '/') {
        while (at_ < source_.size() && peek() != '\n') ++at_;
      } else if (peek() == '/' && peek(1) == '*') {
        const std::size_t end = source_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return error("comment without its '*/'");
        for (; at_ < end + 2; ++at_) line_ += source_[at_] == '\n';
      } else {
        break;
      }
    }
    return absl::OkStatus();
  }

  void add(Token::Kind kind, std::size_t begin, std::uint64_t bits = 0) {
    tokens_.push_back({kind, source_.substr(begin, at_ - begin), line_, bits});
  }

  absl::Status next() {
    const std::size_t begin = at_;
    const char c = peek();
    if (starts_name(c)) {
      ++at_;
      while (continues_name(peek())) ++at_;
      add(Token::Kind::kName, begin);
    } else if (c == '.' && (continues_name(peek(1)))) {
      ++at_;
      while (continues_name(peek()) || (peek() == ':' && peek(1) == ':' && continues_name(peek(2)))) {
        at_ += peek() == ':' ? 2 : 1;
      }
      add(Token::Kind::kDotted, begin);
    } else if (absl::ascii_isdigit(c)) {
      return number();
    } else if (c == '"') {
      const std::size_t end = source_.find_first_of("\"\n", at_ + 1);
      if (end == std::string_view::npos || source_[end] == '\n')
        return error("string without its closing quote");
      tokens_.push_back({Token::Kind::kString, source_.substr(at_ + 1, end - at_ - 1), line_, 0});
      at_ = end + 1;
    } else if (std::string_view("{}[]()<>,;:@!|+-=*").find(c) != std::string_view::npos) {
      ++at_;
      add(Token::Kind::kSymbol, begin);
    } else {
      return error(
          str_cat("character '", escaped(std::string_view(&source_[at_], 1)), "' is not part of PTX"));
    }
    return absl::OkStatus();
  }

  // Integer: decimal, 0x, 0b or octal, with an optional U. Float: 0f and 8 digits, 0d and 16 digits, or
  // decimal.
  absl::Status number() {
    const std::size_t begin = at_;
    const char prefix = peek() == '0' ? absl::ascii_tolower(peek(1)) : '\0';
    if (prefix == 'f' || prefix == 'd') return float_pattern(prefix == 'f' ? 8 : 16);
    while (
        continues_name(peek()) || peek() == '.' ||
        ((peek() == '+' || peek() == '-') && prefix != 'x' && absl::ascii_tolower(source_[at_ - 1]) == 'e')) {
      ++at_;
    }
    std::string_view text = source_.substr(begin, at_ - begin);
    if (prefix != 'x' && text.find_first_of(".eE") != std::string_view::npos) {
      double value;
      if (!absl::SimpleAtod(absl::string_view(text.data(), text.size()), &value))
        return error(str_cat("'", text, "' is not a number"));
      add(Token::Kind::kFloat64, begin, std::bit_cast<std::uint64_t>(value));
      return absl::OkStatus();
    }
    if (text.back() == 'U') text.remove_suffix(1);
    const bool octal = prefix != '\0' && absl::ascii_isdigit(prefix);
    const std::uint64_t base = prefix == 'x' ? 16 : prefix == 'b' ? 2 : octal ? 8 : 10;
    if (base == 16 || base == 2) text.remove_prefix(2);
    std::uint64_t value = 0;
    for (char digit : text) {
      const std::uint64_t d = absl::ascii_isdigit(digit) ? static_cast<std::uint64_t>(digit - '0')
                              : absl::ascii_isxdigit(digit)
                                  ? static_cast<std::uint64_t>(absl::ascii_tolower(digit) - 'a' + 10)
                                  : 16;
      if (d >= base || value > (~std::uint64_t{0} - d) / base) {
        return error(str_cat("'", source_.substr(begin, at_ - begin), "' is not a 64-bit integer"));
      }
      value = value * base + d;
    }
    if (text.empty()) return error("number without digits");
    add(Token::Kind::kInteger, begin, value);
    return absl::OkStatus();
  }

  absl::Status float_pattern(std::size_t digits) {
    const std::size_t begin = at_;
    at_ += 2;
    std::uint64_t bits = 0;
    std::size_t count = 0;
    for (; absl::ascii_isxdigit(peek()); ++at_, ++count) {
      const char d = absl::ascii_tolower(peek());
      bits = bits << 4 | static_cast<std::uint64_t>(absl::ascii_isdigit(d) ? d - '0' : d - 'a' + 10);
    }
    if (count != digits) {
      return error(
          str_cat("0", digits == 8 ? "f" : "d", " must be followed by ", digits, " hexadecimal digits"));
    }
    add(digits == 8 ? Token::Kind::kFloat32 : Token::Kind::kFloat64, begin, bits);
    return absl::OkStatus();
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> tokenize(std::string_view source) {
  return Lexer(source).run();
}

std::string_view line_text(std::string_view source, std::uint32_t line) {
  std::size_t begin = 0;
  for (; line > 1; --line) {
    begin = source.find('\n', begin);
    if (begin == std::string_view::npos) return {};
    ++begin;
  }
  std::string_view text = source.substr(begin, source.find('\n', begin) - begin);
  while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && absl::ascii_isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

}  // namespace ptxgen::emulator
