// list, explain, devices, --help, --version.
#include <algorithm>

#include "ptxgen/environment.h"
#include "ptxgen/kernels.h"
#include "tests/cli/child.h"
#include "tests/support/catch.h"

using namespace ptxgen;
using namespace ptxgen::testing;
using nlohmann::json;

namespace {

json named(const json& objects, const std::string& name) {
  const auto found =
      std::find_if(objects.begin(), objects.end(), [&](const json& o) { return o["name"] == name; });
  REQUIRE(found != objects.end());
  return *found;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("list shows every kernel with its constants", "[cli]") {
  const Command command;
  const Finished finished = command.run({"list"});
  CHECK(finished.exit_status == 0);
  CHECK(finished.err.empty());
  const json kernels = command.run_json({"list"})["kernels"];
  REQUIRE(kernels.size() == kernel_families().size());
  for (const KernelFamily& family : kernel_families()) {
    const json kernel = named(kernels, family.name);
    CHECK(contains(finished.out, family.name + ": "));
    CHECK(kernel["lowest_target"] == family.lowest_target().to_string());
    CHECK(kernel["original_names"] == json(family.original_names));
    CHECK(kernel["parameters"].size() == family.fields.size());
  }
  const json q4k = named(kernels, "q4k_dequant");
  const json k = named(q4k["parameters"], "k"), type = named(q4k["parameters"], "out_type");
  CHECK(k["min"] == 256);
  CHECK(k["max"] == 1 << 24);
  CHECK(k["multiple"] == 256);
  CHECK(k["default"] == 4096);
  CHECK(k["values"].is_null());
  CHECK(type["option"] == "--out-type");
  CHECK(type["values"] == json({"f32", "f16", "bf16"}));
  CHECK(type["default"] == "f32");
  CHECK(type["min"].is_null());
  CHECK(named(q4k["arguments"], "weights")["direction"] == "in");
  CHECK(named(q4k["arguments"], "out")["direction"] == "out");
  CHECK(contains(finished.out, "Q4KDequantFp16"));
}

TEST_CASE("what list says can be given is accepted, and what lies beyond is refused", "[cli]") {
  const Command command;
  for (const json& kernel : command.run_json({"list"})["kernels"]) {
    for (const json& parameter : kernel["parameters"]) {
      if (!parameter["values"].is_null()) continue;
      const std::string name = kernel["name"], option = parameter["option"];
      INFO(name << " " << option);
      const u64 min = parameter["min"], max = parameter["max"], multiple = parameter["multiple"];
      const auto run = [&](u64 value) {
        return command.run({"dump", "--kernel", name, option, std::to_string(value), "--emit", "descriptor"});
      };
      const auto status = [&](u64 value) { return run(value).exit_status; };
      // A rule that involves other constants may refuse it; the bounds do not.
      const auto within_bounds = [&](u64 value) { return !contains(run(value).err, "it must be from"); };
      CHECK(within_bounds(min));
      CHECK(within_bounds(max));
      if (parameter["optional"]) {
        CHECK(status(0) == 0);
      } else {
        CHECK(status(min) == 0);
        CHECK(status(min - 1) == 2);
      }
      CHECK(status(max + 1) == 2);
      if (multiple > 1) CHECK(status(min + 1) == 2);
    }
  }
}

TEST_CASE("explain tells geometry, instructions and traffic", "[cli]") {
  const Command command;
  const Command::Arguments arguments = {"explain", "--kernel", "q4k_dequant", "--k", "4096", "--n", "11008"};
  const json explained = command.run_json(arguments);
  CHECK(explained["kernel"] == "q4k_dequant k=4096 n=11008 out_type=f32");
  CHECK(explained["bytes_read"] == 4096 / 256 * 144 * 11008);
  CHECK(explained["bytes_written"] == 4096 * 11008 * 4);
  const LaunchShape shape = DescriptorOf<Dequant>({.k = 4096, .n = 11008}).launch_shape(std::vector<u64>(2));
  CHECK(explained["grid"] == json({shape.grid.x, 1, 1}));
  CHECK(explained["block"] == json({shape.block.x, 1, 1}));

  // The instructions are those of the text: one a line that ends in ';' and declares nothing.
  const std::string ptx = command.run({"dump", "--kernel", "q4k_dequant", "--k", "4096", "--n", "11008"}).out;
  u32 lines = 0, sum = 0;
  for (std::size_t at = ptx.find('{'); (at = ptx.find(";\n", at + 1)) != ptx.npos;) {
    const std::size_t start = ptx.find_first_not_of(' ', ptx.rfind('\n', at) + 1);
    lines += ptx.compare(start, 4, ".reg") != 0 && ptx.compare(start, 4, "ret;") != 0;
  }
  for (const json& row : explained["instructions"]) {
    if (row["kind"] != "all") sum += row["count"].get<u32>();
  }
  CHECK(sum == lines);
  CHECK(explained["instructions"].back() == json({{"kind", "all"}, {"count", lines}}));

  // No driver here; ptxas is.
  REQUIRE(explained["compiled"]["known"].size() == 1);
  CHECK(explained["compiled"]["known"][0]["registers"] > 8);
  CHECK(explained["compiled"]["known"][0]["spilled_bytes"] == 0);
  CHECK(explained["compiled"]["not_known"].size() == 1);

  Command bare;
  bare.environment["PTXGEN_PTXAS"] = "/nonexistent/ptxas";
  const Finished text = bare.run(arguments);
  CHECK(text.exit_status == 0);
  CHECK(contains(text.out, "by ptxas: not known: PTXGEN_PTXAS=/nonexistent/ptxas"));
  CHECK(contains(text.out, "by the driver: not known: "));
}

TEST_CASE("devices shows the emulated one, why CUDA is absent, and the variables", "[cli]") {
  Command command;
  command.environment = {{"PTXGEN_LIBCUDA", "/nonexistent/libcuda"}, {"PTXGEN_EMULATOR_TARGET", "sm_80"}};
  const Finished text = command.run({"devices"});
  CHECK(text.exit_status == 0);
  CHECK(contains(text.out, "/nonexistent/libcuda"));
  const json devices = command.run_json({"devices"});
  CHECK(devices["devices"].back()["device"] == "emulator");
  CHECK(devices["devices"].back()["target"] == "sm_80");
  CHECK(contains(devices["cuda"], "/nonexistent/libcuda"));
  CHECK(devices["environment"].size() == env::kAll.size());
  CHECK(named(devices["environment"], "PTXGEN_EMULATOR_TARGET")["value"] == "sm_80");
  CHECK(named(devices["environment"], "PTXGEN_DUMP")["value"].is_null());
}

#ifdef PTXGEN_FAKE_CUDA
TEST_CASE("devices and explain ask the driver where there is one", "[cli]") {
  Command command;
  command.environment = {{"PTXGEN_LIBCUDA", PTXGEN_FAKE_CUDA}};
  const json devices = command.run_json({"devices"})["devices"];
  REQUIRE(devices.size() == 3);
  CHECK(devices[0]["device"] == "cuda:0");
  CHECK(devices[1]["device"] == "cuda:1");
  const json compiled =
      command.run_json({"explain", "--kernel", "q6k_dequant", "--device", "cuda:1"})["compiled"];
  CHECK(compiled["known"].size() == 2);
  CHECK(compiled["not_known"].empty());
}
#endif

TEST_CASE("help is on stdout and shows the named kernel's constants", "[cli]") {
  const Command command;
  const Finished top = command.run({"--help"});
  CHECK(top.exit_status == 0);
  CHECK(top.err.empty());
  for (const char* name : {"list", "dump", "run", "verify", "explain", "bench", "devices"}) {
    CHECK(contains(top.out, std::string("  ") + name));
    const Finished help = command.run({name, "--help"});
    CHECK(help.exit_status == 0);
    CHECK(help.err.empty());
    CHECK(contains(help.out, std::string("Example:\n  ptxgen ") + name));
  }
  const Finished help = command.run({"dump", "--kernel", "q4_0_dequant", "--help"});
  CHECK(contains(help.out, "--out-type"));
  CHECK(contains(help.out, "a multiple of 32"));
  CHECK(!contains(help.out, "--vectors"));
  CHECK(contains(command.run({"run", "--kernel=copy", "-h"}).out, "--vectors"));
  CHECK(command.run({"--version"}).out.starts_with("ptxgen "));
}
