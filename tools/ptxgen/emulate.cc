// ptxgen emulate: anyone's PTX on the emulator, buffers from and to files.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "ptxgen/emulator.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/files.h"
#include "tools/ptxgen/profile_report.h"
#include "tools/ptxgen/scalar.h"

namespace ptxgen::tool {
namespace {

constexpr std::uint64_t kMostText = std::uint64_t{1} << 30, kMostFile = std::uint64_t{1} << 36;

struct Options {
  explicit Options(CLI::App& app)
      : in(app, "--in", "FILE",
           "a buffer with the bytes of a file, for the parameter at this place; once for each", "I"),
        out(app, "--out", "FILE:BYTES",
            "a buffer that is written, and the file it goes to; of a buffer that --in gives, BYTES may be "
            "left out",
            "I"),
        arg(app, "--arg", "TYPE:VALUE", "a value, such as 2=f32:0.5, or bytes, such as 3=hex:00ff", "I") {
    app.add_option("FILE", file, "the PTX; - is standard input")->required();
    app.add_option("--entry", entry, "the kernel; may be left out where there is one")->type_name("NAME");
    app.add_option("--grid", grid, "CTAs; default 1")->type_name("X[,Y[,Z]]");
    app.add_option("--block", block, "threads of a CTA")->type_name("X[,Y[,Z]]")->required();
    app.add_option("--shared", shared, "dynamic shared memory; default 0")
        ->type_name("BYTES")
        ->transform(whole_number(0, ~std::uint32_t{0}));
    app.add_option("--seed", seed, "another order of CTAs, warps and copies; default 0, the order of numbers")
        ->type_name("NUMBER")
        ->transform(whole_number(0, ~std::uint64_t{0}));
    app.add_option("--workers", workers, "threads of this computer; default 0, one a core")
        ->type_name("NUMBER")
        ->transform(whole_number(0, 1024));
    app.add_option("--trace", trace,
                   "print what one thread executes: its CTA, and its place in it (default 0)")
        ->type_name("X,Y,Z[:X,Y,Z]");
    app.add_flag("--profile", profile,
                 "print counts: instructions, bytes, bank conflicts, sectors, divergence");
    app.add_flag("--json", json, "print the profile as JSON");
  }
  NamedValues in, out, arg;
  std::string file, entry, grid = "1", block, trace;
  std::uint64_t shared = 0, seed = 0;
  unsigned workers = 0;
  bool profile = false, json = false;
};

// "8", "8,2", "8,2,1"; what is left out is `missing`.
absl::StatusOr<Dim3> parse_extent(std::string_view option, std::string_view text, std::uint64_t missing) {
  const absl::StatusOr<std::vector<std::string>> parts = split_list(option, text);
  if (!parts.ok()) return parts.status();
  Dim3 extent{missing, missing, missing};
  std::uint64_t* const axes[] = {&extent.x, &extent.y, &extent.z};
  bool good = parts->size() <= 3;
  for (std::size_t i = 0; good && i < parts->size(); ++i) {
    good = (*parts)[i].find_first_not_of("0123456789") == std::string::npos &&
           absl::SimpleAtoi((*parts)[i], axes[i]);
  }
  if (good) return extent;
  return absl::InvalidArgumentError(
      str_cat(option, " is '", text, "'; give one to three whole numbers, as 8 or 8,2,1"));
}

absl::StatusOr<emulator::Trace> parse_trace(std::string_view text, std::string& output) {
  const std::size_t colon = text.find(':');
  const absl::StatusOr<Dim3> cta = parse_extent("--trace", text.substr(0, colon), 0);
  if (!cta.ok()) return cta.status();
  emulator::Trace trace;
  trace.cta = *cta;
  if (colon != text.npos) {
    const absl::StatusOr<Dim3> thread = parse_extent("--trace", text.substr(colon + 1), 0);
    if (!thread.ok()) return thread.status();
    trace.thread = *thread;
  }
  const auto value = [](const emulator::TraceValue& v) {
    std::string text_of = str_cat(v.name, "=", absl::StrCat("0x", absl::Hex(v.bits)));
    if (v.type == "b128")
      text_of =
          str_cat(v.name, "=", absl::StrCat("0x", absl::Hex(v.high), absl::Hex(v.bits, absl::kZeroPad16)));
    if (v.type == "pred") text_of = str_cat(v.name, "=", v.bits);
    if (v.type == "f32") str_append(&text_of, " (", scalar_text(Type::kF32, v.bits), ")");
    if (v.type == "f64") str_append(&text_of, " (", scalar_text(Type::kF64, v.bits), ")");
    return text_of;
  };
  trace.sink = [value, &output](const emulator::TraceStep& step) {
    str_append(&output, step.function, ":", step.line, "  ", printable(step.text), "  ");
    for (const emulator::TraceValue& v : step.reads) str_append(&output, " ", value(v));
    if (!step.writes.empty()) str_append(&output, "  ->");
    for (const emulator::TraceValue& v : step.writes) str_append(&output, " ", value(v));
    str_append(&output, step.executed ? "\n" : "  (not executed)\n");
  };
  return trace;
}

absl::StatusOr<std::size_t> parse_place(const NamedValues& option, const std::string& text) {
  std::size_t place = 0;
  if (text.find_first_not_of("0123456789") == text.npos && absl::SimpleAtoi(text, &place)) return place;
  return absl::InvalidArgumentError(
      str_cat(option.option(), " gives '", text, "'; parameters are named by their place: 0 is the first"));
}

// "f32:0.5" as bytes.
absl::StatusOr<std::string> parse_value(const std::string& name, const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string type = text.substr(0, colon), value = colon == text.npos ? "" : text.substr(colon + 1);
  if (type == "hex") {
    if (value.size() % 2 != 0 || value.find_first_not_of("0123456789abcdefABCDEF") != value.npos ||
        value.empty())
      return absl::InvalidArgumentError(
          str_cat("--arg ", name, " is '", text, "'; give two hexadecimal digits a byte"));
    return absl::HexStringToBytes(value);
  }
  std::string names;
  for (const Type scalar : {Type::kU8, Type::kS8, Type::kU16, Type::kS16, Type::kU32, Type::kS32, Type::kU64,
                            Type::kS64, Type::kF16, Type::kBf16, Type::kF32, Type::kF64}) {
    str_append(&names, info(scalar).name, ", ");
    if (info(scalar).name != type || colon == text.npos) continue;
    const absl::StatusOr<u64> bits = parse_scalar(name, scalar, value);
    if (!bits.ok()) return bits.status();
    return std::string(reinterpret_cast<const char*>(&*bits), info(scalar).bytes);
  }
  return absl::InvalidArgumentError(str_cat(
      "--arg ", name, " is '", text, "'; give a type and a value, as f32:0.5; types are ", names, "hex"));
}

// A parameter that is the address of memory.
struct Buffer {
  std::uint64_t address = 0, bytes = 0;
  std::optional<std::string> content;  // of --in
  std::string path;                    // of --out; empty without
};

// By their places.
using Buffers = std::map<std::size_t, Buffer>;

// "y.bin:4096", or "y.bin" of a buffer that --in gives.
absl::Status add_output(std::size_t place, const std::string& text, Buffers& buffers) {
  Buffer& buffer = buffers[place];
  const std::size_t colon = text.rfind(':');
  std::uint64_t bytes = 0;
  const bool sized = colon != text.npos && text.find_first_not_of("0123456789", colon + 1) == text.npos &&
                     absl::SimpleAtoi(text.substr(colon + 1), &bytes);
  buffer.path = sized ? text.substr(0, colon) : text;
  if (!sized && !buffer.content) {
    return absl::InvalidArgumentError(str_cat("--out ", place, " is '", text,
                                              "'; say how many bytes the buffer has, as --out ", place, "=",
                                              text, ":4096, or give its content with --in"));
  }
  if (sized && buffer.content && bytes != buffer.content->size()) {
    return absl::InvalidArgumentError(str_cat("--out ", place, " says ", bytes,
                                              " bytes, and the file of --in ", place, " has ",
                                              buffer.content->size(), "; they are one buffer"));
  }
  if (sized && bytes == 0)
    return absl::InvalidArgumentError(str_cat("--out ", place, " has 0 bytes; give at least 1"));
  if (buffer.path.empty()) return absl::InvalidArgumentError(str_cat("--out ", place, " names no file"));
  if (sized) buffer.bytes = bytes;
  return absl::OkStatus();
}

absl::StatusOr<Buffers> parse_buffers(const Options& options) {
  Buffers buffers;
  const absl::StatusOr<FieldValues> in = options.in.parse(), out = options.out.parse();
  if (!in.ok()) return in.status();
  if (!out.ok()) return out.status();
  for (const auto& [name, path] : *in) {
    const absl::StatusOr<std::size_t> place = parse_place(options.in, name);
    if (!place.ok()) return place.status();
    absl::StatusOr<std::string> content = read_text(path, kMostFile);
    if (!content.ok()) return content.status();
    if (content->empty())
      return absl::InvalidArgumentError(
          str_cat("--in ", *place, ": ", path, " is empty; a buffer has at least 1 byte"));
    buffers[*place].bytes = content->size();
    buffers[*place].content = *std::move(content);
  }
  for (const auto& [name, text] : *out) {
    const absl::StatusOr<std::size_t> place = parse_place(options.out, name);
    if (!place.ok()) return place.status();
    if (absl::Status s = add_output(*place, text, buffers); !s.ok()) return s;
  }
  return buffers;
}

absl::Span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

absl::Status set_buffers(Buffers& buffers, emulator::Memory& memory, emulator::Arguments& arguments) {
  for (auto& [place, buffer] : buffers) {
    const absl::StatusOr<std::uint64_t> address = memory.allocate(buffer.bytes, str_cat("parameter ", place));
    if (!address.ok()) return address.status();
    buffer.address = *address;
    if (buffer.content) {
      if (absl::Status s = memory.write(*address, bytes_of(*buffer.content)); !s.ok()) return s;
    }
    if (absl::Status s = arguments.set(place, *address); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status set_values(const NamedValues& given, emulator::Arguments& arguments) {
  const absl::StatusOr<FieldValues> values = given.parse();
  if (!values.ok()) return values.status();
  for (const auto& [name, text] : *values) {
    const absl::StatusOr<std::size_t> place = parse_place(given, name);
    if (!place.ok()) return place.status();
    const absl::StatusOr<std::string> bytes = parse_value(name, text);
    if (!bytes.ok()) return bytes.status();
    if (absl::Status s = arguments.set_bytes(*place, bytes_of(*bytes)); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<emulator::EntryInfo> find_entry(const emulator::Program& program, const std::string& name) {
  const auto entries = program.entries();
  if (const emulator::EntryInfo* entry = program.find_entry(name)) return *entry;
  if (name.empty() && entries.size() == 1) return entries[0];
  std::string names;
  for (const emulator::EntryInfo& e : entries) str_append(&names, names.empty() ? "" : ", ", e.name);
  return absl::InvalidArgumentError(str_cat(
      name.empty() ? std::string("no --entry is given") : str_cat("--entry '", name, "' is not there"),
      "; the module has ", names.empty() ? "none" : names));
}

// What the kernel left in the buffers. Bytes that it did not write are 0, and said.
absl::Status save(const Buffers& buffers, const emulator::Memory& memory,
                  std::map<std::size_t, OutputFile>& files) {
  for (auto& [place, file] : files) {
    const Buffer& buffer = buffers.at(place);
    std::string content(buffer.bytes, '\0');
    const absl::Span<std::byte> out(reinterpret_cast<std::byte*>(content.data()), content.size());
    if (absl::Status s = memory.read(buffer.address, out, true); !s.ok()) {
      say(str_cat("warning: --out ", place, ": ", s.message(), "; such bytes are saved as 0"));
      if (s = memory.read(buffer.address, out); !s.ok()) return s;
    }
    if (absl::Status s = file.write(bytes_of(content)); !s.ok()) return s;
  }
  for (auto& [place, file] : files) {
    if (absl::Status s = file.commit(); !s.ok()) return s;
  }
  return absl::OkStatus();
}

struct Prepared {
  emulator::LaunchConfig config;
  emulator::Options options;
};

absl::StatusOr<Prepared> prepare(const Options& options, std::string& trace) {
  Prepared prepared;
  const absl::StatusOr<Dim3> grid = parse_extent("--grid", options.grid, 1);
  if (!grid.ok()) return grid.status();
  const absl::StatusOr<Dim3> block = parse_extent("--block", options.block, 1);
  if (!block.ok()) return block.status();
  prepared.config = {.grid = *grid, .block = *block, .dynamic_shared_bytes = options.shared, .params = {}};
  prepared.options.workers = options.workers;
  prepared.options.seed = options.seed;
  prepared.options.profile = options.profile || options.json;
  if (options.trace.empty()) return prepared;
  absl::StatusOr<emulator::Trace> followed = parse_trace(options.trace, trace);
  if (!followed.ok()) return followed.status();
  const auto within = [](const Dim3& at, const Dim3& extent) {
    return at.x < extent.x && at.y < extent.y && at.z < extent.z;
  };
  if (!within(followed->cta, *grid) || !within(followed->thread, *block)) {
    return absl::InvalidArgumentError(str_cat(
        "--trace is '", options.trace, "'; grid and block have no such CTA or thread, which count from 0"));
  }
  prepared.options.trace = *std::move(followed);
  return prepared;
}

absl::StatusOr<Outcome> emulate(const Options& options) {
  Outcome outcome;
  absl::StatusOr<Prepared> prepared = prepare(options, outcome.text);
  if (!prepared.ok()) return prepared.status();
  const absl::StatusOr<std::string> text =
      read_text(options.file == "-" ? "/dev/stdin" : options.file, kMostText);
  if (!text.ok()) return text.status();
  const auto program = emulator::Program::parse(*text);
  if (!program.ok()) return program.status();
  const absl::StatusOr<emulator::EntryInfo> entry = find_entry(**program, options.entry);
  if (!entry.ok()) return entry.status();
  absl::StatusOr<Buffers> buffers = parse_buffers(options);
  if (!buffers.ok()) return buffers.status();
  emulator::Memory memory;
  emulator::Arguments arguments(*entry);
  if (absl::Status s = set_buffers(*buffers, memory, arguments); !s.ok()) return s;
  if (absl::Status s = set_values(options.arg, arguments); !s.ok()) return s;
  const absl::StatusOr<absl::Span<const std::byte>> params = arguments.bytes();
  if (!params.ok()) return params.status();
  prepared->config.params = *params;
  std::map<std::size_t, OutputFile> files;  // before the work, so that a wrong path costs none
  for (const auto& [place, buffer] : *buffers) {
    if (buffer.path.empty()) continue;
    absl::StatusOr<OutputFile> file = OutputFile::create(buffer.path);
    if (!file.ok()) return file.status();
    files.emplace(place, *std::move(file));
  }

  const auto stats = emulator::launch(**program, entry->name, prepared->config, memory, prepared->options);
  if (absl::IsAborted(stats.status())) {  // a fault of the kernel; what was traced leads to it
    say(str_cat(stats.status().message()));
    outcome.exit_status = kNotVerified;
    return outcome;
  }
  if (!stats.ok()) return stats.status();
  if (absl::Status s = save(*buffers, memory, files); !s.ok()) return s;
  if (options.json) {
    outcome.text += to_text(profile_json(*stats));
  } else if (options.profile) {
    outcome.text += profile_text(*stats);
  }
  return outcome;
}

}  // namespace

Action declare_emulate(CLI::App& app, const NamedKernel&) {
  const auto options = std::make_shared<Options>(app);
  return [options] { return emulate(*options); };
}

}  // namespace ptxgen::tool
